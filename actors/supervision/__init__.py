"""Pure: what the Supervisor makes of one worker.

    idle ─start─▶ up ─dies─▶ backing off ─elapsed, kept, reaped─▶ up (generation + 1)
     ▲             │ stop       │ stop, pause       └─ limit ─▶ failed ─reset─▶ idle
     └─ stopping ◀─┘            └────────────────▶ idle

A worker is a value; every function takes one and returns the next, with the effects that
the Supervisor carries out. At most one restart can be pending because `BackingOff` is one
phase of one worker. A process of an older generation that still lives holds the next start
back: `lingering` says which.
"""

from .on_command import (
    limit_exceeded,
    pause,
    recycle,
    refund,
    renew,
    reset,
    restart,
    resume,
    start,
    stop,
)
from .on_death import circumstances, death_record, decision_on, died
from .on_health import health_changed, job_changed, readmitted, remembered, sustained
from .on_process import process_gone, process_started, reconcile, refused, start_delayed
from .restart_wait import (
    SAVE_TIMEOUT_MS,
    backoff_elapsed,
    call_off,
    is_held,
    is_unsaved,
    is_up,
    kept,
    save_overdue,
)

__all__ = [
    "SAVE_TIMEOUT_MS",
    "backoff_elapsed",
    "call_off",
    "circumstances",
    "death_record",
    "decision_on",
    "died",
    "health_changed",
    "is_held",
    "is_unsaved",
    "is_up",
    "job_changed",
    "kept",
    "limit_exceeded",
    "pause",
    "process_gone",
    "process_started",
    "readmitted",
    "reconcile",
    "recycle",
    "refund",
    "refused",
    "remembered",
    "renew",
    "reset",
    "restart",
    "resume",
    "save_overdue",
    "start",
    "start_delayed",
    "stop",
    "sustained",
]
