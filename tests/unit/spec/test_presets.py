"""The presets: CF-01, CF-02, CF-07."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from tests.unit.builders import TAG, spec

from rekindle.actors.errors import SpecError
from rekindle.actors.spec.policies.stop_policy import StopPolicy
from rekindle.actors.spec.presets import PRESETS
from rekindle.actors.spec.program import command
from rekindle.actors.spec.worker_spec import WorkerSpec

COLUMNS = ("steady", "service", "patient", "notify", "plugin")

RESTART = {
    "enabled": (True, True, True, False, True),
    "restart_on": ("always", "always", "on_failure", "always", "always"),
    "max_in_window": (5, 18, 5, 2, None),
    "window_s": (300, 1800, 300, 600, 300),
    "window_mode": ("since_last_restart", "sliding", "since_last_restart", "sliding", "since_last_restart"),
    "max_lifetime": (20, None, 20, None, None),
    "max_consecutive": (None, None, None, None, 5),
    "initial_delay_s": (1, 1, 1, 0, 1),
    "multiplier": (2, 2, 2, 1, 2),
    "max_delay_s": (60, 60, 60, 0, 30),
    "min_delay_s": (1, 1, 1, 0, 0),
    "immediate_first": (False, False, False, True, True),
    "jitter": (0, 0.1, 0, 0, 0),
    "reset_after_healthy_s": (None, 60, 300, None, 60),
    "on_exhausted": ("mark_failed", "mark_failed", "mark_failed", "notify_only", "mark_failed"),
    "give_up_exit_codes": ((), (), (), (), ()),
    "success_exit_codes": ((), (), (), (), ()),
    "uncounted_exit_codes": ((), (), (), (), ()),
    "restart_on_signals": ((), (), (), (), ()),
    "no_restart_signals": ((), (), (), (), ()),
    "max_boot_failures": (None, None, None, None, None),
    "clear_failed_on_change": (False, False, False, False, False),
}
HEALTH = {
    "startup_timeout_s": (60, 60, 60, 60, 2),
    "staleness_s": (5, 5, 30, None, None),
    "max_misses": (3, 3, 1, 3, 3),
    "heartbeat_interval_s": (2, 2, 5, 5, 5),
    "recovery_min_s": (5, 5, None, None, None),
    "recovery_max_s": (120, 120, None, None, None),
    "progress_timeout_s": (None, None, None, None, None),
    "max_bad_frames": (100, 100, 100, 100, 100),
}
LIMITS = {
    "warn_cpu_percent": (None, None),
    "kill_cpu_percent": (None, 50),
    "warn_memory_mb": (4096, None),
    "kill_memory_mb": (8192, 256),
    "warn_threads": (None, None),
    "kill_threads": (None, None),
    "warn_descriptors": (None, None),
    "kill_descriptors": (None, None),
    "interval_s": (5, 5),
    "violations": (1, 2),
}


@pytest.mark.parametrize("field", RESTART)
def test_cf_01_the_presets_restart_as_the_table_says(field: str) -> None:
    assert tuple(getattr(PRESETS[name].restart, field) for name in COLUMNS) == RESTART[field]


@pytest.mark.parametrize("field", HEALTH)
def test_cf_01_the_presets_watch_health_as_the_table_says(field: str) -> None:
    assert tuple(getattr(PRESETS[name].health, field) for name in COLUMNS) == HEALTH[field]


@pytest.mark.parametrize("field", LIMITS)
def test_cf_01_two_presets_have_resource_limits_as_the_table_says(field: str) -> None:
    assert tuple(getattr(PRESETS[name].limits, field) for name in ("notify", "plugin")) == LIMITS[field]


def test_cf_01_the_tables_of_these_tests_leave_no_field_out() -> None:
    steady, notify = PRESETS["steady"], PRESETS["notify"]
    assert notify.limits is not None
    assert [each.name for each in fields(steady.restart)] == list(RESTART)
    assert [each.name for each in fields(steady.health)] == list(HEALTH)
    assert [each.name for each in fields(notify.limits)] == list(LIMITS)


def test_cf_01_the_presets_pause_and_retry_jobs_as_the_table_says() -> None:
    presets = [PRESETS[name] for name in COLUMNS]
    assert tuple(PRESETS) == COLUMNS
    assert [preset.pause_mode for preset in presets] == ["stop", "stop", "idle", "idle", "stop"]
    assert [preset.jobs and preset.jobs.crash_retries for preset in presets] == [2, 2, 2, None, None]
    assert [preset.jobs is None for preset in presets] == [False, False, False, False, True]
    assert [preset.limits is None for preset in presets] == [True, True, True, False, False]


def test_cf_01_a_worker_without_a_word_about_it_is_steady() -> None:
    assert WorkerSpec(TAG, command("true")) == spec("steady")


@pytest.mark.parametrize("name", COLUMNS)
def test_cf_01_a_worker_gets_all_of_its_preset(name: str) -> None:
    worker, preset = spec(name), PRESETS[name]
    assert (worker.restart, worker.health, worker.stop) == (preset.restart, preset.health, StopPolicy())
    assert (worker.pause_mode, worker.jobs, worker.limits) == (preset.pause_mode, preset.jobs, preset.limits)


@pytest.mark.parametrize("name", COLUMNS)
def test_cf_02_only_the_named_fields_differ_from_the_preset(name: str) -> None:
    worker = spec(name, restart={"max_lifetime": 7}, health={"max_misses": 9}, stop={"ask_s": 1.0}, cwd="/")
    assert worker.restart == replace(PRESETS[name].restart, max_lifetime=7)
    assert worker.health == replace(PRESETS[name].health, max_misses=9)
    assert worker.stop == StopPolicy(ask_s=1.0)
    assert (worker.pause_mode, worker.cwd) == (PRESETS[name].pause_mode, "/")


def test_cf_02_a_preset_is_not_changed_by_its_overrides() -> None:
    spec("plugin", restart={"max_consecutive": 99})
    assert PRESETS["plugin"].restart.max_consecutive == 5


def test_cf_02_a_word_may_override_an_enumeration() -> None:
    assert spec(restart={"restart_on": "never"}).restart.restart_on == "never"


@pytest.mark.parametrize(
    ("tables", "named"),
    [
        ({"restart": {"retries": 3}}, "restart.retries: is not a setting"),
        ({"health": {"timeout": 3}}, "health.timeout: is not a setting"),
        ({"stop": {"grace": 3}}, "stop.grace: is not a setting"),
        ({"colour": "red"}, "colour: is not a setting of a worker"),
        ({"restart": {"max_lifetime": 0}}, "restart.max_lifetime = 0: must be at least 1"),
        ({"restart": "always"}, "restart: must be a table of settings"),
    ],
)
def test_cf_07_an_unknown_or_bad_setting_is_named_with_its_table(tables: dict[str, Any], named: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec(**tables)
    assert str(caught.value) == f"worker {TAG!r}: {named}"


def test_cf_07_an_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        SpecError, match="preset = 'fast': must be one of steady, service, patient, notify, plugin"
    ):
        spec("fast")
