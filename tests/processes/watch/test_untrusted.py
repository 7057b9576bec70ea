"""What a worker sends is untrusted: bounded, refused, never executed; what it prints is shown, no more."""

from __future__ import annotations

import os
import pickle
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.processes.conftest import Rows, Run
from tests.processes.policies import PATIENT, QUICK, SHORT, python
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import Cause, HealthPolicy, Status, System, WorkerDied
from rekindle.actors.processes.watch.output_tail import LONGEST_LINE, MOST_LINES
from rekindle.persistence import MemoryStore
from rekindle.worker.guardian import marked_processes

ONCE = replace(QUICK, enabled=False)
STRICT: HealthPolicy = replace(PATIENT, max_bad_frames=20)

garbage = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=100).map(str.encode),
    st.sampled_from(
        [b"{", b"[", b'"', b"nul", b"\x00", b"\xff\xfe", b"HEALTH|", b"HEALTH|null", b"HEALTH|[]"]
    ),
    st.sampled_from([b'{"status": 3}', b'{"status": "no"}', b'{"status": "healthy", "current_job": true}']),
    st.sampled_from(
        [b'{"status":"recovering","recover_for_s":1e306}', b'{"status":"healthy","busy_for_s":1e306}']
    ),
    st.sampled_from([b'{"status":"recovering","recover_for_s":NaN}', b"[" * 100_000, b"9" * 70_000]),
)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(lines=st.lists(garbage, min_size=1, max_size=60))
def test_f25_garbage_ends_at_most_the_worker_that_sends_it(tmp_path: Path, lines: list[bytes]) -> None:
    raw = tmp_path / "raw"
    raw.write_bytes(b"\n".join([*lines, b'{"status": "healthy", "current_job": "sane"}', b""]))
    specs = [
        python("send_raw", health=STRICT, stop=SHORT, restart=ONCE, env={"RAW": str(raw)}),
        python("wait", health=STRICT),
    ]
    with System(specs, store=MemoryStore()) as system:
        innocent = system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S)
        culprit = system.wait_until(
            "send_raw", lambda w: w.current_job == "sane" or w.status is Status.DEAD, PATIENCE_S
        )
        if culprit.status is Status.DEAD:
            assert "protocol" in culprit.why
        assert system.status("wait").pid == innocent.pid
        mark = system.mark
    assert marked_processes(mark) == []


@pytest.mark.usefixtures("both_ways")
def test_f25_too_many_bad_frames_end_the_worker_with_cause_protocol(
    run: Run, rows: Rows, tmp_path: Path
) -> None:
    raw = tmp_path / "raw"
    raw.write_bytes(b"not a frame\n" * 200)
    system = run(python("send_raw", "w", health=STRICT, stop=SHORT, restart=ONCE, env={"RAW": str(raw)}))
    with system.events() as events:
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    assert isinstance(died, WorkerDied)
    assert died.death.cause is Cause.PROTOCOL
    assert "21 frames refused" in str(died.death)
    assert eventually(lambda: rows("SELECT cause FROM rekindle_death") == [("protocol",)])


@pytest.mark.usefixtures("both_ways")
def test_f25_a_few_bad_frames_are_forgiven(run: Run, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.write_bytes(b"not a frame\n" * 20 + b'HEALTH|{"status": "healthy", "current_job": "sane"}\n')
    system = run(python("send_raw", "w", health=STRICT, env={"RAW": str(raw)}))
    worker = system.wait_until("w", lambda w: w.current_job == "sane", PATIENCE_S)
    assert (worker.generation, worker.status) == (1, Status.HEALTHY)


@pytest.mark.usefixtures("both_ways")
def test_f25_a_worker_that_sends_garbage_endlessly_does_not_fill_our_memory(run: Run) -> None:
    deaf = replace(SHORT, term_s=2.0)
    system = run(python("send_garbage_endlessly", "w", stop=deaf), python("wait"))
    system.wait_until("w", lambda w: w.restart_count >= 1, PATIENCE_S)
    before = resident_mb()
    system.wait_until("w", lambda w: w.restart_count >= 4, 2 * PATIENCE_S)
    assert resident_mb() - before < 30
    assert system.status("wait").generation == 1


def resident_mb() -> float:
    """How much memory this process uses now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Bomb:
    """Touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.usefixtures("both_ways")
def test_f26_a_pickle_bomb_is_never_unpickled(run: Run, tmp_path: Path) -> None:
    raw, crater = tmp_path / "raw", tmp_path / "crater"
    bombs = [pickle.dumps(Bomb(crater), protocol) for protocol in range(6)]
    raw.write_bytes(b"\n".join([*bombs, b'{"status": "healthy", "current_job": "sent"}', b""]))
    system = run(python("send_raw", "w", env={"RAW": str(raw)}))
    system.wait_until("w", lambda w: w.current_job == "sent", PATIENCE_S)
    assert not crater.exists()


@pytest.mark.usefixtures("both_ways")
def test_p15_a_worker_that_floods_its_output_does_not_hang_and_the_tail_is_bounded(
    run: Run, logs: list[str]
) -> None:
    system = run(python("flood_the_output", "w"))
    system.wait_until("w", lambda w: w.current_job == "flooded", 3 * PATIENCE_S)
    assert eventually(lambda: "the last line" in system.output("w"))
    tail = system.output("w")
    assert len(tail) == MOST_LINES
    assert max(map(len, tail)) <= LONGEST_LINE
    assert any("w out | line 0 " in line for line in logs)


@pytest.mark.usefixtures("both_ways")
def test_p15_a_worker_that_writes_a_hundred_megabytes_is_not_slowed_down_to_the_speed_of_the_log(
    run: Run, logs: list[str]
) -> None:
    """It was held at 2 MB/s. Lines above a rate are counted instead of logged."""
    system = run(python("write_a_hundred_megabytes", "w"))
    system.wait_until("w", lambda w: w.current_job == "written", PATIENCE_S)
    assert eventually(lambda: system.output("w")[-1:] == ("the last line",))
    assert system.output("w")[:-1] == ("x" * 99,) * (MOST_LINES - 1)
    left_out = re.compile("w writes too fast for the log: ([0-9]+) of its lines are left out")
    system.stop()
    found = [match for line in logs if (match := left_out.search(line))]
    logged = sum("w out | " in line for line in logs)
    assert sum(int(match[1]) for match in found) + logged == 1_000_001
    assert logged < 500_000


@pytest.mark.usefixtures("both_ways")
def test_the_last_lines_are_kept_and_harmless_also_with_logging_on(run: Run, logs: list[str]) -> None:
    system = run(python("say_words", "w", restart=ONCE))
    system.wait_until("w", lambda w: w.current_job == "said", PATIENCE_S)
    assert eventually(lambda: len(system.output("w")) == 4)
    assert set(system.output("w")) == {
        "braces {} {0} {missing!r} %s",
        "on stderr",
        r"control \x1b[31mred\x1b[0m \x07 \x00 \xff <red>markup</red>",
        "€ is a euro",
    }
    assert any("INFO w out | braces {} {0} {missing!r} %s" in line for line in logs)
    assert not any(character in line for line in logs for character in "\x1b\x07\x00\r")
    with system.events() as events:
        os.kill(system.status("w").pid or 0, 9)
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    assert isinstance(died, WorkerDied)
    assert died.death.output[-1] == "without an end"
    assert "without an end" in system.output("w")


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("name", ["LEAKED_SECRET", "PYTHONSTARTUP", "REKINDLE_SYSTEM"])
def test_the_environment_of_a_worker_is_an_allow_list(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "secret")
    system = run(python("wait"))
    pid = system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert b"secret" not in Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("own", [None, "/of/the/worker"])
def test_our_import_path_is_not_handed_on_to_the_programs_of_a_worker(run: Run, own: str | None) -> None:
    spec = python("show_the_import_path_of_a_program")
    system = run(spec if own is None else replace(spec, env={"PYTHONPATH": own}))
    assert eventually(lambda: system.output(spec.id) == (str(own),))


@pytest.mark.usefixtures("both_ways")
def test_f25_one_that_says_too_often_how_it_is_says_it_less_often(run: Run) -> None:
    """Every word was a frame at once, and more than a hundred a second end a worker."""
    system = run(python("chatter"))
    first = system.wait_for("chatter", Status.HEALTHY, timeout_s=PATIENCE_S)
    later = system.wait_until("chatter", lambda w: (w.uptime_s or 0) > 1.5, PATIENCE_S)
    assert (later.pid, later.status) == (first.pid, Status.HEALTHY)
