"""Celery workers: `install(app)` in the module of the application, before its tasks are defined.

The worker reports its health, and every task from its beginning to its end. A task that crashed its workers
too often fails with `JobRefusedError` when it is delivered again, unless `refuse=False`.
"""

from __future__ import annotations

from typing import Any

from ..handle import Worker
from .delivered_jobs import DeliveredJobs, JobRefusedError


class _Reporter:
    """What happens in one worker process."""

    def __init__(self) -> None:
        self.jobs: DeliveredJobs | None = None
        self.refused: dict[str, JobRefusedError] = {}

    def on_init(self, **_: Any) -> None:
        self.jobs = DeliveredJobs(Worker())
        # SIGTERM is a warm shutdown in Celery: it finishes the current task and takes no new one.
        self.jobs.stop_when_asked()

    def on_ready(self, **_: Any) -> None:
        if self.jobs is not None:
            self.jobs.worker.healthy()

    def on_prerun(self, task_id: str, task: Any, **_: Any) -> None:
        if self.jobs is not None:
            try:
                self.jobs.begin(task_id, task.name)
            except JobRefusedError as error:
                self.refused[task_id] = error

    def on_postrun(self, task_id: str, retval: Any = None, state: str | None = None, **_: Any) -> None:
        self.refused.pop(task_id, None)
        if self.jobs is not None:
            failed = state == "FAILURE" and isinstance(retval, BaseException)
            self.jobs.end(task_id, retval if failed else None)


def install(app: Any, *, refuse: bool = True) -> None:
    """Have the workers of this application report to Rekindle; without a supervisor it does nothing.

    Args:
        app: the Celery application.
        refuse: whether a task that Rekindle has set aside fails instead of being executed.
    """
    from celery import signals  # type: ignore[import-untyped, unused-ignore]

    reporter = app.rekindle = _Reporter()  # signals hold weak references
    signals.worker_init.connect(reporter.on_init)
    signals.worker_ready.connect(reporter.on_ready)
    signals.task_prerun.connect(reporter.on_prerun)
    signals.task_postrun.connect(reporter.on_postrun)
    if refuse:
        app.Task = _refusing(app.Task, reporter)


def _refusing(base: Any, reporter: _Reporter) -> Any:
    class RefusingTask(base):  # type: ignore[misc]
        """A handler of a signal cannot refuse a task; its call can."""

        abstract = True

        def __call__(self, *args: Any, **named: Any) -> Any:
            if (refused := reporter.refused.get(self.request.id)) is not None:
                raise refused
            return super().__call__(*args, **named)

    return RefusingTask
