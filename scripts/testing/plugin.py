"""The pytest plugin. Everyone's pytest loads it who has Rekindle: it imports nothing but pytest."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from .seeded_chaos import Chaos
    from .systems import Systems
    from .virtual import VirtualTime

MARKER = "chaos(seeds=N): run the test once for each of N seeds, or for each of the seeds given"


class Witness(Protocol):
    """Can tell what happened before a test failed."""

    def sections(self) -> Iterator[tuple[str, str]]:
        """Headings and texts for the report of a failure."""
        ...


_WITNESSES = pytest.StashKey[list[Witness]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let one seed be repeated, or more be tried."""
    group = parser.getgroup("rekindle", "chaos tests with Rekindle")
    group.addoption(
        "--chaos-seed", type=int, metavar="SEED", help="run tests marked `chaos` with this seed only"
    )
    group.addoption(
        "--chaos-seeds",
        type=int,
        metavar="N",
        help="run tests marked `chaos` with N seeds, whatever they say",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, also to --strict-markers."""
    config.addinivalue_line("markers", MARKER)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a marked test once for each seed; a marker `chaos` of somebody else's is left alone."""
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
    raise pytest.UsageError(f"chaos(seeds={wanted!r}): seeds is a number above 0, or a list of numbers")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let the witnesses of a failed test tell what happened."""
    report = yield
    if report.failed:
        for witness in item.stash.get(_WITNESSES, []):
            report.sections.extend(witness.sections())
        item.stash.get(_WITNESSES, []).clear()
    return report


def _called(request: pytest.FixtureRequest, witness: Witness) -> None:
    request.node.stash.setdefault(_WITNESSES, []).append(witness)


# ── fixtures ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def rekindle_system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systems]:
    """Starts supervised systems with real processes: `rekindle_system(spec)`; all end after the test."""
    from .systems import Systems

    systems = Systems(tmp_path)
    _called(request, systems)
    yield systems
    systems.stop()


@pytest.fixture
def chaos_seed() -> int:
    """The seed of this run of a test marked `chaos`."""
    return 0


@pytest.fixture
def virtual_time(request: pytest.FixtureRequest, chaos_seed: int) -> Iterator[VirtualTime]:
    """Starts supervised systems on a virtual clock: `virtual_time(spec, lives=dies_after(3))`."""
    from .virtual import VirtualTime

    virtual = VirtualTime(chaos_seed)
    _called(request, virtual)
    yield virtual
    virtual.close()


@pytest.fixture
def chaos(request: pytest.FixtureRequest, chaos_seed: int) -> Chaos:
    """Chooses under a seed: when, whom, with which signal; runs scenarios under it, too."""
    from .seeded_chaos import Chaos

    chaos = Chaos(chaos_seed, request.node.nodeid)
    _called(request, chaos)
    return chaos
