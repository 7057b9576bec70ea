"""What a file may say, although it is probably a mistake."""

from __future__ import annotations

from tests.config.files import warned
from tests.config.test_refusals import one


class TestWarnings:
    """What is allowed but unwise (CF-05)."""

    def test_a_frame_interval_above_half_the_staleness(self) -> None:
        assert warned('[worker.a]\npython = "a:b"\nhealth.heartbeat_interval_s = 3') == [
            (
                "workers.toml:3: warning: worker.a.health.heartbeat_interval_s = 3: "
                "is more than half of staleness_s (5.0): one late frame counts as a miss"
            )
        ]

    def test_health_of_a_command_that_reports_none(self) -> None:
        assert warned(one("[worker.a.health]\nmax_misses = 2")) == [
            (
                "workers.toml:3: warning: worker.a.health: has no effect: "
                "a command without reports_health is healthy while it runs"
            )
        ]

    def test_a_rolling_restart_that_could_never_begin(self) -> None:
        assert warned(one("count = 2\nmin_healthy = 2")) == [
            (
                "workers.toml:4: warning: worker.a.min_healthy = 2: "
                "equals count: a rolling restart could never begin"
            )
        ]

    def test_a_longest_delay_that_is_shorter_than_the_shortest(self) -> None:
        assert warned(one("restart = { initial_delay_s = 0.2, max_delay_s = 0.2 }")) == [
            (
                "workers.toml:3: warning: worker.a.restart.max_delay_s = 0.2: "
                "is less than min_delay_s, which takes precedence: every delay is 1 s"
            )
        ]

    def test_a_file_without_workers(self) -> None:
        assert warned("") == ["workers.toml: warning: does not declare any workers: nothing will run"]

    def test_nothing_else(self) -> None:
        assert warned(one("")) == []
