"""Log files read back: across rotations, from the end, since a time, as they grow."""

from __future__ import annotations

import gzip
import os
import re
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO

import pytest

from rekindle.actors.processes.logs.log_lines import stamp, written
from rekindle.actors.spec.policies.log_policy import LogFormat
from rekindle.actors.views.log_page import LogPage, LogQuery
from rekindle.cli.console.logs import log_pages, log_search
from rekindle.cli.console.logs.log_files import known_files, note_files, opened, rotations
from rekindle.cli.console.logs.log_pages import page
from rekindle.cli.console.logs.log_search import last_lines, lines_since
from rekindle.cli.console.logs.log_tail import LogTail
from rekindle.cli.console.logs.logged_line import LineFilter

BEGIN_MS = 1_795_000_000_000
ALL = LineFilter({"w"})


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


# ── a page at a time ─────────────────────────────────────────────────────────────────────


def pages(path: str, query: LogQuery, longest_s: float = 60.0) -> Iterator[LogPage]:
    """All pages of a search, from the newest line to the oldest."""
    while True:
        found = page(path, "w", query, opened, longest_s)
        yield found
        if found.before is None:
            return
        query = LogQuery(query.limit, query.find, query.stream, query.generation, found.before, found.seen)


def paged(found: list[LogPage]) -> list[int]:
    """What the lines of these pages say, oldest first."""
    return [int(line.text) for each in reversed(found) for line in each.lines]


@pytest.mark.parametrize("limit", [1, 7, 150, 1000])
def test_pages_have_every_line_of_all_files_once(path: str, limit: int) -> None:
    assert paged(list(pages(path, LogQuery(limit)))) == list(range(400))


def test_pages_have_every_line_once_if_all_were_written_in_the_same_millisecond(tmp_path: Path) -> None:
    path = tmp_path / "w.log"
    path.write_bytes(
        b"".join(written(LogFormat.TEXT, "w", 1, "out", stamp(BEGIN_MS), b"%d\n" % n) for n in range(20))
    )
    assert paged(list(pages(str(path), LogQuery(3)))) == list(range(20))


def test_a_search_finds_lines_of_compressed_files_and_says_when_it_is_at_the_end(path: str) -> None:
    (found,) = pages(path, LogQuery(find="9", limit=1000))
    assert paged([found]) == [number for number in range(400) if "9" in str(number)]
    assert found.source == "file"


def test_a_search_that_takes_too_long_goes_on_with_the_next_request(path: str) -> None:
    found = list(pages(path, LogQuery(find="5"), longest_s=0.0))
    assert paged(found) == [number for number in range(400) if "5" in str(number)]
    assert len(found) > 5


def test_a_search_that_gives_way_rests_again_and_again_and_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search on a thread of the supervisor kept the interpreter for itself."""
    rests: list[float] = []
    monkeypatch.setattr("rekindle.cli.console.logs.log_pages.time.sleep", rests.append)
    monkeypatch.setattr(log_pages, "WORKS_S", 0.0)
    write(tmp_path / "w.log", *range(1000))
    query = LogQuery(find="99", limit=50)
    pages = [
        page(str(tmp_path / "w.log"), "w", query, opened, gives_way=gives_way) for gives_way in (True, False)
    ]
    assert pages[0] == pages[1]
    assert len(rests) > 500


def test_a_page_begins_in_the_middle_of_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_pages, "BLOCK", 100)
    write(tmp_path / "w.log", *range(2000))
    found = page(str(tmp_path / "w.log"), "w", LogQuery(3, before=BEGIN_MS + 700_000, seen=1), opened)
    assert paged([found]) == [697, 698, 699]


def test_a_search_knows_case_colours_streams_generations_and_workers(tmp_path: Path) -> None:
    path = tmp_path / "w.log"
    said = [
        ("w", 1, "out", b"\x1b[32mHello \x1b[1mWorld\x1b[0m"),
        ("w", 2, "err", "Hello, W\u00f6rld".encode()),
        ("v", 2, "err", b"hello world"),
    ]
    for format_ in (LogFormat.TEXT, LogFormat.JSON):
        path.write_bytes(
            b"".join(written(format_, w, g, s, stamp(BEGIN_MS), t + b"\n") for w, g, s, t in said)
        )

        def found(path: Path = path, **wanted: object) -> list[int]:
            lines = page(str(path), "w", LogQuery(**wanted), opened).lines  # type: ignore[arg-type]
            return [line.generation for line in lines]

        assert found(find="hello world") == [1]
        assert found(find="hello") == [1, 2]
        assert found(find="W\u00d6RLD") == found(stream="err") == found(generation=2) == [2]
        assert found(find='"') == []


# ── files that are damaged, or that another program wrote ────────────────────────────────


MIB = 1024 * 1024
BOUND = 100 * MIB
"""Far more than reading needs, and far less than the files have."""


def peak_memory(call: Callable[[], object]) -> int:
    """How much memory a call takes at its worst."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bomb(path: Path, size: int, begin: bytes = b"", part: bytes = bytes(MIB)) -> None:
    """A small compressed file that unpacks to a large one."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(begin)
        for _ in range(size // len(part)):
            file.write(part)


@pytest.mark.parametrize("find", ["", "text"])
def test_a_compressed_file_with_an_endless_line_takes_little_memory(tmp_path: Path, find: str) -> None:
    bomb(tmp_path / "w.log.1.gz", 150 * MIB)
    write(tmp_path / "w.log", 1)
    path = str(tmp_path / "w.log")
    assert peak_memory(lambda: page(path, "w", LogQuery(find=find), opened)) < BOUND
    assert peak_memory(lambda: last_lines(path, ALL, 5)) < BOUND


def test_an_enormous_sparse_file_is_passed_over_with_a_notice(tmp_path: Path) -> None:
    write(tmp_path / "w.log.2", 1)
    (tmp_path / "w.log.1").touch()
    os.truncate(tmp_path / "w.log.1", 500 * 1024 * MIB)
    write(tmp_path / "w.log", 2)
    path = str(tmp_path / "w.log")
    for before in (None, BEGIN_MS + 60_000):
        found: list[LogPage] = []

        def search(before: int | None = before, found: list[LogPage] = found) -> None:
            found.append(page(path, "w", LogQuery(before=before), opened, 60.0))

        assert peak_memory(search) < BOUND
        assert [line.text for line in found[0].lines] == [
            "rekindle: w.log.1 is not searched to its end: 16 MiB of it have no line of Rekindle",
            "1",
            "2",
        ]


@pytest.mark.parametrize("name", ["w.log", "w.log.1.gz"])
def test_a_line_that_is_too_long_is_left_out_and_those_around_it_are_found(tmp_path: Path, name: str) -> None:
    data = lines(1) + lines(2)[:-1] + b"x" * 2 * MIB + b"\n" + lines(3)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    path = str(tmp_path / "w.log")
    assert paged(list(pages(path, LogQuery()))) == [1, 3]
    assert numbers(last_lines(path, ALL, 9)) == numbers(list(lines_since(path, ALL))) == [1, 3]


@pytest.mark.parametrize("name", ["w.log", "w.log.1.gz"])
def test_a_page_of_many_long_lines_ends_where_it_would_take_too_much_memory(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_pages, "MOST_TEXT", 100)
    write(tmp_path / name, *range(100))
    found = list(pages(str(tmp_path / "w.log"), LogQuery(1000)))
    assert paged(found) == list(range(100))
    assert len(found) > 1


def test_a_compressed_file_that_takes_too_long_is_passed_over_with_a_notice(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for newer in ("w.log", "w.log.20261118-095200-001"):
        (Path(path).parent / newer).unlink()
    monkeypatch.setattr(log_pages, "LATEST_S", -1.0)  # as if the clock had reached it at the first line
    found = page(path, "w", LogQuery(before=BEGIN_MS + 199_500), opened, 0.0)
    assert [line.text for line in found.lines] == [
        "rekindle: w.log.20261118-095134-123.gz is not searched to its end: it takes longer than -1 s"
    ]
    assert found.before == BEGIN_MS + 99_999
    monkeypatch.undo()
    assert paged([page(path, "w", LogQuery(1, before=found.before), opened)]) == [99]


def test_a_late_page_ends_before_the_next_compressed_file_is_unpacked(tmp_path: Path) -> None:
    write(tmp_path / "w.log.1.gz", 1)
    write(tmp_path / "w.log", 2)
    read: list[str] = []

    @contextmanager
    def noted(path: str) -> Iterator[IO[bytes]]:
        read.append(os.path.basename(path))
        with opened(path) as file:
            yield file

    found = page(str(tmp_path / "w.log"), "w", LogQuery(find="none"), noted, 0.0)
    assert (found.before, read) == (BEGIN_MS + 2000, ["w.log"])


def test_the_clock_is_looked_at_while_a_file_without_our_lines_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("w.log", "w.log.1.gz"):
        data = b"not ours\n" * 1000
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    monkeypatch.setattr(log_pages, "LATEST_S", -1.0)
    found = page(str(tmp_path / "w.log"), "w", LogQuery(), opened)
    assert [line.text for line in found.lines] == [
        "rekindle: w.log is not searched to its end: it takes longer than -1 s"
    ]


def test_damaged_compressed_files_are_passed_over(path: str, stack: ExitStack) -> None:
    damaged = Path(path).parent / "w.log.20261118-095134-123.gz"
    good, at = damaged.read_bytes(), damaged.stat().st_mtime_ns
    tail = stack.enter_context(closing(LogTail(path, ALL)))
    for place in (0, 12, len(good) // 2, len(good) - 6):
        damaged.write_bytes(good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :])
        os.utime(damaged, ns=(at, at))
        left = [*range(100), *range(200, 400)]
        assert [n for n in paged(list(pages(path, LogQuery(1000)))) if not 100 <= n < 200] == left
        assert [n for n in numbers(last_lines(path, ALL, 1000)) if not 100 <= n < 200] == left
        assert [n for n in numbers(list(lines_since(path, ALL))) if not 100 <= n < 200] == left
    assert list(tail.new_lines()) == []


@pytest.mark.parametrize(
    "line",
    [
        b"2026-99-99T99:99:99.999Z w 1 out | 7",
        b"0000-01-01T00:00:00.000Z w 1 out | 7",
        b"9999-12-31T23:59:59.999Z w 1 out | 7",
        b"2026-11-18T09:51:34.123Z w " + b"1" * 5000 + b" out | 7",
        b'{"at":"2026-99-99T99:99:99.999Z","worker":"w","generation":1,"stream":"out","text":"7"}',
        b'{"at":"\\ud800","worker":"w","generation":1,"stream":"out","text":"7"}',
        b'{"at":"2026-11-18T09:51:34.123Z","worker":"w","generation":' + b"1" * 99
        + b',"stream":"out","text":"7"}',
        b'{"at":"2026-11-18T09:51:34.123Z","worker":"w","generation":1,"stream":"\\ud800","text":"7"}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["w.log", "w.log.1.gz"])
def test_lines_that_cannot_be_ours_are_passed_over(tmp_path: Path, name: str, line: bytes) -> None:
    data = lines(1) + line + b"\n" + lines(2)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    path = str(tmp_path / "w.log")
    assert paged(list(pages(path, LogQuery()))) == paged(list(pages(path, LogQuery(1)))) == [1, 2]
    assert [line.document()["text"] for line in last_lines(path, ALL, 9)] == ["1", "2"]
    assert page(path, "w", LogQuery(find="none"), opened).lines == ()
