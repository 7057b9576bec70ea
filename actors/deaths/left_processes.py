"""Pure: what it means that a worker ended and left processes behind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rekindle.worker.plain_text import span

if TYPE_CHECKING:
    from .death import Exit

QUICK_MS = 10_000
"""A program that ends well sooner than this, and leaves processes, probably daemonises."""

AT_ONCE_MS = 2000
"""A program that ends well sooner than this may daemonise, if it is not known what it leaves."""

_FOREGROUND = {
    "apache2": "add -D FOREGROUND",
    "celery": "use `celery worker`, without --detach, instead of `celery multi`",
    "cron": "add -f",
    "dnsmasq": "add --keep-in-foreground",
    "docker": "leave out -d",
    "gunicorn": "leave out --daemon",
    "haproxy": "leave out -D, or add -db",
    "httpd": "add -D FOREGROUND",
    "memcached": "leave out -d",
    "mongod": "leave out --fork",
    "mysqld": "leave out --daemonize",
    "named": "add -f",
    "nginx": "add -g 'daemon off;'",
    "pg_ctl": "run postgres itself",
    "php-fpm": "add --nodaemonize",
    "pm2": "use pm2-runtime",
    "rabbitmq-server": "leave out -detached",
    "redis-server": "add --daemonize no",
    "rsyslogd": "add -n",
    "squid": "add --foreground",
    "sshd": "add -D",
    "supervisord": "add --nodaemon",
    "uwsgi": "leave out --daemonize",
    "varnishd": "add -F",
}
"""What keeps programs that are known to daemonise in the foreground."""
_SHELLS = frozenset({"bash", "dash", "ksh", "sh", "zsh"})


def daemon_hint(exit_: Exit, lived_ms: int, left: Collection[int] | None, command: Sequence[str] = ()) -> str:
    """What to say of a worker that probably daemonises, about `it`; empty for any other.

    Args:
        exit_: how it ended.
        lived_ms: how long it lived.
        left: the processes that it left; None if these were not looked for.
        command: what it ran, which may tell how to run that in the foreground.
    """
    if not exit_.clean:
        return ""
    remedy = _remedy(command)
    if left is None and lived_ms < AT_ONCE_MS:
        known = f" ({remedy})" if remedy else ""
        return (
            f"ended well right after its start: a program that daemonises must run in the foreground{known}."
        )
    if left and lived_ms < QUICK_MS:
        what = f"exited with 0 after {span(lived_ms)} and left {listed(left)}"
        return f"{what}: does it daemonise? Run it in the foreground{f': {remedy}' if remedy else ''}."
    return ""


def left_running(exit_: Exit, lived_ms: int, left: Collection[int] | None) -> str:
    """The same in a few words, after `exited with code 0`; empty if it is not known to have left any."""
    return f"left {listed(left)}: does it daemonise?" if left and exit_.clean and lived_ms < QUICK_MS else ""


def _remedy(command: Sequence[str]) -> str:
    name = command[0].rpartition("/")[2] if command else ""
    if name in _SHELLS and len(command) > 2:
        return "leave out &, nohup and setsid, and let the shell `exec` the program"
    return next(
        (_FOREGROUND[each] for each in (name, name.rstrip("0123456789.-")) if each in _FOREGROUND), ""
    )


def listed(pids: Collection[int]) -> str:
    """Processes in words."""
    numbers = ", ".join(map(str, sorted(pids)))
    return f"process {numbers}" if len(pids) == 1 else f"processes {numbers}"
