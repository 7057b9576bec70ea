"""`rekindle chaos`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from ...console.exits import BAD_USAGE, FAILED
from ...console.options import json_option, print_json

if TYPE_CHECKING:
    from rekindle.actors.simulation import Outcome, Scenario
    from rekindle.actors.simulation.cluster.cluster_moves import ClusterScenario

    from ...chaos.cluster_report import ClusterTally
    from ...chaos.run_report import Tally
    from ...chaos.seed_search import Narrowing

# The simulation loads every actor, so it is imported when the command runs, not for `--help`.

MOST_FAILURES = 3
"""How many failures of a scenario are shrunk and shown; the others are only counted."""


def _names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from ...chaos.library import clusters, library

    return [name for name in (*library(), *clusters()) if name.startswith(incomplete)]


def _listed(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> tuple[str, ...] | None:
    if value is None:
        return None
    return tuple(word for word in value.split(",") if word and word != "none")


@click.command()
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO]...", shell_complete=_names)
@click.option("--list", "listing", is_flag=True, help="List the scenarios that come with Rekindle.")
@click.option("--all", "everything", is_flag=True, help="Run all of them.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="The seed, or the first of several.",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How many seeds to run."
)
@click.option("--real", is_flag=True, help="Run real processes, --speed times as fast as the scenario says.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0.1, max=1000),
    help="With --real: seconds of the scenario per real second (default: from the file, or 10).",
)
@click.option(
    "--warm", is_flag=True, help="With --real: have warm processes fork the workers, with a standby."
)
@click.option("--timeline", is_flag=True, help="Print the whole history of every run.")
@click.option("--only", callback=_listed, metavar="N,…", help="Make only the moves with these numbers.")
@click.option("--workers", callback=_listed, metavar="ID,…", help="Run only these workers.")
@click.option(
    "--lasts",
    type=click.FloatRange(min=0.001),
    metavar="SECONDS",
    help="End the scenario after this many seconds.",
)
@json_option
def chaos(scenarios: tuple[str, ...], listing: bool, everything: bool, as_json: bool, **how: Any) -> None:
    """Run chaos scenarios in virtual time or on real processes.

    \b
      $ rekindle chaos --list
      $ rekindle chaos crash_loop --timeline
      $ rekindle chaos my.toml --seeds 1000
      $ rekindle chaos my.toml --real --speed 20

    SCENARIO is a TOML file or the name of a scenario that comes with Rekindle. It describes the
    workers, the faults and the expected result. The run uses the real actors on a virtual clock,
    so it is thousands of times faster than real time, and the same seed gives the same history.
    After every step the invariants are checked: never two processes of one worker, every death
    counted once, no limit exceeded, no orphan, and so on. A violation is reported with its seed,
    the shortest history that still shows it, and the command that reproduces it.

    A file with a [cluster] table runs on virtual nodes: machines are killed, cut off, frozen and
    paused, and the database loses answers. No worker may ever run twice.

    With --real the same scenario runs on real processes and a real database, in time scaled by
    --speed. With --warm its workers are Python functions that a warm process forks.

    \b
    Exit codes: 0 if everything held, 1 if not, 2 if a file is invalid.
    """
    from ...chaos.library import clusters, library

    if listing:
        _list(as_json)
        return
    if how["warm"] and not how["real"]:
        raise click.UsageError("--warm needs --real: in virtual time no process is started")
    names = (*scenarios, *((*library(), *(() if how["real"] else clusters())) if everything else ()))
    if not names:
        raise click.UsageError("name a scenario, or see: rekindle chaos --list")
    loaded = [_load(name) for name in names]
    for file, scenario in loaded:
        _check_options(file, scenario, how)
    tallies = [_run_any(file, scenario, as_json, how) for file, scenario in loaded]
    passed = all(not tally.failed_runs for tally in tallies)
    if as_json:
        print_json({"passed": passed, "scenarios": [tally.document() for tally in tallies]})
    if not passed:
        raise SystemExit(FAILED)


def _list(as_json: bool) -> None:
    from ...chaos.cluster_file import load_cluster
    from ...chaos.library import clusters, library
    from ...chaos.scenario_file import load_scenario

    about = {name: load_scenario(path).about for name, path in library().items()}
    about |= {name: load_cluster(path).about for name, path in clusters().items()}
    if as_json:
        print_json({"scenarios": [{"name": name, "about": text} for name, text in about.items()]})
        return
    for name, text in about.items():
        click.echo(f"{name}\n    {text}")


def _load(name: str) -> tuple[str, Scenario | ClusterScenario]:
    """The scenario of that name or file, and its name for the command that reproduces a failure."""
    from ...chaos.cluster_file import is_cluster, load_cluster
    from ...chaos.library import found
    from ...chaos.scenario_file import load_scenario
    from ...config import ConfigError

    try:
        path = found(name)
        return name, load_cluster(path) if is_cluster(path) else load_scenario(path)
    except LookupError as error:
        raise click.UsageError(str(error)) from None
    except ConfigError as error:
        for problem in error.problems:
            click.echo(str(problem), err=True)
        raise SystemExit(BAD_USAGE) from None


def _check_options(file: str, scenario: Scenario | ClusterScenario, how: dict[str, Any]) -> None:
    """Refuse options that a scenario of a cluster does not have."""
    from rekindle.actors.simulation import Scenario

    if isinstance(scenario, Scenario):
        return
    for option in ("real", "workers"):
        if how[option]:
            raise click.UsageError(
                f"--{option} is not for {file}: a cluster runs as a whole, in virtual time"
            )


def _run_any(
    file: str, scenario: Scenario | ClusterScenario, as_json: bool, how: dict[str, Any]
) -> Tally | ClusterTally:
    from rekindle.actors.simulation import Scenario

    if isinstance(scenario, Scenario):
        return _run(file, scenario, as_json, how)
    return _run_cluster(file, scenario, as_json, how)


def _run_cluster(file: str, scenario: ClusterScenario, as_json: bool, how: dict[str, Any]) -> ClusterTally:
    from dataclasses import replace

    from loguru import logger

    from ...chaos.cluster_report import entry_line, run_clusters, step_lines

    logger.disable("rekindle")  # The agents warn of faults that are made on purpose.
    if how["lasts"] is not None:
        scenario = replace(scenario, lasts_s=how["lasts"])
    only = _numbers(how["only"])
    tally, last = run_clusters(scenario, file, range(how["seed"], how["seed"] + how["seeds"]), only)
    if not as_json:
        if how["timeline"]:
            for line in (*step_lines(last), *map(entry_line, last.entries)):
                click.echo(line)
        click.echo(tally.line())
        for line in tally.failure_lines():
            click.echo(line)
    return tally


def _numbers(only: tuple[str, ...] | None) -> tuple[int, ...] | None:
    """The numbers of moves that `--only` names."""
    try:
        return None if only is None else tuple(int(number) for number in only)
    except ValueError:
        raise click.BadParameter(
            "must be numbers of moves, as the timeline shows them", param_hint="--only"
        ) from None


def _run(file: str, scenario: Scenario, as_json: bool, how: dict[str, Any]) -> Tally:
    from ...chaos.run_report import ProgressBar, Tally

    tally = Tally(scenario.name, file, "real" if how["real"] else "virtual")
    progress = ProgressBar(how["seeds"], wanted=not as_json)
    began = time.monotonic()
    last: Outcome | None = None
    for outcome in _outcomes(scenario, how):
        tally.add(outcome)
        last = outcome
        if how["timeline"] and not as_json:
            _print_timeline(outcome)
        if not outcome.passed and len(tally.failures) < MOST_FAILURES:
            tally.failures.append(_failure(file, scenario, outcome, how))
        progress.show(tally)
    tally.took_s = time.monotonic() - began
    tally.digest = "" if last is None else last.history.digest()
    progress.end()
    if not as_json:
        click.echo(tally.line())
        for failure in tally.failures:
            click.echo("\n".join(failure.lines()))
    return tally


def _outcomes(scenario: Scenario, how: dict[str, Any]) -> Any:
    from ...chaos.seed_search import explore

    seeds = range(how["seed"], how["seed"] + how["seeds"])
    narrowing = _narrowing(scenario, how)
    if not how["real"]:
        return explore(scenario, seeds, narrowing)
    from ...chaos.real.real_run import run_real

    def really() -> Any:
        for seed in seeds:
            part, steps = narrowing.of(scenario, seed)
            yield run_real(part, seed, speed=how["speed"] or scenario.speed, steps=steps, warm=how["warm"])

    return really()


def _narrowing(scenario: Scenario, how: dict[str, Any]) -> Narrowing:
    from ...chaos.seed_search import Narrowing

    steps = _numbers(how["only"])
    _check_moves(steps or (), scenario, how)
    for worker in how["workers"] or ():
        if worker not in scenario.ids:
            raise click.BadParameter(
                f"no worker is called {worker!r}; there are {', '.join(scenario.ids)}", param_hint="--workers"
            )
    return Narrowing(steps, how["workers"], how["lasts"])


def _check_moves(chosen: tuple[int, ...], scenario: Scenario, how: dict[str, Any]) -> None:
    """Refuse numbers that no move has under any of the seeds; the number of moves depends on the seed."""
    from rekindle.actors.simulation import draw

    if not chosen:
        return
    count = max(len(draw(scenario, seed)) for seed in range(how["seed"], how["seed"] + how["seeds"]))
    wrong = [str(number) for number in chosen if not 0 <= number < count]
    if wrong:
        there = f"it has moves 0 to {count - 1}" if count else "it has no moves"
        message = f"{scenario.name} has no move {', '.join(wrong)}; {there}"
        raise click.BadParameter(message, param_hint="--only")


def _failure(file: str, scenario: Scenario, outcome: Outcome, how: dict[str, Any]) -> Any:
    from ...chaos.run_report import Failure
    from ...chaos.seed_search import repeats, smallest

    if outcome.violations and not how["real"]:
        outcome = smallest(outcome)
    again = repeats(file, outcome, scenario)
    options = "".join(f" --{name}" for name in ("real", "warm") if how[name])
    return Failure(outcome, again + options)


def _print_timeline(outcome: Outcome) -> None:
    from rekindle.actors.simulation import lines

    from ...render.text import printable

    for line in lines(outcome.history):
        click.echo(printable(line))
