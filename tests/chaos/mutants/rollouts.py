"""Mistakes in rollouts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rekindle.actors.rules import rollout as rules
from rekindle.actors.rules.rollout import Rollout, Sights, Turn
from rekindle.actors.supervisor.orders.declarations import Declarations


def replaces_before_a_spare_is_ready(patch: pytest.MonkeyPatch) -> None:
    """A process that has started is taken for one that is ready."""
    real = rules.advance

    def advance(rollout: Rollout, sights: Sights, now_ms: int) -> Turn:
        seen = {id_: replace(each, is_ready=each.is_up) for id_, each in sights.items()}
        return real(rollout, seen, now_ms)

    patch.setattr(rules, "advance", advance)


def leaves_the_spares(patch: pytest.MonkeyPatch) -> None:
    """The additional workers are not removed."""
    patch.setattr(Declarations, "dismiss", lambda _self, _ids: None)
