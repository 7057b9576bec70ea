"""Records that are kept beside the database: taken in once, checked like any other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.contract.records import NOW, TAG, death, event, final_death, known

from rekindle.actors.deaths.death import Action, Cause, Death, Exit
from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.generations import GenerationEnded, GenerationStarted
from rekindle.actors.facts.jobs import CURRENT_RUN, JobSettled
from rekindle.actors.facts.records import DeathRecord, EventRecord, MetaSet, Record, RestartReset
from rekindle.actors.messages import WorkerDied
from rekindle.actors.messages.event_json import event_of, numbered
from rekindle.persistence import open_store
from rekindle.persistence import spool as spool_module
from rekindle.persistence.store import SqlStore
from rekindle.persistence.store_check import check_store


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    """Where records are kept."""
    return tmp_path / "kept"


def opened(address: str, spool: Path) -> SqlStore:
    return open_store(address, spool=spool, exclusive=True)


def test_records_that_were_kept_aside_are_taken_in_once(address: str, spool: Path) -> None:
    store = opened(address, spool)
    store.commit([MetaSet(CURRENT_RUN, "one"), death(1)])
    assert store.keep_aside([RestartReset(TAG, NOW + 1), death(2), event(1)], "one") == str(spool)
    kept = spool.read_bytes()
    assert store.take_back() == 3
    assert not spool.exists()
    spool.write_bytes(kept)  # as if the supervisor had been killed before it deleted the file
    assert store.take_back() == 0
    assert (known(store).restart_count, len(store.deaths(TAG)), store.load().last_event_id) == (1, 2, 1)
    store.close()


def test_if_another_run_has_used_the_store_since_only_history_is_taken_in(address: str, spool: Path) -> None:
    store = opened(address, spool)
    store.keep_aside([RestartReset(TAG, NOW + 1), death(1), MetaSet("key", "old")], "one")
    store.commit([MetaSet(CURRENT_RUN, "two"), MetaSet("key", "new"), death(2)])
    assert store.take_back() == 1
    assert (known(store).restart_count, store.load().meta["key"]) == (2, "new")
    store.close()


def test_everything_is_taken_in_of_a_run_that_could_never_write(address: str, spool: Path) -> None:
    """It was taken for one that another run had followed: a worker that it had given up was started again."""
    store = opened(address, spool)
    store.commit([MetaSet(CURRENT_RUN, "zero")])
    store.load()
    store.keep_aside([MetaSet(CURRENT_RUN, "one"), final_death(1), MetaSet("key", "new")], "one")
    assert store.take_back() == 3
    assert known(store).failure_reason is not None
    assert store.load().meta["key"] == "new"
    store.close()


def told(number: int, record: DeathRecord, **changes: object) -> EventRecord:
    """The event of a death."""
    ended = Exit(record.exit_code, record.signal)
    lost = Death(component_id=TAG, generation=record.generation, cause=record.cause, exit=ended)
    died = WorkerDied(lost, record.action, record.reason, 1.0, 1)
    return replace(numbered(number, record.died_at_wall_ms, died), **changes)


def test_a_death_that_is_taken_in_late_is_told_by_its_event_with_a_new_number(
    address: str, spool: Path
) -> None:
    """The death was stored, and no event told it."""
    store = opened(address, spool)
    store.commit([MetaSet(CURRENT_RUN, "one"), event(1)])
    store.keep_aside([event(2), death(1), told(3, death(1)), event(4), death(2), told(5, death(2))], "one")
    store.commit([MetaSet(CURRENT_RUN, "two"), event(2, at_wall_ms=NOW + 900)])
    assert store.take_back() == 2
    found = store.events().events
    assert [(each.id, each.type) for each in found] == [
        (1, "worker_started"),
        (2, "worker_started"),
        (3, "worker_died"),
        (4, "worker_died"),
    ]
    assert found[2:] == (told(3, death(1)), told(4, death(2)))
    assert store.load().seen_at_wall_ms == NOW + 900  # not the time of the last event
    store.close()


def test_a_death_that_another_run_has_recorded_meanwhile_is_told_once(address: str, spool: Path) -> None:
    """The other run found a process without an end, and recorded it as lost with its supervisor."""
    store = opened(address, spool)
    store.keep_aside([death(1), told(1, death(1)), death(2), told(2, death(2))], "one")
    lost = death(1, cause=Cause.SUPERVISOR_LOST, action=Action.NONE)
    store.commit([MetaSet(CURRENT_RUN, "two"), lost, told(1, lost)])
    store.take_back()
    died = [event_of(each) for each in store.events().events]
    assert [(each.generation, each.death.cause) for each in died if isinstance(each, WorkerDied)] == [
        (1, Cause.SUPERVISOR_LOST),
        (2, Cause.SIGNALLED),
    ]
    store.close()


def test_a_process_whose_end_waits_in_a_file_is_not_lost_with_its_supervisor(
    address: str, spool: Path
) -> None:
    store = opened(address, spool)
    other = "worker:tag:1"
    store.commit(
        [MetaSet(CURRENT_RUN, "one"), GenerationStarted(TAG, 1, NOW), GenerationStarted(other, 4, NOW)]
    )
    store.keep_aside([death(1), GenerationStarted(TAG, 2, NOW + 5), GenerationEnded(TAG, 2)], "one")
    assert [(life.component_id, life.generation) for life in store.load().lost] == [(other, 4)]
    store.take_back()
    assert [(life.component_id, life.generation) for life in store.load().lost] == [(other, 4)]
    store.close()


def test_restarts_that_are_taken_in_late_do_not_count_against_a_worker_that_was_reset_since(
    address: str, spool: Path
) -> None:
    """A worker was given up again by deaths that an operator had forgiven."""
    store = opened(address, spool)
    late = [death(1), death(2, died_at_wall_ms=NOW + 20), final_death(3, died_at_wall_ms=NOW + 30)]
    store.keep_aside(late, "one")
    store.commit([MetaSet(CURRENT_RUN, "two"), death(101, died_at_wall_ms=NOW + 5)])
    store.commit([RestartReset(TAG, NOW + 10), death(102, died_at_wall_ms=NOW + 40)])
    store.take_back()
    counted = known(store)
    assert (counted.restart_count, counted.streak_count, counted.failure_reason) == (2, 1, None)
    assert len(store.deaths(TAG)) == 5
    store.close()
    assert check_store(address).miscounts == ()


def test_a_commit_that_never_returns_is_kept_and_not_repeated_if_it_happens_after_all(
    address: str, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(address, spool)
    batch: list[Record] = [RestartReset(TAG, NOW + 1), death(2), event(1)]
    store.commit([MetaSet(CURRENT_RUN, "one"), death(1)])
    write = store._records.write

    def stuck(records: Sequence[Record]) -> tuple[JobSettled, ...]:
        assert store.keep_aside([*batch, death(3)], "one")  # the stop has waited long enough
        return write(records)

    with monkeypatch.context() as patched:
        patched.setattr(store._records, "write", stuck)
        store.commit(batch)
    store.take_back()
    assert (known(store).restart_count, len(store.deaths(TAG))) == (2, 3)
    store.close()


def test_a_damaged_line_is_left_out_and_the_others_are_taken_in(address: str, spool: Path) -> None:
    store = opened(address, spool)
    store.commit([MetaSet(CURRENT_RUN, "one")])
    store.keep_aside([death(1), death(2)], "one")
    lines = spool.read_bytes().splitlines()
    spool.write_bytes(b"\n".join([lines[0], lines[1][:50], lines[2]]))
    assert store.take_back() == 1
    assert [record.generation for record in store.deaths(TAG)] == [2]
    store.close()


def test_a_file_that_could_not_be_taken_in_is_never_overwritten(address: str, spool: Path) -> None:
    for generation in (1, 2):
        store = opened(address, spool)
        store.keep_aside([death(generation)], "one")
        store.close()
    store = opened(address, spool)
    assert store.take_back() == 2
    assert not list(spool.parent.glob("kept*"))
    store.close()


def test_a_record_that_cannot_be_written_prevents_no_start_and_stays_as_evidence(
    address: str, spool: Path
) -> None:
    store = opened(address, spool)
    store.commit([MetaSet(CURRENT_RUN, "one")])
    for _ in range(2):
        store.keep_aside([death(1), death(2**70)], "one")
        assert store.take_back() == 0
    assert not spool.exists()
    assert len(list(spool.parent.glob("kept.damaged*"))) == 2
    store.close()


def test_a_text_with_half_a_surrogate_pair_is_kept_like_any_other(address: str, spool: Path) -> None:
    store = opened(address, spool)
    store.commit([MetaSet(CURRENT_RUN, "one")])
    assert store.keep_aside([MetaSet("key", "a\udcff"), death(1)], "one")
    assert store.take_back() == 2
    assert store.load().meta["key"] == "a?"
    store.close()


def test_a_link_in_place_of_the_file_is_not_followed(address: str, spool: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "kept.new").symlink_to(precious)
    store = opened(address, spool)
    assert store.keep_aside([death(1)], "one")
    assert precious.read_text() == "precious"
    spool.unlink()
    spool.symlink_to(precious)
    with pytest.raises(StoreUnavailableError):
        store.take_back()
    assert precious.read_text() == "precious"
    store.close()


def test_no_file_is_overwritten_if_all_names_are_taken(
    address: str, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "MOST_FILES", 2)
    kept = []
    for generation in (1, 2, 3):
        store = opened(address, spool)
        kept.append(store.keep_aside([death(generation)], "one"))
        store.close()
    assert kept == [str(spool), f"{spool}.1", None]


def test_a_commit_whose_answer_was_lost_is_not_repeated_from_the_file(address: str, spool: Path) -> None:
    store = opened(address, spool)
    batch: list[Record] = [RestartReset(TAG, NOW + 1), death(2), event(1)]
    store.commit([MetaSet(CURRENT_RUN, "one"), death(1), *batch])
    store._in_doubt = tuple(batch)  # as if the answer to that commit had been lost
    later = death(3)
    assert store.keep_aside([*batch, later], "one")
    store.take_back()
    assert (known(store).restart_count, len(store.deaths(TAG))) == (2, 3)
    store.close()
