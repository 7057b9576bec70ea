"""Claims in the database of a cluster: the assignment of a worker is the fence of what it claims and ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import create_engine, text

from rekindle.actors.cluster.cluster_messages import DeclareLost, GiveBack, PlaceWorker, PutWish
from rekindle.actors.cluster.facts.nodes import Node
from rekindle.actors.cluster.facts.tenures import Tenure
from rekindle.actors.cluster.facts.wishes import Wish
from rekindle.actors.deaths.death import Action, Cause
from rekindle.actors.facts.records import DeathRecord, FormerClaimsReleased
from rekindle.persistence import open_queue
from rekindle.persistence.cluster import cluster_sql as sql
from rekindle.persistence.cluster.cluster_desk import ClusterDesk
from rekindle.persistence.cluster.cluster_rows import described
from rekindle.persistence.cluster.orphaned_claims import release_former, release_orphaned
from rekindle.persistence.cluster.shared_jobs import DeclaredQueues
from rekindle.worker.jobs.claims import Claimant, ClaimRequest, Claims, finished
from rekindle.worker.jobs.queue_address import open_claims

W = "worker:tag:0"
FREE = ClaimRequest(("tag",), isolate=True)


class Shared:
    """A cluster's database with one worker and two nodes whose leases the test ends."""

    def __init__(self, url: str) -> None:
        self.desk, self.queue = ClusterDesk(url), open_queue(url)
        self.engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        self._url = url
        self._open: list[Claims] = []
        self.desk.change(PutWish(Wish(component_id=W, group="tag")))
        self.desk.declare_queues(("tag",), DeclaredQueues())

    def join(self, name: str, run: str) -> None:
        """The node gets a lease, and its supervisor a run."""
        machine = described(Node(id=f"id-{name}", name=name, boot_id="b", run=run))
        with self.engine.begin() as connection:
            connection.execute(sql.ADD_NODE, {**machine, "life": run})
            connection.execute(sql.BEGIN_LIFE, {**machine, "life": run})
            connection.execute(text("UPDATE rekindle_node SET lease_until_ms = 9e15"))

    def place(self, name: str) -> int:
        """Assign the worker to a node; its epoch."""
        read = self.desk.read()
        node = next(each for each in read.nodes if each.name == name)
        epoch = read.assignments[0].epoch
        place = PlaceWorker(
            component_id=W, epoch=epoch, node_id=node.id, incarnation=node.incarnation, reason=""
        )
        (placed,) = self.desk.change(place)
        assert placed.applied
        return placed.assignments[0].epoch

    def lose(self, name: str) -> None:
        """The lease of a node ends, and it is declared lost."""
        with self.engine.begin() as connection:
            connection.execute(text("UPDATE rekindle_node SET lease_until_ms = 0"))
        node = next(each for each in self.desk.read().nodes if each.name == name)
        lost = DeclareLost(
            node_id=node.id, incarnation=node.incarnation, renewals=node.renewals, reason="silent"
        )
        assert self.desk.change(lost)[0].applied

    def worker(self, name: str, epoch: int, run: str, generation: int = 1) -> Claims:
        """A process of the worker."""
        claimant = Claimant(W, generation, run, supervised=True, node=name, epoch=epoch)
        self._open.append(open_claims(self._url, claimant))
        return self._open[-1]

    def close(self) -> None:
        """Close all connections."""
        for claims in self._open:
            claims.close()
        self.queue.close()
        self.desk.close()
        self.engine.dispose()


@pytest.fixture
def shared(postgres_url: str) -> Iterator[Shared]:
    with closing(Shared(postgres_url)) as made:
        yield made


def test_the_claims_of_a_lost_node_are_released_with_it_and_its_zombies_do_nothing(shared: Shared) -> None:
    shared.join("k1", "run-1")
    zombie = shared.worker("k1", shared.place("k1"), "run-1")
    job, other = shared.queue.enqueue_many("tag", [1, 2])
    claim = zombie.exchange(None, FREE).claim
    assert claim is not None
    assert claim.id == job
    assert shared.queue.named([job])[0].claimed_node == "k1"
    shared.lose("k1")
    (found,) = shared.queue.named([job])
    assert (found.state, found.crash_count) == ("pending", 0)
    assert [each.cause for each in shared.queue.crashes([job])] == ["node k1 was lost"]
    assert zombie.exchange(finished(claim, None), None).accepted is False
    assert zombie.save(claim, "1") is False
    assert zombie.exchange(None, FREE).claim is None
    shared.join("k2", "run-2")
    heir = shared.worker("k2", shared.place("k2"), "run-2")
    again = heir.exchange(None, FREE).claim
    assert again is not None
    assert (again.id, again.attempt) == (job, 2)
    assert heir.exchange(finished(again, None), None).accepted
    assert [each.state for each in shared.queue.named([job, other])] == ["done", "pending"]


def test_a_job_that_was_on_two_lost_nodes_runs_alone(shared: Shared) -> None:
    (job,) = shared.queue.enqueue_many("tag", [1])
    for number, busy in enumerate((True, True, False)):
        run = f"run-{number}"
        shared.join("k1", run)
        claims = shared.worker("k1", shared.place("k1"), run)
        if not busy:
            held = claims.exchange(None, ClaimRequest(("tag",), free=False, isolate=True))
            assert (held.claim, held.held_back) == (None, True)
        claim = claims.exchange(None, FREE).claim
        assert claim is not None
        assert (claim.id, claim.alone) == (job, not busy)
        shared.lose("k1")


def test_a_claim_that_outlived_its_assignment_is_found_by_the_next_look(shared: Shared) -> None:
    """Such as one that a statement made which was under way while the worker was given back."""
    shared.join("k1", "run-1")
    epoch = shared.place("k1")
    claims = shared.worker("k1", epoch, "run-1")
    (job,) = shared.queue.enqueue_many("tag", [1])
    assert claims.exchange(None, FREE).claim is not None
    given = Tenure(component_id=W, epoch=epoch, node_id="id-k1")
    shared.desk.change(GiveBack(node_id="id-k1", component_id=W, epoch=epoch, tenure=given))
    with shared.engine.begin() as connection:
        (settled,) = release_orphaned(connection)
    assert (settled.job_id, settled.counted) == (job, False)
    assert shared.queue.named([job])[0].state == "pending"
    assert shared.queue.crashes([job]) == ()


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_former_life_of_a_supervisor_holds_no_claims_and_its_recorded_deaths_count(
    shared: Shared, is_recorded: bool
) -> None:
    """The agent is back within its lease, under the same epoch."""
    shared.join("k1", "run-1")
    epoch = shared.place("k1")
    former = shared.worker("k1", epoch, "run-1")
    (job,) = shared.queue.enqueue_many("tag", [1])
    assert former.exchange(None, FREE).claim is not None
    shared.join("k1", "run-2")
    assert former.exchange(None, FREE).claim is None
    record = FormerClaimsReleased(run="run-2", at_wall_ms=1, crash_retries={})
    with shared.engine.begin() as connection:
        assert release_former(connection, record, "id-k2", lambda *_: None) == []
        (settled,) = release_former(connection, record, "id-k1", lambda *_: death() if is_recorded else None)
    assert (settled.job_id, settled.counted) == (job, is_recorded)
    assert shared.queue.named([job])[0].crash_count == is_recorded
    assert shared.worker("k1", epoch, "run-2", 2).exchange(None, FREE).claim is not None


def death() -> DeathRecord:
    return DeathRecord(
        component_id=W,
        generation=1,
        died_at_wall_ms=1,
        cause=Cause.EXITED,
        exit_code=3,
        signal=None,
        uptime_ms=1,
        job=None,
        action=Action.RESTART,
        reason="",
    )
