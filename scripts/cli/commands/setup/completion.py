"""`rekindle completion`: the script that a shell runs; click makes it."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_REKINDLE_COMPLETE"

# bash takes a colon for the end of a word, and every worker's id has two.
_BASH_COLONS = "COMP_WORDBREAKS=${COMP_WORDBREAKS//:}\n"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script for the shell that completes commands.

    It completes options too, and the ids of the workers of a running supervisor.

    \b
      $ rekindle completion bash >> ~/.bashrc
      $ rekindle completion zsh >> ~/.zshrc
      $ rekindle completion fish > ~/.config/fish/completions/rekindle.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    source = kind(ctx.find_root().command, {}, "rekindle", VARIABLE).source()
    click.echo((_BASH_COLONS if shell == "bash" else "") + source)
