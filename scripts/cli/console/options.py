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

from ..client import ControlClient, ControlError, Reader, RequestRefusedError, UnknownWorkerError
from ..render.text import printable, seconds_of
from ..state_files import SOCKET_NAME
from .state_search import nearest_state, state_of_file
from .targets import Known, Targets, targets

F = TypeVar("F", bound=Callable[..., Any])

LONG_S = 130.0
"""The timeout of orders that wait until processes end; the server itself waits for 120 s."""
LONGEST_LINE = 500
_COMPLETION_S = 1.0

CONFIG = "rekindle.config"
"""The key of the file that `-c` names in the context."""


def _named_file(ctx: click.Context, _param: click.Parameter, given: Path | None) -> Path | None:
    ctx.meta[CONFIG] = given
    return given


def _state(ctx: click.Context, _param: click.Parameter, given: Path | None) -> Path:
    """The state directory: the named one, that of the named file, or the nearest one above this folder."""
    file: Path | None = ctx.meta.get(CONFIG)
    if given is not None and file is None:
        return given
    if file is None:
        return nearest_state()
    if ctx.get_parameter_source("state") is ParameterSource.COMMANDLINE:
        raise click.UsageError("-c FILE names the state directory already; leave --state out")
    try:
        return state_of_file(file)
    except (ValueError, OSError) as error:
        raise click.BadParameter(f"{file}: {error}", param_hint="-c") from None


def config_option(command: F) -> F:
    """The option `-c FILE`, which stands for the state directory of that file."""
    return click.option(
        "-c",
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        callback=_named_file,
        is_eager=True,
        expose_value=False,
        metavar="FILE",
        help="The configuration file of the supervisor.",
    )(command)


directory_option = click.option(
    "--state",
    "state",
    type=click.Path(path_type=Path),
    envvar="REKINDLE_STATE",
    callback=_state,
    show_envvar=True,
    metavar="DIR",
    help="The supervisor's state directory.  [default: .rekindle in this folder or the nearest one above it]",
)


def state_option(command: F) -> F:
    """The options that say which supervisor is meant: `-c FILE` or `--state DIR`."""
    return config_option(directory_option(command))


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
    named = context is None or _is_named(context)
    if os.geteuid() == 0 and not named:
        _check_owners(state)
    return str(state / SOCKET_NAME)


def _is_named(context: click.Context) -> bool:
    by_option = context.get_parameter_source("state") is not ParameterSource.DEFAULT
    return by_option or context.meta.get(CONFIG) is not None


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

    from ..render.json_document import whole

    click.echo(json.dumps(whole(document), indent=2))


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
    state = ctx.params.get("state") or nearest_state()
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

all_option = click.option("--all", "everyone", is_flag=True, help="All workers, instead of an ID.")


def named_or_all(client: Reader, ids: tuple[str, ...], everyone: bool) -> Targets:
    """The workers that a command names, or all of them with `--all`.

    Raises:
        UnknownWorkerError: a name matches no worker.
    """
    if everyone == bool(ids):
        raise click.UsageError("name the workers or groups, or all of them with --all")
    if not everyone:
        return targets(client, ids)
    known = Known.of(client.get("/workers"))
    return Targets(known.ids, bool(known.together))
