"""`rekindle shutdown`."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path

import click

from ...client import ControlError, NoAnswerError, NoSupervisorError
from ...console.exits import FAILED, say
from ...console.options import client_of, json_option, print_json, state_option
from ...state_files import unsaved_records


@click.command()
@click.option(
    "--no-wait", is_flag=True, help="Return at once instead of waiting until the supervisor has ended."
)
@state_option
@json_option
def shutdown(no_wait: bool, state: Path, as_json: bool) -> None:
    """Stop all workers and then the supervisor.

    \b
      $ rekindle shutdown

    Each worker gets the time that its [stop] settings allow. A second `rekindle shutdown` sends
    SIGTERM at once, a third one kills. Ctrl-C ends the wait, not the shutdown. SIGTERM to the
    supervisor does the same. If the store is unavailable at the end, the exit code is 1.
    """
    client = client_of(state)
    pid, supervisor = client.server()
    try:
        try:
            client.post("/shutdown")
        except NoSupervisorError:
            pass  # it ended before it could answer
        except NoAnswerError:
            say("the supervisor has not answered yet; it will shut down when it can")
        except ControlError:  # an older version without this route, or overloaded; a signal always works
            signal.pidfd_send_signal(supervisor, signal.SIGTERM)
        if not as_json:
            click.echo(f"The supervisor (pid {pid}) is stopping its workers, then itself.")
        if not no_wait:
            select.select([supervisor], [], [])
    finally:
        os.close(supervisor)
    unsaved = 0 if no_wait else unsaved_records(state)
    if as_json:
        print_json({"pid": pid, "ended": not no_wait} | ({"unsaved_records": unsaved} if unsaved else {}))
    elif not no_wait:
        click.echo("The supervisor has ended.")
    if unsaved:
        lost = "1 record is" if unsaved == 1 else f"{unsaved} records are"
        say(f"{lost} lost: the store was unavailable when the supervisor ended")
        raise SystemExit(FAILED)
