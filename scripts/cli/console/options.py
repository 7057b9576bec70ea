"""What the commands share: where the supervisor is, how it is asked, how an answer is printed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from ..client import ControlClient, ControlError
from ..render.text import printable, seconds_of
from .targets import group_of

F = TypeVar("F", bound=Callable[..., Any])

SOCKET_NAME = "control.sock"
LONG_S = 130.0
"""For orders that wait until processes end; the server's own patience is 120 s."""
LONGEST_LINE = 500
_COMPLETION_S = 1.0

state_option = click.option(
    "--state",
    "state",
    type=click.Path(path_type=Path),
    envvar="REKINDLE_STATE",
    default=Path(".rekindle"),
    show_default=True,
    show_envvar=True,
    metavar="DIR",
    help="The state directory of the supervisor.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
)


def limit_option(what: str, default: int = 20) -> Callable[[F], F]:
    """How many rows to show."""
    return click.option(
        "--limit",
        type=click.IntRange(1, 1000),
        default=default,
        show_default=True,
        metavar="N",
        help=f"How many {what} to show at most.",
    )


def socket_of(state: Path) -> str:
    """Where the supervisor of a state directory listens."""
    return str(state / SOCKET_NAME)


def client_of(state: Path) -> ControlClient:
    """Who answers for a state directory; nothing is connected yet."""
    return ControlClient(socket_of(state), user=os.environ.get("SUDO_USER"))


def print_json(document: object) -> None:
    """The document, and nothing else."""
    import json

    click.echo(json.dumps(document, indent=2))


def duration(_ctx: click.Context, _param: click.Parameter, given: str | None) -> float | None:
    """An option's value in seconds; `words.seconds_of` says what may be written."""
    if given is None:
        return None
    try:
        return seconds_of(given)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def line(_ctx: click.Context, _param: click.Parameter, given: str) -> str:
    """An option's value that will be shown in terminals."""
    if printable(given) != given:
        raise click.BadParameter("control characters are not allowed")
    if len(given) > LONGEST_LINE:
        raise click.BadParameter(f"at most {LONGEST_LINE} characters are allowed, not {len(given)}")
    return given


# ── what a shell completes ───────────────────────────────────────────────────────────────


def worker_ids(ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """The workers, and the groups, that are not on the line yet."""
    given, known = ctx.params.get("ids") or (), _known(ctx)
    names = [*known, *_groups(known)]
    return [CompletionItem(name) for name in names if name.startswith(begun) and name not in given]


def group_names(ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """The groups whose workers there are."""
    return [CompletionItem(name) for name in _groups(_known(ctx)) if name.startswith(begun)]


def _groups(ids: list[str]) -> list[str]:
    return list(dict.fromkeys(name for name in map(group_of, ids) if name is not None))


def _known(ctx: click.Context) -> list[str]:
    state = ctx.params.get("state") or os.environ.get("REKINDLE_STATE") or ".rekindle"
    try:
        report = client_of(Path(state)).get("/workers", timeout_s=_COMPLETION_S)
    except (ControlError, OSError, ValueError):
        return []  # a shell that completes must stay quiet
    return [worker["component_id"] for worker in report["workers"]]
