"""What a line of a worker says: PP-01 to PP-06, F25, F26."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.actors.facts.frames import MAX_LINE, PREFIX, Frame, FrameRefusal, decode


def reason(line: bytes) -> str:
    """Why a line is refused."""
    decoded = decode(line)
    assert isinstance(decoded, FrameRefusal)
    return decoded.reason


def test_pp_01_a_frame_of_the_older_form_is_understood() -> None:
    frame = decode(b'HEALTH|{"component_id":"worker:tag:0","status":"healthy"}')
    assert frame == Frame("healthy", component_id="worker:tag:0")


def test_a_bare_object_is_a_frame() -> None:
    assert decode(b'{"status": "healthy", "current_job": 42}') == Frame("healthy", current_job=42)


@pytest.mark.parametrize("status", ["pending", "healthy", "unhealthy", "recovering"])
def test_a_worker_has_four_words_for_its_health(status: str) -> None:
    frame = decode(json.dumps({"status": status}).encode())
    assert isinstance(frame, Frame)
    assert frame.status == status


@pytest.mark.parametrize("line", [b"3", b"null", b'"healthy"', b"[]", b"true", b"1.5"])
def test_pp_02_json_that_is_not_an_object_is_refused(line: bytes) -> None:
    assert reason(line).startswith("Expected `object`")


def test_pp_03_text_that_is_not_json_is_refused() -> None:
    assert "malformed" in reason(b"HEALTH|not json")


@pytest.mark.parametrize(
    "line",
    [
        b"HEALTH|[]",
        b"HEALTH|null",
        b"HEALTH|3",
        b"HEALTH|",
        b'HEALTH|HEALTH|{"status":"healthy"}',
        b'{"status":"recovering","recover_for_s":"x"}',
        b'{"status":"recovering","recover_for_s":NaN}',
        b'{"status":"recovering","recover_for_s":Infinity}',
        b'{"status":"recovering","recover_for_s":1e999}',
        b'{"status":"recovering","recover_for_s":1e306}',
        b'{"status":"recovering","recover_for_s":-1e306}',
        b'{"status":"healthy","busy_for_s":1e306}',
        b'{"status":"recovering","recover_for_s":true}',
        b'{"status":"healthy","current_job":true}',
        b'{"status":"healthy","current_job":1.5}',
        b'{"status":"healthy","current_job":[1]}',
        b'{"status":"healthy","current_job":18446744073709551616}',
        b'{"status":"healthy","progress":{}}',
        b'{"status":"healthy","detail":null}',
        b'{"status":"healthy","component_id":5}',
    ],
)
def test_pp_04_values_of_the_wrong_kind_are_refused(line: bytes) -> None:
    assert reason(line)


@pytest.mark.parametrize(
    "line", [b"{}", b'{"status":"dead"}', b'{"status":"failed"}', b'{"status":1}', b'{"Status":"healthy"}']
)
def test_pp_05_no_status_or_an_unknown_one_is_refused(line: bytes) -> None:
    assert reason(line)


def test_pp_06_the_id_in_a_frame_is_only_used_for_comparison() -> None:
    frame = decode(b'{"status":"healthy","component_id":"worker:other:0"}')
    assert isinstance(frame, Frame)
    assert (frame.status, frame.component_id) == ("healthy", "worker:other:0")


def test_pp_11_a_frame_without_a_job_has_none() -> None:
    frame = decode(b'{"status":"healthy"}')
    assert isinstance(frame, Frame)
    assert frame.job is None


@pytest.mark.parametrize("job", [0, -1, 2**63 - 1, "", "index/7", "ä" * 1024])
def test_a_job_is_a_number_or_a_short_text(job: int | str) -> None:
    frame = decode(json.dumps({"status": "healthy", "current_job": job}).encode())
    assert isinstance(frame, Frame)
    assert frame.job == job


@pytest.mark.parametrize("field", ["current_job", "progress", "detail", "component_id"])
def test_a_long_text_is_refused(field: str) -> None:
    assert "1024" in reason(json.dumps({"status": "healthy", field: "x" * 1025}).encode())


def test_unknown_fields_are_left_aside() -> None:
    assert decode(b'{"status":"healthy","version":2,"more":{"a":[1]}}') == Frame("healthy")


@pytest.mark.parametrize("ending", [b"\r", b" ", b"\t"])
def test_blanks_round_a_frame_are_fine(ending: bytes) -> None:
    assert decode(b' {"status":"healthy"}' + ending) == Frame("healthy")


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\x00",
        b'{"status":"he\xffalthy"}',
        b'{"status":"healthy","detail":"\xed\xa0\xbd"}',
        b'{"status":"healthy","detail":"\\ud83d"}',
        b'{"status":"healthy"',
        b'{"status":"healthy"}{"status":"healthy"}',
        b"",
        b"\0" * 100,
        b'{"status":"healthy","x":' + b"[" * 60_000,
        b"[" * 60_000,
        b'{"a":' * 12_000,
    ],
    ids=lambda line: repr(line[:30]),
)
def test_f25_garbage_is_refused(line: bytes) -> None:
    assert reason(line) is not None


def test_f25_a_line_of_more_than_64_kib_is_refused_unread() -> None:
    assert reason(b"x" * (MAX_LINE + 1)) == "longer than 65536 bytes"
    assert reason(b"[" * 100_000) == "longer than 65536 bytes"


class Bomb:
    """What unpickles to the end of the world."""

    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("a worker's bytes were unpickled",))


@pytest.mark.parametrize("prefix", [b"", PREFIX])
def test_f26_a_pickle_is_garbage_like_any_other(prefix: bytes) -> None:
    assert reason(prefix + pickle.dumps(Bomb()))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
FIELDS = st.sampled_from(["status", "current_job", "recover_for_s", "progress", "detail", "component_id"])


@given(line=st.binary(max_size=200))
def test_f25_arbitrary_bytes_never_raise(line: bytes) -> None:
    assert isinstance(decode(line), (Frame, FrameRefusal))
    assert isinstance(decode(PREFIX + line), (Frame, FrameRefusal))


@given(values=st.dictionaries(FIELDS, JSON | st.just("healthy")))
def test_f25_arbitrary_json_never_raises_and_accepted_frames_are_valid(values: dict[str, object]) -> None:
    frame = decode(json.dumps(values).encode())
    if isinstance(frame, Frame):
        assert frame.status in ("pending", "healthy", "unhealthy", "recovering")
        assert frame.job is None or type(frame.job) in (int, str)
        assert frame.recover_for_s is None or type(frame.recover_for_s) is float
