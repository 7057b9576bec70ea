"""Log files that several workers share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rekindle.actors.spec.policies.log_policy import LogPolicy, filled_in

from ..file_tables import WORKER_NAME
from ..model import WorkerTable
from ..problems import ConfigFinding


def log_findings(groups: Iterable[WorkerTable]) -> Iterator[ConfigFinding]:
    """Workers that write to the same file must agree on how it is written."""
    known: dict[str, tuple[str, LogPolicy]] = {}
    for group in groups:
        log = group.template.log
        if log is None or log.file is None or not WORKER_NAME.fullmatch(group.name):
            continue
        for path, log in _files(group).items():
            other, before = known.setdefault(path, (group.name, log))
            if _settings(log) != _settings(before):
                reason = f"has other settings than worker.{other}.log, which has the same file {path}"
                yield ConfigFinding(("worker", group.name, "log"), reason)


def _files(group: WorkerTable) -> dict[str, LogPolicy]:
    """The log files of the first and the last worker of a group, by their paths."""
    ends = {0, group.count - 1} if group.count > 0 else set[int]()
    logs = {spec.id: spec.log for spec in map(group.member, sorted(ends))}
    named = {id_: log for id_, log in logs.items() if log is not None}
    return {filled_in(log.file, id_, group.name): log for id_, log in named.items() if log.file is not None}


def _settings(log: LogPolicy) -> tuple[object, ...]:
    return log.max_mb, log.keep, log.compress, log.format, log.mode
