"""Orders given by the real command to a real supervisor: its answers, and the state that follows."""

from __future__ import annotations

import signal

import pytest
from tests.cli.conftest import Client, client_of
from tests.processes.waiting import eventually
from tests.running.conftest import Run, Running

WEB = "worker:web:0"
OTHER = "worker:web:1"
STUBBORN = """
[worker.stubborn]
command = ["bash", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
stop = { ask_s = 20 }
"""


def test_a_pause_has_a_reason_and_an_end_and_shows_in_the_status(web: Running, rekindle: Client) -> None:
    answer = rekindle("pause", WEB, "--reason", "new disk", "--for", "30m")
    assert (answer.code, answer.out) == (
        0,
        f"{WEB} is paused for 30 min (new disk); its process is being stopped.\n",
    )
    web.wait_for(WEB, paused=True, pause_reason="new disk")
    shown = rekindle("status", WEB).lines[1]
    assert shown.endswith(("paused: new disk, 30 min left", "paused: new disk, 29 min left"))
    assert rekindle("resume", WEB).out == f"{WEB} is resumed.\n"
    web.wait_for(WEB, paused=False, status="healthy")


def test_everything_is_paused_and_resumed(web: Running, rekindle: Client) -> None:
    assert (
        rekindle("pause").out == "The system is paused until it is resumed; 2 processes are being stopped.\n"
    )
    web.wait_for(OTHER, paused=True)
    assert "The system is paused" in rekindle("status").lines[-1]
    rekindle("pause", WEB)
    assert f"still paused individually: {WEB}" in rekindle("resume").out
    rekindle("resume", WEB)
    web.wait_for(OTHER, paused=False, status="healthy")


def test_a_resume_says_that_nothing_is_paused_and_who_is_paused_alone(rekindle: Client) -> None:
    assert rekindle("resume").out == "Nothing is paused.\n"
    answer = rekindle("resume", WEB)
    assert (answer.code, answer.out) == (0, f"{WEB} is not paused.\n")
    rekindle("pause", WEB)
    answer = rekindle("resume")
    alone = f"The system is not paused; paused individually: {WEB} (rekindle resume {WEB}).\n"
    assert (answer.code, answer.out) == (0, alone)


@pytest.mark.parametrize("order", ["start", "restart"])
def test_a_paused_worker_is_not_reported_as_started(rekindle: Client, order: str) -> None:
    rekindle("pause", WEB, "--reason", "new disk")
    answer = rekindle(order, WEB)
    way_out = f"{WEB} is paused (new disk); resume it to start it: rekindle resume {WEB}"
    assert (answer.code, answer.out, answer.err) == (1, "", f"rekindle: {way_out}\n")
    rekindle("pause", "--reason", "night")
    answer = rekindle(order, OTHER, "--json")
    way_out = f"{OTHER} is paused with everything (night); resume everything to start it: rekindle resume"
    assert (answer.code, answer.err) == (1, f"rekindle: {way_out}\n")
    assert answer.document["results"][0]["result"] == "everything_paused"


def test_a_start_of_a_running_worker_reports_that_it_runs(web: Running, rekindle: Client) -> None:
    before = web.worker(WEB)["pid"]
    answer = rekindle("start", WEB)
    assert (answer.code, answer.out) == (0, f"{WEB} is already running.\n")
    assert rekindle("start", WEB, "--json").document["results"][0]["detail"] == {"already": True}
    assert web.worker(WEB)["pid"] == before


def test_a_worker_is_stopped_and_started(web: Running, rekindle: Client) -> None:
    assert rekindle("stop", WEB).out == f"{WEB} is stopped: killed by SIGTERM.\n"
    assert web.worker(WEB)["shown"] == "stopped"
    assert "until you start it or restart the supervisor" in rekindle("stop", WEB).out
    assert rekindle("start", WEB).out == f"{WEB} is starting.\n"
    web.wait_for(WEB, status="healthy")


def test_a_worker_is_restarted_with_a_new_process(web: Running, rekindle: Client) -> None:
    before = web.worker(WEB)["generation"]
    answer = rekindle("restart", WEB)
    assert (answer.code, answer.out) == (0, f"{WEB} is starting; its counters are cleared.\n")
    web.wait_for(WEB, generation=before + 1, status="healthy")


def test_a_reset_lifts_a_failure_and_starts_nothing(run: Run) -> None:
    running = run("[worker.spent]\ncommand = ['false']\nrestart = { max_lifetime = 1 }\n")
    running.wait_for("worker:spent:0", shown="failed")
    answer = Client(running.file.parent / ".rekindle")("reset", "worker:spent:0")
    assert answer.out == "The counters and the failure of worker:spent:0 are cleared.\n"
    running.wait_for("worker:spent:0", shown="stopped", failure_reason=None)


@pytest.mark.parametrize("order", ["pause", "resume", "start", "stop", "restart", "reset"])
def test_every_order_answers_in_json_if_asked(rekindle: Client, order: str) -> None:
    answer = rekindle(order, WEB, "--json")
    assert (answer.code, answer.err) == (0, "")
    (result,) = answer.document["results"]
    assert (result["id"], result["result"]) == (WEB, "done")


def test_a_group_is_scaled_and_the_reload_takes_it_back(web: Running, rekindle: Client) -> None:
    assert rekindle("scale", "web", "3").lines == ["web has 3 workers now.", "worker:web:2 is added."]
    assert rekindle("reload").out == "worker:web:2 is removed.\n"
    assert rekindle("reload").out == "Nothing changed.\n"
    assert rekindle("scale", "web", "1", "--json").document["detail"]["removed"] == [OTHER]


def test_a_reload_tells_what_was_added_restarted_and_adjusted(web: Running, rekindle: Client) -> None:
    web.file.write_text(
        '[worker.web]\ncommand = ["sleep", "1000"]\ncount = 2\nrestart = { max_lifetime = 9 }\n'
        '[worker.new]\ncommand = ["sleep", "1000"]\n'
    )
    assert rekindle("reload").lines == [
        "worker:new:0 is added.",
        f"{WEB}, {OTHER} are adjusted, without a restart.",
    ]


def test_a_reload_tells_which_changed_workers_are_not_started(web: Running, rekindle: Client) -> None:
    rekindle("pause", WEB)
    rekindle("stop", OTHER)
    web.file.write_text('[worker.web]\ncommand = ["sleep", "2000"]\ncount = 2\n')
    assert rekindle("reload").lines == [
        f"{WEB} is changed; the change takes effect when it is resumed.",
        f"{OTHER} is changed; the change takes effect when it is started.",
    ]
    web.wait_for(WEB, pid=None)
    assert web.worker(OTHER)["pid"] is None


def test_a_reload_says_how_a_changed_worker_that_is_failed_comes_back(run: Run) -> None:
    text = "[worker.spent]\ncommand = ['false']\nrestart = { max_lifetime = 1 }\n"
    running = run(text)
    running.wait_for("worker:spent:0", shown="failed")
    running.file.write_text(text.replace("false", "true"))
    answer = Client(running.file.parent / ".rekindle")("reload")
    once = "worker:spent:0 is changed; it stays failed until you run: rekindle restart worker:spent:0\n"
    assert (answer.code, answer.out) == (0, once)


def test_a_reload_of_a_bad_file_changes_nothing_and_is_bad_configuration(
    web: Running, rekindle: Client
) -> None:
    web.file.write_text("[worker.web]\ncommand = 5\n")
    answer = rekindle("reload")
    assert (answer.code, answer.out) == (2, "")
    assert "nothing was changed" in answer.err
    assert web.worker(WEB)["status"] == "healthy"


def test_more_workers_than_a_group_can_have_are_bad_usage(web: Running, rekindle: Client) -> None:
    answer = rekindle("scale", "web", "2000")
    assert (answer.code, answer.out) == (2, "")
    assert "a group has 0 to 1000 workers, not 2000" in answer.err
    assert "a group has 0 to 1000 workers, not -1" in rekindle("scale", "web", "-1").err


def test_a_reload_of_a_stopping_supervisor_is_not_a_bad_configuration(run: Run) -> None:
    running = run(STUBBORN)
    running.wait_for("worker:stubborn:0", status="healthy")
    running.signal(signal.SIGTERM)
    running.wait_for("worker:stubborn:0", shown="stopping")
    answer = Client(running.file.parent / ".rekindle")("reload")
    assert (answer.code, answer.out) == (1, "")
    assert "stopping" in answer.err
    running.signal(signal.SIGTERM)


def test_the_audit_tells_who_gave_which_order(rekindle: Client) -> None:
    rekindle("restart", WEB)
    rekindle("pause", "--reason", "new disk")
    newest, older = rekindle("audit", "--limit", "2").lines[1:]
    assert "pause    everything    done" in newest
    assert '"reason":"new disk"' in newest
    assert f"restart  {WEB}  done" in older
    assert len(rekindle("audit", "--limit", "1", "--json").document["entries"]) == 1


def test_who_uses_sudo_is_named_in_the_audit(rekindle: Client) -> None:
    Client(rekindle.state, {"SUDO_USER": "ann"})("resume")
    assert rekindle("audit", "--json").document["entries"][0]["claimed_user"] == "ann"


TRAPS = """
[worker.reader]
command = ["bash", "-c", "trap 'echo reread' HUP; echo set; while :; do sleep 0.05; done"]
count = 2

[worker.brief]
command = ["true"]
restart = { enabled = false }
"""


def test_a_signal_reaches_every_worker_of_a_group_and_shows_in_timeline_and_audit(run: Run) -> None:
    running = run(TRAPS)
    rekindle = client_of(running)
    for id_ in ("worker:reader:0", "worker:reader:1"):
        assert eventually(lambda id_=id_: "set" in rekindle("output", id_).lines)  # type: ignore[misc]
    answer = rekindle("signal", "reader", "hup")
    sent = ["worker:reader:0 was sent SIGHUP.", "worker:reader:1 was sent SIGHUP."]
    assert (answer.code, answer.lines) == (0, sent)
    for id_ in ("worker:reader:0", "worker:reader:1"):
        assert eventually(lambda id_=id_: "reread" in rekindle("output", id_).lines)  # type: ignore[misc]
    assert eventually(lambda: "was sent SIGHUP by order" in rekindle("timeline", "worker:reader:0").out)
    entry = rekindle("audit", "--json").document["entries"][0]
    assert (entry["action"], entry["target"]) == ("signal", "worker:reader:1")
    assert "SIGHUP" in entry["detail"]


def test_a_signal_that_cannot_be_sent_is_refused_with_the_reason(run: Run) -> None:
    running = run(TRAPS)
    running.wait_for("worker:brief:0", shown="crashed")
    rekindle = client_of(running)
    refused = rekindle("signal", "brief", "SIGHUP")
    why = "rekindle: worker:brief:0 has no process to signal: it is crashed\n"
    assert (refused.code, refused.err) == (1, why)
    turned = rekindle("signal", "HUP", "reader")
    assert turned.code == 2
    assert "'reader' is not a signal; the signal comes last: rekindle signal ID SIGHUP" in turned.err
    assert "did you mean SIGHUP?" in rekindle("signal", "reader", "SIGHUB").err
    assert rekindle("signal", "nothing", "SIGHUP").code == 4
