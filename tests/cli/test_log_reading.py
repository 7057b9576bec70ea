"""Log files read back: across rotations, from the end, since a time, as they grow."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from rekindle.actors.processes.logs.log_lines import stamp, written
from rekindle.actors.spec.policies.log_policy import LogFormat
from rekindle.cli.console.logs import log_search
from rekindle.cli.console.logs.log_files import known_files, note_files, rotations
from rekindle.cli.console.logs.log_search import last_lines, lines_since
from rekindle.cli.console.logs.log_tail import LogTail
from rekindle.cli.console.logs.logged_line import Wanted

BEGIN_MS = 1_795_000_000_000
ALL = Wanted({"w"})


def lines(*numbers: int, worker: str = "w") -> bytes:
    """A line a second, which says its number."""
    texts = (
        written(LogFormat.TEXT, worker, 1, "out", stamp(BEGIN_MS + number * 1000), b"%d\n" % number)
        for number in numbers
    )
    return b"".join(texts)


def write(path: Path, *numbers: int) -> None:
    """A file with some lines, last changed when its last line was written."""
    data = lines(*numbers)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    at_ns = (BEGIN_MS + numbers[-1] * 1000) * 1_000_000
    os.utime(path, ns=(at_ns, at_ns))


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A log file with three rotations, one of them by logrotate."""
    write(tmp_path / "w.log.2.gz", *range(100))
    write(tmp_path / "w.log.20261118-095134-123.gz", *range(100, 200))
    write(tmp_path / "w.log.20261118-095200-001", *range(200, 300))
    write(tmp_path / "w.log", *range(300, 400))
    (tmp_path / "w.log.bak").write_text("not ours")
    (tmp_path / "w.logging").write_text("not ours")
    return str(tmp_path / "w.log")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def numbers(found: object) -> list[int]:
    assert isinstance(found, list)
    return [int(line.text) for line in found]


def test_the_last_lines_reach_back_across_rotated_and_compressed_files(path: str) -> None:
    assert numbers(last_lines(path, ALL, 150)) == list(range(250, 400))
    assert numbers(last_lines(path, ALL, 1000)) == list(range(400))


@pytest.mark.parametrize("block", [1, 7, 64, 10_000])
def test_blocks_of_any_size_give_the_same_lines(
    path: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_search, "BLOCK", block)
    assert numbers(last_lines(path, ALL, 120)) == list(range(280, 400))
    since = ALL._replace(since=stamp(BEGIN_MS + 150_000))
    assert numbers(list(lines_since(path, since))) == list(range(150, 400))
    assert numbers(last_lines(path, since, 1000)) == list(range(150, 400))


def test_only_lines_that_match_are_counted(path: str) -> None:
    assert numbers(last_lines(path, ALL._replace(pattern=re.compile("7$")), 3)) == [377, 387, 397]


def test_a_line_that_is_not_whole_yet_is_left_for_later(path: str) -> None:
    with open(path, "ab") as file:
        file.write(lines(400)[:-3])
    assert numbers(last_lines(path, ALL, 1)) == [399]
    assert numbers(list(lines_since(path, ALL)))[-1] == 399


def test_lines_of_other_workers_in_the_same_file_are_left_out(path: str) -> None:
    with open(path, "ab") as file:
        file.write(lines(500, worker="other") + b"garbage\n" + lines(400))
    assert numbers(last_lines(path, ALL, 2)) == [399, 400]


def test_a_followed_file_goes_on_across_several_rotations(path: str, stack: ExitStack) -> None:
    tail = stack.enter_context(closing(LogTail(path, ALL)))
    assert tail.begin == {os.stat(path).st_ino: os.stat(path).st_size}
    with open(path, "ab") as file:
        file.write(lines(400) + lines(401)[:9])
    assert numbers(list(tail.new_lines())) == [400]
    with open(path, "ab") as file:
        file.write(lines(401)[9:])
    folder = Path(path).parent
    os.rename(path, folder / "w.log.20261118-095300-001")
    write(folder / "w.log.20261118-095301-001.gz", 402, 403)
    os.utime(folder / "w.log.20261118-095300-001", ns=(0, (BEGIN_MS + 401_500) * 1_000_000))
    write(Path(path), 404)
    assert numbers(list(tail.new_lines())) == [401, 402, 403, 404]
    assert list(tail.new_lines()) == []


def test_a_file_that_does_not_exist_yet_is_followed_from_its_beginning(
    tmp_path: Path, stack: ExitStack
) -> None:
    tail = stack.enter_context(closing(LogTail(str(tmp_path / "new.log"), ALL)))
    assert list(tail.new_lines()) == []
    write(tmp_path / "new.log", 1)
    assert numbers(list(tail.new_lines())) == [1]


def test_a_file_that_is_just_being_compressed_is_read_once(tmp_path: Path) -> None:
    write(tmp_path / "w.log.20261118-095200-001", 1)
    write(tmp_path / "w.log.20261118-095200-001.gz", 1)
    assert [os.path.basename(each) for each in rotations(str(tmp_path / "w.log"))] == [
        "w.log.20261118-095200-001"
    ]


def test_log_files_of_removed_workers_are_remembered_while_they_exist(tmp_path: Path) -> None:
    there = str(tmp_path / "there.log")
    Path(there).write_text("")
    note_files(tmp_path, {"a": there, "b": "/no/such.log"})
    note_files(tmp_path, {"c": "/other.log"})
    assert known_files(tmp_path) == {"a": there, "c": "/other.log"}
