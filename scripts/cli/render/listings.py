"""Pure: deaths, commands and their outcomes as lines of text, from the server's JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .change_text import be, listed
from .status_table import Document, table
from .text import age, exit_words, moment, printable, signal_name, span

_DECISIONS = {
    "restart": "restart",
    "restart_uncounted": "restart, not counted",
    "mark_failed": "given up",
    "notify_only": "notified, not restarted",
    "none": "not restarted",
}


def history_lines(deaths: Sequence[Document], now_ms: int, *, width: int | None = None) -> list[str]:
    """A table of deaths."""
    heading: tuple[str, ...] = ("WHEN", "AT", "GEN", "CAUSE", "UPTIME", "DECISION", "DELAY", "WHY")
    rows = [_death(death, now_ms) for death in deaths]
    if any(death.get("node") for death in deaths):
        heading = (*heading[:2], "NODE", *heading[2:])
        rows = [
            (*row[:2], printable(death.get("node") or "-"), *row[2:])
            for row, death in zip(rows, deaths, strict=True)
        ]
    return table(heading, rows, width=width)


def last_known_lines(workers: Sequence[Document], now_ms: int, *, width: int | None = None) -> list[str]:
    """A table of workers whose supervisor does not run."""
    heading = ("WORKER", "STATUS", "GEN", "RESTARTS", "LAST DEATH")
    return table(heading, [_last_known(worker, now_ms) for worker in workers], width=width)


def _last_known(worker: Document, now_ms: int) -> tuple[str, ...]:
    death = worker["last_death"]
    last = "-" if death is None else f"{age(now_ms - death['died_at_wall_ms'])}: {cause(death)}"
    if worker["failure_reason"]:
        last += f"; given up: {printable(worker['failure_reason'])}"
    id_, generation, restarts = worker["component_id"], worker["generation"], worker["restart_count"]
    return (printable(id_), worker["shown"], str(generation or "-"), str(restarts), last)


def _death(death: Document, now_ms: int) -> tuple[str, ...]:
    action = str(death["action"])
    return (
        age(now_ms - death["died_at_wall_ms"]),
        moment(death["died_at_wall_ms"]),
        str(death["generation"]),
        cause(death),
        span(death["uptime_ms"]),
        _DECISIONS.get(action, action),
        span(death["delay_ms"]) if action.startswith("restart") else "-",
        printable(death["reason"]),
    )


def cause(death: Document) -> str:
    """Why it counts as dead, and how its process ended: `heartbeat lost, killed by SIGKILL`."""
    code, signal = death["exit_code"], death["signal"]
    word = str(death["cause"])
    if word in ("exited", "signalled", "unknown"):
        return exit_words(code, signal)
    told = word.replace("_", " ")
    return told if code is None and signal is None else f"{told}, {exit_words(code, signal)}"


def alert_lines(alerts: Sequence[Document], now_ms: int, *, width: int | None = None) -> list[str]:
    """A table of alerts."""
    heading = ("#", "SEVERITY", "WORKER", "SINCE", "TIMES", "STATE", "WHAT")
    return table(heading, [_alert(alert, now_ms) for alert in alerts], width=width)


def _alert(alert: Document, now_ms: int) -> tuple[str, ...]:
    text = alert["message"] if not alert["reason"] else f"{alert['message']}; {alert['reason']}"
    return (
        str(alert["id"]),
        alert["severity"],
        printable(alert["component_id"] or "-"),
        age(now_ms - alert["opened_at_wall_ms"]),
        str(alert["occurrences"]),
        _alert_state(alert),
        printable(text),
    )


def _alert_state(alert: Document) -> str:
    if alert["resolved_at_wall_ms"] is not None:
        return "resolved"
    if alert["acknowledged_at_wall_ms"] is not None:
        return f"acknowledged by {printable(alert['acknowledged_by'] or 'an operator')}"
    return "escalated" if alert["escalated"] else "open"


def resource_lines(used: Sequence[Document], *, width: int | None = None) -> list[str]:
    """A table of what workers use."""
    if not used:
        return ["no worker runs"]
    heading = ("WORKER", "MEMORY", "CPU", "THREADS", "DESCRIPTORS")
    return table(heading, [_usage(each) for each in used], width=width)


def _usage(used: Document) -> tuple[str, ...]:
    cpu, descriptors = used["cpu_percent"], used["descriptors"]
    return (
        printable(used["id"]),
        f"{used['memory_mb']:.1f} MB",
        "-" if cpu is None else f"{cpu:.1f} %",
        str(used["threads"]),
        "-" if descriptors is None else str(descriptors),
    )


def stray_lines(strays: Sequence[Document]) -> list[str]:
    """Processes that left the session of their worker."""
    return [
        f"{printable(stray['id'])}: process {stray['pid']} detached from its worker and is still running"
        for stray in strays
    ]


def audit_lines(
    entries: Sequence[Document],
    now_ms: int,
    *,
    user_name: Callable[[int], str] = str,
    width: int | None = None,
) -> list[str]:
    """A table of commands; `user_name` turns a uid into a name."""
    heading = ("WHEN", "AT", "WHO", "ORDER", "TARGET", "RESULT", "DETAIL")
    return table(heading, [_order(entry, now_ms, user_name) for entry in entries], width=width)


def _order(entry: Document, now_ms: int, user_name: Callable[[int], str]) -> tuple[str, ...]:
    uid, claimed = entry["uid"], entry["claimed_user"]
    who = (entry["gateway"] if claimed else "?") if uid is None else user_name(uid)
    text = "; ".join(text for text in (entry["detail"], entry["reason"]) if text)
    detail = " ".join(line.strip() for line in text.splitlines())  # for example one problem per line
    return (
        age(now_ms - entry["at_wall_ms"]),
        moment(entry["at_wall_ms"]),
        printable(f"{who} for {claimed}" if claimed else who),
        printable(entry["action"].replace("_", " ")),
        printable(entry["target"]) or "everything",
        printable(entry["result"]),
        printable(detail),
    )


def stop_line(id_: str, detail: Document) -> str:
    """How a worker that was stopped ended."""
    end, forced = detail.get("exit"), detail.get("forced")
    if not detail.get("gone", True):
        return f"{id_} survived SIGKILL; no new process starts until it is gone."
    if end is None:
        until = "until you start it or restart the supervisor"
        return f"{id_} was not running; it stays stopped {until}; to keep it stopped: rekindle pause {id_}"
    how = exit_words(end["code"], end["signal"])
    made = "" if forced is None or forced == end["signal"] else f" after {signal_name(forced)}"
    if detail.get("relaunched"):
        return f"{id_} ended ({how}{made}) and was started again because of another command."
    return f"{id_} is stopped: {how}{made}."


def pause_line(ids: Sequence[str], reason: str, for_s: float | None, detail: Document) -> str:
    """What was paused, why, how it ends, and what that does to the processes."""
    what = listed(ids) or "The system"
    because = f" ({reason})" if reason else ""
    end = "until it is resumed" if for_s is None else f"for {span(for_s * 1000)}"
    stopped, idle = len(detail.get("stopped", ())), len(detail.get("idle", ()))
    if ids:
        effects = ["its process is being stopped"] * bool(stopped)
        effects += ['its process keeps running and idles (pause_mode = "idle")'] * bool(idle)
    else:
        effects = [f"{_processes(stopped)} being stopped"] * bool(stopped)
        effects += [f'{_processes(idle)} kept and idle (pause_mode = "idle")'] * bool(idle)
    return f"{what} {be(ids)} paused {end}{because}; {', '.join(effects) or 'no process was running'}."


def _processes(count: int) -> str:
    return "1 process is" if count == 1 else f"{count} processes are"


def resume_line(still_paused: Sequence[str]) -> str:
    """The result of resuming the system."""
    if not still_paused:
        return "The system is resumed."
    return f"The system is resumed; still paused individually: {listed(still_paused)}."


def no_pause_line(alone: Sequence[str]) -> str:
    """The system was not paused; names the workers that are paused individually."""
    if not alone:
        return "Nothing is paused."
    resume = f"rekindle resume {' '.join(printable(id_) for id_ in alone)}"
    return f"The system is not paused; paused individually: {listed(alone)} ({resume})."
