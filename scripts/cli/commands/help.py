"""The command `rekindle` itself: its help in sections, and what becomes of errors."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Any

import click

from ..console.exits import guarded
from .index import SECTIONS


class TopLevel(click.Group):
    """A group whose commands are listed by what they are for."""

    def main(
        self, args: Sequence[str] | None = None, prog_name: str | None = None, *rest: Any, **extra: Any
    ) -> Any:
        """Run it under one name, however it was started: completion goes by that name."""
        return super().main(args, prog_name or "rekindle", *rest, **extra)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the command line; the help is printed here already."""
        context: click.Context = guarded(lambda: super(TopLevel, self).make_context(*args, **extra))
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; see `failures` for what becomes of errors."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a letter gets another
        return guarded(lambda: super(TopLevel, self).invoke(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands in their sections; none is loaded for it."""
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.summary) for name, entry in entries.items()])
