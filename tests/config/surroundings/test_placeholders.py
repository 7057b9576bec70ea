"""`{n}`, `{name}`, `{id}` and `${VAR}` in the settings of a worker."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.config.files import good, refused, warned

from rekindle.actors.spec.program import Command
from rekindle.actors.spec.worker_spec import WorkerSpec
from rekindle.cli.config import Config, ConfigError
from rekindle.cli.config.config_text import as_document, as_text


def words(spec: WorkerSpec) -> tuple[str, ...]:
    assert isinstance(spec.run, Command)
    return spec.run.argv


def commands(config: Config) -> list[tuple[str, ...]]:
    return [words(spec) for spec in config.specs()]


def of(*argv: str, more: str = "") -> Config:
    return good(f"[worker.web]\ncommand = {json.dumps(argv)}\n{more}\n")


def test_every_worker_of_a_group_gets_its_own_number() -> None:
    config = of("serve", "80{n}", "{n+8000}", "{n:02}", "{name}", "{id}", more="count = 2")
    assert commands(config) == [
        ("serve", "800", "8000", "00", "web", "worker:web:0"),
        ("serve", "801", "8001", "01", "web", "worker:web:1"),
    ]


def test_a_group_that_is_scaled_up_gets_further_numbers() -> None:
    assert commands(of("serve", "{n}").with_count("web", 3)) == [
        ("serve", "0"),
        ("serve", "1"),
        ("serve", "2"),
    ]


def test_the_number_is_replaced_in_variables_folders_and_probes() -> None:
    ready = 'ready = { tcp = "localhost:{n+8000}", http = { url = "http://localhost:{n+8000}/{name}" } }'
    config = of("serve", more=f'count = 2\ncwd = "data/{{n}}"\nenv = {{ PORT = "800{{n}}" }}\n{ready}')
    spec = config.specs()[1]
    assert (spec.cwd, dict(spec.env)) == ("/srv/app/data/1", {"PORT": "8001"})
    assert spec.ready is not None
    assert spec.ready.tcp is not None
    assert spec.ready.http is not None
    assert (spec.ready.tcp.address, spec.ready.http.url) == ("localhost:8001", "http://localhost:8001/web")


def test_the_defaults_may_use_the_names_of_each_worker() -> None:
    config = good(
        '[defaults]\nenv = { NODE = "{name}-{n}" }\n[worker.a]\ncommand = ["a"]\n[worker.b]\ncommand = ["b"]'
    )
    assert [spec.env["NODE"] for spec in config.specs()] == ["a-0", "b-0"]


def test_a_variable_of_the_supervisor_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA", "/data")
    monkeypatch.delenv("NOTHING", raising=False)
    config = of("serve", "${DATA}/x", "${NOTHING:-none}", more='cwd = "${DATA}/{name}"')
    assert (commands(config), config.specs()[0].cwd) == ([("serve", "/data/x", "none")], "/data/web")


def test_a_command_sees_the_variables_that_env_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/bin")
    config = of("serve", "${PORT}", more='count = 2\nenv = { PORT = "{n+80}", PATH = "/opt:${PATH}" }')
    assert commands(config) == [("serve", "80"), ("serve", "81")]
    assert config.specs()[0].env["PATH"] == "/opt:/bin"


def test_what_a_variable_holds_is_not_replaced_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXT", "{n} ${HOME}")
    assert commands(of("serve", "${TEXT}")) == [("serve", "{n} ${HOME}")]


@pytest.mark.parametrize(
    "argv",
    [
        ("sh", "-c", "echo ${HOME} {a,b} $$ {n}"),
        ("/bin/bash", "-euc", "for n in 1 2; do echo ${n}; done"),
        ("env", "A=1", "sh", "-c", "echo ${A:?x}"),
        ("python3", "-uc", "print(f'{n} {name} {id}')"),
        ("node", "-e", "console.log(`${n}`)"),
        ("awk", "-F:", "{n} END {name}"),
        ("jq", "{id}"),
        ("serve", '{"n": 1}', "{}", "{a,b}", "$HOME", "$$", "{{ x }}", "{{.Name}}", "{port}"),
    ],
)  # fmt: skip
def test_shell_lines_programs_and_other_braces_stay_as_they_are(argv: tuple[str, ...]) -> None:
    assert commands(of(*argv)) == [argv]


def test_words_after_a_shell_line_are_arguments_of_it() -> None:
    assert commands(of("sh", "-c", "serve $1", "sh", "80{n}")) == [("sh", "-c", "serve $1", "sh", "800")]


def test_an_option_c_of_another_program_is_not_followed_by_a_program() -> None:
    assert commands(of("gunicorn", "-c", "conf-{n}.py")) == [("gunicorn", "-c", "conf-0.py")]


def test_doubled_braces_and_dollar_signs_keep_a_placeholder() -> None:
    assert commands(of("serve", "{{n}}", "{{name}}", "$${HOME}")) == [("serve", "{n}", "{name}", "${HOME}")]


def test_nothing_is_replaced_if_the_file_says_so() -> None:
    assert commands(of("serve", "{n}", "${NOPE}", more="expand = false")) == [("serve", "{n}", "${NOPE}")]


def test_all_unclear_placeholders_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOPE", raising=False)
    told = refused(
        '[worker.web]\ncommand = ["serve", "{n-1}"]\ncwd = "/srv/${NOPE}"\nenv = { A = "${A%x}" }\n'
    )
    assert told == [
        (
            "workers.toml:2: worker.web.command: {n-1} is not understood: the number of a worker"
            " is written as {n}, {n+8000} or {n:02}"
        ),
        (
            "workers.toml:3: worker.web.cwd: NOPE is not set: set it, or write ${NOPE:-default},"
            " or $${NOPE} to keep it"
        ),
        (
            "workers.toml:4: worker.web.env.A: ${A%x} is not understood: use ${VAR} or ${VAR:-default};"
            " $${A%x} keeps it"
        ),
    ]


def test_a_number_that_makes_a_setting_invalid_is_refused() -> None:
    text = '[worker.web]\ncommand = ["serve"]\ncount = {}\nready = {{ tcp = "localhost:{{n+65534}}" }}\n'
    assert good(text.format(2)).specs()
    assert "must have the form" in refused(text.format(3))[0]
    with pytest.raises(ConfigError):
        good(text.format(2)).with_count("web", 3)


def test_names_of_other_supervisors_for_the_number_are_warned_about() -> None:
    assert warned('[worker.web]\ncommand = ["serve", "{index}"]\n') == [
        (
            "workers.toml:2: warning: worker.web.command: {index} is passed as it is;"
            " {n} is the number of a worker, {name} and {id} are its names"
        )
    ]


def test_a_number_in_a_shell_line_is_warned_about() -> None:
    assert (
        "is not replaced in the text of a program"
        in warned('[worker.web]\ncommand = ["sh", "-c", "serve 80{n}"]')[0]
    )


def test_what_is_shown_loads_to_the_same_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA", "/data")
    more = 'count = 2\ncwd = "x/{n}"\nenv = { A = "${DATA}" }\nready = { tcp = "localhost:{n+80}" }'
    for config in (of("serve", "{n}", "{{n}}", more=more), of("serve", "{n}", more="expand = false")):
        assert good(as_text(config)).specs() == config.specs()


def test_a_secret_that_was_put_into_a_command_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "hunter2-hunter2")
    config = of("serve", "--use", "x${API_TOKEN}")
    assert words(config.specs()[0])[-1] == "xhunter2-hunter2"
    assert "hunter2" not in json.dumps(as_document(config)) + as_text(config)


def test_groups_without_placeholders_share_their_template() -> None:
    config = of("serve", more="count = 2")
    assert config.specs()[1] == replace(config.groups[0].template, id="worker:web:1")


def test_a_name_that_is_refused_is_one_problem_also_with_placeholders() -> None:
    told = refused('[worker."a b"]\ncommand = ["serve", "{n}"]\ncount = 2\n')
    assert len(told) == 1
    assert "is not a valid worker name" in told[0]
