"""Mistakes in alerts."""

from __future__ import annotations

import pytest

from rekindle.actors.rules import alert_rules
from rekindle.actors.rules.alert_book import AlertStep, Book


def never_resolves_an_alert(patch: pytest.MonkeyPatch) -> None:
    """Lasting health does not end an episode."""
    patch.setattr(alert_rules, "settled", lambda book, _id, _now: AlertStep(book))


def opens_an_alert_for_each_death(patch: pytest.MonkeyPatch) -> None:
    """A crash loop is as many alerts as deaths."""
    patch.setattr(Book, "active", lambda _self, _id, _kind, _queue=None: None)


def opens_no_alert(patch: pytest.MonkeyPatch) -> None:
    """A crash is not told as an alert."""
    patch.setattr(alert_rules, "_died", lambda book, _died, _now, _recent: AlertStep(book))
