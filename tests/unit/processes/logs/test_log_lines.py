"""The lines of log files: what is written can be read back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.actors.processes.logs import log_lines
from rekindle.actors.processes.logs.log_lines import written
from rekindle.actors.spec.policies.log_policy import LogFormat
from rekindle.cli.console.logs.logged_line import LoggedLine, read, stamp, stamp_of

AT = "2026-11-18T09:51:34.123Z"


def test_a_text_line_has_time_worker_generation_and_stream() -> None:
    data = written(LogFormat.TEXT, "worker:web:0", 3, "out", AT, b"one\ntwo | three\n")
    assert data.decode().splitlines() == [
        f"{AT} worker:web:0 3 out | one",
        f"{AT} worker:web:0 3 out | two | three",
    ]


def test_a_json_line_has_the_same_fields() -> None:
    (line,) = written(LogFormat.JSON, "worker:web:0", 3, "err", AT, b'say "hi"\xff\n').splitlines()
    assert json.loads(line) == {
        "at": AT,
        "worker": "worker:web:0",
        "generation": 3,
        "stream": "err",
        "text": 'say "hi"\\xff',
    }


@pytest.mark.parametrize("format_", LogFormat)
@given(text=st.text(st.characters(exclude_characters="\n", codec="utf-8")))
def test_a_line_is_read_back_as_it_was_written(format_: LogFormat, text: str) -> None:
    data = written(format_, "worker:web:0", 7, "out", AT, text.encode() + b"\n")
    assert read(data[:-1]) == LoggedLine(AT, "worker:web:0", 7, "out", text)
    assert stamp_of(data) == AT


@pytest.mark.parametrize("line", [b"", b"garbage", b"{}", b"{", b"2026-11-18 worker:web:0 x out | y"])
def test_a_line_of_another_program_is_not_taken_for_ours(line: bytes) -> None:
    assert read(line) is None


def test_a_stamp_is_read_back_to_the_millisecond() -> None:
    wall_ms = LoggedLine(AT, "w", 1, "out", "").document()["at_wall_ms"]
    assert stamp(wall_ms) == log_lines.stamp(wall_ms) == AT
