"""The evidence of deaths, as every store keeps it."""

from __future__ import annotations

from msgspec.structs import replace
from sqlalchemy import Engine, text
from tests.contract.records import NOW, TAG, death

from rekindle.actors.deaths.crash_bundle import Bundle, bundle_of
from rekindle.actors.deaths.death import Cause, Death, Exit
from rekindle.actors.deaths.evidence import Fingerprint, Remains, Spent
from rekindle.actors.deaths.findings import Finding
from rekindle.actors.facts.records import DeathAmended, DeathRecord, EndKept, RestartReset, StateRemoved
from rekindle.actors.ports import Store
from rekindle.persistence.sql.encoding import MOST_BUNDLES
from rekindle.persistence.store import SqlStore

REMAINS = Remains(
    pid=4711,
    usage=Spent(user_ms=1, system_ms=2, peak_rss_kb=3, peak_is_a_bound=True, major_faults=4),
    output=(("out", "hello"), ("err", "half a pair: \ud800, NUL: \0")),
    last_words="Traceback (most recent call last):\nValueError: \ud800\n",
    oom_kills=0,
    memory_limit_kb=5,
    fingerprint=Fingerprint(code="c", configuration="d"),
)
EXIT = Exit(code=1)


def bundle(generation: int = 1) -> Bundle:
    died = Death(
        component_id=TAG,
        generation=generation,
        cause=Cause.EXITED,
        exit=EXIT,
        job=42,
        silent_ms=7,
        progress="p",
    )
    return bundle_of(died, NOW, EXIT, REMAINS)


def without_half_pairs(found: Bundle) -> Bundle:
    def whole(text: str) -> str:
        return text.replace("\ud800", "?")

    output = tuple((stream, whole(line)) for stream, line in found.output)
    return replace(
        found,
        output=output,
        last_words=whole(found.last_words),
        last_error=whole(found.last_error),
        sentence=whole(found.sentence),
    )


def with_bundle(generation: int = 1) -> DeathRecord:
    return death(generation, bundle=bundle(generation))


def test_a_bundle_comes_back_as_it_was_stored(store: Store) -> None:
    store.commit([with_bundle()])
    [found] = store.bundles(TAG)
    # No database has half a surrogate pair: one comes back as a question mark.
    assert without_half_pairs(found) == without_half_pairs(bundle())
    assert store.deaths(TAG)[0].bundle is None


def test_bundles_come_newest_first_or_one_by_its_generation(store: Store) -> None:
    store.commit([with_bundle(1), with_bundle(2), with_bundle(3)])
    assert [found.generation for found in store.bundles(TAG, limit=2)] == [3, 2]
    assert [found.generation for found in store.bundles(TAG, generation=1)] == [1]
    assert store.bundles(TAG, generation=9) == store.bundles("worker:other:0") == ()


def test_a_death_that_is_repeated_keeps_the_bundle_that_was_amended(store: Store) -> None:
    store.commit([with_bundle()])
    amended = replace(bundle(), finding=Finding.HUNG)
    amendment = DeathAmended(component_id=TAG, generation=1, exit_code=None, signal=9, bundle=amended)
    store.commit([amendment])
    store.commit([with_bundle()])
    assert [found.finding for found in store.bundles(TAG)] == [Finding.HUNG]


def test_an_end_that_was_asked_for_leaves_evidence_and_no_death(store: Store) -> None:
    store.commit([EndKept(bundle(5)), EndKept(bundle(5))])
    assert [found.generation for found in store.bundles(TAG)] == [5]
    assert store.deaths(TAG) == ()


def test_a_reset_and_a_removal_leave_the_evidence(store: Store) -> None:
    store.commit([with_bundle(), RestartReset(TAG, NOW), StateRemoved(TAG)])
    assert len(store.bundles(TAG)) == 1


def test_only_a_limited_number_of_bundles_of_a_worker_is_stored(store: Store) -> None:
    last = MOST_BUNDLES + 100
    store.commit([with_bundle(generation) for generation in range(1, last + 1)])
    kept = [found.generation for found in store.bundles(TAG, limit=10_000)]
    assert kept[0] == last
    assert MOST_BUNDLES <= len(kept) <= MOST_BUNDLES + 20
    assert len(store.deaths(TAG, limit=10_000)) == last


def test_an_unreadable_bundle_is_left_out(sql_store: SqlStore, rows: Engine) -> None:
    sql_store.commit([with_bundle(1), with_bundle(2)])
    with rows.begin() as connection:
        connection.execute(text("UPDATE rekindle_bundle SET details = '{}' WHERE generation = 2"))
    assert [found.generation for found in sql_store.bundles(TAG)] == [1]
