"""`rekindle wait`."""

from __future__ import annotations

import click

from ...console.exits import FAILED, say
from ...console.options import Where, client_of, duration, required_ids, supervisor_option


@click.command()
@required_ids
@click.option("--ready", "wanted", flag_value="ready", default="ready", help="Wait until they are ready.")
@click.option("--done", "wanted", flag_value="done", help="Wait until these tasks are done.")
@click.option("--stopped", "wanted", flag_value="stopped", help="Wait until they have no process.")
@click.option(
    "--timeout",
    "within_s",
    callback=duration,
    default="30s",
    show_default=True,
    metavar="TIME",
    help="Fail after this time.",
)
@supervisor_option
def wait(ids: tuple[str, ...], wanted: str, within_s: float, state: Where) -> None:
    """Wait until workers are ready, done or stopped.

    \b
      $ rekindle run workers.toml & rekindle wait web --ready --timeout 30s
      $ rekindle wait migrate --done && ./deploy
      $ rekindle stop web & rekindle wait web --stopped

    A worker is ready if it is healthy, and a task also once it is done. The command waits for a
    supervisor that is starting, too. It exits with 1 at once if a worker was given up, and after
    the time if a worker is not there yet; it prints which, and in which state it is. The exit code
    is 3 if no supervisor answered in that time, and 4 if it has no such worker.
    """
    from ...console.state_wait import AwaitedState, NeverError
    from ...console.state_wait import wait as wait_for

    try:
        wait_for(client_of(state), ids, AwaitedState(wanted), within_s)
    except NeverError as error:
        say(str(error))
        raise SystemExit(FAILED) from None
    except TimeoutError as error:
        say(f"not {wanted} after {within_s:g} s: {error}")
        raise SystemExit(FAILED) from None
