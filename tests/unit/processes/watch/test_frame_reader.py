"""Reading frames from a channel, within bounds: F25, P12, P14."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.actors.facts.frames import MAX_LINE, Frame
from rekindle.actors.processes.watch.frame_reader import FRAMES_PER_SECOND, FrameReader

LINE = b'{"status":"healthy"}\n'


def fed(reader: FrameReader, *chunks: bytes, now: float = 0.0) -> list[Frame]:
    """The frames that these bytes give."""
    return [frame for chunk in chunks for frame in reader.feed(chunk, now)]


def test_a_line_is_a_frame() -> None:
    assert fed(FrameReader(100), LINE + LINE) == [Frame("healthy")] * 2


def test_a_frame_may_come_in_pieces() -> None:
    reader = FrameReader(100)
    assert fed(reader, LINE[:5]) == []
    assert fed(reader, LINE[5:-1]) == []
    assert fed(reader, LINE[-1:] + LINE[:3]) == [Frame("healthy")]


def test_empty_lines_are_neither_frames_nor_faults() -> None:
    reader = FrameReader(1)
    assert fed(reader, b"\n \n\r\n\n\n") == []
    assert (reader.refused, reader.violation) == (0, None)


def test_a_last_line_counts_without_its_end() -> None:
    reader = FrameReader(100)
    fed(reader, LINE[:-1])
    assert list(reader.finish(0)) == [Frame("healthy")]
    assert list(reader.finish(0)) == []


def test_pp_04_a_bad_frame_does_not_spoil_the_next_one() -> None:
    reader = FrameReader(100)
    assert fed(reader, b"HEALTH|[]\nHEALTH|null\n\xff\n" + LINE) == [Frame("healthy")]
    assert (reader.refused, reader.violation) == (3, None)


def test_f25_more_bad_frames_than_tolerated_end_the_listening() -> None:
    reader = FrameReader(3)
    assert fed(reader, b"x\n" * 3) == []
    assert reader.violation is None
    assert fed(reader, b"x\n" + LINE) == []
    assert reader.violation is not None
    assert reader.violation.startswith("4 frames refused, the last one: ")
    assert fed(reader, LINE) == list(reader.finish(0)) == []


def test_f25_a_line_that_never_ends_ends_the_listening() -> None:
    reader = FrameReader(100)
    fed(reader, *[b"x" * 4096] * 16)
    assert reader.violation is None
    fed(reader, b"x")
    assert reader.violation == "a frame longer than 65536 bytes"


def test_f25_a_long_line_that_ends_is_one_bad_frame() -> None:
    reader = FrameReader(100)
    assert fed(reader, b"x" * (MAX_LINE + 1) + b"\n" + LINE) == [Frame("healthy")]
    assert reader.refused == 1


def test_f25_a_flood_is_refused_and_ends_the_listening() -> None:
    reader = FrameReader(100)
    assert len(fed(reader, LINE * 10_000)) == FRAMES_PER_SECOND
    assert reader.violation == "101 frames refused, the last one: too many frames"


@pytest.mark.parametrize("line", [b"\n", b" \t \n"])
def test_f25_a_flood_of_blank_lines_ends_the_listening(line: bytes) -> None:
    reader = FrameReader(tolerance=20)
    assert list(reader.feed(line * 65_536, 0.0)) == []
    assert reader.violation is not None
    assert "too many frames" in reader.violation


def test_as_many_frames_as_a_second_allows_are_taken_every_second() -> None:
    reader = FrameReader(1)
    for second in range(50):
        assert len(fed(reader, LINE * FRAMES_PER_SECOND, now=float(second))) == FRAMES_PER_SECOND
    assert reader.refused == 0


def test_p12_frames_that_gathered_while_the_supervisor_was_stopped_are_not_a_flood() -> None:
    reader = FrameReader(100)
    fed(reader, LINE, now=0)
    assert len(fed(reader, LINE * 1800, now=3600)) == 1800
    assert reader.violation is None


def test_a_worker_that_was_quiet_for_long_may_not_flood_for_long() -> None:
    reader = FrameReader(10**6)
    fed(reader, LINE, now=0)
    assert len(fed(reader, LINE * 50_000, now=10**6)) < 5_000


def test_a_clock_that_stands_still_or_goes_back_allows_nothing_more() -> None:
    reader = FrameReader(10**6)
    assert len(fed(reader, LINE * 200, now=10.0)) == FRAMES_PER_SECOND
    assert fed(reader, LINE * 200, now=10.0) == fed(reader, LINE, now=5.0) == []


def test_what_arrived_while_no_program_read_is_not_a_flood() -> None:
    reader = FrameReader(0)
    reader.take_over(LINE[:5], 0, None)
    assert len(fed(reader, LINE[5:] + LINE * 500, now=10.0)) == 501
    assert reader.violation is None


@given(chunks=st.lists(st.binary(max_size=300) | st.just(LINE)))
def test_f25_arbitrary_bytes_never_raise_and_memory_stays_bounded(chunks: list[bytes]) -> None:
    reader = FrameReader(20)
    for chunk in chunks:
        assert all(isinstance(frame, Frame) for frame in reader.feed(chunk, 0.0))
        assert len(reader._buffer) <= MAX_LINE
    list(reader.finish(0.0))
    assert reader.refused <= 21


@given(
    lines=st.lists(st.sampled_from([LINE, b"bad\n", b"\n", b'HEALTH|{"status":"pending"}\n'])), data=st.data()
)
def test_the_same_bytes_give_the_same_frames_however_they_are_cut(
    lines: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)))))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert fed(FrameReader(1000), *pieces) == fed(FrameReader(1000), whole)
