"""The JobDesk: what becomes of the jobs that a worker held when it ended.

Owns only the memory of which incarnations had their jobs released, so that a repeated report counts
once. Learns from the Supervisor that an incarnation is gone, has the PersistenceActor release its claims
(the durable ones: a worker's last report of its job decides nothing), learns from the PersistenceActor
what became of them, and publishes it. Nothing else waits for it.

`persistence/jobs/claim_release.py` releases the claims; `rules.job_verdicts` decides on each job.
"""

from __future__ import annotations

from .facts.jobs import JobSettled, JobState
from .facts.records import ClaimsReleased
from .messages import JobCancelled, JobConvicted, JobRequeued, JobTimedOut
from .messages.internal.to_desks import DeskMessage, IncarnationEnded, JobsSettled
from .messages.internal.to_persistence import Persist
from .ports import Receiver, Runtime
from .runtime.resilient_actor import ResilientActor, tell


class JobDesk(ResilientActor):
    """Sees to it that a dead worker takes no job along."""

    def __init__(self, *, runtime: Runtime, persistence: Receiver, run: str) -> None:
        super().__init__(persistence=persistence)
        self._runtime = runtime
        self._run = run
        self._released: dict[str, int] = {}

    def handle(self, message: DeskMessage) -> None:
        """Take one message."""
        match message:
            case IncarnationEnded():
                self._release(message)
            case JobsSettled(settled=settled):
                for job in settled:
                    self._tell_of(job)
            case unknown:
                self.unexpected(unknown)

    def _release(self, end: IncarnationEnded) -> None:
        if self._released.get(end.component_id, 0) >= end.generation:
            return
        record = ClaimsReleased(
            component_id=end.component_id,
            generation=end.generation,
            run=self._run,
            at_wall_ms=self._runtime.clock.wall_ms(),
            counted=end.counted,
            crash_retries=end.crash_retries,
            cause=end.cause,
            exit_code=end.exit.code,
            signal=end.exit.signal,
            output=end.output,
            begun=end.begun,
            error_retries=end.error_retries,
        )
        tell(self.persistence, Persist((record,)))
        self._released[end.component_id] = end.generation

    def _tell_of(self, job: JobSettled) -> None:
        whose = (job.job_id, job.queue, job.component_id, job.generation)
        if job.state is JobState.CANCELLED:
            tell(self.persistence, JobCancelled(*whose))
        elif job.timed_out:
            tell(self.persistence, JobTimedOut(*whose, retried=job.state is JobState.PENDING))
        elif job.state is JobState.TOXIC:
            tell(self.persistence, JobConvicted(*whose, job.crash_count))
        else:
            tell(self.persistence, JobRequeued(*whose, job.crash_count, counted=job.counted))
