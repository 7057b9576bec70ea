"""Groups that stand and fall together as targets of commands, and what is shown of them."""

from __future__ import annotations

from tests.cli.conftest import client_of
from tests.running.conftest import Run, Running

from rekindle.cli.console.targets import Known

QUICK = "{ initial_delay_s = 0.01, max_delay_s = 0.01, min_delay_s = 0 }"
SLEEP = f'command = ["sleep", "1000"]\nrestart = {QUICK}\n'
FILE = (
    f"[worker.db]\n{SLEEP}[worker.api]\n{SLEEP}count = 2\n[worker.web]\n{SLEEP}"
    '[group.back]\nmembers = ["db", "api"]\nstrategy = "one_for_all"\nmax_in_window = 1\n'
    '[group.site]\nmembers = ["back", "web"]\n'
)
BACK = ["worker:db:0", "worker:api:0", "worker:api:1"]


def stops(running: Running) -> list[str]:
    return [line.split()[2] for line in running.text().splitlines() if " stopped: " in line]


def ids(results: list[dict[str, str]]) -> list[str]:
    return [each["id"] for each in results]


def test_a_group_is_restarted_stopped_started_and_shown_by_its_name(run: Run) -> None:
    running = run(FILE)
    running.wait_for("worker:web:0", shown="healthy")
    rekindle = client_of(running)
    assert ids(rekindle("restart", "back", "--json").document["results"]) == BACK
    assert rekindle("wait", "site").code == 0
    assert stops(running) == BACK[::-1]
    assert running.worker("worker:web:0")["generation"] == 1
    report = rekindle("status", "back", "--json").document
    assert [each["component_id"] for each in report["workers"]] == BACK
    assert ids(rekindle("stop", "back", "--json").document["results"]) == BACK[::-1]
    assert rekindle("start", "back").lines == [f"{id_} is starting." for id_ in BACK]
    assert rekindle("wait", "back").code == 0
    assert rekindle("restart", "back", "--rolling").err == (
        "rekindle: no group is named 'back'; known groups: db, api\n"
    )


def test_status_and_explain_show_the_budget_of_a_group_and_why_it_is_given_up(run: Run) -> None:
    running = run(FILE)
    running.wait_for("worker:web:0", shown="healthy")
    rekindle = client_of(running)
    running.order("workers", "worker:api:1", "signal", signal="SIGKILL")
    running.wait_for("worker:api:1", shown="healthy", generation=2)
    assert "Group back (one_for_all: db, api): 1 of 1 restarts used in 5 min" in rekindle("status").lines
    assert rekindle("explain", "back").lines[0] == (
        "Group back (one_for_all: db, api): 1 of 1 restarts used in 5 min."
    )
    running.order("workers", "worker:api:1", "signal", signal="SIGKILL")
    running.wait_for("worker:db:0", shown="stopped", why_code="group_given_up")
    explained = rekindle("explain", "worker:db:0").lines
    assert (
        "It belongs to group back (one_for_all: db, api), which is given up because of worker:api:1."
        in explained
    )
    assert explained[-1] == (
        "Fix worker:api:1, then run: rekindle restart worker:api:1 (starts all of its group in order)."
    )
    document = rekindle("explain", "back", "--json").document
    assert (document["group"]["because"], ids(document["workers"])) == ("worker:api:1", BACK)
    assert rekindle("status", "--check").code == 1


def test_a_worker_that_is_being_removed_is_in_no_group() -> None:
    workers = [{"component_id": "a"}, {"component_id": "b", "leaving": True}]
    known = Known.of({"workers": workers, "groups": [{"name": "all", "workers": ["a", "b"]}]})
    assert known.matching("all") == ("a",)
