"""Pure: explains the state of a worker in sentences.

Why it does not run, its restart counters, when it restarts, and what an operator can do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from rekindle.worker.plain_text import printable, progress_words, span

from ..deaths.crash_bundle import Bundle
from ..deaths.death import Cause, Exit
from ..deaths.findings import Confidence, Finding
from ..deaths.last_error import last_lines
from ..deaths.left_processes import daemon_hint, listed
from ..facts.audit_entry import AuditEntry, AuditResult
from ..facts.health_status import ShownStatus, Status
from ..facts.jobs import JobView
from ..facts.records import DeathRecord
from ..messages import GroupStatus, RolloutStatus, WorkerStatus
from ..supervision.worker import Rest
from .sentences.group_sentences import group_words
from .sentences.run_sentences import schedule_sentences

_NO_NEWS = frozenset({Finding.EXIT, Finding.OPERATOR})
"""Findings that add nothing to the exit code."""


class Stopped(msgspec.Struct, frozen=True):
    """Who stopped a worker, and how long ago."""

    who: str
    ago_s: float


def stop_of(component_id: str, newest_first: Iterable[AuditEntry], now_wall_ms: int) -> Stopped | None:
    """The command that stopped a worker, if it is among these."""
    for entry in newest_first:
        about_it = entry.target == component_id and entry.result is AuditResult.DONE
        if about_it and entry.action == "stop":
            return Stopped(_who(entry), max(0, now_wall_ms - entry.at_wall_ms) / 1000)
        if about_it and entry.action in ("start", "restart"):
            return None
    return None


def _who(entry: AuditEntry) -> str:
    if entry.uid is None and entry.claimed_user is not None:
        return f"an operator ({entry.claimed_user})"
    who = "an operator" if entry.uid is None else f"user {entry.uid}"
    return who if entry.claimed_user is None else f"{who} (as {entry.claimed_user})"


def explain(
    worker: WorkerStatus,
    deaths: Sequence[DeathRecord] = (),
    *,
    bundle: Bundle | None = None,
    stop: Stopped | None = None,
    everything_paused: bool = False,
    groups: Sequence[GroupStatus] = (),
    rollouts: Sequence[RolloutStatus] = (),
    sockets: Mapping[str, str] | None = None,
    jobs: Sequence[JobView] = (),
    command: Sequence[str] = (),
) -> str:
    """Explain one worker, one sentence per line.

    Args:
        worker: its status.
        deaths: its deaths, newest first.
        bundle: the evidence of the newest death.
        stop: the command that stopped it, if known.
        everything_paused: the whole system is paused, not only this worker.
        groups: the groups that it stands and falls with, the enclosing ones first.
        rollouts: all rollouts, also those that have ended.
        sockets: where its sockets listen, by name.
        jobs: the jobs of queues that it executes.
        command: what it runs, if that is a command.
    """
    # What workers wrote is in them: a line end must not look like the beginning of another sentence.
    served = [f"It serves the socket {name} on {where}." for name, where in (sockets or {}).items()]
    others = (*served, *_rollouts(worker.component_id, rollouts), *map(group_words, reversed(groups)))
    sentences = [*_sentences(worker, deaths, bundle, stop, jobs, command), *others]
    advice = _resuming(worker, everything_paused) if worker.paused else _advice(worker, groups)
    return "\n".join(map(printable, (*sentences, *filter(None, (advice,)))))


def _rollouts(component_id: str, rollouts: Sequence[RolloutStatus]) -> Iterator[str]:
    for each in rollouts:
        if each.stage != "over" and component_id in each.spares:
            yield f"It exists for the time of the rollout of {each.group}."
        elif each.stage != "over" and component_id in each.workers:
            of = f"{len(each.replaced)} of {len(each.workers)} replaced"
            yield f"A rollout of {each.group} is under way: {of}."
        elif each.problem and component_id in each.workers:
            yield f"The latest rollout of {each.group} was ended: {each.problem}."


def _sentences(
    worker: WorkerStatus,
    deaths: Sequence[DeathRecord],
    bundle: Bundle | None,
    stop: Stopped | None,
    jobs: Sequence[JobView],
    command: Sequence[str],
) -> Iterator[str]:
    yield _stopped(worker, stop) if worker.why_code == Rest.STOPPED else _state(worker)
    if worker.schedule is not None:
        yield from schedule_sentences(worker.schedule)
    yield from (_held(job, worker.current_job) for job in jobs)
    known = {name for job in jobs for name in (job.id, job.unique_key)}
    if worker.current_job is not None and worker.current_job not in known:
        yield f"It holds job {worker.current_job}."
    if worker.start_note:
        yield f"Its process was {worker.start_note}."
    if worker.probes:
        yield f"Its probe: {worker.probes[0]}."
    if worker.said:
        yield f"It says: {worker.said}"
    if worker.paused:
        yield _pause(worker)
    if deaths:
        yield _last_death(deaths[0], worker.failure_reason, bundle)
    if bundle is not None:
        yield from _last_lines(bundle, worker.failure_reason or "")
        yield f"More: rekindle history {worker.component_id} --bundle last"
    if deaths and worker.pid is None and (hint := _daemon_hint(deaths[0], bundle, command)):
        yield f"It {hint}"
    elif bundle is not None and bundle.left:
        yield f"It left {listed(bundle.left)}, which Rekindle ended."
    yield from _budget(worker)


def _held(job: JobView, current: int | str | None) -> str:
    """A job with its progress; if another queue delivered it, with the id that it has there."""
    named = f" ({current})" if job.unique_key is not None and job.unique_key == current else ""
    what = f"It holds job {job.id} of {job.queue}{named}, attempt {job.attempts}"
    shown = job.progress
    return f"{what}." if shown is None else f"{what}: {progress_words(shown.done, shown.total, shown.note)}."


def _state(worker: WorkerStatus) -> str:
    name = worker.component_id
    match worker.shown:
        case ShownStatus.STARTING if worker.waits_for:
            are = "is" if len(worker.waits_for) == 1 else "are"
            return f"{name} waits to start until {' and '.join(worker.waits_for)} {are} healthy."
        case ShownStatus.STARTING if worker.why:
            return f"{name} is {worker.why}."
        case ShownStatus.STARTING if worker.not_ready:
            return f"{name} is starting (pid {worker.pid}) and waits for {'; '.join(worker.not_ready)}."
        case ShownStatus.STARTING:
            return f"{name} is starting (pid {worker.pid}) and has not reported healthy yet."
        case ShownStatus.HEALTHY if worker.status is not Status.HEALTHY:
            return f"{name} runs (pid {worker.pid}), but is {worker.status}."
        case ShownStatus.HEALTHY:
            return f"{name} is healthy: pid {worker.pid}, up for {span((worker.uptime_s or 0) * 1000)}."
        case ShownStatus.CRASHED if worker.next_attempt_in_s is not None:
            when = span(worker.next_attempt_in_s * 1000)
            return f"{name} crashed and restarts in {when} ({worker.why})."
        case ShownStatus.FAILED:
            return f"{name} was given up: {worker.failure_reason}."
        case ShownStatus.DONE:
            return f"{name} is done: it {worker.why}."
        case ShownStatus.SCHEDULED:
            return f"{name} waits for its next run."
        case _:
            return f"{name} is {worker.shown}: {worker.why}."


def _stopped(worker: WorkerStatus, stop: Stopped | None) -> str:
    by = "an operator" if stop is None else f"{stop.who}, {span(stop.ago_s * 1000)} ago,"
    until = "until you start it or restart the supervisor"
    return f"{worker.component_id} was stopped by {by} and stays stopped {until}."


def _pause(worker: WorkerStatus) -> str:
    reason = f" ({worker.pause_reason})" if worker.pause_reason else ""
    if worker.pause_ends_in_s is None:
        return f"It is paused{reason} until an operator resumes it."
    return f"It is paused{reason}; the pause ends automatically in {span(worker.pause_ends_in_s * 1000)}."


def _last_death(death: DeathRecord, said: str | None, bundle: Bundle | None) -> str:
    decision = "" if death.reason == said else f" Decision: {death.reason}."
    left = "" if death.work_item is None else f" Its work item {death.work_item}: {death.released}."
    return (
        f"Its last death (generation {death.generation}) came after {span(death.uptime_ms)}: "
        f"{_how(death, bundle)}.{decision}{left}"
    )


def _last_lines(bundle: Bundle, said: str) -> Iterator[str]:
    """What it wrote last, unless the finding or the failure says all of it."""
    lines = last_lines(bundle.output) if bundle.last_error else ()
    if not lines or bundle.finding is Finding.EXCEPTION or (len(lines) == 1 and lines[0] in said):
        return
    yield "Its last lines:"
    yield from (f"  {line}" for line in lines)


def _daemon_hint(death: DeathRecord, bundle: Bundle | None, command: Sequence[str]) -> str:
    if death.cause is not Cause.EXITED:
        return ""
    left = None if bundle is None else bundle.left
    return daemon_hint(Exit(death.exit_code, death.signal), death.uptime_ms, left, command)


def _how(death: DeathRecord, bundle: Bundle | None) -> str:
    """How it died, with the finding if it adds something."""
    if bundle is not None and bundle.finding is Finding.NOT_STARTED:
        return bundle.sentence
    how = str(Exit(death.exit_code, death.signal))
    if death.cause not in (Cause.EXITED, Cause.SIGNALLED, Cause.UNKNOWN):
        known = death.signal is not None or death.exit_code is not None
        how = death.cause.value.replace("_", " ") + (f", {how}" if known else "")
    if bundle is None or bundle.finding in _NO_NEWS:
        return how
    certain = "" if bundle.confidence is Confidence.CERTAIN else f" ({bundle.confidence})"
    return f"{how}. Found{certain}: {bundle.sentence}"


def _budget(worker: WorkerStatus) -> Iterator[str]:
    budget = worker.budget
    used = []
    if budget.max_in_window is not None:
        what = " deaths" if budget.counts_deaths else ""
        within = span(budget.window_s * 1000)
        used.append(f"{budget.in_window} of {budget.max_in_window}{what} within {within}")
    if budget.max_lifetime is not None:
        used.append(f"{budget.lifetime} of {budget.max_lifetime} in its lifetime")
    if budget.max_consecutive is not None:
        used.append(f"{budget.consecutive} of {budget.max_consecutive} in a row")
    if budget.max_boot_failures is not None:
        used.append(f"{budget.boot_failures} of {budget.max_boot_failures} in a row before it was ready")
    if used:
        yield f"Restarts used: {', '.join(used)}."


def _resuming(worker: WorkerStatus, everything_paused: bool) -> str:
    if everything_paused:
        return "To resume all workers, run: rekindle resume"
    return f"To resume it, run: rekindle resume {worker.component_id}"


def _advice(worker: WorkerStatus, groups: Sequence[GroupStatus]) -> str:
    name = worker.component_id
    culprit = next((each.because for each in groups if each.because not in (None, name)), None)
    match worker.shown:
        case ShownStatus.STOPPED if culprit is not None and worker.why_code == Rest.GROUP:
            return f"Fix {culprit}, then run: rekindle restart {culprit} (starts all of its group in order)."
        case ShownStatus.FAILED if worker.retried_if_changed:
            return (
                "A changed version is started automatically at the next reload or start of the supervisor; "
                f"to retry this version, run: rekindle restart {name} (clears the counters and starts it)."
            )
        case ShownStatus.FAILED:
            return f"Fix the cause, then run: rekindle restart {name} (clears the counters and starts it)."
        case ShownStatus.CRASHED if worker.next_attempt_in_s is not None:
            return f"To start it now: rekindle start {name}; to hold it: rekindle pause {name}."
        case ShownStatus.CRASHED | ShownStatus.STOPPED:
            return f"To start it: rekindle start {name}."
        case ShownStatus.DONE:
            return f"To run it again: rekindle start {name}."
        case ShownStatus.SCHEDULED:
            return f"To run it now: rekindle run-now {name}; its runs: rekindle runs {name}."
        case _:
            return ""
