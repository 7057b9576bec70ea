"""Options and arguments that several commands share, and their completion in the shell."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from ..client import ControlClient, ControlError, RequestRefusedError, UnknownWorkerError
from ..render.text import printable, seconds_of
from ..state_files import SOCKET_NAME
from .targets import Known

F = TypeVar("F", bound=Callable[..., Any])

LONG_S = 130.0
"""The timeout of orders that wait until processes end; the server itself waits for 120 s."""
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
    help="The supervisor's state directory.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
)


def limit_option(what: str, default: int = 20) -> Callable[[F], F]:
    """The option `--limit`."""
    return click.option(
        "--limit",
        type=click.IntRange(1, 1000),
        default=default,
        show_default=True,
        metavar="N",
        help=f"Show at most this many {what}.",
    )


def socket_of(state: Path) -> str:
    """The control socket of a state directory.

    Raises:
        RequestRefusedError: root did not name the directory, and another user controls the default one.
    """
    context = click.get_current_context(silent=True)
    named = context is None or context.get_parameter_source("state") is not ParameterSource.DEFAULT
    if os.geteuid() == 0 and not named:
        _check_owners(state)
    return str(state / SOCKET_NAME)


def _check_owners(state: Path) -> None:
    """Refuse a directory that another user could have put into the current folder for root to find."""
    trusted = {0, int(os.environ.get("SUDO_UID", "0") or 0)}
    for path in (state.absolute().parent, state):
        with suppress(OSError):
            owner = os.lstat(path).st_uid
            if owner not in trusted:
                raise RequestRefusedError(
                    f"{path} belongs to another user (uid {owner}), whose server may answer; "
                    f"to use it all the same, name it: --state {state}",
                    "forbidden",
                )


def client_of(state: Path) -> ControlClient:
    """A client for the supervisor of a state directory; it connects with each request."""
    return ControlClient(socket_of(state), user=os.environ.get("SUDO_USER"))


def print_json(document: object) -> None:
    """Print the document and nothing else."""
    import json

    click.echo(json.dumps(document, indent=2))


def duration(_ctx: click.Context, _param: click.Parameter, given: str | None) -> float | None:
    """The value of an option in seconds; see `render.text.seconds_of` for the syntax."""
    if given is None:
        return None
    try:
        return seconds_of(given)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def line(_ctx: click.Context, _param: click.Parameter, given: str) -> str:
    """The value of an option that terminals will show."""
    if printable(given) != given:
        raise click.BadParameter("control characters are not allowed")
    if len(given) > LONGEST_LINE:
        raise click.BadParameter(f"at most {LONGEST_LINE} characters are allowed, not {len(given)}")
    return given


# ── completion in the shell ──────────────────────────────────────────────────────────────


def worker_ids(ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """The workers and groups that the command line does not name yet."""
    given, known = ctx.params.get("ids") or (), _known(ctx)
    names = [*known.ids, *known.groups]
    return [CompletionItem(name) for name in names if name.startswith(begun) and name not in given]


def group_names(ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """The groups of the running workers."""
    return [CompletionItem(name) for name in _known(ctx).groups if name.startswith(begun)]


def _known(ctx: click.Context) -> Known:
    state = ctx.params.get("state") or os.environ.get("REKINDLE_STATE") or ".rekindle"
    try:
        return Known.of(client_of(Path(state)).get("/workers", timeout_s=_COMPLETION_S))
    except (ControlError, OSError, ValueError):
        return Known((), {})  # completion must not print errors into the prompt


# ── the workers that a command names ─────────────────────────────────────────────────────


def _not_empty(_ctx: click.Context, _param: click.Parameter, ids: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse an empty id, such as a script's unset variable: it must not mean all workers.

    Raises:
        UnknownWorkerError: an id is empty.
    """
    if "" in ids:
        raise UnknownWorkerError("no worker is called ''", "unknown_worker", 404)
    return ids


optional_ids = click.argument(
    "ids", nargs=-1, metavar="[ID]...", callback=_not_empty, shell_complete=worker_ids
)
required_ids = click.argument(
    "ids", nargs=-1, required=True, metavar="ID...", callback=_not_empty, shell_complete=worker_ids
)
