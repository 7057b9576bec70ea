"""The table `log` of a worker: its meaning, its refusals, and how it is shown."""

from __future__ import annotations

from tests.config.files import good, refused, warned

from rekindle.actors.processes.logs.log_writer import log_path
from rekindle.actors.spec.policies.log_policy import LogFormat, LogPolicy, filled_in
from rekindle.cli.config.config_text import as_text

WEB = """
[worker.web]
command = ["web"]
"""


def test_every_key_can_be_set_and_is_shown_as_it_was_set() -> None:
    text = (
        f'{WEB}log = {{ file = "logs/{{name}}.log", max_mb = 10, keep = 3, compress = false, format = "json",'
        f' mode = "0600" }}'
    )
    config = good(text)
    assert config.groups[0].template.log == LogPolicy(
        file="/srv/app/logs/web.log",
        max_mb=10.0,
        keep=3,
        compress=False,
        format=LogFormat.JSON,
        mode="0600",
    )
    assert good(as_text(config)).specs() == config.specs()
    assert 'file = "/srv/app/logs/{name}.log"' in as_text(config), "from any folder"
    assert warned(text) == []


def test_the_defaults_apply_to_every_worker_that_does_not_override_them() -> None:
    config = good(
        f"""
        [defaults]
        log = {{ file = "logs/{{id}}.log", keep = 9 }}
        {WEB}
        count = 2
        log = {{ keep = 1 }}
        [worker.silent]
        command = ["silent"]
        log = {{ file = "none" }}
        """
    )
    assert [spec.log and (spec.log.file, spec.log.keep) for spec in config.specs()] == [
        ("/srv/app/logs/worker:web:0.log", 1),
        ("/srv/app/logs/worker:web:1.log", 1),
        (None, 9),
    ]
    assert config.warnings == ()


def test_placeholders_stand_for_the_worker() -> None:
    assert filled_in("{name}-{n}/{id}.log", "worker:web:3", "web") == "web-3/worker:web:3.log"
    assert filled_in("{name}-{n}.log", "tagger", "") == "tagger-0.log"


def test_a_spec_in_python_has_the_same_placeholders_as_a_file() -> None:
    written = "logs/{n:02}-{n+8000}-{{n}}-{{{name}}}.log"
    assert LogPolicy(file=written).file == written
    config = good(f'{WEB}count = 4\nlog = {{ file = "/{written}" }}')
    spec = config.specs()[3]
    assert log_path(spec) == "/logs/03-8003-{n}-{{name}}.log"
    assert filled_in(f"/{written}", spec.id, spec.group) == log_path(spec)
    assert good(as_text(config)).specs() == config.specs()


def test_without_expansion_braces_in_the_name_of_a_log_file_stand_for_themselves() -> None:
    config = good(f'{WEB}count = 2\nexpand = false\nlog = {{ file = "/logs/{{n}}-{{{{id}}}}.log" }}')
    assert {log_path(spec) for spec in config.specs()} == {"/logs/{n}-{{id}}.log"}
    assert 'file = "/logs/{n}-{{id}}.log"' in as_text(config)
    assert good(as_text(config)).specs() == config.specs()


def test_all_problems_are_told_at_once() -> None:
    wrong = (
        'file = "{nmae}.log", max_mb = 0, keep = -1, compress = "yes", format = "jsn", mode = "0666", fle = 1'
    )
    here = "workers.toml:4: worker.web.log"
    assert sorted(refused(f"{WEB}log = {{ {wrong} }}")) == [
        f'{here}.compress = "yes": must be true or false',
        f"{here}.file = \"{{nmae}}.log\": has an unknown placeholder {{nmae}}; did you mean 'name'?",
        f"{here}.fle = 1: is not a known key; did you mean 'file'?",
        f"{here}.format = \"jsn\": must be one of text, json; did you mean 'json'?",
        f"{here}.keep = -1: must be between 0 and 1000",
        f"{here}.max_mb = 0: must be above 0 and at most 1000000",
        f'{here}.mode = "0666": must not let every user write the file',
    ]


def test_a_folder_and_wrong_permissions_are_refused() -> None:
    assert sorted(refused(f'{WEB}log = {{ file = "logs/", mode = "rw" }}')) == [
        'workers.toml:4: worker.web.log.file = "logs/": must name a file, not a folder',
        'workers.toml:4: worker.web.log.mode = "rw": must be permissions such as "0640"',
    ]


def test_workers_with_the_same_file_must_agree_on_its_settings() -> None:
    db = '[worker.db]\ncommand = ["db"]\nlog = { file = "all.log", keep = 1 }'
    (told,) = refused(f'{WEB}log = {{ file = "all.log" }}\n{db}')
    assert told.startswith("workers.toml:7: worker.db.log: has other settings than worker.web.log, which has")
    assert told.endswith(" the same file /srv/app/all.log")


def test_settings_without_a_file_are_warned_about() -> None:
    assert warned(f"{WEB}log = {{ keep = 3 }}") == [
        "workers.toml:4: warning: worker.web.log: has no effect: it does not name a file"
    ]


def test_a_bad_name_of_a_worker_with_a_log_file_is_told_as_any_other() -> None:
    (told,) = refused('[worker."a b"]\ncommand = ["true"]\nlog = { file = "x.log" }')
    assert "is not a valid worker name" in told
