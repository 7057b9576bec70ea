"""The jobs of all nodes, as the store of one node uses them.

A node's history is in its own journal, its jobs are in the database of the cluster. A commit to the journal
does not wait for that database: a thread of its own releases there what dead workers held, as soon as it
answers. A supervisor that ends before has lost nothing: its next life, or the loss of the node, releases the
claims.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
from loguru import logger
from sqlalchemy import Connection, text

from rekindle.actors.errors import StoreError
from rekindle.actors.facts.jobs import JobSettled
from rekindle.actors.facts.queues import QueueLimits
from rekindle.actors.facts.records import ClaimsReleased, FormerClaimsReleased, JobRecord
from rekindle.actors.messages.internal.to_desks import DeclarePeriodic, JobsSettled
from rekindle.actors.ports import Receiver
from rekindle.actors.runtime.resilient_actor import tell
from rekindle.actors.spec.policies.queues.periodic import Periodic
from rekindle.actors.spec.policies.retention_policy import Retention
from rekindle.worker.jobs.claims import Claimant, Claims
from rekindle.worker.jobs.queue_address import open_claims

from ..database.driver_errors import translated
from ..database.engines import postgresql_engine, shown_url
from ..database.wall_clock import wall_ms
from ..jobs.claim_release import DeathOf, release_claims
from ..jobs.job_queue import JobQueue
from ..jobs.job_retention import JobSizes, prune_jobs
from .orphaned_claims import release_former, release_orphaned
from .postgres_cluster import LOCK_TIMEOUT_MS, server_url

LOOK_S = 2.0
"""How often orphaned claims and what was applied are looked for."""
CLOSE_S = 5.0

PRUNE_S = 600.0
"""How often jobs are deleted that have ended long ago."""
CHUNK = 500

DECLARED = "cluster queues"
"""The setting with the periodic jobs and the limits of queues that were applied, as JSON."""
_READ_DECLARED = text(f"SELECT value FROM rekindle_meta WHERE key = '{DECLARED}'")

_ONE_AT_A_TIME = text("SELECT pg_try_advisory_xact_lock(hashtext('rekindle prunes jobs'))")


class DeclaredQueues(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says about queues, as `rekindle cluster apply` stores it for all nodes."""

    periodic: tuple[Periodic, ...] = ()
    limits: tuple[QueueLimits, ...] = ()


class SharedJobs:
    """The queues of a cluster for one node, and the thread that tells them of dead workers."""

    def __init__(
        self,
        where: str,
        *,
        node_id: str,
        worker_database: str | None = None,
        retention: Retention,
    ) -> None:
        """Connect to nothing yet; `attend` begins.

        Raises:
            StoreError: the address is not that of a PostgreSQL server.
        """
        url = server_url(where)
        self.name = shown_url(url)
        workers = server_url(worker_database or where)
        self.address = workers.set(drivername="postgresql").render_as_string(hide_password=False)
        """Where a worker finds the queues. It contains the password: do not log it."""
        self._engine = postgresql_engine(url, lock_timeout_ms=LOCK_TIMEOUT_MS)
        self.queue = JobQueue(self._engine, self._engine, name=self.name)
        self._node_id, self._retention = node_id, retention
        self._sizes, self._prune_at = JobSizes(), 0.0
        self._former: FormerClaimsReleased | None = None
        self._ended: deque[ClaimsReleased] = deque()
        self._ready = threading.Condition()
        self._is_closed = self._is_away = False
        self._declared: str | None = None
        self._thread: threading.Thread | None = None

    def open_claims(self, claimant: Claimant) -> Claims:
        """The queues as a worker uses them; nothing is connected yet."""
        return open_claims(self.address, claimant)

    def attend(self, death_of: DeathOf, desk: Receiver, periodic: Receiver) -> None:
        """Begin to look: the desks hear what becomes of jobs, and what is applied.

        The tables must be up to date.
        """
        self._death_of, self._desk, self._periodic = death_of, desk, periodic
        self._thread = threading.Thread(target=self._work, name="rekindle-shared-jobs", daemon=True)
        self._thread.start()

    def release(self, records: Sequence[JobRecord]) -> None:
        """Have the jobs of workers released that have ended. Never waits."""
        with self._ready:
            for record in records:
                if isinstance(record, FormerClaimsReleased):
                    self._former = record
                else:
                    self._ended.append(record)
            self._ready.notify()

    def close(self) -> None:
        """End the thread, after a last try, and the connections."""
        with self._ready:
            self._is_closed = True
            self._ready.notify()
        if self._thread is not None:
            self._thread.join(CLOSE_S)
        self.queue.close()
        self._engine.dispose()

    # ── the thread ───────────────────────────────────────────────────────────────────────

    def _work(self) -> None:
        while True:
            self._try(self._release_ended)
            if self._is_closed:
                return
            self._try(self._look)
            self._try(self._prune)
            with self._ready:
                self._ready.wait_for(self._has_news, LOOK_S)

    def _has_news(self) -> bool:
        return self._is_closed or (bool(self._ended) and not self._is_away)

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except StoreError as error:
            if not self._is_away:
                logger.warning("cluster: cannot release jobs of ended workers yet: {}", str(error))
            self._is_away = True
        except Exception as error:  # noqa: BLE001  # the next look must come
            logger.opt(exception=error).error("cluster: cannot release jobs of ended workers")
            self._is_away = True
        else:
            self._is_away = False

    def _release_ended(self) -> None:
        while self._ended:
            record = self._ended[0]
            self._settle(partial(release_claims, record=record, death_of=self._death_of))
            self._ended.popleft()

    def _look(self) -> None:
        former = self._former
        if former is not None:
            of_node = partial(release_former, record=former, node_id=self._node_id)
            self._settle(partial(of_node, death_of=self._death_of))
        self._settle(release_orphaned)
        with translated(self.name), self._engine.connect() as connection:
            declared = connection.execute(_READ_DECLARED).scalar()
        if declared is not None and declared != self._declared:
            found = msgspec.json.decode(declared, type=DeclaredQueues)
            tell(self._periodic, DeclarePeriodic(found.periodic, found.limits))
            self._declared = declared

    def _prune(self) -> None:
        """Delete a chunk of the jobs that ended long ago, unless another node does."""
        if time.monotonic() < self._prune_at:
            return
        with translated(self.name), self._engine.begin() as connection:
            is_due = connection.execute(_ONE_AT_A_TIME).scalar()
            more = is_due and (
                prune_jobs(connection, self._retention, wall_ms(), CHUNK)
                or self._sizes.step(connection, self._retention, CHUNK)
            )
        if not more:
            self._sizes, self._prune_at = JobSizes(), time.monotonic() + PRUNE_S

    def _settle(self, work: Callable[[Connection], list[JobSettled]]) -> None:
        with translated(self.name), self._engine.begin() as connection:
            settled = work(connection)
        if settled:
            tell(self._desk, JobsSettled(tuple(settled)))
