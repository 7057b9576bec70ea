"""The group command `rekindle`: its help in sections, its error handling."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Any

import click

from ..console.exits import guarded
from ..console.options import NAMED_BY_COMMAND
from .index import SECTIONS

LONGEST = 200
"""Characters of a summary; click cuts it after 45."""


OTHER_NAMES = {"list": "status", "ls": "status", "log": "output", "logs": "output", "tail": "output"}
"""Further names of commands, which work but are not listed."""
ELSEWHERE = {"up": "run", "down": "shutdown", "kill": "signal", "monit": "top", "why": "explain"}
"""What other supervisors call commands that do not do quite the same here."""


class Subcommands(click.Group):
    """A group that shows the summaries of its commands in full, and hands its options down to them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`rekindle queues -c FILE pause mail` is `rekindle queues pause -c FILE mail`.

        An option that the command does not have is then refused instead of ignored.
        """
        _, rest, _ = self.make_parser(ctx).parse_args(list(args))
        before = args[: len(args) - len(rest)]
        if rest:
            ctx.meta[NAMED_BY_COMMAND] = ctx
        return super().parse_args(ctx, [rest[0], *before, *rest[1:]] if rest else args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, each with the first sentence of its help."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(LONGEST)) for name, each in commands if each])


WHICH_SUPERVISOR = ("-c", "--config", "--state", "--url", "--token-file")
"""Options of commands that may also stand before the command."""


class TopLevel(click.Group):
    """A group that lists its commands in sections."""

    def main(
        self, args: Sequence[str] | None = None, prog_name: str | None = None, *rest: Any, **extra: Any
    ) -> Any:
        """Run as `rekindle` however the program was started: shell completion depends on the name."""
        return super().main(args, prog_name or "rekindle", *rest, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`rekindle -c FILE status` is `rekindle status -c FILE`."""
        count = _leading(args)
        leading, rest = args[:count], args[count:]
        at = self._depth(ctx, rest) if leading else 0
        return super().parse_args(ctx, [*rest[:at], *leading, *rest[at:]] if at else rest)

    def _depth(self, ctx: click.Context, words: list[str]) -> int:
        """How many words name the command: two for `jobs list`."""
        command: click.Command | None = self
        for at, word in enumerate(words):
            if not isinstance(command, click.Group):
                return at
            name = OTHER_NAMES.get(word, word) if at == 0 else word
            found = command.get_command(ctx, name)
            if found is None:
                return at
            command = found
        return len(words)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, also by a further name; the error about one of other supervisors names ours."""
        name, *rest = args
        if name in ELSEWHERE:
            raise click.UsageError(f"No such command '{name}'; did you mean {ELSEWHERE[name]}?", ctx)
        return super().resolve_command(ctx, [OTHER_NAMES.get(name, name), *rest])

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the command line; click prints the help in here."""
        context: click.Context = guarded(lambda: super(TopLevel, self).make_context(*args, **extra))
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; `console.exits` turns errors into exit codes."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # print ? where the encoding lacks a character
        return guarded(lambda: super(TopLevel, self).invoke(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands in their sections without loading them."""
        for title, summaries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(summaries.items()))


def _leading(args: Sequence[str]) -> int:
    """How many words before the command say which supervisor is meant."""
    at = 0
    while at < len(args):
        name, equals, _ = args[at].partition("=")
        if name in WHICH_SUPERVISOR:
            at += 1 if equals else 2
        elif args[at].startswith("-c") and not args[at].startswith("--"):
            at += 1
        else:
            break
    return min(at, len(args))
