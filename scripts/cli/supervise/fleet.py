"""The workers of one file: a System that can be reloaded, scaled and restarted by turns."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from loguru import logger
from msgspec.structs import asdict

from rekindle.actors import (
    ConfigurationError,
    RekindleError,
    RequestRefusedError,
    RequestTimeoutError,
    RolloutPolicy,
    Status,
    System,
)
from rekindle.actors.facts.health_status import ShownStatus
from rekindle.actors.gateways.gateway_state import GatewayState
from rekindle.actors.gateways.operator import Rolling
from rekindle.actors.handover import Estate, Inheritance
from rekindle.actors.ports import Store
from rekindle.actors.processes.spawn.launcher import Launcher
from rekindle.actors.spec.spec_changes import Changes
from rekindle.actors.system.actor_hand_over import leave_memory
from rekindle.actors.views.log_page import LogPage, LogQuery
from rekindle.actors.views.redaction import without_password
from rekindle.actors.views.setting_origin import Configuration
from rekindle.persistence import MemoryStore

from ..config import Config, ConfigError, load
from ..config.model import WorkerTable
from ..config.origins import setting_origins
from ..render.change_text import change_lines
from .gateways import EventGateways
from .stored_log import note_log_files, stored_page

PATIENCE_S = 30.0
"""How much longer than its own timeouts a worker may take before a rolling restart is given up."""

STAYS_UP_S = 1.0
"""A worker must have been healthy for this long before the next one is restarted: a program may run for a
moment before it finds that it cannot."""

DOWN = (ShownStatus.FAILED, ShownStatus.STOPPED, ShownStatus.DONE, ShownStatus.SCHEDULED)
"""Members that are not up and not expected to be."""

GLANCE_S = 0.25
"""How often a rolling restart looks while nothing happens."""

_FIXED = ("state_dir", "database", "worker_database")
"""Settings that an upgrade cannot change, since it continues with the same files."""

Summary = Mapping[str, object]


class Upgrades(Protocol):
    """Replaces this program by another one, in the same process."""

    def request(self, python: str | None, *, only_check: bool) -> Summary:
        """Check the other installation, and begin the upgrade unless only the check is wanted."""
        ...

    def latest(self) -> Summary:
        """What became of the latest upgrade."""
        ...


class SupervisedFleet(System):
    """What `rekindle run` runs, and what its control socket gives orders to."""

    def __init__(
        self,
        config: Config,
        *,
        store: Store,
        launcher: Launcher | None = None,
        inheritance: Inheritance | None = None,
        inherited: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(
            config.specs(),
            store=store,
            max_concurrent_starts=config.max_concurrent_starts,
            adopts_orphans=True,
            alerts=config.alerts.policy,
            retention=config.retention,
            inherited_sockets=inherited,
            periodic=config.periodic,
            launcher=launcher,
            inheritance=inheritance,
            queue_policies=config.queues,
        )
        self._config = config
        self._as_loaded = config
        """The file as it was last loaded, without what was scaled since."""
        is_temporary = isinstance(store, MemoryStore)
        self._database = "none: in memory" if is_temporary else without_password(config.database)
        self.upgrades: Upgrades | None = None
        """Checks and begins upgrades; None: this process cannot be upgraded."""
        self._begun_with = config
        self._changing = threading.Lock()
        self._rolling: dict[str, threading.Thread] = {}
        self._given_up: dict[str, str] = {}
        """Why the latest rolling restart of a group was abandoned."""
        self._ending = threading.Event()
        self.event_gateways = EventGateways()
        note_log_files(config)

    def gateways(self) -> tuple[GatewayState, ...]:
        """The states of the gateways that send events to other systems."""
        return self.event_gateways.states()

    @property
    def unsaved_records(self) -> int:
        """How many records could not be written when it stopped, because the store was unavailable."""
        return self._lifecycle.unsaved_records

    def open(self) -> None:
        """Start the actors and no worker, and open every socket that a group names."""
        super().open()
        self._controls.hold_sockets(self._config.templates)

    def metrics(self) -> bytes | None:
        """Numbers for Prometheus; None if they are turned off."""
        return self.event_gateways.metrics_text()

    def reload(self) -> Summary:
        """Apply the file as it is now; a bad one changes nothing.

        Raises:
            ConfigurationError: the file has problems; they are logged, too.
            RequestRefusedError: the system stops.
        """
        try:
            return self._reload()
        except RequestRefusedError as error:
            logger.error("config: {}", str(error))
            raise

    def shut_down(self) -> None:
        """End `rekindle run`, as a signal would: a second call hurries, a third kills."""
        os.kill(os.getpid(), signal.SIGTERM)

    def _reload(self) -> Summary:
        with self._changing:
            if self._config.text is not None:
                raise ConfigurationError("nothing was changed: the command line is the configuration")
            try:
                config = load(self._config.path)
            except ConfigError as error:
                raise ConfigurationError(f"nothing was changed: {error}") from None
            changes = self._apply(config)
            self.change_queues(config.periodic, config.queues)
            # By what runs: a setting that was taken back needs nothing.
            ignored = _needs_new_supervisor(self._begun_with, config)
            self._config = self._as_loaded = config
            note_log_files(config)
        summary = _summary(changes)
        if ignored:
            summary["after_a_restart_of_the_supervisor"] = ignored
        if config.warnings:
            summary["warnings"] = [str(warning) for warning in config.warnings]
        logger.info("config: reloaded {}. {}", str(config.path), " ".join(change_lines(summary)))
        return summary

    def scale(self, name: str, count: int, /) -> Summary:
        """Set the number of workers of a group, until the file is loaded again."""
        with self._changing:
            try:
                config = self._config.with_count(name, count)
            except ConfigError as error:
                raise ConfigurationError(str(error)) from None
            changes = self._apply(config)
            self._config = config
            note_log_files(config)
        return _summary(changes)

    def _apply(self, config: Config) -> Changes:
        """Supervise the workers of a file, once those of their ids that are being removed are gone."""
        specs = config.specs()
        ids = {spec.id for spec in specs}

        def are_gone() -> bool:
            return not any(each.leaving and each.component_id in ids for each in self.report().workers)

        with suppress(RequestTimeoutError):  # then the change is refused
            self._wait(are_gone, PATIENCE_S, "workers that are being removed")
        return self._controls.change(specs, holders=config.templates)

    def rolling_restart(self, name: str, /, surge: int | None = None, roll_back: bool = True) -> Summary:
        """Begin to restart a group one after the other, never with fewer than `min_healthy` up.

        With a surge, or if the group has the policy `rollout`, new processes are ready before old ones stop.
        """
        group = self._config.group(name)
        if surge is not None or group.template.rollout is not None:
            return self._begin_rollout(group, surge, roll_back)
        with self._changing:
            running = self._rolling.get(name)
            if running is not None and running.is_alive():
                raise RequestRefusedError(f"a rolling restart of {name} is under way")
            thread = threading.Thread(
                target=self._roll, args=(group,), name=f"rekindle-roll-{name}", daemon=True
            )
            self._rolling[name] = thread
            thread.start()
        return {"workers": list(group.ids), "min_healthy": group.min_healthy}

    def rolling(self, name: str, /) -> Rolling:
        """The state of the latest rolling restart of a group."""
        self._config.group(name)
        thread = self._rolling.get(name)
        latest = next((each for each in self.report().rollouts if each.group == name), None)
        if latest is not None and (thread is None or not thread.is_alive()):
            return Rolling(latest.stage != "over", latest.problem or None, latest.steps)
        return Rolling(thread is not None and thread.is_alive(), self._given_up.get(name))

    def _begin_rollout(self, group: WorkerTable, surge: int | None, roll_back: bool) -> Summary:
        with self._changing:
            running = self._rolling.get(group.name)
            if running is not None and running.is_alive():
                raise RequestRefusedError(f"a rolling restart of {group.name} is under way")
            self.roll_out(group.name, surge=surge, roll_back=roll_back)
            policy = group.template.rollout or RolloutPolicy()
        return {"workers": list(group.ids), "surge": policy.surge if surge is None else surge}

    def end_rolling(self) -> None:
        """End rolling restarts; one in progress ends at its next step."""
        self._ending.set()
        for thread in self._rolling.values():
            thread.join(PATIENCE_S)

    # ── an upgrade ───────────────────────────────────────────────────────────────────────

    def upgrade(self, python: str | None = None, /, *, only_check: bool = False) -> Summary:
        """Check another installation, and replace this program by it in the same process.

        Raises:
            RequestRefusedError: it is not possible; nothing was changed.
        """
        if self.upgrades is None:
            return super().upgrade(python, only_check=only_check)
        return self.upgrades.request(python, only_check=only_check)

    def leave_memory(self, estate: Estate, *, holds: bool = False) -> None:
        """Leave what only the actors know, and continue; `holds`: until the hand-over, which follows at once.

        Raises:
            RequestRefusedError: the system is stopping, or a worker is being removed.
            RequestTimeoutError: an actor does not answer.
        """
        leave_memory(estate, self._lifecycle.memory(holds=holds))

    def go_on(self) -> None:
        """Take over the processes that the former program left; end as it was about to, if it was."""
        if self._lifecycle.go_on():
            self.shut_down()

    def hand_over(self, estate: Estate) -> float:
        """Stop everything but the processes, and leave what the program that follows needs; since when."""
        return self._lifecycle.freeze(estate)

    def origins(self) -> Mapping[str, str | None]:
        """The configuration file, if there is one, and the database without its password."""
        file = str(self._config.path) if self._config.text is None else None
        return {"configuration": file, "database": self._database}

    def configuration(self) -> Configuration:
        """Every setting with its origin; secrets are masked."""
        return Configuration(
            self.origins()["configuration"], setting_origins(self._config, scaled=self.counts())
        )

    def logged(self, component_id: str, /, query: LogQuery) -> LogPage:
        """Lines of its log file, or of what the supervisor keeps in memory."""
        return stored_page(self.spec(component_id), query) or super().logged(component_id, query)

    def latest_upgrade(self) -> Summary:
        """How often this process was upgraded, and what became of the latest attempt."""
        return super().latest_upgrade() if self.upgrades is None else self.upgrades.latest()

    def obstacle(self) -> str | None:
        """Why this supervisor cannot be upgraded now; None if it can."""
        rolling = [name for name, thread in self._rolling.items() if thread.is_alive()]
        if rolling:
            return f"a rolling restart of {rolling[0]} is under way"
        if self._config.text is not None:
            return None
        try:
            config = load(self._config.path)
        except ConfigError as error:
            return f"the file has problems: {error}"
        loaded = self._as_loaded
        if (config.specs(), config.templates) != (loaded.specs(), loaded.templates):
            return f"{config.path} has changed since it was loaded: apply it first with: rekindle reload"
        fixed = [name for name in _FIXED if getattr(self._begun_with, name) != getattr(config, name)]
        return f"{', '.join(fixed)} changed, which needs a restart of the supervisor" if fixed else None

    def counts(self) -> dict[str, int]:
        """How many workers of a group run, where that differs from the file."""
        loaded = {group.name: group.count for group in self._as_loaded.groups}
        return {
            group.name: group.count for group in self._config.groups if group.count != loaded.get(group.name)
        }

    def loaded_as(self, config: Config) -> None:
        """The file is this; what differs was scaled under the former program of this process."""
        self._as_loaded = config

    # ── a rolling restart ────────────────────────────────────────────────────────────────

    def _roll(self, group: WorkerTable) -> None:
        self._given_up.pop(group.name, None)
        try:
            for id_ in group.ids:
                self._roll_one(id_, group)
        except RekindleError as error:
            self._given_up[group.name] = str(error)
            logger.error("fleet: rolling restart of {} abandoned: {}", group.name, str(error))
        else:
            logger.info("fleet: rolling restart of {} completed", group.name)

    def _roll_one(self, id_: str, group: WorkerTable) -> None:
        if self.status(id_).shown in DOWN:
            return
        spec = group.template
        self._wait(lambda: self._can_spare(id_, group), PATIENCE_S, f"{group.min_healthy} healthy others")
        before = self.status(id_).generation
        self.restart(id_)
        steady = Steady(STAYS_UP_S)
        self._wait(
            lambda: steady(self._is_renewed(id_, before)),
            spec.stop.total_s + spec.health.startup_timeout_s + STAYS_UP_S + PATIENCE_S,
            f"{id_} to be healthy again",
        )

    def _can_spare(self, id_: str, group: WorkerTable) -> bool:
        members = [worker for worker in self.report().workers if worker.component_id in group.ids]
        healthy = {worker.component_id for worker in members if worker.status is Status.HEALTHY}
        wanted = sum(worker.shown not in DOWN for worker in members)
        fewest = max(0, wanted - 1) if group.declared_min_healthy is None else group.min_healthy
        return id_ not in healthy or len(healthy - {id_}) >= fewest

    def _is_renewed(self, id_: str, before: int) -> bool:
        worker = self.status(id_)
        if worker.shown is ShownStatus.FAILED:
            raise RequestRefusedError(f"{id_} failed: {worker.failure_reason}")
        if worker.generation > before and (worker.shown is ShownStatus.CRASHED or worker.restart_count):
            raise RequestRefusedError(f"{id_} did not stay up")  # its counters were cleared by our restart
        return worker.generation > before and worker.status is Status.HEALTHY

    def _wait(self, condition: Callable[[], bool], within_s: float, what: str) -> None:
        deadline = time.monotonic() + within_s
        with self.events() as events:
            while not condition():
                if self._ending.is_set():
                    raise RequestRefusedError("the supervisor stops")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise RequestTimeoutError(f"waited {within_s:g} s for {what}")
                with suppress(RequestTimeoutError):
                    events.next(min(left, GLANCE_S))


class Steady:
    """Whether something was true at every check for a given time."""

    def __init__(self, for_s: float) -> None:
        self._for_s = for_s
        self._since: float | None = None

    def __call__(self, is_true: bool) -> bool:
        """Take another look."""
        now = time.monotonic()
        if not is_true:
            self._since = None
        elif self._since is None:
            self._since = now
        return self._since is not None and now - self._since >= self._for_s


def _summary(changes: Changes) -> dict[str, object]:
    return {kind: list(ids) for kind, ids in asdict(changes).items() if ids}


def _needs_new_supervisor(before: Config, after: Config) -> list[str]:
    """Settings that changed and that a running supervisor cannot take up."""
    names = (
        *("state_dir", "database", "worker_database", "max_concurrent_starts", "retention"),
        *("http", "alerts", "nats", "otel", "metrics"),
    )
    return [name for name in names if getattr(before, name) != getattr(after, name)]
