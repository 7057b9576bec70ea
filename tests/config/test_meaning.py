"""What a good file means: CF-01 to CF-03."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.config.files import PATH, good

from rekindle.actors.errors import UnknownWorkerError
from rekindle.actors.spec.policies.restart_policy import RestartPolicy
from rekindle.actors.spec.policies.stop_policy import StopPolicy
from rekindle.actors.spec.policies.work_item_policy import Recipe
from rekindle.actors.spec.presets import PRESETS
from rekindle.actors.spec.program import Command, PythonCall
from rekindle.actors.spec.worker_spec import PauseMode, WorkerSpec
from rekindle.cli.config import ConfigError

TRUE = 'command = ["true"]'


def only(text: str) -> WorkerSpec:
    """The one worker of a text."""
    (spec,) = good(text).specs()
    return spec


def test_a_worker_is_no_more_than_a_command() -> None:
    assert only(f"[worker.a]\n{TRUE}") == WorkerSpec("worker:a:0", Command(("true",)), group="a")


def test_a_python_function_is_run_by_the_runner() -> None:
    assert only('[worker.a]\npython = "app.jobs:tag"').run == PythonCall("app.jobs:tag")


def test_a_count_numbers_the_workers() -> None:
    specs = good(f"[worker.a]\n{TRUE}\ncount = 3").specs()
    assert [spec.id for spec in specs] == ["worker:a:0", "worker:a:1", "worker:a:2"]


def test_a_count_of_zero_is_a_group_without_workers() -> None:
    config = good(f"[worker.a]\n{TRUE}\ncount = 0")
    assert config.specs() == ()
    assert config.group("a").min_healthy == 0


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_taken_as_it_is(preset: str) -> None:
    spec = only(f'[worker.a]\n{TRUE}\npreset = "{preset}"')
    wanted = PRESETS[preset]
    assert (spec.restart, spec.health, spec.jobs, spec.limits, spec.pause_mode) == (
        wanted.restart,
        wanted.health,
        wanted.jobs,
        wanted.limits,
        wanted.pause_mode,
    )


def test_only_the_named_fields_differ_from_the_preset() -> None:
    spec = only(f'[worker.a]\n{TRUE}\npreset = "plugin"\nrestart.max_delay_s = 5\nlimits.violations = 3')
    plugin = PRESETS["plugin"]
    assert plugin.limits is not None
    assert spec.restart == replace(plugin.restart, max_delay_s=5.0)
    assert spec.limits == replace(plugin.limits, violations=3)


def test_the_word_none_lifts_a_limit() -> None:
    spec = only(f'[worker.a]\n{TRUE}\nrestart = {{ max_lifetime = "none", max_in_window = "none" }}')
    assert spec.restart == RestartPolicy(max_lifetime=None, max_in_window=None)


def test_the_defaults_lie_under_every_worker_key_by_key() -> None:
    text = f"""
        [defaults]
        preset = "patient"
        pause_mode = "stop"
        env = {{ A = "1", B = "2" }}
        restart = {{ max_delay_s = 9, jitter = 0.5 }}
        stop.ask_s = 3
        stop.signal = "INT"
        [worker.a]
        {TRUE}
        env = {{ B = "3", C = "4" }}
        restart = {{ jitter = 0.1 }}
    """
    spec = only(text)
    assert spec.env == {"A": "1", "B": "3", "C": "4"}
    assert spec.restart == replace(PRESETS["patient"].restart, max_delay_s=9.0, jitter=0.1)
    assert spec.stop == StopPolicy(ask_s=3.0, signal="SIGINT")
    assert spec.pause_mode is PauseMode.STOP


def test_a_default_for_commands_leaves_python_functions_alone() -> None:
    text = f'[defaults]\nreports_health = true\n[worker.a]\npython = "a:b"\n[worker.b]\n{TRUE}'
    function, program = good(text).specs()
    assert function.run == PythonCall("a:b")
    assert program.run == Command(("true",), reports_health=True)


def test_paths_start_at_the_folder_of_the_file() -> None:
    config = good(f'state_dir = "st"\ndatabase = "../my.db"\n[worker.a]\n{TRUE}\ncwd = "work"')
    assert config.state_dir == Path("/srv/app/st")
    assert config.database == "/srv/app/../my.db"
    assert config.specs()[0].cwd == "/srv/app/work"


def test_the_state_directory_is_beside_the_file_by_default() -> None:
    config = good("")
    assert config.path == PATH
    assert config.state_dir == Path("/srv/app/.rekindle")
    assert config.database == "/srv/app/.rekindle/rekindle.db"
    assert config.max_concurrent_starts is None


@pytest.mark.parametrize("address", ["postgresql://u@h/db", "postgresql+psycopg://h/db", "sqlite:///x.db"])
def test_an_address_of_a_database_is_taken_as_it_is(address: str) -> None:
    assert good(f'database = "{address}"').database == address


def test_home_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert good('state_dir = "~/st"').state_dir == Path("/home/me/st")


def test_a_group_that_is_waited_for_stands_for_all_its_workers() -> None:
    text = f"""
        [worker.web]
        {TRUE}
        after = ["db", "worker:db:1", "worker:mq:0"]
        [worker.db]
        {TRUE}
        count = 2
        [worker.mq]
        {TRUE}
    """
    web, *others = good(text).specs()
    assert web.after == ("worker:db:0", "worker:db:1", "worker:mq:0")
    assert all(other.after == () for other in others)


@pytest.mark.parametrize(
    ("lines", "least"),
    [("", 0), ("count = 4", 3), ("count = 4\nmin_healthy = 1", 1), ("count = 4\nmin_healthy = 0", 0)],
)
def test_a_rolling_restart_leaves_all_but_one_up_by_default(lines: str, least: int) -> None:
    assert good(f"[worker.a]\n{TRUE}\n{lines}").group("a").min_healthy == least


class TestScaling:
    """`with_count`: what `rekindle scale` asks for."""

    config = good(
        f'[worker.db]\n{TRUE}\ncount = 3\nmin_healthy = 2\n[worker.web]\n{TRUE}\nafter = ["db"]\n'
        f'[worker.log]\n{TRUE}\nafter = ["worker:db:1"]'
    )

    def test_more_workers_are_waited_for_as_well(self) -> None:
        specs = {spec.id: spec for spec in self.config.with_count("db", 4).specs()}
        assert "worker:db:3" in specs
        assert specs["worker:web:0"].after[-1] == "worker:db:3"

    def test_fewer_workers_lower_what_must_stay_up(self) -> None:
        fewer = good(f"[worker.a]\n{TRUE}\ncount = 3\nmin_healthy = 2").with_count("a", 1)
        assert fewer.group("a").min_healthy == 1

    def test_the_others_and_the_original_stay_as_they_were(self) -> None:
        before = self.config.specs()
        self.config.with_count("web", 5)
        assert self.config.specs() == before

    def test_a_worker_that_is_waited_for_is_not_scaled_away(self) -> None:
        with pytest.raises(ConfigError, match=r"worker:db:1 does not exist: worker\.db\.count is 1"):
            self.config.with_count("db", 1)

    @pytest.mark.parametrize("count", [-1, 1001])
    def test_what_cannot_be_counted_is_refused(self, count: int) -> None:
        with pytest.raises(ConfigError, match=rf"worker\.db\.count = {count}: must be between 0 and 1000"):
            self.config.with_count("db", count)

    def test_an_unknown_group_is_refused(self) -> None:
        with pytest.raises(UnknownWorkerError, match="no group is named 'dbb'; known groups: db, web, log"):
            self.config.with_count("dbb", 1)


def test_two_readings_of_one_file_compare_equal() -> None:
    text = f'[worker.a]\n{TRUE}\nenv.A = "1"\ncount = 2'
    assert good(text) == good(text)
    assert good(text) != good(text.replace("2", "3"))


def test_what_nothing_acts_on_yet_is_a_warning() -> None:
    (warning,) = good(f"[worker.a]\n{TRUE}\njobs.crash_retries = 1\n").warnings
    assert (warning.key, warning.reason) == (
        "worker.a.jobs",
        "has no effect: queues is empty",
    )


def test_a_release_hook_is_read_from_the_defaults_and_the_worker() -> None:
    text = f"""
[defaults.release]
timeout_s = 3
[worker.a]
{TRUE}
release.command = ["br", "update", "{{work_item}}", "--assignee", ""]
release.cwd = "beads"
[worker.b]
{TRUE}
release.recipe = "br"
"""
    first, second = good(text).specs()
    assert first.release is not None
    assert second.release is not None
    assert first.release.command == ("br", "update", "{work_item}", "--assignee", "")
    assert first.release.cwd is not None
    assert first.release.cwd.endswith("/beads")
    assert (first.release.timeout_s, second.release.timeout_s) == (3.0, 3.0)
    assert (second.release.recipe, second.release.command) == (Recipe.BR, ())


def test_workers_share_the_breaker_that_they_name() -> None:
    text = f"""
[breakers.db]
deaths = 4
probe_tcp = "localhost:5432"
[defaults]
breaker = "db"
[worker.a]
{TRUE}
count = 2
[worker.b]
{TRUE}
breaker = "none"
"""
    first, second, other = good(text).specs()
    assert first.breaker == second.breaker
    assert first.breaker is not None
    assert (first.breaker.name, first.breaker.deaths) == ("db", 4)
    assert first.breaker.probe_tcp == "localhost:5432"
    assert other.breaker is None
