"""What goes wrong, as an exit code and one sentence; nobody sees a traceback who did not ask for one.

0 done · 1 failed · 2 bad usage or configuration · 3 no supervisor running · 4 no such worker
130 Ctrl-C · 141 whoever read our output went away
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from ..client import ControlError, InvalidRequestError, NoSupervisorError, UnknownWorkerError
from ..render.text import printable_lines

FAILED = 1
BAD_USAGE = 2
NO_SUPERVISOR = 3
NO_SUCH_WORKER = 4
INTERRUPTED = 130
NOT_READ = 141

TRACEBACK = "REKINDLE_TRACEBACK"
"""Set it to see where an error comes from that nobody foresaw."""


def exit_code(error: ControlError) -> int:
    """The contract's number for what a request met."""
    match error:
        case NoSupervisorError():
            return NO_SUPERVISOR
        case UnknownWorkerError():
            return NO_SUCH_WORKER
        case InvalidRequestError():
            return BAD_USAGE
        case _:
            return FAILED


def say(message: str) -> None:
    """One sentence on standard error."""
    with suppress(BrokenPipeError):
        click.echo(f"rekindle: {printable_lines(message)}", err=True)


def guarded(run: Callable[[], Any]) -> Any:
    """What it returns; whatever it raises becomes a sentence and an exit code."""
    try:
        result = run()
        if sys.stdout:
            sys.stdout.flush()  # here, and not at the interpreter's end, where nobody could catch it
        return result
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except ControlError as error:
        hint = "; start one with: rekindle run FILE, or name its directory: --state DIR"
        say(f"{error}{hint if isinstance(error, NoSupervisorError) else ''}")
        raise SystemExit(exit_code(error)) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        _drop_output()
        raise SystemExit(NOT_READ) from None
    except OSError as error:
        _drop_output()
        say(str(error))
        raise SystemExit(FAILED) from None
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        say(f"{type(error).__name__}: {error} ({TRACEBACK}=1 shows where it comes from)")
        raise SystemExit(FAILED) from None


def _drop_output() -> None:
    """Let what is still to be written go nowhere: the interpreter flushes at its end, and would complain."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
