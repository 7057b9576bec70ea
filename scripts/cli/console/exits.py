"""Errors as exit codes and one-line messages; tracebacks are printed on request only.

0 success · 1 failure · 2 invalid usage or configuration · 3 no supervisor running · 4 unknown worker
130 Ctrl-C · 141 the reader of standard output closed the pipe
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from ..client import UNREACHABLE, ControlError, InvalidArgumentsError, NoSupervisorError, UnknownTargetError
from ..render.text import printable_lines

FAILED = 1
BAD_USAGE = 2
NO_SUPERVISOR = 3
NO_SUCH_WORKER = 4
INTERRUPTED = 130
NOT_READ = 141

NAMED = 3
"""How many running supervisors the error about a missing one names."""

TRACEBACK = "REKINDLE_TRACEBACK"
"""The environment variable that shows the traceback of an unexpected error."""


def exit_code(error: ControlError) -> int:
    """The exit code for an error of the client."""
    match error:
        case NoSupervisorError():
            return NO_SUPERVISOR
        case UnknownTargetError():
            return NO_SUCH_WORKER
        case InvalidArgumentsError():
            return BAD_USAGE
        case _:
            return FAILED


def say(message: str) -> None:
    """Print one message to standard error."""
    with suppress(BrokenPipeError):
        click.echo(f"rekindle: {printable_lines(message)}", err=True)


def _system_error(error: OSError) -> str:
    """`cannot write to standard output: No space left on device`, or with the file that it is about."""
    if error.strerror is None:
        return str(error)
    return f"{error.filename or 'cannot write to standard output'}: {error.strerror}"


def guarded(run: Callable[[], Any]) -> Any:
    """Call `run` and return its result; an exception becomes a message and an exit code."""
    try:
        result = run()
        if sys.stdout:
            sys.stdout.flush()  # now, while errors can still be caught
        return result
    except (click.exceptions.Exit, click.Abort):
        raise
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        raise SystemExit(error.exit_code) from None
    except click.ClickException as error:
        _show_usage(error)
        say(error.format_message())
        raise SystemExit(error.exit_code) from None
    except ControlError as error:
        say(f"{error}{_whereabouts(error)}")
        raise SystemExit(exit_code(error)) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        _drop_output()
        raise SystemExit(NOT_READ) from None
    except OSError as error:
        _drop_output()
        say(_system_error(error))
        raise SystemExit(FAILED) from None
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        say(f"{type(error).__name__}: {error} (set {TRACEBACK}=1 to see the traceback)")
        raise SystemExit(FAILED) from None


def _whereabouts(error: ControlError) -> str:
    """How to reach a supervisor: the ones that run on this machine, or how to start one."""
    if not isinstance(error, NoSupervisorError) or error.error == UNREACHABLE:
        return ""
    from .state_search import running_supervisors

    running = running_supervisors()
    if not running:
        return "; start one with: rekindle run FILE, or name its file: -c FILE"
    named = ", ".join(f"--state {each.state}" for each in running[:NAMED])
    more = f" and {len(running) - NAMED} more, see: rekindle ps" if len(running) > NAMED else ""
    return f"; running here: {named}{more}"


def _show_usage(error: click.ClickException) -> None:
    """Print how the command is used, and where its help is, if it was used wrongly."""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        context = error.ctx
        click.echo(context.get_usage(), err=True)
        if context.help_option_names and context.command.get_help_option(context) is not None:
            click.echo(f"Try '{context.command_path} {context.help_option_names[-1]}' for help.", err=True)


def _drop_output() -> None:
    """Discard unwritten output: the interpreter flushes at exit and would report the error again."""
    with suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
