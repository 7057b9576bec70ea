"""The two older formats, brought over (CF-06)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.config.files import PATH, good

from rekindle.actors.spec.policies.work_item_policy import Recipe, is_wanted
from rekindle.actors.spec.presets import PRESETS
from rekindle.cli.config import ConfigError, parse
from rekindle.cli.config.foreign.importer import imported

PLUGINS = """
{
  "plugins": {
    "dice-roller": {
      "restart": {
        "enabled": true,
        "max_attempts": 4,
        "initial_delay": 0.5,
        "max_delay": 20.0,
        "backoff_multiplier": 3.0,
        "reset_window": 45.0
      }
    }
  }
}
"""

CRASH_RECOVERY = """\
# ~/.forge/config.yaml
theme: dark
crash_recovery:
  # Enable automatic worker restart after crash
  auto_restart_enabled: false  # Default: false (opt-in)

  # Maximum crashes before disabling auto-restart
  max_crashes_in_window: 4
  crash_window_secs: 300  # 5 minutes
  clear_assignees_enabled: true
  show_notifications: true
models:
  - name: sonnet
    key: {a: [1]}
"""


def from_json(text: str) -> str:
    return imported(text, Path("plugins.json"))


def from_yaml(text: str) -> str:
    return imported(text, Path("config.yaml"))


def refused(text: str, name: str = "plugins.json") -> list[str]:
    with pytest.raises(ConfigError) as caught:
        imported(text, Path(name))
    return [str(problem) for problem in caught.value.problems]


def test_the_restart_block_of_a_plugin_becomes_a_worker_under_the_preset_made_from_it() -> None:
    (spec,) = parse(from_json(PLUGINS), PATH).specs()
    assert spec.id == "worker:dice-roller:0"
    assert spec.restart == replace(
        PRESETS["plugin"].restart,
        max_consecutive=4,
        initial_delay_s=0.5,
        max_delay_s=20.0,
        multiplier=3.0,
        reset_after_healthy_s=45.0,
    )


def test_a_restart_block_of_its_own_is_understood() -> None:
    (spec,) = parse(from_json('{"restart": {"max_attempts": 2}, "name": "x"}'), PATH).specs()
    assert spec.restart == replace(PRESETS["plugin"].restart, max_consecutive=2)


def test_the_crash_recovery_block_becomes_defaults_under_the_preset_made_from_it() -> None:
    text = from_yaml(CRASH_RECOVERY) + '[worker.a]\ncommand = ["x"]\n'
    (spec,) = good(text).specs()
    assert spec.restart == replace(PRESETS["notify"].restart, enabled=False, max_in_window=3, window_s=300.0)
    assert spec.jobs == PRESETS["notify"].jobs


def test_a_single_allowed_crash_means_that_no_crash_is_followed_by_a_restart() -> None:
    old = CRASH_RECOVERY.replace("window: 4", "window: 1").replace(
        "restart_enabled: false", "restart_enabled: true"
    )
    (spec,) = good(from_yaml(old) + '[worker.a]\ncommand = ["x"]\n').specs()
    assert spec.restart == replace(PRESETS["notify"].restart, enabled=False, window_s=300.0)


@pytest.mark.parametrize("wanted", [True, False])
def test_assignees_and_notifications_mean_what_they_meant(wanted: bool) -> None:
    old = CRASH_RECOVERY.replace("enabled: true", f"enabled: {wanted}".lower())
    old = old.replace("notifications: true", f"notifications: {wanted}".lower())
    config = good(from_yaml(old) + '[worker.a]\ncommand = ["x"]\ncwd = "."\n')
    (spec,) = config.specs()
    assert spec.release is not None
    assert (spec.release.recipe, is_wanted(spec.release, spec.cwd)) == (Recipe.BR, wanted)
    assert config.alerts.policy.enabled is wanted


def test_omitted_settings_are_reported() -> None:
    text = from_yaml(CRASH_RECOVERY)
    assert "# Left out: theme.\n# Left out: models.\n" in text
    assert "# Left out: plugins.p.module." in from_json('{"plugins": {"p": {"restart": {}, "module": "m"}}}')


def test_every_problem_of_the_old_file_is_reported_by_its_own_keys() -> None:
    text = (
        PLUGINS.replace("4,", "0,").replace("0.5", "-1").replace("true", '"yes"').replace("x_delay", "x_dely")
    )
    assert refused(text) == [
        'plugins.json: plugins.dice-roller.restart.enabled = "yes": must be true or false',
        (
            "plugins.json: plugins.dice-roller.restart.max_dely = 20.0: is not a known key; "
            "did you mean 'max_delay'?"
        ),
        "plugins.json: plugins.dice-roller.restart.max_attempts = 0: must be at least 1",
        "plugins.json: plugins.dice-roller.restart.initial_delay = -1.0: must be at least 0",
    ]


def test_a_file_of_ours_is_not_imported() -> None:
    with pytest.raises(ConfigError, match="is a TOML file; known are files of supervisord"):
        imported('[worker.a]\ncommand = ["true"]\n', Path("/srv/workers.toml"))


def test_a_hostile_plugin_name_is_refused() -> None:
    (line,) = refused('{"plugins": {"../x": {"restart": {}}}}')
    assert line.startswith('plugins.json: plugins."../x".restart: is not a valid worker name')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "plugins.json:1:2: is not JSON"),
        ("[]", "plugins.json: must be an object"),
        ("{}", 'plugins.json: has neither "plugins" nor "restart" nor "apps" at its top'),
        ('{"plugins": 3}', "plugins.json: plugins = 3: must be an object"),
        ('{"restart": {"max_delay": NaN}}', "plugins.json: is not JSON: NaN is not a number"),
        ('{"restart": {}, "restart": {}}', "plugins.json: is not JSON: an object contains a key twice"),
        ("[" * 100_000, "plugins.json: is not JSON"),
    ],
)
def test_json_that_is_not_understood_is_refused(text: str, said: str) -> None:
    (line,) = refused(text)
    assert line.startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("other: 1\n", "c.yaml:1: there is no crash_recovery block"),
        ("crash_recovery: {a: 1}\n", "c.yaml:1: crash_recovery must be a block of indented settings"),
        ("crash_recovery:\n  auto_restart_enabled: yes\n", "c.yaml:2: is not supported: a value must be"),
        ("crash_recovery:\n  a: &x 1\n", "c.yaml:2: is not supported: use `key: value` lines"),
        ("crash_recovery:\n  a: 1\n    b: 2\n", "c.yaml:3: is not supported: use `key: value` lines"),
        ("crash_recovery:\n\ta: 1\n", "c.yaml:2: is not supported: use `key: value` lines"),
        ("crash_recovery:\n- a\n", "c.yaml:2: is not supported: use `key: value` lines"),
        ("crash_recovery:\n  a: 1\n  a: 1\n", "c.yaml:3: a is given twice"),
        ("crash_recovery:\ncrash_recovery:\n", "c.yaml:2: crash_recovery is given twice"),
        ("%YAML 1.2\n", "c.yaml:1: is not supported: a line without indentation must be `name:`"),
        (
            "crash_recovery:\n  crash_windw_secs: 1\n",
            "c.yaml: crash_recovery.crash_windw_secs = 1: is not a known key",
        ),
        ("crash_recovery:\n  crash_window_secs: 0\n", "c.yaml: crash_recovery.crash_window_secs = 0"),
    ],
)
def test_yaml_that_is_not_understood_is_refused(text: str, said: str) -> None:
    (line,) = refused(text, "c.yaml")
    assert line.startswith(said)
