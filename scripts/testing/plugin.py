"""The pytest plugin. pytest loads it wherever Rekindle is installed, so it imports only pytest."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from .clusters import Clusters, TestServer
    from .seeded_chaos import Chaos
    from .systems import Systems
    from .virtual import VirtualTime

MARKER = "chaos(seeds=N): run the test once for each of N seeds, or for each of the seeds given"


class Reporter(Protocol):
    """Reports what happened before a test failed."""

    def sections(self) -> Iterator[tuple[str, str]]:
        """Headings and texts for the report of a failure."""
        ...


_REPORTERS = pytest.StashKey[list[Reporter]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that repeat one seed, or try more of them."""
    group = parser.getgroup("rekindle", "chaos tests with Rekindle")
    group.addoption(
        "--chaos-seed", type=int, metavar="SEED", help="run tests marked `chaos` with this seed only"
    )
    group.addoption(
        "--chaos-seeds",
        type=int,
        metavar="N",
        help="run tests marked `chaos` with N seeds each, instead of the number in the marker",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, for --strict-markers."""
    config.addinivalue_line("markers", MARKER)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a marked test once for each seed; a `chaos` marker of another plugin is left alone."""
    marker = metafunc.definition.get_closest_marker("chaos")
    if marker is None or "chaos_seed" not in metafunc.fixturenames:
        return
    seeds = _seeds(marker, metafunc.config)
    metafunc.parametrize("chaos_seed", seeds, ids=[f"seed={seed}" for seed in seeds])


def _seeds(marker: pytest.Mark, config: pytest.Config) -> list[int]:
    one, many = config.getoption("--chaos-seed"), config.getoption("--chaos-seeds")
    if one is not None:
        return [one]
    wanted = marker.kwargs.get("seeds", 1) if many is None else many
    if isinstance(wanted, int) and not isinstance(wanted, bool) and wanted > 0:
        return list(range(wanted))
    if isinstance(wanted, list | tuple | range) and wanted and all(type(each) is int for each in wanted):
        return list(wanted)
    raise pytest.UsageError(f"chaos(seeds={wanted!r}): seeds must be a number above 0 or a list of numbers")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what happened to the report of a failed test."""
    report = yield
    if report.failed:
        for reporter in item.stash.get(_REPORTERS, []):
            report.sections.extend(reporter.sections())
        item.stash.get(_REPORTERS, []).clear()
    return report


def _register(request: pytest.FixtureRequest, reporter: Reporter) -> None:
    request.node.stash.setdefault(_REPORTERS, []).append(reporter)


# ── fixtures ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def rekindle_system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systems]:
    """Starts supervised systems with real processes: `rekindle_system(spec)`; all end after the test."""
    from .systems import Systems

    systems = Systems(tmp_path)
    _register(request, systems)
    yield systems
    systems.stop()


@pytest.fixture(scope="session")
def _rekindle_server() -> Iterator[TestServer]:
    """A PostgreSQL for the clusters of the session; it starts when the first one needs it."""
    from .clusters import TestServer

    server = TestServer()
    yield server
    server.close()


@pytest.fixture
def rekindle_cluster(request: pytest.FixtureRequest, _rekindle_server: TestServer) -> Iterator[Clusters]:
    """Starts clusters of several nodes in this process: `rekindle_cluster(spec, nodes=3)`."""
    from .clusters import Clusters

    clusters = Clusters(_rekindle_server)
    _register(request, clusters)
    yield clusters
    clusters.stop()


@pytest.fixture
def chaos_seed() -> int:
    """The seed of this run of a test marked `chaos`."""
    return 0


@pytest.fixture
def virtual_time(request: pytest.FixtureRequest, chaos_seed: int) -> Iterator[VirtualTime]:
    """Starts supervised systems on a virtual clock: `virtual_time(spec, lives=dies_after(3))`."""
    from .virtual import VirtualTime

    virtual = VirtualTime(chaos_seed)
    _register(request, virtual)
    yield virtual
    virtual.close()


@pytest.fixture
def chaos(request: pytest.FixtureRequest, chaos_seed: int) -> Chaos:
    """Chooses by a seed when to do what to which worker, and runs scenarios with that seed."""
    from .seeded_chaos import Chaos

    chaos = Chaos(chaos_seed, request.node.nodeid)
    _register(request, chaos)
    return chaos
