"""Pure: whether the end of a worker is the end of everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..deaths.death import Death, Exit
from ..messages import EssentialEnded
from ..spec.policies.group import Essential, Group, ends_with
from .group_rules import GroupRuling, is_over
from .worker import Failed, SupervisedWorker

FAILURE = 1
"""The exit code if the worker's own is not known, or says that all is well."""


def essential_end(
    worker: SupervisedWorker,
    death: Death,
    ruling: GroupRuling,
    members_of: Callable[[Group], Iterable[SupervisedWorker]],
) -> EssentialEnded | None:
    """What is announced if the supervisor stops because of this death; None if it does not.

    Args:
        worker: the worker after its death.
        death: how it died.
        ruling: what the death means for its groups.
        members_of: the workers of a group.
    """
    failed = isinstance(worker.phase, Failed) or (is_over(worker) and not death.ended_well)
    if not failed and not is_over(worker):
        return None
    group = _ended_group(worker, ruling, members_of)
    if not ends_with(worker.spec.essential, failed=failed) and group is None:
        return None
    reason = worker.phase.reason if isinstance(worker.phase, Failed) else death.summary
    name = "" if group is None or worker.spec.essential else group.name
    return EssentialEnded(worker.id, name, reason, exit_code(death.exit, failed=failed))


def _ended_group(
    worker: SupervisedWorker, ruling: GroupRuling, members_of: Callable[[Group], Iterable[SupervisedWorker]]
) -> Group | None:
    if ruling.ends_all:
        return ruling.given_up[-1]
    for group in ruling.given_up:
        if group.essential is not False:
            return group
    for place in worker.spec.membership:
        if place.group.essential is Essential.ON_END and all(
            is_over(each) or isinstance(each.phase, Failed)
            for each in members_of(place.group)
            if not each.spec.temporary
        ):
            return place.group
    return None


def exit_code(ended: Exit, *, failed: bool) -> int:
    """What a supervisor exits with that stops because of this end."""
    if ended.signal is not None:
        return 128 + ended.signal
    if ended.code is None or (failed and ended.code == 0):
        return FAILURE
    return ended.code


def is_essential(worker: SupervisedWorker) -> bool:
    """Whether the supervisor stops when this worker, or a group of it, is given up."""
    return worker.spec.essential is not False or any(
        place.group.essential is not False for place in worker.spec.membership
    )
