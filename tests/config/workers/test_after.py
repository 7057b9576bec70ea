"""`after` as a list of names, and as a table of what each must be."""

from __future__ import annotations

import pytest
from tests.config.files import good, refused

from rekindle.actors.spec.worker_spec import Until
from rekindle.cli.config.config_text import as_text

BEFORE = """
[worker.db]
command = ["postgres"]
count = 2
[worker.migrate]
command = ["migrate"]
kind = "once"
[worker.web]
command = ["web"]
"""


def test_a_table_says_what_each_must_be_and_is_shown_as_it_was_written() -> None:
    config = good(f'{BEFORE}after = {{ db = "ready", migrate = "done" }}\n')
    web = config.specs()[-1]
    assert web.after == ("worker:db:0", "worker:db:1", "worker:migrate:0")
    assert web.until == {
        "worker:db:0": Until.READY,
        "worker:db:1": Until.READY,
        "worker:migrate:0": Until.DONE,
    }
    assert good(as_text(config)).specs() == config.specs()


def test_a_list_means_what_it_meant() -> None:
    web = good(f'{BEFORE}after = ["db", "migrate"]\n').specs()[-1]
    assert (web.after[0], len(web.after), web.until) == ("worker:db:0", 3, {})


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ('{ db = "redy" }', "after.db = \"redy\": must be one of ready, done; did you mean 'ready'?"),
        ("{ db = 1 }", "after.db = 1: must be one of ready, done"),
        (
            '{ db = "done" }',
            'after.db = "done": db is a service, which is never done: write "ready", or set kind = "once"',
        ),
        (
            '{ migrat = "ready" }',
            'after = {migrat = "ready"}: no worker or group is named "migrat"; did you mean \'migrate\'?',
        ),
        ('"db"', 'after = "db": must be a list of words or a table of words out of ready, done'),
    ],
)
def test_a_bad_word_is_refused_with_its_place(after: str, told: str) -> None:
    assert refused(f"{BEFORE}after = {after}\n") == [f"workers.toml:10: worker.web.{told}"]
