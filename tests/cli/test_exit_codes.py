"""The contract's exit codes, and that nobody sees a traceback."""

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
    ("explain", "nobody"),
    ("history", "nobody"),
    ("timeline", "nobody"),
    ("output", "nobody"),
    ("audit",),
    ("pause",),
    ("resume",),
    ("start", "nobody"),
    ("stop", "nobody"),
    ("restart", "nobody"),
    ("restart", "--rolling", "nobody"),
    ("reset", "nobody"),
    ("reload",),
    ("shutdown",),
    ("scale", "nobody", "2"),
]
WITH_A_NAME = [arguments for arguments in ASKING if "nobody" in arguments]


@pytest.mark.parametrize("arguments", ASKING, ids=" ".join)
def test_without_a_supervisor_the_exit_code_is_3(nobody: Client, arguments: tuple[str, ...]) -> None:
    said = nobody(*arguments, "--json")
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith("rekindle: no supervisor listens on ")
    assert said.err.count("\n") == 1


def test_a_socket_that_nobody_serves_any_more_is_no_supervisor(nobody: Client) -> None:
    nobody.state.mkdir()
    (nobody.state / "control.sock").touch()
    assert nobody("status").code == 3


@pytest.mark.parametrize("arguments", WITH_A_NAME, ids=" ".join)
def test_without_such_a_worker_the_exit_code_is_4(many: Client, arguments: tuple[str, ...]) -> None:
    said = many(*arguments)
    assert (said.code, said.out) == (4, "")
    by_group = arguments[0] == "scale" or "--rolling" in arguments
    groups = "no group is called 'nobody'; there is: web, flaky, spent, mute, late, chatty"
    why = groups if by_group else "no worker is called 'nobody'"
    assert said.err == f"rekindle: {why}\n"


@pytest.mark.parametrize("name", ["", "../../info", "worker:web:0/stop"], ids=repr)
@pytest.mark.parametrize("order", ["explain", "history", "stop", "pause", "resume"])
def test_a_name_that_would_lead_elsewhere_is_nobodys(many: Client, order: str, name: str) -> None:
    """An empty variable in a script must not pause everything."""
    said = many(order, name)
    assert (said.code, said.out) == (4, "")
    assert said.err.startswith("rekindle: nobody is called ")
    assert many("status", "--json").document["paused"] is False


def test_every_alert_that_is_named_is_tried_whatever_becomes_of_the_others(many: Client) -> None:
    said = many("ack", "998", "999", "--json")
    assert said.code == 1
    assert [each["id"] for each in said.document["results"]] == ["998", "999"]
    assert said.err == "rekindle: there is no alert 998\nrekindle: there is no alert 999\n"


def test_status_of_nobody_has_exit_code_4_also_when_watched(many: Client) -> None:
    assert many("status", "worker:web:0", "nobody").code == 4
    assert many("status", "nobody", "--watch").code == 4


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
def test_bad_usage_has_exit_code_2_and_says_what_is_wrong(nobody: Client, arguments: tuple[str, ...]) -> None:
    said = nobody(*arguments)
    assert (said.code, said.out) == (2, "")
    assert "Error: " in said.err
    assert "\x1b" not in said.err


def test_a_pause_longer_than_the_server_takes_is_bad_usage(many: Client) -> None:
    assert many("pause", "--for", "9999d").code == 2


def test_a_server_that_talks_nonsense_is_an_error_in_one_sentence(nobody: Client) -> None:
    code = "from rekindle.cli.client import ControlClient as C; C.get = lambda *a, **k: {'x': 1}"
    call = f"{code}\nfrom rekindle.cli.main import main; main(['status'])"
    done = subprocess.run([COMMAND[0], "-c", call], env=nobody.variables, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "rekindle: KeyError: 'workers' (REKINDLE_TRACEBACK=1 shows where it comes from)\n"


def through_shell(client: Client, script: str) -> subprocess.CompletedProcess[str]:
    variables = {**client.variables, "REKINDLE": " ".join(COMMAND)}
    return subprocess.run(["bash", "-c", script], env=variables, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "arguments", ["status", "status --json", "--help", "status --help", "completion bash"]
)
def test_a_reader_that_goes_away_is_no_reason_for_a_word(many: Client, arguments: str) -> None:
    done = through_shell(many, f"$REKINDLE {arguments} | true; echo ${{PIPESTATUS[0]}}")
    assert done.stderr == ""
    assert done.stdout in ("141\n", "0\n")


def test_a_full_disk_is_told_in_one_sentence(many: Client) -> None:
    done = through_shell(many, "$REKINDLE status > /dev/full")
    assert done.returncode == 1
    assert done.stderr == "rekindle: [Errno 28] No space left on device\n"


def test_a_closed_standard_output_is_no_trouble(many: Client) -> None:
    done = through_shell(many, "$REKINDLE status >&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_while_waiting_for_an_answer_has_exit_code_130(nobody: Client) -> None:
    nobody.state.mkdir()
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(nobody.state / "control.sock"))
        silent.listen()
        asking = subprocess.Popen(
            [*COMMAND, "status"], env=nobody.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(10) == b"GET /api/v"
            asking.send_signal(signal.SIGINT)
            out, err = asking.communicate(timeout=PATIENCE_S)
    assert (asking.returncode, out, err) == (130, b"", b"")


def test_text_that_the_terminal_cannot_show_is_replaced(many: Client) -> None:
    said = Client(many.state, {"PYTHONIOENCODING": "ascii"})("output", "worker:chatty:0")
    assert said.code == 0
    assert "drawn" in said.out


def test_every_command_teaches_with_an_example() -> None:
    for name, command in main.commands.items():
        assert command.help, name
        assert "rekindle" in command.help or name == "demo", f"{name} shows no example"


def test_the_help_lists_the_commands_by_what_they_are_for(nobody: Client) -> None:
    said = nobody("--help")
    places = [said.out.index(f"\n{title}:\n") for title in ("Run", "Look", "Act", "Set up")]
    assert places == sorted(places)
    assert "..." not in said.out.partition("\nRun:\n")[2]
