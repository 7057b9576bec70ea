"""Options and arguments that several commands share, and their completion in the shell."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from ..client import (
    ControlClient,
    ControlError,
    OrderRefusedError,
    Reader,
    RemoteAddress,
    UnknownTargetError,
)
from ..render.text import printable, seconds_of
from ..state_files import SOCKET_NAME
from .state_search import nearest_state, state_of_file
from .targets import Known, Targets, targets

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])

LONG_S = 130.0
"""The timeout of orders that wait until processes end; the server itself waits for 120 s."""
LONGEST_LINE = 500
_COMPLETION_S = 1.0

CONFIG = "rekindle.config"
"""The key of the file that `-c` names in the context."""


URL, TOKEN_FILE = "rekindle.url", "rekindle.token_file"
"""The keys of what `--url` and `--token-file` name."""
URL_VARIABLE, TOKEN_VARIABLE = "REKINDLE_URL", "REKINDLE_TOKEN_FILE"

NAMED_BY_COMMAND = "rekindle.named_by_command"
"""The key of the context of a group whose command says which supervisor is meant."""

Where = Path | RemoteAddress
"""Which supervisor is meant: its state directory, or its URL."""


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
    if _is_option(ctx, "state"):
        raise click.UsageError("-c FILE names the state directory already; leave --state out")
    try:
        return state_of_file(file)
    except (ValueError, OSError) as error:
        raise click.BadParameter(f"{file}: {error}", param_hint="-c") from None


def _is_option(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _state_here(ctx: click.Context, param: click.Parameter, given: Path | None) -> Path:
    """The state directory, for a command that works only on the supervisor's own machine."""
    is_named = ctx.meta.get(CONFIG) is not None or _is_option(ctx, "state")
    if os.environ.get(URL_VARIABLE) and not is_named:
        raise click.UsageError(
            f"{URL_VARIABLE} names a supervisor elsewhere, and `{ctx.command_path}` works only on the "
            f"machine of its supervisor: name one with -c or --state, or unset {URL_VARIABLE}"
        )
    return _state(ctx, param, given)


def _where(ctx: click.Context, param: click.Parameter, given: Path | None) -> Where:
    """The state directory, or the URL if one is given; nothing for a group, whose command says it."""
    if ctx.meta.get(NAMED_BY_COMMAND) is ctx:
        return Path()
    url, token_file = ctx.meta.get(URL), ctx.meta.get(TOKEN_FILE)
    local = ctx.meta.get(CONFIG) is not None or _is_option(ctx, "state")
    if url is None or (local and not _is_option(ctx, "url")):
        if _is_option(ctx, "token_file"):
            raise click.UsageError("--token-file belongs to --url URL, which is missing")
        return _state(ctx, param, given)
    if local:
        raise click.UsageError("--url names a supervisor elsewhere; leave -c and --state out")
    if given is not None and not _is_option(ctx, "url"):
        raise click.UsageError(
            f"{URL_VARIABLE} and REKINDLE_STATE are both set; unset one, or name the supervisor by an option"
        )
    if token_file is None:
        raise click.UsageError(f"--url needs a token: --token-file FILE, or {TOKEN_VARIABLE}")
    from ..remote_client import remote_address

    try:
        return remote_address(url, token_file)
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from None


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


def _directory_option(
    command: F, callback: Callable[[click.Context, click.Parameter, Path | None], Where]
) -> F:
    return click.option(
        "--state",
        "state",
        type=click.Path(path_type=Path),
        envvar="REKINDLE_STATE",
        callback=callback,
        show_envvar=True,
        metavar="DIR",
        help="The supervisor's state directory.  "
        "[default: .rekindle in this folder or the nearest one above it]",
    )(command)


def state_option(command: F) -> F:
    """The options that say which supervisor is meant, if it must run here: `-c FILE` or `--state DIR`."""
    return config_option(_directory_option(command, _state_here))


def _kept(key: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def keep(ctx: click.Context, _param: click.Parameter, given: Any) -> Any:
        ctx.meta[key] = given
        return given

    return keep


_url_option = click.option(
    "--url",
    callback=_kept(URL),
    envvar=URL_VARIABLE,
    show_envvar=True,
    is_eager=True,
    expose_value=False,
    metavar="URL",
    help="A supervisor elsewhere, by the address of its HTTP gateway.",
)
_token_option = click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    callback=_kept(TOKEN_FILE),
    envvar=TOKEN_VARIABLE,
    show_envvar=True,
    is_eager=True,
    expose_value=False,
    metavar="FILE",
    help="With --url: a copy of http-viewer.token or http-operator.token.",
)


def supervisor_option(command: F) -> F:
    """The options that say which supervisor is meant, here or elsewhere: `-c`, `--state`, or `--url`."""
    return config_option(address_option(command))


def address_option(command: F) -> F:
    """The same options without `-c`, which means something else in such a command."""
    return _directory_option(_url_option(_token_option(command)), _where)


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


MOST_LISTED = 1000


def limit_since_option(what: str, few: int) -> Callable[[F], F]:
    """The option `--limit` of a command with `--since`, which shall not leave out part of that time."""
    return click.option(
        "--limit",
        type=click.IntRange(1, MOST_LISTED),
        metavar="N",
        help=f"Show at most this many {what}.  [default: {few}; {MOST_LISTED} with --since TIME]",
    )


def socket_of(state: Path) -> str:
    """The control socket of a state directory.

    Raises:
        OrderRefusedError: root did not name the directory, and another user controls the default one.
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
                raise OrderRefusedError(
                    f"{path} belongs to another user (uid {owner}), whose server may answer; "
                    f"to use it all the same, name it: --state {state}",
                    "forbidden",
                )


def client_of(state: Where, *, user: str | None = None, reason: str | None = None) -> ControlClient:
    """A client for the supervisor of a state directory or a URL; it connects with each request.

    Args:
        state: the state directory, or the URL with the token.
        user: on whose behalf it acts, for the audit; by default the user of `sudo`.
        reason: why it gives its orders, for the audit.
    """
    user = user or os.environ.get("SUDO_USER")
    if isinstance(state, RemoteAddress):
        from ..remote_client import RemoteClient

        return RemoteClient(state, user=user, reason=reason)
    return ControlClient(socket_of(state), user=user, reason=reason)


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
    return _items(begun, (name for name in (*known.ids, *known.groups) if name not in given))


def group_names(ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """The groups of the running workers."""
    return _items(begun, _known(ctx).groups)


def _items(begun: str, names: Iterable[str]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in names if name.startswith(begun)]


def _known(ctx: click.Context) -> Known:
    try:
        state = ctx.params.get("state") or nearest_state()
        return Known.of(client_of(state).get("/workers", timeout_s=_COMPLETION_S))
    except (ControlError, OSError, ValueError):
        return Known((), {})  # completion must not print errors into the prompt


# ── the workers that a command names ─────────────────────────────────────────────────────


def _not_empty(_ctx: click.Context, _param: click.Parameter, ids: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse an empty id, such as a script's unset variable: it must not mean all workers.

    Raises:
        UnknownTargetError: an id is empty.
    """
    if "" in ids:
        raise UnknownTargetError("an ID is empty; name a worker or a group", "unknown_worker", 404)
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
        UnknownTargetError: a name matches no worker.
    """
    if everyone == bool(ids):
        raise click.UsageError("name the workers or groups, or all of them with --all")
    if not everyone:
        return targets(client, ids)
    known = Known.of(client.get("/workers"))
    return Targets(known.ids, bool(known.together))
