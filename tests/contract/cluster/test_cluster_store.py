"""What the nodes of a cluster share, in a real PostgreSQL and in virtual time: every guard holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, create_engine, text
from tests.services import PostgresService

from rekindle.actors.cluster.cluster_messages import (
    BeginRelease,
    Change,
    Changed,
    ClusterRead,
    DeclareLost,
    GiveBack,
    Joined,
    JoinNode,
    JoinRefused,
    KeepTenure,
    NoteUnplaced,
    PlaceWorker,
    PutWish,
    ReadCluster,
    RemoveWish,
    Renew,
    RenewalRefused,
    Renewed,
    SetNodeState,
    StoreAway,
)
from rekindle.actors.cluster.courier_messages import JournalKept, ShipJournal
from rekindle.actors.cluster.facts.nodes import Node, NodeState, Resources
from rekindle.actors.cluster.facts.tenures import Tenure, TenureEnd, TenurePhase
from rekindle.actors.cluster.facts.wishes import Wish
from rekindle.actors.errors import StoreError
from rekindle.actors.ports import Receiver
from rekindle.actors.simulation.cluster.cluster_tables import ClusterTables
from rekindle.actors.spec.deployment.place_policy import PlacePolicy
from rekindle.persistence.cluster.changes import apply
from rekindle.persistence.cluster.postgres_cluster import PostgresCluster

W = "worker:web:0"
LONG_MS = 60_000


class Answers:
    """Waits for the one answer to each request."""

    def __init__(self) -> None:
        self._arrived: SimpleQueue[Any] = SimpleQueue()

    def tell(self, message: object) -> None:
        """Receive an answer."""
        self._arrived.put(message)

    def next(self, within_s: float = 20.0) -> Any:
        """The next answer."""
        try:
            return self._arrived.get(timeout=within_s)
        except Empty:
            pytest.fail(f"no answer within {within_s} s")


class MemoryCluster:
    """The tables of the virtual cluster as a store: the same guards without a database."""

    def __init__(self) -> None:
        self.tables = ClusterTables()

    def join(self, request: JoinNode, receiver: Receiver) -> None:
        receiver.tell(self.tables.join(request, self._now_ms()))

    def renew(self, request: Renew, receiver: Receiver) -> None:
        receiver.tell(self.tables.renew(request, self._now_ms()))

    def read(self, request: ReadCluster, receiver: Receiver) -> None:
        receiver.tell(self.tables.read(request, self._now_ms(), leads=True))

    def change(self, change: Change, receiver: Receiver) -> None:
        receiver.tell(self.tables.change(change, self._now_ms()))

    def shipped_up_to(self, node_id: str, receiver: Receiver) -> None:
        receiver.tell(JournalKept(self.tables.suspects.shipped[node_id]))

    def ship(self, request: ShipJournal, receiver: Receiver) -> None:
        receiver.tell(self.tables.suspects.ship(request, 0, self._now_ms()))

    def close(self) -> None:
        """Nothing is open."""

    def _now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class Cluster:
    """One connection of an agent to the database."""

    def __init__(self, url: str | None, *, lease_s: float = 60.0) -> None:
        self.store = MemoryCluster() if url is None else PostgresCluster(url, lease_s=lease_s)
        self.numbers: dict[str, int] = {}

    def ask(self, call: Callable[..., None], request: object) -> Any:
        answers = Answers()
        call(request, answers)
        return answers.next()

    def join(self, name: str, *, life: str = "1", **others: Any) -> Any:
        machine = Node(id=f"id-{name}", name=name, boot_id=others.pop("boot_id", "b"), **others)
        return self.ask(self.store.join, JoinNode(node=machine, life=life))

    def renew(
        self,
        name: str,
        *,
        incarnation: int = 1,
        lease_ms: int = LONG_MS,
        members: tuple[str, ...] = (),
        testify: bool = True,
        number: int | None = None,
        late: bool = False,
    ) -> Any:
        self.numbers[name] = number or self.numbers.get(name, 0) + 1
        return self.ask(
            self.store.renew,
            Renew(
                node_id=f"id-{name}",
                incarnation=incarnation,
                number=self.numbers[name],
                lease_ms=lease_ms,
                members=tuple(f"id-{each}" for each in members),
                testify=testify,
                not_after_ms=time.time_ns() // 1_000_000 + (-LONG_MS if late else LONG_MS),
            ),
        )

    def change(self, change: Change) -> Changed:
        answer = self.ask(self.store.change, change)
        assert isinstance(answer, Changed), answer
        return answer

    def read(self) -> ClusterRead:
        answer = self.ask(self.store.read, ReadCluster(1))
        assert isinstance(answer, ClusterRead), answer
        return answer

    def up(self, *names: str) -> None:
        for name in names:
            assert isinstance(self.join(name), Joined)
            assert isinstance(self.renew(name, members=names), Renewed)

    def wish(self, component_id: str = W, spec: str = "{}", **place: Any) -> None:
        wish = Wish(component_id=component_id, group="web", spec=spec, place=PlacePolicy(**place))
        self.change(PutWish(wish))

    def place(self, name: str, *, epoch: int = 0, incarnation: int = 1, component_id: str = W) -> Changed:
        return self.change(
            PlaceWorker(
                component_id=component_id,
                epoch=epoch,
                node_id=f"id-{name}",
                incarnation=incarnation,
                reason="fits",
            )
        )

    def declare_lost(self, name: str, *, renewals: int = 1, incarnation: int = 1) -> bool:
        return self.change(
            DeclareLost(
                node_id=f"id-{name}", incarnation=incarnation, renewals=renewals, reason="it is silent"
            )
        ).applied


@pytest.fixture(params=["postgres", "memory"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """An agent's way into an empty database; the virtual cluster has the same guards."""
    made = Cluster(request.getfixturevalue("postgres_url") if request.param == "postgres" else None)
    yield made
    made.store.close()


# ── the life of a node ───────────────────────────────────────────────────────────────────


def test_a_node_joins_and_describes_itself(cluster: Cluster) -> None:
    answer = cluster.join("k1", labels={"zone": "a"}, capacity=Resources(amounts={"cpu": 4.0}))
    assert isinstance(answer, Joined)
    (found,) = cluster.read().nodes
    assert (found.name, found.labels, found.capacity.of("cpu")) == ("k1", {"zone": "a"}, 4.0)
    assert (found.state, found.incarnation, found.lease_until_ms) == (NodeState.UP, 1, 0)


def test_the_answer_to_a_join_names_the_members_of_the_cluster(cluster: Cluster) -> None:
    cluster.up("k1", "k2", "k3")
    leave = SetNodeState(
        node_id="id-k3", state=NodeState.LEFT, reason="", by="ann", only_from=(NodeState.UP,)
    )
    assert cluster.change(leave).applied
    assert [each.id for each in cluster.join("k4").living] == ["id-k1", "id-k2", "id-k4"]


def test_a_join_that_is_applied_twice_begins_one_life(cluster: Cluster) -> None:
    assert [cluster.join("k1", life="a").node.incarnation for _ in range(2)] == [1, 1]
    assert cluster.join("k1", life="b").node.incarnation == 2


def test_a_second_machine_with_the_name_of_a_node_is_refused_in_a_sentence(cluster: Cluster) -> None:
    cluster.up("k1")
    answer = cluster.ask(
        cluster.store.join, JoinNode(node=Node(id="other", name="k1", boot_id="c"), life="1")
    )
    assert isinstance(answer, JoinRefused)
    assert "another machine is called k1" in answer.reason
    assert len(cluster.read().nodes) == 1


def test_a_copy_of_a_state_directory_is_refused_while_the_lease_of_the_first_lasts(cluster: Cluster) -> None:
    cluster.up("k1")
    answer = cluster.join("k1", life="2", boot_id="another")
    assert isinstance(answer, JoinRefused)
    assert "must not share a state directory" in answer.reason


def test_a_renewal_extends_the_lease_and_returns_what_the_node_should_run(cluster: Cluster) -> None:
    cluster.up("k1")
    cluster.wish()
    placed = cluster.place("k1").assignments[0]
    answer = cluster.renew("k1", members=("k1",))
    assert isinstance(answer, Renewed)
    assert answer.lease_until_ms >= answer.now_ms + LONG_MS - 1000
    assert (answer.assignments, [wish.component_id for wish in answer.wishes]) == ((placed,), [W])


def test_a_renewal_that_is_late_changes_nothing(cluster: Cluster) -> None:
    cluster.up("k1")
    before = cluster.read().nodes
    assert isinstance(cluster.renew("k1", late=True), RenewalRefused)
    assert cluster.read().nodes == before


def test_a_renewal_that_arrives_after_a_later_one_changes_nothing(cluster: Cluster) -> None:
    cluster.up("k1")
    cluster.renew("k1", number=7)
    assert isinstance(cluster.renew("k1", number=7), RenewalRefused)
    assert isinstance(cluster.renew("k1", number=6), RenewalRefused)


def test_a_former_life_of_an_agent_renews_nothing(cluster: Cluster) -> None:
    cluster.up("k1")
    cluster.join("k1", life="2")
    answer = cluster.renew("k1", incarnation=1)
    assert isinstance(answer, RenewalRefused)
    assert answer.incarnation == 2


def test_neither_a_lease_nor_a_testimony_is_set_back(cluster: Cluster) -> None:
    cluster.up("k1")
    before = cluster.read().nodes[0]
    answer = cluster.renew("k1", lease_ms=1, testify=False)
    assert (answer.lease_until_ms, answer.testified_at_wall_ms) == (
        before.lease_until_ms,
        before.testified_at_wall_ms,
    )


def test_a_cordon_outlasts_the_loss_of_a_node(cluster: Cluster) -> None:
    cluster.join("k1")
    cluster.renew("k1", lease_ms=1)
    cordon = SetNodeState(
        node_id="id-k1", state=NodeState.CORDONED, reason="disk", by="ann", only_from=(NodeState.UP,)
    )
    assert cluster.change(cordon).applied
    assert not cluster.change(cordon).applied
    wait_until(lambda: cluster.declare_lost("k1"))
    assert cluster.join("k1", life="2").node.state is NodeState.CORDONED


# ── the loss of a node ───────────────────────────────────────────────────────────────────


def wait_until(condition: Callable[[], bool], within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {within_s} s")
        time.sleep(0.01)


def test_a_node_whose_lease_lasts_is_not_lost(cluster: Cluster) -> None:
    cluster.up("k1")
    assert not cluster.declare_lost("k1")


def test_a_node_that_has_renewed_meanwhile_is_not_lost(cluster: Cluster) -> None:
    cluster.join("k1")
    cluster.renew("k1", lease_ms=1)
    cluster.renew("k1", lease_ms=1)
    wait_until(lambda: cluster.read().now_ms > cluster.read().nodes[0].lease_until_ms)
    assert not cluster.declare_lost("k1", renewals=1)
    assert not cluster.declare_lost("k1", renewals=2, incarnation=2)
    assert cluster.declare_lost("k1", renewals=2)


def test_a_node_is_not_lost_while_its_members_may_have_promised_to_keep_it(cluster: Cluster) -> None:
    """The witnesses must testify after the end of the lease, so many that the others are not a majority."""
    for name in ("k3", "k2", "k1"):
        cluster.join(name)
        cluster.renew(name, lease_ms=1 if name == "k1" else LONG_MS, members=("k1", "k2", "k3"))
    wait_until(lambda: cluster.read().now_ms > cluster.read().nodes[0].lease_until_ms)
    assert not cluster.declare_lost("k1")
    cluster.renew("k2", members=("k1", "k2", "k3"))
    assert not cluster.declare_lost("k1")
    cluster.renew("k3", members=("k1", "k2", "k3"), testify=False)
    assert not cluster.declare_lost("k1")
    cluster.renew("k3", members=("k1", "k2", "k3"))
    assert cluster.declare_lost("k1")


def test_a_node_that_is_alone_is_its_own_majority_and_is_not_lost(cluster: Cluster) -> None:
    cluster.up("k1")
    expire(cluster, "k1")
    assert not cluster.declare_lost("k1")


def test_a_lost_node_gives_up_its_workers_and_renews_nothing(cluster: Cluster) -> None:
    cluster.up("k1", "k2")
    cluster.wish()
    epoch = cluster.place("k1").assignments[0].epoch
    cluster.change(KeepTenure(Tenure(component_id=W, epoch=epoch, node_id="id-k1", restarts=2)))
    expire(cluster, "k1")
    assert cluster.declare_lost("k1")
    read = cluster.read()
    assert (read.assignments[0].node_id, read.assignments[0].phase) == (None, TenurePhase.UNPLACED)
    assert (read.tenures[0].how, read.tenures[0].restarts) == (TenureEnd.LOST, 2)
    answer = cluster.renew("k1")
    assert isinstance(answer, RenewalRefused)
    assert (answer.state, answer.reason) == (NodeState.LOST, "it is silent")


def expire(cluster: Cluster, name: str) -> None:
    """Let the lease of a node be over; no statement of ours sets one back."""
    if isinstance(cluster.store, MemoryCluster):
        nodes = cluster.store.tables.nodes
        nodes[f"id-{name}"] = replace(nodes[f"id-{name}"], lease_until_ms=1)
        return
    with cluster.store._engine.begin() as connection:
        statement = text("UPDATE rekindle_node SET lease_until_ms = 1 WHERE name = :name")
        connection.execute(statement, {"name": name})


# ── where workers run ────────────────────────────────────────────────────────────────────


def test_an_epoch_grows_with_each_placement_and_with_the_clock(cluster: Cluster) -> None:
    cluster.up("k1")
    cluster.wish()
    first = cluster.place("k1").assignments[0]
    assert first.epoch >= cluster.read().now_ms - LONG_MS
    release = BeginRelease(component_id=W, epoch=first.epoch, reason="move", target="id-k1")
    assert cluster.change(release).assignments[0].phase is TenurePhase.RELEASING
    assert not cluster.change(release).applied
    tenure = Tenure(component_id=W, epoch=first.epoch, node_id="id-k1", restarts=1)
    back = GiveBack(node_id="id-k1", component_id=W, epoch=first.epoch, tenure=tenure, reason="moved")
    assert cluster.change(back).applied
    assert not cluster.change(back).applied
    assert cluster.place("k1", epoch=first.epoch).assignments[0].epoch > first.epoch
    assert cluster.read().tenures[0].restarts == 1


def test_a_worker_is_placed_by_those_who_know_its_epoch_only(cluster: Cluster) -> None:
    cluster.up("k1", "k2")
    cluster.wish()
    epoch = cluster.place("k1").assignments[0].epoch
    assert not cluster.place("k2").applied
    assert not cluster.place("k2", epoch=epoch).applied
    assert cluster.read().assignments[0].node_id == "id-k1"


@pytest.mark.parametrize("why", ["cordoned", "incarnation", "expired", "unknown"])
def test_no_worker_is_placed_on_a_node_that_may_not_run_it(cluster: Cluster, why: str) -> None:
    cluster.up("k1")
    cluster.wish()
    if why == "cordoned":
        cluster.change(
            SetNodeState(
                node_id="id-k1", state=NodeState.CORDONED, reason="", by="", only_from=(NodeState.UP,)
            )
        )
    if why == "expired":
        expire(cluster, "k1")
    assert not cluster.place(
        "k9" if why == "unknown" else "k1", incarnation=2 if why == "incarnation" else 1
    ).applied


def test_the_reason_for_an_unplaced_worker_is_kept(cluster: Cluster) -> None:
    cluster.wish(needs={"cpu": 8.0})
    cluster.change(NoteUnplaced(component_id=W, epoch=0, reason="k1: cpu"))
    assert cluster.read().assignments[0].reason == "k1: cpu"
    assert cluster.read().wishes[0].place.needs == {"cpu": 8.0}


def test_a_wish_is_read_as_it_was_put(cluster: Cluster) -> None:
    place = PlacePolicy(spread="zone", needs={"cpu": 1.0}, labels={"a": "b"}, apart_from=("db",), per_node=2)
    wish = Wish(component_id=W, group="web", spec="{}", place=place, min_healthy=1)
    cluster.change(PutWish(wish))
    assert cluster.read().wishes == (wish,)


def test_the_revision_of_a_wish_grows_with_its_spec_only(cluster: Cluster) -> None:
    cluster.wish(spec="a")
    cluster.wish(spec="a", pack=True)
    assert cluster.read().wishes[0].revision == 1
    cluster.wish(spec="b")
    assert cluster.read().wishes[0].revision == 2


def test_a_wish_stays_until_its_worker_is_given_back(cluster: Cluster) -> None:
    cluster.up("k1")
    cluster.wish()
    epoch = cluster.place("k1").assignments[0].epoch
    assert not cluster.change(RemoveWish(W)).applied
    tenure = Tenure(component_id=W, epoch=epoch, node_id="id-k1")
    cluster.change(GiveBack(node_id="id-k1", component_id=W, epoch=epoch, tenure=tenure))
    assert cluster.change(RemoveWish(W)).applied
    assert cluster.read().assignments == ()
    cluster.wish()
    assert cluster.place("k1", epoch=epoch).applied  # its epochs go on


def test_late_news_of_a_tenure_are_merged(cluster: Cluster) -> None:
    ended = Tenure(component_id=W, epoch=1, node_id="k", restarts=4, noted=9, ended_ms=5, how=TenureEnd.LOST)
    cluster.change(KeepTenure(ended))
    cluster.wish()
    news = [Tenure(component_id=W, epoch=1, node_id="k", restarts=5, noted=12)]
    news += [news[0], Tenure(component_id=W, epoch=1, node_id="k", restarts=3, noted=7)]
    assert [cluster.change(KeepTenure(each)).late for each in news] == [1, 0, 0]
    (found,) = cluster.read().tenures
    assert (found.restarts, found.how, found.noted) == (5, TenureEnd.LOST, 12)


# ── leaders, outages ─────────────────────────────────────────────────────────────────────


def test_one_coordinator_leads_and_another_follows_when_it_is_silent(postgres_url: str) -> None:
    """Also if its session lasts, as that of a frozen one does."""
    first, second = Cluster(postgres_url, lease_s=3.0), Cluster(postgres_url, lease_s=3.0)
    assert (first.read().leads, second.read().leads) == (True, False)
    assert first.read().leads
    wait_until(lambda: second.read().leads)
    first.store.close()
    second.store.close()


def test_a_server_that_is_away_is_answered_and_found_again(
    postgres_service: PostgresService, postgres_url: str
) -> None:
    cluster = Cluster(postgres_url, lease_s=6.0)
    cluster.up("k1")
    postgres_service.stop()
    try:
        assert isinstance(cluster.renew("k1"), StoreAway)
    finally:
        postgres_service.start()
    wait_until(lambda: isinstance(cluster.renew("k1"), Renewed))
    cluster.store.close()


def test_a_lock_that_is_held_by_others_costs_no_more_than_a_part_of_the_lease(postgres_url: str) -> None:
    cluster = Cluster(postgres_url, lease_s=1.5)
    cluster.up("k1")
    engine = create_engine(postgres_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(text("LOCK TABLE rekindle_node"))
        assert isinstance(cluster.renew("k1"), StoreAway)
    engine.dispose()
    wait_until(lambda: isinstance(cluster.renew("k1"), Renewed))
    cluster.store.close()


def test_a_node_that_freezes_in_the_middle_of_a_change_keeps_its_locks_for_a_part_of_the_lease(
    postgres_url: str,
) -> None:
    frozen, other = Cluster(postgres_url, lease_s=1.5), Cluster(postgres_url, lease_s=60.0)
    other.up("k1")
    assert isinstance(frozen.store, PostgresCluster)
    connection = frozen.store._engine.connect()
    connection.execute(text("UPDATE rekindle_node SET renewals = 2"))  # and nothing follows
    assert isinstance(other.renew("k1", number=3), Renewed)
    connection.invalidate()
    connection.close()
    frozen.store.close()
    other.store.close()


def test_a_coordinator_leads_after_the_clock_of_the_database_was_set_back(postgres_url: str) -> None:
    cluster = Cluster(postgres_url, lease_s=3.0)
    assert isinstance(cluster.store, PostgresCluster)
    with cluster.store._engine.begin() as connection:
        statement = (
            "INSERT INTO rekindle_meta (key, value) VALUES ('cluster leader', 'another 99999999999999')"
        )
        connection.execute(text(statement))
    assert cluster.read().leads
    cluster.store.close()


def test_an_error_of_one_request_leaves_the_next_one_its_answer(postgres_url: str) -> None:
    cluster, answers = Cluster(postgres_url), Answers()
    assert isinstance(cluster.store, PostgresCluster)
    cluster.store._changes.ask("broken", answers, lambda _connection: 1 // 0)
    assert isinstance(answers.next(), StoreAway)
    assert cluster.read().leads
    cluster.store.close()


# ── two that change at once ──────────────────────────────────────────────────────────────


def wait_for_lock(connection: Connection) -> None:
    """Wait until a session waits for a lock of another."""
    count = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    wait_until(lambda: connection.execute(count).scalar_one() > 0)


def test_one_of_two_machines_of_a_name_that_join_at_once_is_refused(postgres_url: str) -> None:
    cluster, answers = Cluster(postgres_url), Answers()
    assert isinstance(cluster.store, PostgresCluster)
    one, other = (JoinNode(node=Node(id=id_, name="k1", boot_id=id_), life="1") for id_ in "ab")
    with cluster.store._engine.begin() as connection:
        assert isinstance(cluster.store._join(one, connection), Joined)
        cluster.store.join(other, answers)
        wait_for_lock(connection)
    assert isinstance(answers.next(), JoinRefused)
    cluster.store.close()


@pytest.mark.parametrize("leaves_first", [True, False])
def test_no_worker_is_placed_on_a_node_that_leaves_at_that_moment(
    postgres_url: str, leaves_first: bool
) -> None:
    cluster, answers = Cluster(postgres_url), Answers()
    cluster.up("k1")
    cluster.wish()
    place = PlaceWorker(component_id=W, epoch=0, node_id="id-k1", incarnation=1, reason="fits")
    leave = SetNodeState(node_id="id-k1", state=NodeState.LEFT, reason="", by="", only_from=(NodeState.UP,))
    first, second = (leave, place) if leaves_first else (place, leave)
    assert isinstance(cluster.store, PostgresCluster)
    with cluster.store._engine.begin() as connection:
        assert apply(connection, first).applied
        cluster.store.change(second, answers)
        wait_for_lock(connection)
    assert not answers.next().applied
    cluster.store.close()


def test_a_file_is_refused_as_the_database_of_a_cluster() -> None:
    with pytest.raises(StoreError, match="needs a PostgreSQL database that all nodes reach"):
        PostgresCluster("state/rekindle.db", lease_s=3.0)
