"""Which lines of a dead program's output say why it ended."""

from __future__ import annotations

import pytest

from rekindle.actors.deaths.evidence import Line
from rekindle.actors.deaths.last_error import LONGEST, last_error, last_lines

SHELL = "FATAL: cannot bind to port 80: permission denied"

DEEP = """\
    return down(depth - 1)
           ^^^^^^^^^^^^^^^
  File "/srv/deep.py", line 3, in down
    return down(depth - 1)
           ^^^^^^^^^^^^^^^
  [Previous line repeated 56 more times]
  File "/srv/deep.py", line 2, in down
    raise ValueError("deep trouble")
ValueError: deep trouble"""

CHAINED = """\
Traceback (most recent call last):
  File "/srv/app.py", line 2, in <module>
    import packaging
ModuleNotFoundError: No module named 'packaging'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/usr/bin/celery", line 8, in <module>
    sys.exit(main())
             ^^^^^^
RuntimeError: cannot load the application"""

NODE = """\
/srv/server.js:3
    throw new TypeError("port must be a number");
    ^

TypeError: port must be a number
    at Object.<anonymous> (/srv/server.js:3:11)
    at Module._compile (node:internal/modules/cjs/loader:1256:14) {
  code: 'ERR_INVALID_ARG_TYPE'
}

Node.js v18.19.0"""

JAVA_CLASS = """\
Error: Could not find or load main class Main
Caused by: java.lang.ClassNotFoundException: Main"""

JAVA = """\
Exception in thread "main" java.lang.IllegalStateException: no database
\tat app.Main.main(Main.java:7)
Caused by: java.net.ConnectException: Connection refused
\tat java.base/sun.nio.ch.Net.connect0(Native Method)
\t... 1 more"""

GO = """\
2026/01/01 00:00:00 listening
panic: runtime error: index out of range [3] with length 3

goroutine 1 [running]:
main.main()
\t/srv/main.go:8 +0x1d
exit status 2"""

RUST = """\
thread 'main' panicked at src/main.rs:2:5:
no such song
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"""


def err(text: str) -> list[Line]:
    return [("err", line) for line in text.split("\n")]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        pytest.param(SHELL, SHELL, id="sh"),
        pytest.param(DEEP, "ValueError: deep trouble", id="a deep traceback whose head is lost"),
        pytest.param(CHAINED, "RuntimeError: cannot load the application", id="chained exceptions"),
        pytest.param("please install nosuchthing", "please install nosuchthing", id="the text of SystemExit"),
        pytest.param(NODE, "TypeError: port must be a number", id="node"),
        pytest.param(JAVA_CLASS, "Caused by: java.lang.ClassNotFoundException: Main", id="java, no class"),
        pytest.param(JAVA, "Caused by: java.net.ConnectException: Connection refused", id="java"),
        pytest.param(GO, "panic: runtime error: index out of range [3] with length 3", id="go"),
        pytest.param(RUST, "thread 'main' panicked at src/main.rs:2:5: no such song", id="rust"),
        pytest.param("\\x1b[31mred alert\\x1b[0m", "red alert", id="colours"),
        pytest.param("    only indented", "only indented", id="nothing but indented lines"),
        pytest.param("", "", id="nothing"),
        pytest.param("x" * 1000, "x" * LONGEST, id="a long line"),
    ],
)
def test_the_line_that_tells_most_is_found(written: str, said: str) -> None:
    assert last_error(err(written)) == said


def test_the_last_three_lines_are_kept_in_their_order() -> None:
    assert last_lines(err("one\ntwo\n  frame\nthree\nfour")) == ("two", "three", "four")


def test_both_lines_of_java_are_kept() -> None:
    assert last_lines(err(JAVA_CLASS)) == tuple(JAVA_CLASS.split("\n"))


def test_standard_error_is_preferred_to_standard_output() -> None:
    assert last_error([("err", "no disk"), ("out", "error: not me")]) == "no disk"


def test_a_complaint_on_standard_output_counts_if_there_is_nothing_else() -> None:
    assert last_error([("out", "loading"), ("out", "ERROR: no licence")]) == "ERROR: no licence"


def test_ordinary_lines_on_standard_output_say_nothing() -> None:
    assert last_error([("out", "ERROR: retried"), ("out", "served 3 pages")]) == ""
