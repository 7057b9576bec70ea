"""Node suspects: what is evidence, and what a suspicion becomes."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rekindle.actors.cluster.facts.cases import (
    Case,
    Convicted,
    KeptRuling,
    Noticed,
    OnParole,
    Suspect,
    Trusted,
)
from rekindle.actors.cluster.facts.node_lives import Fault, NodeLife
from rekindle.actors.cluster.facts.tenures import TenureEnd
from rekindle.actors.cluster.rules.suspects.attribution import (
    Conviction,
    ProcessEnding,
    convictions,
    fault,
    sentence,
)
from rekindle.actors.cluster.rules.suspects.binomial import tail
from rekindle.actors.cluster.rules.suspects.suspicion import (
    OVERRULED_S,
    PAROLE_S,
    Ruling,
    WorkerLife,
    evidence,
    notices,
    overruled,
    rulings,
)

NOW = 1_000.0
NODES = ("k0", "k1", "k2", "k3", "k4", "k5")


def dying(node: str, worker: str, deaths: int, life_s: float = 8.0, hard: bool = False) -> list[WorkerLife]:
    """The last lives of a worker, one after the other, up to now."""
    group = worker.partition(":")[0]
    begin = NOW - deaths * life_s
    return [
        WorkerLife(worker, group, node, begin + number * life_s, begin + (number + 1) * life_s, True, hard)
        for number in range(deaths)
    ]


def steady(*nodes: str, groups: tuple[str, ...] = ("g0", "g1", "g2")) -> list[WorkerLife]:
    """A copy of each group on each node, alive for a long time."""
    return [WorkerLife(f"{group}:{node}", group, node, 0.0) for node in nodes for group in groups]


BAD = [
    *steady(*NODES[1:]),
    *dying("k0", "g0:k0", 3),
    *dying("k0", "g1:k0", 3),
    *dying("k0", "g2:k0", 3),
]
"""Three workers of three groups die on k0, and none elsewhere."""


def judge(case: Case, lives: list[WorkerLife], now: float = NOW, **others: tuple[str, ...]) -> Ruling | None:
    """The ruling on k0."""
    found = rulings({**dict.fromkeys(NODES[1:], Trusted()), "k0": case}, lives, now, **others)
    return next((each for each in found if each.node == "k0"), None)


# ── the test ─────────────────────────────────────────────────────────────────────────────


@given(deaths=st.integers(0, 12), share=st.floats(0.0, 1.0), at_least=st.integers(0, 12))
def test_the_tail_of_one_group_is_the_binomial_one(deaths: int, share: float, at_least: int) -> None:
    exact = sum(comb(deaths, k) * share**k * (1 - share) ** (deaths - k) for k in range(at_least, deaths + 1))
    assert tail([(deaths, share)], at_least) == pytest.approx(exact, abs=1e-12)


def test_two_groups_of_the_same_share_count_as_one() -> None:
    assert tail([(3, 0.2), (4, 0.2)], 5) == pytest.approx(tail([(7, 0.2)], 5))


def test_a_group_that_lives_on_one_node_only_says_nothing_about_it() -> None:
    lives = [*steady("k1"), *dying("k0", "solo:0", 3)]
    assert evidence(lives, "k0", NOW).p == 1.0


def test_deaths_of_the_same_groups_elsewhere_speak_for_the_node() -> None:
    everywhere = [
        life for node in NODES for group in ("g0", "g1", "g2") for life in dying(node, f"{group}:{node}", 3)
    ]
    assert evidence(everywhere, "k0", NOW).p > 0.1


def test_a_worker_that_dies_all_the_time_counts_three_times() -> None:
    found = evidence([*steady(*NODES[1:]), *dying("k0", "g0:k0", 30)], "k0", NOW)
    assert (found.deaths, found.is_enough) == (3, False)


def test_evidence_of_the_machine_counts_double_and_needs_one_group() -> None:
    lives = [*steady(*NODES[1:]), *dying("k0", "g0:k0", 3, hard=True)]
    found = evidence(lives, "k0", NOW)
    assert (found.deaths, found.is_enough) == (6, True)


def test_what_happened_before_a_node_was_trusted_again_is_void() -> None:
    assert judge(Trusted(since=NOW - 1.0), BAD) is None


def test_an_operator_who_uncordons_a_node_is_not_overruled_at_once() -> None:
    later = [
        replace(life, began=life.began + 600.0, ended=NOW + 599.0 if life.died else None) for life in BAD
    ]
    assert judge(overruled(NOW), later, NOW + 600.0) is None
    assert overruled(NOW).since == NOW + OVERRULED_S


def test_a_worker_that_runs_nowhere_else_is_no_witness() -> None:
    ruling = judge(Trusted(), BAD, rooted=("g0:k0",))
    assert ruling is not None
    assert ruling.moves == ("g1:k0", "g2:k0")
    assert judge(Trusted(), BAD, rooted=("g0:k0", "g1:k0")) is None


def test_where_suspects_are_only_told_of_an_operator_hears_the_same_words() -> None:
    (ruling,) = notices({**dict.fromkeys(NODES[1:], Trusted()), "k0": Trusted()}, BAD, NOW)
    assert (ruling.node, ruling.case) == ("k0", Noticed(NOW))
    assert ruling.why == "3 of 3 workers died in 16 s (elsewhere 0 of 15)"
    held = {"k0": Convicted(NOW, NOW + 600, 30.0)}
    assert [each.case for each in notices(held, BAD, NOW)] == [Trusted(NOW)]


# ── rulings ──────────────────────────────────────────────────────────────────────────────


def test_a_suspect_s_worst_workers_become_witnesses() -> None:
    ruling = judge(Trusted(), BAD)
    assert ruling is not None
    assert isinstance(ruling.case, Suspect)
    assert ruling.moves == ("g0:k0", "g1:k0")
    assert ruling.why == "3 of 3 workers died in 16 s (elsewhere 0 of 15)"


def test_a_node_that_the_fleet_needs_is_spared() -> None:
    assert judge(Trusted(), BAD, spared=("k0",)) is None


def test_only_one_of_six_nodes_is_held_at_a_time() -> None:
    cases: dict[str, Case] = {**dict.fromkeys(NODES, Trusted()), "k3": OnParole(0.0, 1e9, 1)}
    assert rulings(cases, BAD, NOW) == ()


SUSPECT = Suspect(NOW, NOW - 100.0, ("g0:k0", "g1:k0"), 30.0, "why")


def after(seconds: float, *lives: WorkerLife) -> Ruling | None:
    return judge(SUSPECT, [*BAD, *lives], NOW + seconds)


def test_a_witness_that_dies_elsewhere_too_acquits_the_node() -> None:
    ruling = after(10.0, WorkerLife("g0:k0", "g0", "k1", NOW + 1, NOW + 9, died=True))
    assert ruling is not None
    assert (ruling.case, ruling.why) == (
        Trusted(NOW + 10),
        "its witness g0:k0 died elsewhere too",
    )


def test_witnesses_that_live_through_the_hold_convict_the_node_and_its_deaths_are_refunded() -> None:
    alive = [WorkerLife(worker, worker[:2], "k1", NOW + 1) for worker in SUSPECT.witnesses]
    assert after(30.0, *alive) is None
    ruling = after(31.0, *alive)
    assert ruling is not None
    assert isinstance(ruling.case, Convicted)
    assert dict(ruling.refunds) == {"g0:k0": 3, "g1:k0": 3, "g2:k0": 3}


def test_one_witness_is_not_enough() -> None:
    assert after(60.0, WorkerLife("g0:k0", "g0", "k1", NOW + 1)) is None


def test_a_suspicion_that_is_not_proven_ends() -> None:
    ruling = after(91.0)
    assert ruling is not None
    assert ruling.case == Trusted(NOW + 91)


def test_a_convicted_node_is_on_parole_after_its_time() -> None:
    case = Convicted(0.0, PAROLE_S, 30.0)
    assert judge(case, [], PAROLE_S - 1) is None
    ruling = judge(case, [], PAROLE_S)
    assert ruling is not None
    assert ruling.case == OnParole(PAROLE_S, 30.0, 1)


def test_a_canary_that_dies_doubles_the_time_and_one_that_lives_ends_it() -> None:
    case = OnParole(NOW, 30.0, 1)
    ruling = judge(case, [WorkerLife("g0:k0", "g0", "k0", NOW + 1, NOW + 9, died=True)], NOW + 10)
    assert ruling is not None
    assert ruling.case == Convicted(NOW + 10, NOW + 10 + 2 * PAROLE_S, 30.0, 2, NOW)
    ruling = judge(case, [WorkerLife("g0:k0", "g0", "k0", NOW + 1)], NOW + 31)
    assert ruling is not None
    assert ruling.case == Trusted(NOW + 31)


# ── attribution ──────────────────────────────────────────────────────────────────────────

CONVICTED = (Conviction("k2", 1_000, 5_000),)


@pytest.mark.parametrize(
    ("ending", "who"),
    [
        (ProcessEnding(node="k1", at_ms=2_000), Fault.WORKER),
        (ProcessEnding(node="k1", at_ms=2_000, has_status=False), Fault.UNKNOWN),
        (ProcessEnding(node="k1", at_ms=2_000, ordered=True, how=TenureEnd.RELEASED), Fault.OPERATOR),
        (ProcessEnding(node="k1", at_ms=2_000, how=TenureEnd.LOST), Fault.NODE),
        (ProcessEnding(node="k1", at_ms=2_000, how=TenureEnd.FENCED), Fault.NODE),
        (ProcessEnding(node="k2", at_ms=2_000), Fault.NODE),
        (ProcessEnding(node="k2", at_ms=6_000), Fault.WORKER),
        (ProcessEnding(node="k2", at_ms=999), Fault.WORKER),
    ],
)
def test_a_death_is_attributed(ending: ProcessEnding, who: Fault) -> None:
    assert fault(ending, CONVICTED) is who
    assert who.counts == (who in (Fault.WORKER, Fault.UNKNOWN))


def test_explain_says_how_many_deaths_were_a_node_s_fault() -> None:
    blamed = [a_death("k2", at, Fault.NODE) for at in (1_000, 2_000, 3_000, 4_000)]
    own = a_death("k1", 1_000, Fault.WORKER)
    assert sentence([*blamed, own], {"k2": "gpu-4"}) == "4 of its 5 deaths were the fault of gpu-4"
    assert sentence([own], {}) is None


def a_death(node: str, at_ms: int, whose: Fault) -> NodeLife:
    return NodeLife(
        node_id=node, component_id="w", generation=at_ms, began_ms=0, ended_ms=at_ms, fault=whose, died=True
    )


def test_a_conviction_lasts_from_its_first_death_until_the_next_ruling() -> None:
    cases: tuple[Case, ...] = (
        Suspect(3.0, 1.0, ("a", "b"), 30.0, "why"),
        Convicted(33.0, 633.0, 30.0, guilty_since=1.0),
        OnParole(633.0, 30.0, 1),
        Convicted(640.0, 1840.0, 30.0, 2, guilty_since=633.0),
    )
    given = [
        KeptRuling(node_id="k2", number=number, at_ms=round(case.since * 1000), case=case, why="")
        for number, case in enumerate(cases, 1)
    ]
    assert convictions(given) == (Conviction("k2", 1_000, 633_000), Conviction("k2", 633_000))
