"""A span for each life of a worker and for each job, at a real collector over HTTP."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.otel.collector import Collector
from tests.otel.conftest import Export
from tests.processes.conftest import Run
from tests.processes.policies import shell, sleeper, worker
from tests.processes.waiting import eventually
from tests.running.conftest import Run as RunFile
from tests.running.conftest import run as run_file

from rekindle.actors import JobPolicy, PayloadError, PythonCall, Status, System, WorkerSpec
from rekindle.actors.gateways.gateway_errors import GatewayError, UnsafePathError
from rekindle.persistence import open_queue

__all__ = ["run_file"]

WORKER = "worker:tag:0"
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
UNSAMPLED = f"00-{TRACE}-{SPAN}-00"


def tagger(**policy: object) -> WorkerSpec:
    call = PythonCall("tests.processes.job_workers:Obedient.main")
    return worker(WORKER, call, jobs=JobPolicy(queues=("tag",), **policy))  # type: ignore[arg-type]


def healthy(system: System, name: str = WORKER) -> int:
    found = system.wait_for(name, Status.HEALTHY, timeout_s=30).pid
    assert found is not None
    return found


def await_another(system: System, pid: int) -> None:
    system.wait_until(WORKER, lambda found: found.pid not in (None, pid), timeout_s=20)


# ── lives ────────────────────────────────────────────────────────────────────────────────


def test_the_life_of_a_killed_worker_ends_as_an_error_with_cause_and_confidence(
    run: Run, export: Export, collector: Collector
) -> None:
    system = run()
    export(system, collector.url)
    system.add(sleeper(WORKER))
    pid = healthy(system)
    os.kill(pid, signal.SIGKILL)
    span = collector.span("life of worker:tag", rekindle__worker__generation=1)
    assert (span.is_error, span.message) == (True, "killed by SIGKILL")
    assert span.attributes["rekindle.death.cause"] == "signalled"
    assert span.attributes["rekindle.death.confidence"] in ("certain", "likely", "guess")
    assert span.attributes["rekindle.death.finding"]
    assert span.attributes["rekindle.decision"] == "restart"
    assert span.attributes["rekindle.exit.signal"] == "SIGKILL"
    assert (span.attributes["process.pid"], span.service) == (pid, "rekindle")
    assert ("healthy", {}) in span.moments
    assert 0 < span.began_ns < span.ended_ns


def test_the_life_of_a_worker_that_was_stopped_is_not_an_error(
    run: Run, export: Export, collector: Collector
) -> None:
    system = run(sleeper(WORKER), sleeper("worker:web:0"))
    healthy(system)
    healthy(system, "worker:web:0")
    export(system, collector.url, service="songs")
    system.stop_worker("worker:web:0")
    collector.span("life of worker:web")  # the gateway has read by now what ran before it began
    system.stop_worker(WORKER)
    span = collector.span("life of worker:tag")
    assert (span.is_error, span.service) == (False, "songs")
    assert span.began_ns < span.ended_ns, "the worker ran before the gateway began"


def test_a_secret_in_a_workers_last_words_is_masked(run: Run, export: Export, collector: Collector) -> None:
    system = run()
    export(system, collector.url)
    system.add(shell(WORKER, "echo 'error: password=hunter2 is wrong' >&2; exit 3"))
    span = collector.span("life of worker:tag")
    assert span.attributes["process.exit.code"] == 3
    assert "hunter2" not in repr(span)


def test_of_a_sample_of_nothing_only_deaths_are_sent(run: Run, export: Export, collector: Collector) -> None:
    system = run(sleeper(WORKER), sleeper("worker:web:0"))
    healthy(system)
    healthy(system, "worker:web:0")
    export(system, collector.url, sample=0.0)
    system.stop_worker("worker:web:0")
    os.kill(healthy(system), signal.SIGKILL)
    collector.span("life of worker:tag")
    assert [each.name for each in collector.spans] == ["life of worker:tag"]


# ── jobs ─────────────────────────────────────────────────────────────────────────────────


def test_a_job_has_a_span_in_the_trace_in_which_it_was_enqueued(
    run: Run, export: Export, collector: Collector
) -> None:
    system = run(tagger())
    healthy(system)
    export(system, collector.url)
    job = system.enqueue("tag", {"do": "show trace"}, traceparent=PARENT)
    span = collector.span("job tag", rekindle__job__id=job)
    assert (span.trace_id, span.parent_id, span.is_error) == (TRACE, SPAN, False)
    assert span.attributes["rekindle.job.state"] == "done"
    assert span.attributes["messaging.destination.name"] == "tag"
    assert "execution began" in [name for name, _ in span.moments]
    assert system.jobs.result(job, timeout_s=10) == PARENT, "the worker sees the trace"


def test_a_job_without_a_trace_has_a_span_of_its_own(run: Run, export: Export, collector: Collector) -> None:
    system = run(tagger())
    healthy(system)
    export(system, collector.url)
    job = system.enqueue("tag", {"do": "show trace"})
    span = collector.span("job tag", rekindle__job__id=job)
    assert span.parent_id == ""
    assert system.jobs.result(job, timeout_s=10) is None


def test_the_span_of_a_job_that_kills_its_worker_links_to_the_lives_that_it_ended(
    run: Run, export: Export, collector: Collector
) -> None:
    system = run()
    export(system, collector.url)
    system.add(tagger(crash_retries=1))
    healthy(system)
    job = system.enqueue("tag", {"do": "die"}, traceparent=PARENT)
    span = collector.span("job tag", rekindle__job__id=job)
    assert (span.is_error, span.attributes["rekindle.job.state"]) == (True, "toxic")
    assert span.attributes["rekindle.job.crashes"] == 2
    assert span.attributes["rekindle.death"] == "killed by SIGKILL"
    died = [shown for name, shown in span.moments if name == "worker died"]
    assert [shown["rekindle.job.attempt"] for shown in died] == [1, 2]
    lives = [collector.span("life of worker:tag", rekindle__worker__generation=n).span_id for n in (1, 2)]
    assert span.links == lives


def test_a_crash_of_the_first_attempt_and_the_success_of_the_second_are_spans_within_the_jobs_span(
    run: Run, export: Export, collector: Collector
) -> None:
    system = run()
    export(system, collector.url)
    system.add(tagger())
    healthy(system)
    job = system.enqueue("tag", {"do": "die until", "attempt": 2}, traceparent=PARENT)
    whole = collector.span("job tag", rekindle__job__id=job)
    died = collector.span("execution of tag", rekindle__job__attempt=1)
    done = collector.span("execution of tag", rekindle__job__attempt=2)
    assert (whole.is_error, died.is_error, done.is_error) == (False, True, False)
    assert died.message == "its worker died: killed by SIGKILL"
    assert (died.attributes["rekindle.exit.signal"], "rekindle.death" in done.attributes) == (
        "SIGKILL",
        False,
    )
    assert {each.trace_id for each in (whole, died, done)} == {TRACE}
    assert {each.parent_id for each in (died, done)} == {whole.span_id}
    lives = [collector.span("life of worker:tag", rekindle__worker__generation=1).span_id]
    assert died.links == lives
    assert done.links != lives
    assert whole.began_ns <= died.began_ns <= died.ended_ns <= done.began_ns <= done.ended_ns
    assert done.ended_ns == whole.ended_ns
    assert len({each.span_id for each in (whole, died, done)}) == 3


def test_an_execution_that_raised_is_an_error_and_the_retry_is_not(
    run: Run, export: Export, collector: Collector
) -> None:
    system = run()
    export(system, collector.url)
    system.add(tagger(error_retries=1, retry_delay_s=0.3))
    healthy(system)
    job = system.enqueue("tag", {"do": "raise until", "attempt": 2, "why": "only once"})
    whole = collector.span("job tag", rekindle__job__id=job)
    first, second = (collector.span("execution of tag", rekindle__job__attempt=n) for n in (1, 2))
    assert (first.is_error, second.is_error, whole.is_error) == (True, False, False)
    assert "only once" in first.message
    assert first.parent_id == second.parent_id == whole.span_id
    assert second.began_ns - first.ended_ns > 200_000_000, "the wait for the retry belongs to no execution"


def test_a_job_that_raises_is_an_error_with_its_message(
    run: Run, export: Export, collector: Collector
) -> None:
    system = run(tagger())
    healthy(system)
    export(system, collector.url)
    job = system.enqueue("tag", {"do": "raise", "why": "out of ideas"}, traceparent=PARENT)
    span = collector.span("job tag", rekindle__job__id=job)
    assert span.is_error
    assert "out of ideas" in span.message


def test_every_job_of_a_trace_has_a_span_and_each_has_one(
    run: Run, export: Export, collector: Collector
) -> None:
    system = run(tagger())
    healthy(system)
    export(system, collector.url)
    jobs = system.enqueue_many("tag", [{}] * 300, traceparent=PARENT)
    assert eventually(lambda: len({e.attributes["rekindle.job.id"] for e in of_jobs(collector)}) == 300)
    time_of_last = max(each.ended_ns for each in of_jobs(collector))
    marker = system.enqueue("tag", {}, traceparent=PARENT)
    collector.span("job tag", rekindle__job__id=marker)
    assert time_of_last
    assert sorted(each.attributes["rekindle.job.id"] for each in of_jobs(collector)) == [*jobs, marker]


def of_jobs(collector: Collector) -> list:  # type: ignore[type-arg]
    return [each for each in collector.spans if each.name == "job tag"]


def test_a_job_of_a_trace_that_is_not_sampled_has_no_span(
    run: Run, export: Export, collector: Collector
) -> None:
    system = run(tagger())
    healthy(system)
    export(system, collector.url)
    system.enqueue("tag", {}, traceparent=UNSAMPLED)
    shown = system.enqueue("tag", {}, traceparent=PARENT)
    collector.span("job tag", rekindle__job__id=shown)
    assert [each.attributes["rekindle.job.id"] for each in of_jobs(collector)] == [shown]


def test_a_job_takes_the_current_span_of_its_producer(run: Run, database: Path) -> None:
    from opentelemetry.sdk.trace import TracerProvider

    system = run(tagger())
    healthy(system)
    tracer = TracerProvider().get_tracer("producer")
    with closing(open_queue(str(database))) as queue:
        with tracer.start_as_current_span("order") as span:
            here = span.get_span_context()
            jobs = [
                queue.enqueue("tag", {"do": "show trace"}),
                system.enqueue("tag", {"do": "show trace"}),
                *system.batch("tag", [{"do": "show trace"}], then={"do": "show trace"}).job_ids,
            ]
        outside = queue.enqueue("tag", {"do": "show trace"})
        wanted = f"00-{here.trace_id:032x}-{here.span_id:016x}-{here.trace_flags:02x}"
        assert [queue.result(job, timeout_s=20) for job in jobs] == [wanted] * len(jobs)
        assert queue.result(outside, timeout_s=20) is None


def test_a_job_through_the_supervisor_carries_its_trace_too(run: Run) -> None:
    system = run(tagger(via="supervisor"))
    healthy(system)
    job = system.enqueue("tag", {"do": "show trace"}, traceparent=PARENT)
    assert system.jobs.result(job, timeout_s=20) == PARENT


@pytest.mark.parametrize("traceparent", ["", "00-1-2-3", PARENT.upper(), f"00-{'0' * 32}-{SPAN}-01", 7])
def test_a_trace_that_is_none_is_refused(run: Run, traceparent: str) -> None:
    system = run(tagger())
    with pytest.raises(PayloadError, match="W3C Trace Context"):
        system.enqueue("tag", {}, traceparent=traceparent)


# ── from a file ──────────────────────────────────────────────────────────────────────────


def test_rekindle_run_exports_the_traces_of_a_file(
    run_file: RunFile, collector: Collector, tmp_path: Path
) -> None:
    headers = tmp_path / "otel.headers"
    headers.touch(0o600)
    headers.write_text("x-api-key: abc123\n")
    running = run_file(
        f'[otel]\nendpoint = "{collector.url}"\nheaders_file = "otel.headers"\nservice = "songs"\n'
        '[worker.tag]\ncommand = ["sleep", "1000"]\n'
    )
    pid = running.wait_for(WORKER, shown="healthy")["pid"]
    os.kill(pid, signal.SIGKILL)
    span = collector.span("life of worker:tag", process__pid=pid)
    assert (span.is_error, span.service) == (True, "songs")
    assert collector.headers[0]["x-api-key"] == "abc123"
    (gateway,) = running.client.get("/info")["gateways"]
    assert (gateway["name"], gateway["connected"]) == ("otel", True)
    running.wait_for(WORKER, shown="healthy", restart_count=1)
    assert running.stop() == 0
    last = collector.span("life of worker:tag", rekindle__worker__generation=2)
    assert not last.is_error, "the stop of the supervisor ends the last span"


def test_headers_that_other_users_can_read_are_refused(
    run: Run, export: Export, collector: Collector, tmp_path: Path
) -> None:
    system, headers = run(), tmp_path / "headers"
    headers.write_text("x-api-key: abc\n")
    headers.chmod(0o644)
    with pytest.raises(UnsafePathError, match="chmod 600"):
        export(system, collector.url, headers_file=headers)
    headers.chmod(0o600)
    headers.write_text("not a header\n")
    with pytest.raises(GatewayError, match="line 1 must be a header"):
        export(system, collector.url, headers_file=headers)


def test_a_program_without_traces_does_not_load_opentelemetry(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom rekindle.actors import System\nfrom rekindle.persistence import open_store\n"
        f"with System([], store=open_store({str(tmp_path / 'x.db')!r})): pass\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
