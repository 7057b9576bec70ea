"""`JobWorker`: processes jobs from queues until it is asked to stop."""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from .. import begun_jobs
from ..handle import Worker
from .claims import (
    Claim,
    Claimant,
    Claims,
    Ending,
    Exchanged,
    QueueUnavailableError,
    cancelled,
    failed,
    finished,
    given_back,
)
from .executions.execution import Execution, JobCancelledError, JobTimeoutError
from .executions.executions import Executions
from .executions.surroundings import Around, Shielded
from .held_jobs import HeldJobs
from .job import Job, encoded, error_text
from .job_settings import from_environment, retry_delay
from .queue_address import open_claims
from .relayed.relay_queue import NewJobSettings, RelayQueue
from .relayed.wire import SCHEME

Process = Callable[[Job], object]

MOST_ERRORS_IN_A_ROW = 10
"""After this many the worker itself is probably at fault: it exits, and is restarted by its policy."""

TOO_MANY_ERRORS = 70
"""The exit code in that case: an internal error, as in sysexits.h."""

LONGEST_IDLE_S = 5.0
LONGEST_HELD_BACK_S = 0.5
"""How long a thread waits for the end of another one's job before it checks whether it is to stop."""

LONGEST_JOIN_S = 0.1
"""How long a worker that is to stop waits for one of its threads at a time."""

RECONNECT_S = (0.1, 0.2, 0.5, 1.0, 2.0)
"""The last one repeats until the database answers."""


class JobWorker:
    """Serves queues: subclass it and write `process`, or pass a function.

        class Tagger(JobWorker):
            def process(self, job: Job) -> object:
                return tag(job.payload["path"])

    The spec's `PythonCall("app:Tagger.main")` runs it. What `process` returns is the job's result
    (JSON, or None). What it raises is the job's error; the worker continues unless this happens ten
    times in a row. When the process dies, its supervisor puts the job back. So a job may be executed
    more than once; its result is recorded once.

    With `concurrency`, each of several jobs at a time has its own thread.

    Attributes:
        around: Context managers around every execution, outermost first, for logging or tracing; each is a
            function of the job that returns one. What goes wrong in one of them is printed, and the job
            continues.
    """

    around: Sequence[Around] = ()

    def __init__(
        self,
        worker: Worker | None = None,
        process: Process | None = None,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int | None = None,
        database: str | None = None,
        around: Sequence[Around] | None = None,
    ) -> None:
        """Prepare to serve; nothing is claimed until `run`.

        Args:
            worker: this process's worker, as the runner passes it.
            process: the function for a job, if the class does not define the method.
            queues: in order of preference; default: the supervisor's setting.
            concurrency: how many jobs at a time; default: the supervisor's setting, or one.
            database: the address of the queues; default: the supervisor's, which includes the password.
            around: context managers around every execution; default: those of the class.

        Raises:
            ValueError: the queues or the process function are missing.
        """
        self.worker = worker or Worker()
        if process is not None:
            self.process = process  # type: ignore[method-assign, assignment]
        elif type(self).process is JobWorker.process:
            raise ValueError("a JobWorker needs a process function: pass one, or write the method")
        given = from_environment()
        self.settings = replace(
            given,
            queues=given.queues if queues is None else tuple(queues),
            concurrency=given.concurrency if concurrency is None else concurrency,
        )
        if not self.settings.queues:
            raise ValueError("a JobWorker needs queues: name them in its worker's `jobs`, or pass them")
        if around is not None:
            self.around = tuple(around)
        self._database = database
        self._claimant = _claimant(self.worker, supervised=database is None)
        self._held_jobs = HeldJobs(self.worker, self.settings.queues, isolate=self.settings.isolates)
        self._ending: BaseException | None = None
        self._resting = 0
        self._resting_lock = threading.Lock()
        self._note_begun = begun_jobs.noted_by(0)
        self._relay: RelayQueue | None = None
        self._relay_lock = threading.Lock()

    @classmethod
    def main(cls, worker: Worker) -> None:
        """The entry point for a spec: `PythonCall("app:Tagger.main")`."""
        cls(worker).run()

    def process(self, job: Job) -> object:
        """Process the job; the result is stored with it."""
        raise NotImplementedError

    def enqueue(self, queue: str, payload: object, **settings: Unpack[NewJobSettings]) -> int:
        """Put a job into a queue through the supervisor; return its number. It is durable then.

        For workers with `via = "supervisor"`; any other has `open_queue(self.worker.database())`.

        Raises:
            JobRefusedError: the payload or a setting is not valid, or this worker may not use the queue.
            ConnectionError: the supervisor or its database does not answer; whether the job was added is
                unknown.
            RuntimeError: the jobs of this worker do not go through the supervisor.
        """
        (job,) = self.enqueue_many(queue, [payload], **settings)
        return job

    def enqueue_many(
        self, queue: str, payloads: Iterable[object], **settings: Unpack[NewJobSettings]
    ) -> tuple[int, ...]:
        """Put a job for each payload into a queue, all or none; see `enqueue`."""
        with self._relay_lock:
            if self._relay is None:
                self._relay = RelayQueue(_relay_address(self.worker), self.worker.generation)
        return self._relay.enqueue_many(queue, payloads, settings)

    def run(self) -> None:
        """Serve the queues until the worker is asked to stop; the current job is finished first.

        Raises:
            RuntimeError: the address of the queues is missing.
            SystemExit: too many jobs raised in a row, or a job called `sys.exit`.
        """
        address = self._database or self.worker.database()
        if address is None:
            raise RuntimeError("a JobWorker needs a database: run it under a supervisor, or pass one")
        self._note_begun = begun_jobs.noted_by(self.settings.concurrency)
        self._executions = Executions(partial(open_claims, address, self._claimant))
        self.worker.on_cancelled_job = self._executions.cancel
        if self.settings.concurrency == 1:
            self._serve(open_claims(address, self._claimant), 0)
            return
        threads = [
            threading.Thread(
                target=self._serve_guarded, args=(address, number), name=f"job-{number}", daemon=True
            )
            for number in range(self.settings.concurrency)
        ]
        for thread in threads:
            thread.start()
        self._join(threads)
        if self._ending is not None:
            raise self._ending

    def _join(self, threads: Sequence[threading.Thread]) -> None:
        """Wait for the threads, but not for jobs that should have ended once the worker is to stop."""
        self.worker.wait()
        for thread in threads:
            while thread.is_alive() and not self._executions.only_overdue(self.settings.cancel_grace_s):
                thread.join(LONGEST_JOIN_S)

    # ── one thread ───────────────────────────────────────────────────────────────────────

    def _serve_guarded(self, address: str, thread: int) -> None:
        try:
            self._serve(open_claims(address, self._claimant), thread)
        except BaseException as error:  # noqa: BLE001  # it ends the process, as it would in the main thread
            self._ending = self._ending or error
            self.worker.stop()

    def _serve(self, claims: Claims, thread: int) -> None:
        try:
            ending: Ending | None = None
            while True:
                exchanged = self._exchange(claims, ending)
                claim, ending = exchanged.claim, None
                if claim is not None:
                    self._note_begun(thread, claim.execution)
                    ending = self._execute(claim, claims)
                    self._end_if_nothing_works(claims, ending)
                elif not self.worker.running:
                    return
                elif exchanged.held_back:
                    self._held_jobs.wait_for_an_end(LONGEST_HELD_BACK_S)
                else:
                    self._idle(claims)
        finally:
            claims.close()

    def _exchange(self, claims: Claims, ending: Ending | None) -> Exchanged:
        """Record the ending, and take the next job if there is one and the worker may take it."""
        attempt = 0
        while True:
            self.worker.hear()  # a job that is added after a pause is not taken
            more = not self.worker.draining and not self.worker.paused
            try:
                exchange = self._held_jobs.resume if attempt else self._held_jobs.exchange
                exchanged = exchange(claims, ending, more=more)
            except QueueUnavailableError as error:
                if not attempt:
                    _say(f"the queue is unavailable, retrying: {error}")
                if ending is None and not self.worker.running:
                    return Exchanged()
                delay = RECONNECT_S[min(attempt, len(RECONNECT_S) - 1)]
                attempt += 1
                # A stopping worker still has a result to record; its supervisor decides when to give up.
                threading.Event().wait(delay) if not self.worker.running else self.worker.wait(delay)
                continue
            if exchanged.accepted is False and ending is not None:
                _say(f"the result of job {ending.claim.id} was refused: the claim is no longer in force")
            return exchanged

    def _idle(self, claims: Claims) -> None:
        if self.worker.paused:
            self.worker.wait_while_paused()
            return
        if self.worker.draining:
            self._rest()
            return
        try:
            claims.idle(self.settings.queues, LONGEST_IDLE_S, self.worker.interruption())
        except QueueUnavailableError:
            self.worker.wait(RECONNECT_S[-1])

    def _rest(self) -> None:
        """Wait for the end of a worker that takes no more jobs; the last thread to do so reports it."""
        with self._resting_lock:
            self._resting += 1
            if self._resting == self.settings.concurrency:
                self.worker.drained()
        self.worker.wait()

    # ── one job ──────────────────────────────────────────────────────────────────────────

    def _execute(self, claim: Claim, claims: Claims) -> Ending:
        execution = Execution(claim)
        self._executions.begin(execution)
        try:
            result = encoded(self._processed(execution, claims))
        except JobCancelledError as error:
            return self._stopped(execution, error)
        except QueueUnavailableError:
            return given_back(claim)  # asked to stop while a checkpoint waited for the database
        except Exception as error:  # noqa: BLE001  # any exception of a job is the job's own error
            return self._failed(execution, error)
        finally:
            self._executions.end(execution)
        self._held_jobs.count_success()
        return finished(claim, result)

    def _processed(self, execution: Execution, claims: Claims) -> object:
        try:
            payload: Any = json.loads(execution.claim.payload)
        except ValueError as error:
            raise ValueError(f"the payload is not JSON: {error}") from None
        save = partial(self._save, claims, execution)
        show = partial(self._executions.show, execution)
        job = Job(execution.claim, payload, self.worker, save, show, execution)
        with ExitStack() as surroundings:
            for around in self.around:
                surroundings.enter_context(Shielded(around, job))
            result = self.process(job)
            return execution.result_of(result) if hasattr(result, "__await__") else result

    def _save(self, claims: Claims, execution: Execution, checkpoint: str) -> bool:
        """Store a checkpoint; until the database answers, or the worker is asked to stop."""
        attempt = 0
        while True:
            try:
                if claims.save(execution.claim, checkpoint):
                    return True
                self._executions.refused(execution, claims)
                return False
            except QueueUnavailableError:
                if self.worker.wait(RECONNECT_S[min(attempt, len(RECONNECT_S) - 1)]):
                    raise
                attempt += 1

    def _stopped(self, execution: Execution, error: JobCancelledError) -> Ending:
        """The end of an execution that did as it was asked."""
        if execution.reason is None:
            return self._failed(execution, RuntimeError(f"the job raised {error!r} without being cancelled"))
        if isinstance(execution.reason, JobTimeoutError):
            return self._failed(execution, execution.reason)
        return cancelled(execution.claim)

    def _failed(self, execution: Execution, error: Exception | JobTimeoutError) -> Ending:
        claim, is_late = execution.claim, isinstance(execution.reason, JobTimeoutError)
        text = str(execution.reason) if is_late else ""
        if error is not execution.reason:
            traceback.print_exception(error)
            text = f"{text}: {error_text(error)}" if is_late else error_text(error)
        delays = (claim.max_retries, claim.retry_delay_ms, claim.max_retry_delay_ms)
        delay_s = retry_delay(self.settings, claim.error_count + 1, *delays)
        began = execution.began_at_wall_ms
        ending = failed(claim, text, delay_s, worker=self._claimant.worker, began_at_wall_ms=began)
        return replace(ending, is_fault=not is_late)

    def _end_if_nothing_works(self, claims: Claims, ending: Ending) -> None:
        if not ending.is_fault or self._held_jobs.count_error() < MOST_ERRORS_IN_A_ROW:
            return
        self.worker.stop()  # so that the exchange claims no further job
        self._exchange(claims, ending)
        _say(f"{MOST_ERRORS_IN_A_ROW} jobs in a row raised: this worker exits")
        raise SystemExit(TOO_MANY_ERRORS)


def _relay_address(worker: Worker) -> str:
    address = worker.database() or ""
    if not address.startswith(f"{SCHEME}://"):
        raise RuntimeError(
            "the jobs of this worker do not go through a supervisor: open its queues with"
            " rekindle.persistence.open_queue(self.worker.database())"
        )
    return address


def _claimant(worker: Worker, *, supervised: bool) -> Claimant:
    """This process as a claimant; it is supervised where the queues are those of its supervisor."""
    if worker.component_id:
        run = os.environ.get("REKINDLE_SYSTEM", "")
        whose = worker.component_id, worker.generation, run
        return Claimant.supervisee(*whose, worker.node, worker.token) if supervised else Claimant(*whose)
    return Claimant(f"alone:{os.getpid()}", 0, uuid.uuid4().hex)


def _say(sentence: str) -> None:
    sys.stderr.write(f"rekindle: {sentence}\n")
