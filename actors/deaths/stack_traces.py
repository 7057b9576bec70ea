"""Pure: parses Python tracebacks and dumps of stacks.

It reads two formats of CPython: the traceback of an exception (most recent call last) and the
stacks of `faulthandler` (most recent call first). A worker wrote them, so they are not trusted.
"""

from __future__ import annotations

import re

import msgspec

_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]{1,500})", line (?P<line>\d+|\?\?\?),? in (?P<function>.+)$')
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x[0-9a-f]+ .*most recent call first\):$")
_FATAL = re.compile(r"^Fatal Python error: (?P<what>.+)$|^Windows fatal exception: (?P<other>.+)$")
_RAISED = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<text>.*))?$")
_HEADING = "Traceback (most recent call last):"

LONGEST_TEXT = 200


class StackFrame(msgspec.Struct, frozen=True):
    """One call."""

    file: str
    line: str
    function: str

    @property
    def name(self) -> str:
        """The file's name and the function: stable when lines move."""
        return f"{self.file.rpartition('/')[2]}:{self.function}"


class Trace(msgspec.Struct, frozen=True):
    """A parsed traceback or stack."""

    exception: str = ""
    """The exception that ended it, `ValueError: no such song`; empty if there was none."""
    kind: str = ""
    """The exception's type alone."""
    fatal: str = ""
    """What `faulthandler` called it: `Segmentation fault`."""
    frames: tuple[StackFrame, ...] = ()
    """The calls that led there, innermost last; of several threads, the one that matters."""

    @property
    def place(self) -> str:
        """Where it happened, in words; empty if that is not known."""
        if not self.frames:
            return ""
        last = self.frames[-1]
        return f"in {last.function} ({last.file}, line {last.line})"


_NOTHING = Trace()


def read(text: str) -> Trace:
    """Parse a text; empty if it is neither format."""
    if not text:
        return _NOTHING
    lines = text.splitlines()
    fatal = next((found["what"] or found["other"] for line in lines if (found := _FATAL.match(line))), "")
    if fatal:
        return Trace(fatal=fatal, frames=_stack(lines, current=True))
    if _HEADING in lines:
        return _exception(lines)
    return Trace(frames=_stack(lines, current=False))


def _exception(lines: list[str]) -> Trace:
    """The last traceback: of a chain of exceptions, the uncaught one."""
    start = len(lines) - lines[::-1].index(_HEADING)
    frames = tuple(frame for line in lines[start:] if (frame := _frame(line)) is not None)
    for line in lines[start:]:
        raised = None if line.startswith(" ") else _RAISED.match(line)
        if raised is not None:
            return Trace(exception=line[:LONGEST_TEXT], kind=raised["kind"], frames=frames)
    return Trace(frames=frames)


def _stack(lines: list[str], *, current: bool) -> tuple[StackFrame, ...]:
    """The stack of the thread at fault, or of the main thread, which is written last."""
    threads: list[list[StackFrame]] = []
    chosen = -1
    for line in lines:
        if _THREAD.match(line):
            threads.append([])
            if current and line.startswith("Current"):
                chosen = len(threads) - 1
        elif threads and (frame := _frame(line)) is not None:
            threads[-1].append(frame)
    return tuple(reversed(threads[chosen])) if threads else ()


def _frame(line: str) -> StackFrame | None:
    found = _FRAME.match(line)
    return None if found is None else StackFrame(found["file"], found["line"], found["function"].strip())
