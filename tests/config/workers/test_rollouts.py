"""The table `rollout` of a worker: its meaning, its refusals, and how it is shown."""

from __future__ import annotations

from tests.config.files import good, reason

from rekindle.actors import RolloutPolicy
from rekindle.cli.config.config_text import as_text

WEB = '[worker.web]\ncommand = ["web"]\n'


def test_every_key_can_be_set_and_is_shown_as_it_was_set() -> None:
    config = good(f"{WEB}rollout = {{ surge = 2, settle_s = 3 }}")
    assert config.specs()[0].rollout == RolloutPolicy(surge=2, settle_s=3.0)
    assert good(as_text(config)).specs() == config.specs()
    assert good(WEB).specs()[0].rollout is None


def test_a_task_has_no_rollout_and_a_surge_is_at_least_one() -> None:
    assert "is for services only" in reason(
        f'{WEB}kind = "once"\nrollout = {{ surge = 1 }}', "worker.web.rollout"
    )
    assert "must be between 1 and 100" in reason(
        f"{WEB}rollout = {{ surge = 0 }}", "worker.web.rollout.surge"
    )


def test_the_word_rolling_for_the_release_of_work_names_the_right_key() -> None:
    assert "use rollout = { surge = 1 }" in reason(f'{WEB}release = "rolling"', "worker.web.release")
