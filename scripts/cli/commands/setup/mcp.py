"""`rekindle mcp`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...client import RemoteAddress
from ...console.exits import BAD_USAGE, FAILED, say
from ...console.options import (
    CONFIG,
    Where,
    client_of,
    json_option,
    print_json,
    socket_of,
    state_option,
    supervisor_option,
)
from ...render.status_table import table
from ...render.text import printable
from ..help import Subcommands

if TYPE_CHECKING:
    from rekindle.actors.gateways.http import HttpSettings

    from ...agents.proposals import ProposedOrder

MISSING = "rekindle mcp needs the package mcp: pip install 'rekindle-supervisor[mcp]'"


@click.group(cls=Subcommands, invoke_without_command=True)
@click.option("--operator", is_flag=True, help="Offer tools that change something, too.")
@click.option("--propose", is_flag=True, help="Such tools only propose; a person confirms each order.")
@click.option(
    "--http",
    "listen",
    metavar="ADDRESS:PORT",
    help="Serve over HTTP at /mcp, behind the tokens of the dashboard, instead of standard input and output.",
)
@supervisor_option
@click.pass_context
def mcp(ctx: click.Context, operator: bool, propose: bool, listen: str | None, state: Where) -> None:
    """Serve the supervisor to agents over the Model Context Protocol.

    The server speaks on standard input and output, where an agent starts it, or over HTTP until
    Ctrl-C.

    \b
    In the configuration of an agent:
      {"command": "rekindle", "args": ["mcp", "-c", "/srv/app/workers.toml"]}

    \b
      $ rekindle mcp                  # status, why, bundle, timeline, similar crashes, simulate …
      $ rekindle mcp --propose        # and restart, stop, pause … as proposals
      $ rekindle mcp proposals        # what agents propose
      $ rekindle mcp confirm 3        # carry one out
      $ rekindle mcp --operator       # restart, stop, pause … at once
      $ rekindle mcp --propose --http 127.0.0.1:8378

    Over HTTP a client sends `Authorization: Bearer TOKEN`. The token in http-viewer.token only reads;
    the tools of --operator and --propose need the token in http-operator.token. To listen on an
    address that other machines can reach, pass -c FILE with a certificate or `behind_proxy` in [http].

    Without an option the tools only read. Every order of an agent needs a reason; the audit log has
    the reason and the agent's name (`rekindle audit`). What looks like a secret is masked in every
    answer.
    """
    if ctx.invoked_subcommand is not None:
        return
    if operator and propose:
        raise click.UsageError("--operator carries orders out at once, --propose does not: use one of them")
    if isinstance(state, RemoteAddress) and (propose or listen):
        raise click.UsageError(
            "--propose and --http work on the supervisor's own machine only, without --url"
        )
    if isinstance(state, Path):
        socket_of(state)  # refuses a directory of another user
    try:
        from ...agents.mcp_server import server
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "mcp_types"):
            raise
        raise click.ClickException(MISSING) from None
    if listen is None or not isinstance(state, Path):
        server(state, operator=operator, propose=propose).run()
    else:
        _serve_http(state, _settings(ctx, listen), operator=operator, propose=propose)


def _serve_http(state: Path, settings: HttpSettings, *, operator: bool, propose: bool) -> None:
    from rekindle.actors.gateways.gateway_errors import GatewayError
    from rekindle.actors.gateways.http import ClientRole

    from ...agents.mcp_http import serve
    from ...agents.mcp_server import server

    if settings.read_only and (operator or propose):
        raise click.UsageError("[http] of the file has read_only = true: leave --operator and --propose out")
    through = "mcp, operator token"
    client_of(state).get("/info")  # fail now if no supervisor runs
    servers = {
        ClientRole.VIEWER: server(state, operator=False, propose=False),
        ClientRole.OPERATOR: server(state, operator=operator, propose=propose, through=through),
    }
    try:
        serve(state, settings, servers, lambda url: click.echo(f"Serving agents at {url} until Ctrl-C"))
    except GatewayError as error:
        raise click.ClickException(str(error)) from None


def _settings(ctx: click.Context, listen: str) -> HttpSettings:
    """The settings of the file that `-c` names, with another address."""
    from dataclasses import replace

    from rekindle.actors.gateways.http import Address, HttpSettings

    from ...config import ConfigError, load

    try:
        address = Address.parse(listen)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--http") from None
    file = ctx.meta.get(CONFIG)
    try:
        found = None if file is None else load(file).http
    except ConfigError as error:
        click.echo(str(error), err=True)
        raise SystemExit(BAD_USAGE) from None
    return replace(found or HttpSettings(), listen=address)


@mcp.command()
@state_option
@json_option
def proposals(state: Path, as_json: bool) -> None:
    """List the orders that agents propose.

    \b
      $ rekindle mcp proposals
    """
    from ...agents.proposals import Proposals

    found = list(Proposals(state).open())
    if as_json:
        listed = [{"number": number, "order": order.words, **_who(order)} for number, order in found]
        print_json({"proposals": listed})
        return
    if not found:
        click.echo("No proposal is open.")
        return
    rows = [
        (str(number), printable(order.client), printable(order.words), printable(order.reason))
        for number, order in found
    ]
    click.echo("\n".join(table(("NUMBER", "AGENT", "ORDER", "REASON"), rows)))


@mcp.command()
@click.argument("number", type=click.IntRange(min=1), metavar="NUMBER")
@state_option
@json_option
def confirm(number: int, state: Path, as_json: bool) -> None:
    """Carry out a proposal.

    \b
      $ rekindle mcp confirm 3

    The audit log names you, the agent and its reason.
    """
    from ...agents.order_tools import carried_out

    order = _taken(state, number)
    person = os.environ.get("SUDO_USER") or os.environ.get("USER") or f"uid {os.getuid()}"
    client = client_of(state, user=f"{person}, for {order.client} (mcp)", reason=order.reason)
    answer = carried_out(client, order)
    if as_json:
        print_json(answer)
    elif answer.get("result") == "done":
        click.echo(f"Done: {printable(order.words)}")
    if answer.get("result") != "done":
        say(str(answer.get("message") or f"the supervisor did not do it: {order.words}"))
        raise SystemExit(FAILED)


@mcp.command()
@click.argument("number", type=click.IntRange(min=1), metavar="NUMBER")
@state_option
def reject(number: int, state: Path) -> None:
    """Remove a proposal without carrying it out.

    \b
      $ rekindle mcp reject 3
    """
    click.echo(f"Rejected: {printable(_taken(state, number).words)}")


def _taken(state: Path, number: int) -> ProposedOrder:
    from ...agents.proposals import Proposals

    order = Proposals(state).take(number)
    if order is None:
        raise click.ClickException(f"there is no proposal {number}")
    return order


def _who(order: ProposedOrder) -> dict[str, str]:
    return {"agent": order.client, "reason": order.reason}
