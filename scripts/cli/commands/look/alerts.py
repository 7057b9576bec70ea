"""`rekindle alerts`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...console.clock import now_ms
from ...console.database_fallback import database_option
from ...console.database_reader import open_reader
from ...console.exits import BAD_USAGE, FAILED, say
from ...console.options import (
    CONFIG,
    Where,
    client_of,
    json_option,
    print_json,
    state_option,
    supervisor_option,
)
from ...console.terminal import columns
from ..help import Subcommands

if TYPE_CHECKING:
    from rekindle.actors.facts.alert import Happening
    from rekindle.actors.gateways.settings.sink_settings import SinkSettings
    from rekindle.actors.gateways.sinks.notification import Notification


class ListOr(Subcommands):
    """Lists the alerts, unless a command follows."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line."""
        return ["[OPTIONS] | test SINK"]


@click.group(cls=ListOr, invoke_without_command=True)
@click.option("--all", "everything", is_flag=True, help="Include alerts that are resolved.")
@supervisor_option
@database_option
@json_option
@click.pass_context
def alerts(ctx: click.Context, everything: bool, state: Where, database: str | None, as_json: bool) -> None:
    """Show open alerts, the most severe first.

    A crash loop is one alert that counts its crashes. Acknowledge an alert with `rekindle ack`.

    \b
      $ rekindle alerts
      $ rekindle alerts --all --json
      $ rekindle alerts test pager                     # does [alerts.sink.pager] work?

    If no supervisor is running, the database is read.
    """
    if ctx.invoked_subcommand is not None:
        return
    with open_reader(state, database) as reader:
        found = reader.get("/alerts")["alerts"]
    if not everything:
        found = [alert for alert in found if alert["resolved_at_wall_ms"] is None]
    if as_json:
        print_json({"alerts": found})
        return
    if not found:
        click.echo("There were no alerts." if everything else "There are no open alerts.")
        return
    from ...render.listings import alert_lines

    click.echo("\n".join(alert_lines(found, now_ms(), width=columns())))


@alerts.command()
@click.argument("sink", metavar="SINK")
@state_option
@json_option
@click.pass_context
def test(ctx: click.Context, sink: str, state: Path, as_json: bool) -> None:
    """Send a test alert to a sink of a file, and say whether the receiver accepted it.

    \b
      $ rekindle alerts test pager -c workers.toml
      $ rekindle alerts test pager              # of the file that the running supervisor uses

    SINK is the name in [alerts.sink.NAME]. The alert is sent from here, at once and without retries,
    whatever `on`, `least` and `per_minute` say; with -c no supervisor needs to run. PagerDuty gets a
    second message that resolves the incident. Exits with 1 if the receiver did not accept it.
    """
    from rekindle.actors.facts.alert import Happening
    from rekindle.actors.gateways.gateway_errors import GatewayError

    from ...supervise.gateways import sink_of

    settings, now = _settings_of(sink, ctx.meta.get(CONFIG) or _file_in_use(state)), now_ms()
    try:
        receiver = sink_of(settings)
        receiver.send(_test_message(Happening.OPENED, now))
        if settings.pagerduty:
            receiver.send(_test_message(Happening.RESOLVED, now))
    except (OSError, GatewayError) as error:
        if as_json:
            print_json({"sink": sink, "sent": False, "error": str(error)})
        say(f"{sink} ({_named(settings)}) did not take the alert: {error}")
        raise SystemExit(FAILED) from None
    if as_json:
        print_json({"sink": sink, "sent": True, "error": None})
    else:
        click.echo(f"{sink} ({_named(settings)}) took the alert.")


def _file_in_use(state: Path) -> Path:
    """The file of the running supervisor."""
    file = client_of(state).get("/info")["configuration"]
    if file is None:
        raise click.UsageError(
            "this supervisor runs without a file; name one that declares the sink: -c FILE"
        )
    return Path(file)


def _settings_of(sink: str, file: Path) -> SinkSettings:
    """The settings of a sink; exits with 2 if the file has problems or no such sink."""
    from ...config import ConfigError, load

    try:
        known = {each.name: each for each in load(file).alerts.sinks}
    except ConfigError as error:
        click.echo(str(error), err=True)
        raise SystemExit(BAD_USAGE) from None
    if sink not in known:
        names = f"; it has {', '.join(known)}" if known else ""
        raise click.UsageError(f"{file} has no [alerts.sink.{sink}]{names}")
    return known[sink]


def _named(settings: SinkSettings) -> str:
    kinds = ("command", "webhook", "slack", "ntfy", "pagerduty", "email")
    return next(kind for kind in kinds if getattr(settings, kind))


def _test_message(happening: Happening, now: int) -> Notification:
    from rekindle.actors.facts.alert import Alert, AlertKind, Severity
    from rekindle.actors.gateways.sinks.notification import Notification

    alert = Alert(
        id=0,
        kind=AlertKind.INTERNAL,
        component_id="worker:test:0",
        severity=Severity.WARNING,
        message="this is a test of the alert sink",
        opened_at_wall_ms=now,
        last_at_wall_ms=now,
    )
    return Notification(happening=happening, alert=alert)
