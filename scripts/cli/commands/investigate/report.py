"""`rekindle report`."""

from __future__ import annotations

from pathlib import Path

import click

from ...client import path_of
from ...console.options import Where, client_of, json_option, supervisor_option, worker_ids
from ...console.targets import the_one


@click.command()
@click.argument("id_", metavar="ID", shell_complete=worker_ids)
@click.option(
    "-o",
    "--output",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file instead of standard output; only you can read the file.",
)
@supervisor_option
@json_option
def report(id_: str, file: Path | None, state: Where, as_json: bool) -> None:
    """Write everything about a worker for a bug report, as Markdown.

    \b
      $ rekindle report worker:tag:0 -o report.md

    The report has the worker's state, its crashes and how often each occurred, the evidence of
    the latest ones, its deaths and its configuration. It leaves out the values of environment
    variables and masks what looks like a secret. Read it before you share it: it contains what
    the worker wrote.
    """
    client = client_of(state)
    answer = client.get(path_of("workers", the_one(client, id_), "report"))
    if as_json:
        import json

        from ...render.json_document import whole

        text = json.dumps(whole(answer), indent=2)
    else:
        from ...render.crash_text import report_lines

        text = "\n".join(report_lines(answer))
    if file is None:
        click.echo(text)
    else:
        _write(file, text + "\n")


def _write(file: Path, text: str) -> None:
    import os

    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="replace") as opened:
            os.fchmod(descriptor, 0o600)  # an existing file would keep its mode
            opened.write(text)
    except OSError as error:
        raise click.ClickException(f"cannot write {file}: {error.strerror}") from None
