"""The schedule of a worker: its keys stand beside the other settings of the worker."""

from __future__ import annotations

from rekindle.actors.errors import SpecError
from rekindle.actors.spec.policies.schedule import SchedulePolicy
from rekindle.actors.spec.validation import settings_of

from ..problems import NOTHING, ConfigFinding
from ..workers.layers import Layers

_WHEN = frozenset({"every", "cron"})


def schedule_of(layers: Layers, findings: list[ConfigFinding]) -> SchedulePolicy | None:
    """The schedule that a worker's table and the defaults declare, if any; problems are added."""
    given = layers.settings(SchedulePolicy)
    if not _WHEN & given.keys():
        findings += _without_schedule(layers)
        return None
    if _WHEN & layers.worker.keys():  # the worker's own replaces that of the defaults
        given = {name: value for name, value in given.items() if name not in _WHEN or name in layers.worker}
    try:
        return SchedulePolicy(**given)
    except SpecError as error:
        findings += [
            layers.finding((each.field,), each.reason, _value(layers, each.field)) for each in error.problems
        ]
        return None


def _without_schedule(layers: Layers) -> list[ConfigFinding]:
    """Settings of a schedule in a table that has none; a default time zone is not a mistake."""
    if _WHEN & layers.written:  # it has one, which is wrong and reported already
        return []
    keys = [each.key for each in settings_of(SchedulePolicy).values() if each.key in layers.written]
    reason = "has no effect without every or cron, which say when the worker runs"
    return [layers.finding((key,), reason, _value(layers, key)) for key in keys]


def _value(layers: Layers, key: str) -> object:
    return layers.setting(key, NOTHING)
