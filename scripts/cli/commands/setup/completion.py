"""`rekindle completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_REKINDLE_COMPLETE"

BASH = r"""_rekindle_completion() {
    # bash splits words at colons, and every worker id has two. The words are joined again here, and what
    # stands before the last colon is taken off the answers; COMP_WORDBREAKS stays for other commands.
    local line="${COMP_LINE:0:COMP_POINT}" words current before response kind value IFS
    read -r -a words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    current="${words[${#words[@]} - 1]}"
    before=""
    [[ $COMP_WORDBREAKS == *:* && $current == *:* ]] && before="${current%"${current##*:}"}"
    COMPREPLY=()
    response=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]} - 1)) VARIABLE=bash_complete "$1")
    while IFS=, read -r kind value; do
        case $kind in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"$before"}") ;;
        esac
    done <<<"$response"
    return 0
}

complete -o nosort -F _rekindle_completion rekindle
"""


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
    if shell == "bash":
        click.echo(BASH.replace("VARIABLE", VARIABLE), nl=False)
        return
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, "rekindle", VARIABLE).source())
