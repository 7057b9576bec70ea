"""What the settings of a file need of this machine: extras, secret files, a free port, a safe directory.

`rekindle run` refuses to start without them, and `rekindle config check` reports them in the same words. What
the user of one worker can have put in the way of its log file, its variables or its socket keeps no other
worker from its start.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from rekindle.actors.errors import RekindleError, SocketError
from rekindle.actors.gateways.gateway_errors import GatewayError
from rekindle.actors.gateways.secret_file import read_secret
from rekindle.actors.gateways.settings.http_settings import HttpSettings
from rekindle.actors.gateways.state_directory import check_path_to, check_state_directory
from rekindle.actors.processes.logs.log_folder import check as check_log_file
from rekindle.actors.processes.logs.log_folder import denial
from rekindle.actors.processes.logs.log_writer import log_path
from rekindle.actors.processes.sockets.bound_socket import BoundSocket
from rekindle.actors.processes.sockets.inherited_sockets import without_inherited
from rekindle.actors.processes.sockets.listening_sockets import sockets_of
from rekindle.actors.processes.trusted_path import may_be_of_others

from ..client import ControlClient, ControlError, NoSupervisorError
from ..config import Config
from ..config.problems import ConfigFinding, KeyPath
from ..state_files import SOCKET_NAME

_ANSWER_S = 2.0


def unmet_needs(config: Config, *, of_others: bool = True) -> Iterator[ConfigFinding]:
    """What this machine lacks; the supervisor that already runs the file is not in its own way.

    Args:
        config: the file.
        of_others: whether to report log files, files of variables and sockets that another user can have
            made unusable.
    """
    yield from _unmet(("state_dir",), partial(_check_state_directory, config.state_dir))
    yield from _unmet(("database",), partial(_check_database, config.database))
    yield from _unmet_by_job_workers(config)
    yield from _unmet_by_logs(config, of_others)
    if of_others:
        yield from _obstacles(config)
    if config.nats is not None:
        from rekindle.actors.gateways.nats.connection_options import check as check_nats

        yield from _unmet(("nats",), partial(check_nats, config.nats))
    if config.otel is not None:
        from rekindle.actors.gateways.otel.span_exporter import check as check_otel

        yield from _unmet(("otel",), partial(check_otel, config.otel))
    if config.metrics:
        from rekindle.actors.gateways.metrics.exposition import check as check_metrics

        yield from _unmet(("metrics",), check_metrics)
    for sink in config.alerts.sinks:
        if sink.secret_file is not None:
            here = ("alerts", "sink", sink.name, "secret_file")
            yield from _unmet(here, partial(read_secret, sink.secret_file))
    if config.http is not None:
        yield from _unmet_by_http(config.http, config.state_dir)
    yield from _unmet_by_sockets(config, of_others)


def _unmet(path: KeyPath, check: Callable[[], object]) -> Iterator[ConfigFinding]:
    try:
        check()
    except RekindleError as error:
        yield ConfigFinding(path, str(error))


def _unmet_by_job_workers(config: Config) -> Iterator[ConfigFinding]:
    """Workers of another user that serve queues: the supervisor's SQLite file is closed to them."""
    if config.database.startswith("postgres"):
        return
    for group in config.groups:
        user, jobs = group.template.user, group.template.jobs
        if jobs is None or jobs.via == "supervisor" or not group.template.serves:
            continue
        if user is not None and _uid_of(user) not in (None, os.geteuid(), 0):
            reason = (
                f"{user} cannot open the queues in {config.database}, which only the supervisor's user can;"
                " a worker of another user needs a PostgreSQL database to serve queues,"
                ' or jobs.via = "supervisor"'
            )
            yield ConfigFinding(("worker", group.name, "user"), reason)


def _unmet_by_logs(config: Config, of_others: bool) -> Iterator[ConfigFinding]:
    for spec in config.specs():
        if spec.log is None or spec.log.file is None:
            continue
        path = log_path(spec)
        if of_others or not may_be_of_others(path):
            yield from _unmet(("worker", spec.group, "log", "file"), partial(check_log_file, path))


def _obstacles(config: Config) -> Iterator[ConfigFinding]:
    """Files of variables that another user has made unusable: each start of these workers fails."""
    told = dict.fromkeys((spec.group, spec.obstacle) for spec in config.specs() if spec.obstacle)
    for group, obstacle in told:
        yield ConfigFinding(("worker", group, "env_file"), obstacle)


def _uid_of(user: str) -> int | None:
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None  # reported with the other problems of the worker


def _unmet_by_http(settings: HttpSettings, state_dir: Path) -> Iterator[ConfigFinding]:
    from rekindle.actors.gateways.http.http_server import bound, tls_settings

    yield from _unmet(("http", "tls_cert"), partial(tls_settings, settings))
    if not _is_running(state_dir):
        yield from _unmet(("http", "listen"), lambda: bound(settings.listen).close())


def _unmet_by_sockets(config: Config, of_others: bool) -> Iterator[ConfigFinding]:
    """Sockets that cannot be opened here, each by itself; the running supervisor has its own open."""
    sockets = without_inherited(sockets_of(config.templates))
    if sockets and not _is_running(config.state_dir):
        for each in sockets:
            if each.path is not None and not of_others and may_be_of_others(each.path):
                continue
            try:
                BoundSocket(each).close()
            except SocketError as error:
                yield ConfigFinding(("socket", each.name, "listen"), error.reason)


def _is_running(state_dir: Path) -> bool:
    """Whether a supervisor uses the directory; then it may be the one that has the port."""
    try:
        ControlClient(state_dir / SOCKET_NAME).get("/info", timeout_s=_ANSWER_S)
    except NoSupervisorError:
        return False
    except ControlError:
        return True
    return True


def _check_state_directory(directory: Path) -> None:
    """Check the directory, or the one that it would be created in; nothing is created."""
    if directory.exists():
        check_state_directory(directory)
        return
    there = next(parent for parent in directory.parents if parent.exists())
    if not there.is_dir():
        raise GatewayError(f"cannot use {directory} as state directory: {there} is not a directory")
    if (reason := denial(there)) is not None:
        raise GatewayError(f"cannot use {directory} as state directory: {reason}")
    check_path_to(directory)


def _check_database(database: str) -> None:
    from rekindle.persistence.database.engines import check_address

    check_address(database)
