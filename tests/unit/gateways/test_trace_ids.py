"""The numbers of traces and spans, and what a `traceparent` says."""

from __future__ import annotations

import pytest

from rekindle.actors.gateways.otel.trace_ids import is_in_sample, job_place, life_place, parent_of
from rekindle.worker.jobs.traceparent import TraceParent, parsed

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_traceparent_is_read() -> None:
    assert parsed(f"00-{TRACE}-{SPAN}-01") == TraceParent(TRACE, SPAN, is_sampled=True)
    assert parsed(f"00-{TRACE}-{SPAN}-02") == TraceParent(TRACE, SPAN, is_sampled=False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"00-{TRACE}-{SPAN}",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
    ],
)
def test_what_is_no_traceparent_is_nothing(text: str) -> None:
    assert parsed(text) is None


def test_the_span_of_a_life_is_the_same_whenever_it_is_asked_for() -> None:
    place = life_place("store", "worker:tag:0", 7)
    assert place == life_place("store", "worker:tag:0", 7)
    others = {
        life_place("store", "worker:tag:0", 8),
        life_place("store", "worker:tag:1", 7),
        life_place("other", "worker:tag:0", 7),
    }
    assert len({each.span_id for each in others} | {place.span_id}) == 4


def test_a_job_is_in_the_trace_of_its_parent_with_a_span_of_its_own() -> None:
    parent = parent_of(f"00-{TRACE}-{SPAN}-01")
    place = job_place("store", 42, 1000, parent)
    assert f"{place.trace_id:032x}" == TRACE
    assert f"{place.span_id:016x}" != SPAN
    assert place.span_id == job_place("store", 42, 1000, None).span_id


def test_a_sample_is_a_share_of_the_traces() -> None:
    places = [life_place("store", "worker:tag:0", number) for number in range(2000)]
    kept = sum(is_in_sample(place, 0.25) for place in places)
    assert 400 < kept < 600
    assert all(is_in_sample(place, 1.0) for place in places)
    assert not any(is_in_sample(place, 0.0) for place in places)
