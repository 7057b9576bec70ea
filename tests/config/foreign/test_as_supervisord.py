"""A file of supervisord that was brought over behaves as it did there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.config.foreign.imported_files import argv, fates, from_supervisord, program, remarks, specs
from tests.running.conftest import Run, run

from rekindle.actors.deaths.death import Action
from rekindle.actors.spec.policies.restart_policy import RestartOn
from rekindle.cli.config import ConfigError
from rekindle.cli.config.foreign.importer import imported

__all__ = ["run"]

RESTART, FAILED = Action.RESTART, Action.MARK_FAILED

NUMBERED = """
[program:web]
command=web --port 80%(process_num)02d --of %(numprocs)d
environment=N="%(process_num)d"
numprocs=2
numprocs_start=3
process_name=%(program_name)s_%(process_num)02d
priority=5
"""


def test_a_program_whose_runs_last_is_restarted_however_often_it_dies() -> None:
    assert fates(program("autorestart=true"), [2] * 100) == [RESTART] * 100


def test_a_program_that_fails_to_start_is_given_up_after_three_retries() -> None:
    assert fates(program("autorestart=true"), [0.5] * 4) == [RESTART] * 3 + [FAILED]


def test_startretries_counts_no_run_that_lasted_for_startsecs() -> None:
    spec = program("startretries=2\nstartsecs=10")
    assert fates(spec, [5, 5, 5]) == [RESTART, RESTART, FAILED]
    assert fates(spec, [5, 10, 5, 10, 5, 10]) == [RESTART] * 6


def test_no_run_is_too_short_where_startsecs_is_0() -> None:
    assert fates(program("startsecs=0"), [0.01] * 30) == [RESTART] * 30


def test_one_that_cannot_be_started_is_given_up_also_where_startsecs_is_0() -> None:
    assert fates(program("startsecs=0"), [0] * 4) == [RESTART, RESTART, RESTART, FAILED]


def test_startretries_of_0_is_brought_over_as_near_as_it_can_be() -> None:
    text = from_supervisord("[program:a]\ncommand=run\nstartretries=0\n")
    assert specs(text)["worker:a:0"].restart.max_consecutive == 1
    assert "startretries = 0: Rekindle retries at least once." in remarks(text)


def test_a_program_that_is_never_restarted_has_no_retries() -> None:
    text = from_supervisord("[program:a]\ncommand=run\nstartretries=5\nautorestart=false\n")
    assert specs(text)["worker:a:0"].restart.restart_on is RestartOn.NEVER
    assert "Left out: startretries = 5." in remarks(text)


def test_what_supervisord_gives_to_all_programs_becomes_the_default() -> None:
    text = from_supervisord(
        "[program:a]\ncommand=run %(ENV_A)s\nenvironment=B=own\nuser=root\n"
        "[program:b]\ncommand=run\n"
        "[supervisord]\nuser=web\numask=077\ndirectory=/srv\nenvironment=A=%(here)s,B=all\n"
    )
    a, b = specs(text)["worker:a:0"], specs(text)["worker:b:0"]
    assert (a.user, dict(a.env), argv(a)) == ("root", {"A": "/srv/conf", "B": "own"}, ("run", "/srv/conf"))
    assert (b.user, dict(b.env)) == ("web", {"A": "/srv/conf", "B": "all"})
    assert (a.surroundings.umask, b.surroundings.umask) == ("077", "077")
    assert "Left out: [supervisord] directory = /srv." in remarks(text)


def test_problems_in_the_section_of_supervisord_are_reported_with_the_rest() -> None:
    with pytest.raises(ConfigError) as caught:
        from_supervisord("[program:a]\n[supervisord]\nenvironment=A\n")
    first, second = caught.value.problems
    assert str(first).endswith("web.conf: [supervisord]: environment = A: is not understood at 'A'")
    assert str(second).endswith("web.conf: [program:a]: has no command")


def test_the_number_of_a_single_process_is_put_in_its_place() -> None:
    found = specs(from_supervisord("[program:a]\ncommand=run %(process_num)02d/%(numprocs)d 5%%\n"))
    assert argv(found["worker:a:0"]) == ("run", "00/1", "5%")


def test_processes_that_differ_by_their_number_become_one_group() -> None:
    found = specs(from_supervisord(NUMBERED))
    assert list(found) == ["worker:web:0", "worker:web:1"]
    fourth = found["worker:web:1"]
    assert (argv(fourth), dict(fourth.env)) == (("web", "--port", "8004", "--of", "2"), {"N": "4"})


def test_a_remark_about_all_processes_of_a_program_is_made_once() -> None:
    shell = NUMBERED.replace("command=web", "command=sh -c 'exec web --port 80%(process_num)d'")
    said = remarks(from_supervisord(shell))[-3:]
    assert said == ["Was number 3 of web.", "Left out: priority = 5.", "Was number 4 of web."]


def test_a_number_in_a_shell_line_makes_a_worker_of_each_process() -> None:
    line = "[program:a]\ncommand=sh -c 'exec run %(process_num)d ${A} {n}'\nnumprocs=2\n"
    found = specs(from_supervisord(line))
    assert [argv(spec)[-1] for spec in found.values()] == ["exec run 0 ${A} {n}", "exec run 1 ${A} {n}"]


def test_what_supervisord_does_not_replace_is_not_replaced_after_the_import() -> None:
    text = "[program:a]\ncommand=run ${A} {n} {x} %(process_num)d\nnumprocs=2\nenvironment=B=${C}\n"
    spec = specs(from_supervisord(text))["worker:a:1"]
    assert (argv(spec), dict(spec.env)) == (("run", "${A}", "{n}", "{x}", "1"), {"B": "${C}"})


def test_expected_exit_codes_and_the_umask_are_brought_over() -> None:
    text = from_supervisord("[program:a]\ncommand=run\nexitcodes=0,2\numask=027\n")
    assert specs(text)["worker:a:0"].restart.success_exit_codes == (0, 2)
    assert 'umask = "027"' in text


def test_a_number_that_only_names_a_process_makes_no_further_worker() -> None:
    settings = "numprocs=2\nprocess_name=a_%(process_num)d\nstdout_logfile=/var/%(process_num)d.log\n"
    found = specs(from_supervisord(f"[program:a]\ncommand=run\n{settings}"))
    assert {id_: spec.log and spec.log.file for id_, spec in found.items()} == {
        "worker:a:0": "/var/0.log",
        "worker:a:1": "/var/1.log",
    }


def test_an_expression_that_cannot_be_written_so_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        from_supervisord("[program:a]\ncommand=run %(program_name)d\n")
    assert "[program:a]: command = run %(program_name)d: %d format: a real number is required" in str(
        caught.value
    )


def test_a_value_that_only_the_old_machine_knows_stays_and_is_reported() -> None:
    text = from_supervisord(
        "[program:a]\ncommand=run %(host_node_name)s %%(ENV_A)s\nstdout_logfile=%(ENV_B)s\n"
    )
    assert argv(specs(text)["worker:a:0"]) == ("run", "%(host_node_name)s", "%(ENV_A)s")
    assert remarks(text)[-1] == "Replace %(host_node_name) with its value."
    assert "ENV_B" not in text


def test_the_name_of_the_group_is_that_of_the_group_that_holds_the_program() -> None:
    text = from_supervisord(
        "[group:all]\nprograms=a, elsewhere\npriority=7\n[group:empty]\nprograms=\n"
        "[program:a]\ncommand=run %(group_name)s\n[program:b]\ncommand=run %(group_name)s\n"
    )
    assert [argv(spec) for spec in specs(text).values()] == [("run", "all"), ("run", "b")]
    assert remarks(text).count("Was in the group all.") == 1
    left_out = [each for each in remarks(text) if each.startswith("Left out")]
    assert left_out == ["Left out: [group:all] priority = 7.", "Left out: [group:empty]."]


@pytest.mark.parametrize(("said", "signal"), [("15", "SIGTERM"), ("2", "SIGINT"), ("HUP", "SIGHUP")])
def test_a_signal_may_be_given_by_its_number(said: str, signal: str) -> None:
    assert program(f"stopsignal={said}").stop.signal == signal


def test_a_program_that_is_not_started_by_itself_says_how_to_start_it() -> None:
    text = from_supervisord("[program:a.b]\ncommand=run\nautostart=false\nnumprocs=3\n")
    assert specs(text) == {}
    assert "Not started automatically (autostart). To start it: rekindle scale a-b 3" in remarks(text)


def test_a_program_without_autostart_starts_when_an_operator_starts_it(run: Run) -> None:
    programs = "[program:nap]\ncommand=sleep 1000\nautostart=false\n[program:up]\ncommand=sleep 1000\n"
    running = run(imported(programs, Path("nap.conf")))
    running.wait_for("worker:up:0", status="healthy")
    assert list(running.workers()) == ["worker:up:0"]
    running.order("groups", "nap", "scale", count=1)
    running.wait_for("worker:nap:0", status="healthy")


def test_the_umask_of_a_program_and_of_supervisord_is_kept() -> None:
    text = "[supervisord]\numask=077\n[program:a]\ncommand=a\n[program:b]\ncommand=b\numask=022\n"
    found = specs(from_supervisord(text))
    assert [spec.surroundings.umask for spec in found.values()] == ["077", "022"]
