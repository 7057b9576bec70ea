"""`rekindle shutdown`: the end of the supervisor itself."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path

import click

from ...client import ControlError, NoSupervisorError, RequestTimeoutError
from ...console.exits import say
from ...console.options import client_of, json_option, print_json, state_option


@click.command()
@click.option("--no-wait", is_flag=True, help="Only tell it; do not wait for the end.")
@state_option
@json_option
def shutdown(no_wait: bool, state: Path, as_json: bool) -> None:
    """Stop all workers, then the supervisor, as SIGTERM does.

    \b
      $ rekindle shutdown

    Every worker has the time that its stop settings give it. Said a second time it hurries, said
    a third time it kills. Ctrl-C ends the waiting, not the shutdown.
    """
    client = client_of(state)
    pid, supervisor = client.server()
    try:
        try:
            client.post("/shutdown")
        except NoSupervisorError:
            pass  # it went before it could answer
        except RequestTimeoutError:
            say("the supervisor has not answered yet; it ends when it comes to it")
        except ControlError:  # it is older than this order, or has too many; a signal reaches it all the same
            signal.pidfd_send_signal(supervisor, signal.SIGTERM)
        if not as_json:
            click.echo(f"The supervisor (pid {pid}) stops its workers, then itself.")
        if not no_wait:
            select.select([supervisor], [], [])
    finally:
        os.close(supervisor)
    if as_json:
        print_json({"pid": pid, "ended": not no_wait})
    elif not no_wait:
        click.echo("It has ended.")
