"""Pure: each check yields a sentence for every violation that it finds in the evidence of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ..evidence import Evidence, Violation
from .deaths import (
    every_death_has_an_event,
    every_death_has_its_cause,
    every_death_is_recorded_once,
    every_life_has_an_end,
    no_death_is_invented,
    no_death_is_lost,
)
from .history import counters_equal_the_history, events_have_no_gap
from .jobs import (
    a_job_is_blamed_for_recorded_deaths,
    cancelled_jobs_end_as_cancelled,
    every_job_ends,
    executions_continue_from_the_last_checkpoint,
    executions_follow_each_other,
    killed_supervisors_convict_no_job,
    no_job_is_enqueued_twice,
    no_job_is_lost,
)
from .lives import (
    a_generation_is_used_once,
    generations_grow_in_the_events,
    generations_never_go_back,
    lives_never_overlap,
)
from .queues import (
    batches_end_once_with_their_counts,
    expired_jobs_never_begin,
    jobs_begin_after_the_jobs_before_them,
    limits_of_queues_hold,
)
from .supervisors import (
    clean_stops_end_with_0,
    every_worker_returns,
    no_process_is_left,
    no_supervisor_ends_by_itself,
    the_log_has_no_traceback,
)

Check = Callable[[Evidence], Iterator[str]]

CHECKS: tuple[Check, ...] = (
    a_generation_is_used_once,
    generations_never_go_back,
    lives_never_overlap,
    generations_grow_in_the_events,
    no_death_is_lost,
    every_life_has_an_end,
    no_death_is_invented,
    every_death_is_recorded_once,
    every_death_has_its_cause,
    every_death_has_an_event,
    counters_equal_the_history,
    events_have_no_gap,
    no_job_is_lost,
    no_job_is_enqueued_twice,
    every_job_ends,
    executions_follow_each_other,
    executions_continue_from_the_last_checkpoint,
    cancelled_jobs_end_as_cancelled,
    jobs_begin_after_the_jobs_before_them,
    batches_end_once_with_their_counts,
    expired_jobs_never_begin,
    limits_of_queues_hold,
    a_job_is_blamed_for_recorded_deaths,
    killed_supervisors_convict_no_job,
    no_process_is_left,
    every_worker_returns,
    no_supervisor_ends_by_itself,
    clean_stops_end_with_0,
    the_log_has_no_traceback,
)
"""Every promise that a run is checked against, named by its function."""


def name_of(check: Check) -> str:
    """The name of a check, in words."""
    return check.__name__.replace("_", " ")


def violations(evidence: Evidence, checks: Iterable[Check] = CHECKS) -> tuple[Violation, ...]:
    """Everything that the evidence breaks."""
    return tuple(Violation(name_of(check), text) for check in checks for text in check(evidence))
