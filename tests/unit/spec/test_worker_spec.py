"""What a host may declare, and what is refused: CF-03 to CF-05, CF-07, F30."""

from __future__ import annotations

import math
import signal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.actors.errors import SpecError
from rekindle.actors.spec.policies.health_policy import HealthPolicy
from rekindle.actors.spec.policies.job_policy import JobPolicy
from rekindle.actors.spec.policies.resource_limits import ResourceLimits
from rekindle.actors.spec.policies.restart_policy import OnExhausted, RestartOn, RestartPolicy, WindowMode
from rekindle.actors.spec.policies.stop_policy import StopPolicy
from rekindle.actors.spec.program import Command, PythonCall, command
from rekindle.actors.spec.worker_spec import RESERVED, PauseMode, WorkerSpec

RUN = command("true")


def refused(kind: Any, *arguments: Any, **values: Any) -> dict[str, str]:
    """The problems that are found, by field."""
    with pytest.raises(SpecError) as caught:
        kind(*arguments, **values)
    return {problem.field: problem.reason for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (RestartPolicy, "initial_delay_s", -1),
        (RestartPolicy, "max_delay_s", -1),
        (RestartPolicy, "min_delay_s", -0.001),
        (RestartPolicy, "reset_after_healthy_s", -1),
        (RestartPolicy, "multiplier", 0.99),
        (RestartPolicy, "max_delay_s", 0.5),
        (RestartPolicy, "window_s", 0),
        (RestartPolicy, "window_s", -300),
        (RestartPolicy, "max_in_window", 0),
        (RestartPolicy, "max_lifetime", 0),
        (RestartPolicy, "max_consecutive", -1),
        (RestartPolicy, "jitter", 1.01),
        (RestartPolicy, "jitter", -0.01),
        (HealthPolicy, "max_misses", 0),
        (HealthPolicy, "max_bad_frames", 0),
        (HealthPolicy, "startup_timeout_s", 0),
        (HealthPolicy, "staleness_s", 0),
        (HealthPolicy, "heartbeat_interval_s", 0),
        (HealthPolicy, "recovery_min_s", 121),
        (HealthPolicy, "recovery_min_s", None),
        (HealthPolicy, "recovery_max_s", 0),
        (StopPolicy, "ask_s", -1),
        (StopPolicy, "term_s", -1),
        (StopPolicy, "kill_s", -1),
        (StopPolicy, "last_s", -1),
        (JobPolicy, "crash_retries", -1),
        (ResourceLimits, "kill_cpu_percent", 0),
        (ResourceLimits, "kill_memory_mb", -1),
        (ResourceLimits, "interval_s", 0),
        (ResourceLimits, "violations", 0),
    ],
)
def test_cf_04_a_value_out_of_bounds_is_refused_with_its_field_named(
    kind: type, field: str, value: object
) -> None:
    assert field in refused(kind, **{field: value})


NUMBERS = [
    (RestartPolicy, "initial_delay_s"),
    (RestartPolicy, "multiplier"),
    (RestartPolicy, "max_delay_s"),
    (RestartPolicy, "min_delay_s"),
    (RestartPolicy, "window_s"),
    (RestartPolicy, "jitter"),
    (RestartPolicy, "reset_after_healthy_s"),
    (HealthPolicy, "startup_timeout_s"),
    (HealthPolicy, "staleness_s"),
    (HealthPolicy, "heartbeat_interval_s"),
    (HealthPolicy, "recovery_min_s"),
    (HealthPolicy, "recovery_max_s"),
    (StopPolicy, "ask_s"),
    (ResourceLimits, "kill_cpu_percent"),
    (ResourceLimits, "warn_memory_mb"),
    (ResourceLimits, "interval_s"),
]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("kind", "field"), NUMBERS)
def test_f30_a_number_that_is_not_finite_is_refused(kind: type, field: str, value: float) -> None:
    assert field in refused(kind, **{field: value})


@pytest.mark.parametrize("value", ["1", True, [], {}, b"1", 1j])
@pytest.mark.parametrize(("kind", "field"), NUMBERS)
def test_a_value_that_is_not_a_number_is_refused_with_a_sentence_and_not_by_a_type_error(
    kind: type, field: str, value: object
) -> None:
    assert "must be a number" in refused(kind, **{field: value})[field]


@pytest.mark.parametrize("field", ["initial_delay_s", "max_delay_s", "window_s", "multiplier", "jitter"])
def test_none_is_refused_where_it_means_nothing(field: str) -> None:
    with pytest.raises(SpecError, match=f"{field} = None: must be a number"):
        RestartPolicy(**{field: None})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [10**400, 1e300, 1e9 + 1])
def test_a_time_that_no_timer_could_hold_is_refused(value: float) -> None:
    assert refused(RestartPolicy, max_delay_s=value)["max_delay_s"] == "must be at most 1000000000"


@pytest.mark.parametrize("value", ["5", 2.5, True])
def test_a_count_is_a_whole_number(value: object) -> None:
    reason = refused(RestartPolicy, max_lifetime=value)["max_lifetime"]
    assert reason.startswith("must be a whole number or none")


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_a_flag_is_true_or_false(value: object) -> None:
    assert "must be true or false" in refused(RestartPolicy, enabled=value)["enabled"]


def test_cf_04_all_problems_of_a_policy_are_reported_at_once() -> None:
    found = refused(
        RestartPolicy, initial_delay_s=-1, multiplier="x", window_s=0, max_lifetime=0, restart_on="maybe"
    )
    assert found.keys() == {"initial_delay_s", "multiplier", "window_s", "max_lifetime", "restart_on"}


def test_cf_09_all_problems_of_a_worker_are_reported_at_once() -> None:
    found = refused(
        WorkerSpec.from_preset,
        "a b",
        command(),
        restart={"multiplier": 0, "retries": 3},
        health={"staleness_s": -1},
        stop={"ask_s": math.nan},
        colour="red",
    )
    assert found.keys() == {
        "id",
        "run",
        "restart.multiplier",
        "restart.retries",
        "health.staleness_s",
        "health.heartbeat_interval_s",
        "stop.ask_s",
        "colour",
    }


def test_a_plain_word_stands_for_the_member_of_its_enumeration() -> None:
    words: dict[str, Any] = {
        "restart_on": "on_failure",
        "window_mode": "sliding",
        "on_exhausted": "notify_only",
    }
    policy = RestartPolicy(**words)
    assert policy.restart_on is RestartOn.ON_FAILURE
    assert policy.window_mode is WindowMode.SLIDING
    assert policy.on_exhausted is OnExhausted.NOTIFY_ONLY


def test_a_pause_mode_may_be_a_plain_string() -> None:
    idle: Any = "idle"
    assert WorkerSpec("a", RUN, pause_mode=idle).pause_mode is PauseMode.IDLE


@pytest.mark.parametrize("word", ["sometimes", "ALWAYS", "", 1, None])
def test_an_unknown_word_is_refused_with_the_known_ones(word: object) -> None:
    reason = refused(RestartPolicy, restart_on=word)["restart_on"]
    assert reason.startswith("must be one of always, on_failure, never")


def test_a_list_from_a_file_becomes_a_tuple() -> None:
    codes: Any = [3, 78]
    assert RestartPolicy(give_up_exit_codes=codes).give_up_exit_codes == (3, 78)


@pytest.mark.parametrize("codes", [3, "78", ["78"], [True]])
def test_exit_codes_are_whole_numbers(codes: object) -> None:
    assert "a list of whole numbers" in refused(RestartPolicy, give_up_exit_codes=codes)["give_up_exit_codes"]


@pytest.mark.parametrize("name", ["restart", "health", "stop"])
def test_cf_03_an_explicit_none_is_the_default_policy(name: str) -> None:
    none: Any = {name: None}
    assert getattr(WorkerSpec("a", RUN, **none), name) == getattr(WorkerSpec("a", RUN), name)


def test_cf_05_frames_rarer_than_the_staleness_are_refused() -> None:
    found = refused(HealthPolicy, staleness_s=5, heartbeat_interval_s=5.1)
    assert found == {"heartbeat_interval_s": "must not exceed staleness_s (5)"}


@pytest.mark.parametrize(("interval", "warned"), [(2.5, False), (2.51, True), (5.0, True)])
def test_cf_05_frames_rarer_than_half_the_staleness_are_warned_of(interval: float, warned: bool) -> None:
    policy = HealthPolicy(staleness_s=5.0, heartbeat_interval_s=interval)
    assert [problem.field for problem in policy.warnings()] == ["heartbeat_interval_s"] * warned


def test_cf_05_without_staleness_there_is_nothing_to_warn_of() -> None:
    assert list(HealthPolicy(staleness_s=None, heartbeat_interval_s=50.0).warnings()) == []


@pytest.mark.parametrize(
    "id_", ["", "../x", "a b", "a/b", "a>*", "a\n", "ä", "a" * 65, "x" * 10_000, "a\0", None, 7, b"a"]
)
def test_f30_a_hostile_id_is_refused(id_: Any) -> None:
    with pytest.raises(SpecError) as caught:
        WorkerSpec(id_, RUN)
    assert [problem.field for problem in caught.value.problems] == ["id"]
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("id_", ["a", "worker:tag:0", "worker_1", "A.b-c:D_9", "a" * 64])
def test_an_id_may_hold_letters_digits_and_four_signs(id_: str) -> None:
    assert WorkerSpec(id_, RUN).id == id_


@pytest.mark.parametrize("run", ["sleep 60", ["sleep", "60"], None, 7])
def test_a_shell_string_is_nothing_to_run(run: Any) -> None:
    assert "must be a Command or a PythonCall" in refused(WorkerSpec, "a", run)["run"]


def test_a_command_is_not_a_shell_string_either() -> None:
    line: Any = "sleep 60"
    assert refused(WorkerSpec, "a", Command(line)) == {"run": "must be a list of words, not a shell string"}


@pytest.mark.parametrize(
    "argv", [(), ("",), ("a\0b",), ("sleep", "6\0"), ("sleep", 60), (None,), 5, None, {"sleep": 60}]
)
def test_a_command_is_a_list_of_words_with_a_program_first(argv: Any) -> None:
    assert "run" in refused(WorkerSpec, "a", Command(argv))


def test_a_command_from_a_file_is_a_list_and_stays_unchangeable() -> None:
    words: Any = ["sleep", "60"]
    assert Command(words) == command("sleep", "60")


@pytest.mark.parametrize("target", ["", "module", "module:", ":f", "a b:f", "a:f()", "a/b:f", None, 5])
def test_a_target_names_a_module_and_a_function(target: Any) -> None:
    assert "run" in refused(WorkerSpec, "a", PythonCall(target))


@pytest.mark.parametrize(
    "env", [{"A": 1}, {1: "a"}, {"": "x"}, {"A=B": "x"}, {"A": "x\0"}, {"A\0": "x"}, None, "A=1", ["A"]]
)
def test_an_environment_that_no_process_could_have_is_refused(env: Any) -> None:
    assert "env" in refused(WorkerSpec, "a", RUN, env=env)


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_a_variable_that_tells_a_worker_who_it_is_cannot_be_set(name: str) -> None:
    assert "env" in refused(WorkerSpec, "a", RUN, env={name: "x"})


def test_the_environment_of_a_spec_is_an_immutable_copy() -> None:
    env = {"A": "1"}
    spec = WorkerSpec("a", RUN, env=env)
    env["A"] = "2"
    assert dict(spec.env) == {"A": "1"}
    with pytest.raises(TypeError):
        spec.env["A"] = "3"  # type: ignore[index]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("restart", {"enabled": False}),
        ("health", 5),
        ("stop", "now"),
        ("jobs", 2),
        ("limits", {}),
        ("pause_mode", "sleepy"),
        ("inherit_env", "HOME"),
        ("inherit_env", [1]),
        ("cwd", 5),
        ("cwd", ""),
        ("cwd", "/tmp/\0"),
    ],
)
def test_a_field_of_another_type_is_refused_with_its_name(field: str, value: object) -> None:
    assert refused(WorkerSpec, "a", RUN, **{field: value}).keys() == {field}


ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.lists(st.integers())
)
RESTART_FIELDS = st.sampled_from(sorted(RestartPolicy.__dataclass_fields__))
SPEC_FIELDS = st.sampled_from(sorted(WorkerSpec.__dataclass_fields__))


def blamed(kind: Any, values: dict[str, Any]) -> set[str]:
    """The fields that are complained of; nothing but a SpecError may come."""
    try:
        kind(**values)
    except SpecError as error:
        return {problem.field for problem in error.problems}
    return set()


@given(values=st.dictionaries(RESTART_FIELDS, ANYTHING, max_size=4))
def test_a_restart_policy_of_arbitrary_values_is_made_or_refused_with_reasons(
    values: dict[str, Any],
) -> None:
    assert blamed(RestartPolicy, values) <= values.keys() | {"max_delay_s"}


@given(values=st.dictionaries(SPEC_FIELDS, ANYTHING))
def test_a_worker_of_arbitrary_values_is_made_or_refused_with_reasons(values: dict[str, Any]) -> None:
    assert blamed(WorkerSpec, {"id": "a", "run": RUN, **values}) <= values.keys()


@pytest.mark.parametrize("written", ["SIGINT", "INT", "int", 2, signal.SIGINT])
def test_a_stop_signal_is_known_by_its_name_and_by_its_number(written: int | str) -> None:
    policy = StopPolicy(signal=written)
    assert (policy.signal, policy.signal_number) == ("SIGINT", 2)
    assert policy == StopPolicy(signal="SIGINT")


def test_a_stop_signal_without_a_name_stays_a_number() -> None:
    number = signal.SIGRTMIN + 2
    assert StopPolicy(signal=number).signal_number == StopPolicy(signal=number).signal == number


@pytest.mark.parametrize("written", ["SIGNOTHING", "", 0, -1, 999, True, 2.5, None, "SIGSTOP", 19])
def test_an_invalid_signal_or_one_that_only_halts_a_process_is_refused(written: object) -> None:
    with pytest.raises(SpecError, match=r"signal = .*: "):
        StopPolicy(signal=written)  # type: ignore[arg-type]
