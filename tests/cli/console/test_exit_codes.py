"""The exit codes of the contract, each with one message and no traceback."""

from __future__ import annotations

import signal
import socket
import subprocess

import pytest
from tests.cli.conftest import COMMAND, Client
from tests.processes.waiting import PATIENCE_S

from rekindle.cli.main import main

ASKING = [
    ("status",),
    ("explain", "unknown"),
    ("history", "unknown"),
    ("timeline", "unknown"),
    ("output", "unknown"),
    ("audit",),
    ("pause",),
    ("resume",),
    ("start", "unknown"),
    ("stop", "unknown"),
    ("restart", "unknown"),
    ("restart", "--rolling", "unknown"),
    ("reset", "unknown"),
    ("reload",),
    ("shutdown",),
    ("scale", "unknown", "2"),
]
WITH_A_NAME = [arguments for arguments in ASKING if "unknown" in arguments]


@pytest.mark.parametrize("arguments", ASKING, ids=" ".join)
def test_without_a_supervisor_the_exit_code_is_3(no_supervisor: Client, arguments: tuple[str, ...]) -> None:
    answer = no_supervisor(*arguments, "--json")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith("rekindle: no supervisor listens on ")
    assert answer.err.count("\n") == 1


def test_a_command_of_another_supervisor_is_answered_with_ours(no_supervisor: Client) -> None:
    answer = no_supervisor("kill", "web")
    assert (answer.code, answer.out) == (2, "")
    assert "No such command 'kill'; did you mean signal?" in answer.err


@pytest.mark.parametrize("name", ["list", "ls", "log", "logs", "tail"])
def test_the_usual_names_of_other_tools_work(no_supervisor: Client, name: str) -> None:
    assert no_supervisor(name).err.startswith("rekindle: no supervisor listens on ")


def test_a_socket_that_is_no_longer_served_is_not_a_supervisor(no_supervisor: Client) -> None:
    no_supervisor.state.mkdir()
    (no_supervisor.state / "control.sock").touch()
    assert no_supervisor("status").code == 3


@pytest.mark.parametrize("arguments", WITH_A_NAME, ids=" ".join)
def test_without_such_a_worker_the_exit_code_is_4(every_state: Client, arguments: tuple[str, ...]) -> None:
    answer = every_state(*arguments)
    assert (answer.code, answer.out) == (4, "")
    by_group = arguments[0] == "scale" or "--rolling" in arguments
    what = "group is named" if by_group else "worker is called"
    why = f"no {what} 'unknown'; known groups: web, flaky, spent, mute, late, chatty"
    assert answer.err == f"rekindle: {why}\n"


@pytest.mark.parametrize("name", ["", "../../info", "worker:web:0/stop"], ids=repr)
@pytest.mark.parametrize("order", ["explain", "history", "stop", "pause", "resume"])
def test_a_name_that_would_lead_elsewhere_is_unknown(every_state: Client, order: str, name: str) -> None:
    """An empty variable in a script must not pause everything."""
    answer = every_state(order, name)
    assert (answer.code, answer.out) == (4, "")
    assert answer.err.startswith(
        ("rekindle: no worker is called ", "rekindle: an ID is empty; name a worker")
    )
    assert every_state("status", "--json").document["paused"] is False


def test_every_alert_that_is_named_is_tried_although_others_fail(every_state: Client) -> None:
    answer = every_state("ack", "998", "999", "--json")
    assert answer.code == 1
    assert [each["id"] for each in answer.document["results"]] == ["998", "999"]
    assert answer.err == "rekindle: there is no alert 998\nrekindle: there is no alert 999\n"


def test_status_of_an_unknown_worker_has_exit_code_4_also_when_watched(every_state: Client) -> None:
    assert every_state("status", "worker:web:0", "unknown").code == 4
    assert every_state("status", "unknown", "--watch").code == 4


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("status", "--nonsense"),
        ("status", "--watch", "--json"),
        ("explain",),
        ("stop",),
        ("restart",),
        ("restart", "worker:web:0", "--rolling", "web"),
        ("history", "worker:web:0", "--limit", "0"),
        ("timeline", "worker:web:0", "--since", "yesterday"),
        ("pause", "--for", "soon"),
        ("pause", "--for", "0"),
        ("pause", "--reason", "\x1b[31m"),
        ("pause", "--reason", "x" * 501),
        ("scale", "web", "-1"),
        ("scale", "web", "many"),
        ("completion", "cmd"),
        ("db", "check"),
    ],
    ids=str,
)
def test_bad_usage_has_exit_code_2_and_says_what_is_wrong(
    no_supervisor: Client, arguments: tuple[str, ...]
) -> None:
    answer = no_supervisor(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert "\nrekindle: " in answer.err
    assert "\x1b" not in answer.err


def test_a_pause_longer_than_the_server_takes_is_bad_usage(every_state: Client) -> None:
    assert every_state("pause", "--for", "9999d").code == 2


def test_a_server_that_talks_nonsense_is_an_error_in_one_sentence(no_supervisor: Client) -> None:
    code = "from rekindle.cli.client import ControlClient as C; C.get = lambda *a, **k: {'x': 1}"
    call = f"{code}\nfrom rekindle.cli.main import main; main(['status'])"
    done = subprocess.run(
        [COMMAND[0], "-c", call], env=no_supervisor.variables, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr == "rekindle: KeyError: 'workers' (set REKINDLE_TRACEBACK=1 to see the traceback)\n"


def through_shell(client: Client, script: str) -> subprocess.CompletedProcess[str]:
    variables = {**client.variables, "REKINDLE": " ".join(COMMAND)}
    return subprocess.run(["bash", "-c", script], env=variables, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "arguments", ["status", "status --json", "--help", "status --help", "completion bash"]
)
def test_a_reader_that_goes_away_causes_no_message(every_state: Client, arguments: str) -> None:
    done = through_shell(every_state, f"$REKINDLE {arguments} | true; echo ${{PIPESTATUS[0]}}")
    assert done.stderr == ""
    assert done.stdout in ("141\n", "0\n")


def test_a_full_disk_is_reported_in_one_sentence(every_state: Client) -> None:
    done = through_shell(every_state, "$REKINDLE status > /dev/full")
    assert done.returncode == 1
    assert done.stderr == "rekindle: cannot write to standard output: No space left on device\n"


def test_a_closed_standard_output_is_not_an_error(every_state: Client) -> None:
    done = through_shell(every_state, "$REKINDLE status >&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_while_waiting_for_an_answer_has_exit_code_130(no_supervisor: Client) -> None:
    no_supervisor.state.mkdir()
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(no_supervisor.state / "control.sock"))
        silent.listen()
        asking = subprocess.Popen(
            [*COMMAND, "status"], env=no_supervisor.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(10) == b"GET /api/v"
            asking.send_signal(signal.SIGINT)
            out, err = asking.communicate(timeout=PATIENCE_S)
    assert (asking.returncode, out, err) == (130, b"", b"")


def test_text_that_the_terminal_cannot_show_is_replaced(every_state: Client) -> None:
    answer = Client(every_state.state, {"PYTHONIOENCODING": "ascii"})("output", "worker:chatty:0")
    assert answer.code == 0
    assert "drawn" in answer.out


def test_every_command_teaches_with_an_example() -> None:
    for name, command in main.commands.items():
        assert command.help, name
        assert f"rekindle {name}" in command.help, f"{name} shows no example"


def test_the_help_lists_the_commands_by_what_they_are_for(no_supervisor: Client) -> None:
    answer = no_supervisor("--help")
    places = [answer.out.index(f"\n{title}:\n") for title in ("Run", "Look", "Investigate", "Act", "Set up")]
    assert places == sorted(places)
    assert "..." not in answer.out.partition("\nRun:\n")[2]
