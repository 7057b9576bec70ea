"""`rekindle completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_REKINDLE_COMPLETE"

# bash ends words at colons, and every worker id has two.
_BASH_COLONS = "COMP_WORDBREAKS=${COMP_WORDBREAKS//:}\n"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a shell script that completes commands.

    It also completes options, and the worker ids of a running supervisor.

    \b
      $ rekindle completion bash >> ~/.bashrc
      $ rekindle completion zsh >> ~/.zshrc
      $ rekindle completion fish > ~/.config/fish/completions/rekindle.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    source = kind(ctx.find_root().command, {}, "rekindle", VARIABLE).source()
    click.echo((_BASH_COLONS if shell == "bash" else "") + source)
