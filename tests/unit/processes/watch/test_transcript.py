"""The latest output of all workers, for followers."""

from __future__ import annotations

import pytest

from rekindle.actors.processes.watch.transcript import MOST_LINES, Transcript, lines_of


def written(count: int) -> Transcript:
    """A transcript of `count` lines, by two workers in turn."""
    transcript = Transcript()
    for number in range(1, count + 1):
        transcript.take(f"w:{number % 2}", 1, "out", str(number), 0)
    return transcript


def test_lines_of_all_workers_are_numbered_in_the_order_in_which_they_came() -> None:
    found = written(3).after(0)
    assert [(line.number, line.component_id, line.text) for line in found.lines] == [
        (1, "w:1", "1"),
        (2, "w:0", "2"),
        (3, "w:1", "3"),
    ]
    assert (found.newest, found.lost) == (3, 0)


def test_a_reader_that_gives_the_newest_number_receives_what_came_since() -> None:
    transcript = written(3)
    assert transcript.after(3).lines == ()
    transcript.take("w:0", 2, "err", "more", 0)
    assert [line.text for line in transcript.after(3).lines] == ["more"]


@pytest.mark.parametrize(("after", "lost"), [(0, 7), (5, 2), (7, 0), (8, 0)])
def test_the_number_of_lost_lines_is_reported(after: int, lost: int) -> None:
    found = written(MOST_LINES + 7).after(after)
    assert (found.lost, found.newest) == (lost, MOST_LINES + 7)
    assert len(found.lines) == MOST_LINES - max(0, after - 7)


def test_a_number_that_is_yet_to_come_was_another_supervisors() -> None:
    assert [line.number for line in written(2).after(99).lines] == [1, 2]


def test_nothing_was_written_yet() -> None:
    found = Transcript().after(0)
    assert (found.lines, found.newest, found.lost) == ((), 0, 0)


def test_lines_tell_whose_numbers_they_have() -> None:
    assert Transcript("mark").after(0).run == "mark"


def test_the_last_lines_of_some_workers_come_in_the_order_of_all() -> None:
    found = lines_of({"w:0": (), "w:1": ()}, written(10).after(0), None, 2)
    assert [line.text for line in found.lines] == ["7", "8", "9", "10"]
    assert [line.text for line in lines_of({"w:1": ()}, written(10).after(0), None, 2).lines] == ["7", "9"]
    assert lines_of({"w:1": ()}, written(10).after(0), None, 0).lines == ()


def test_a_tail_has_what_a_noisy_one_pushed_out_of_the_transcript() -> None:
    transcript = Transcript()
    hush = transcript.take("quiet", 1, "out", "hush", 0)
    for _ in range(MOST_LINES):
        transcript.take("noisy", 1, "out", "noise", 0)
    recent = transcript.after(0)
    late = transcript.take("quiet", 1, "out", "late", 0)  # which was not known at the time of the request
    followed = lines_of({"quiet": (hush, late)}, recent, 0, 10)
    assert (followed.lines, followed.lost, followed.newest) == ((hush,), 0, MOST_LINES + 1)
    assert lines_of({"quiet": (hush,)}, recent, 1, 10).lines == ()
    assert lines_of({"noisy": ()}, recent, 0, 10).lost == 1
