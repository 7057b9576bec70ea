"""Pure: the answer to `GET /workers` as a table.

Everything here takes the JSON that the server sends, so the same table serves `status`, its
`--watch`, and the demo.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .job_progress import progress_cell
from .run_lines import run_outlook
from .text import cells, countdown, cut, padded, printable, span

Document = Mapping[str, Any]

COLOURS = {
    "healthy": "32",
    "starting": "36",
    "crashed": "33",
    "failed": "31",
    "stopping": "35",
    "stopped": "2",
    "done": "32",
    "scheduled": "36",
}
LONGEST_COMMAND = 60
_FLAGGED = "33"
_HEADING = "1"
_GAP = "  "
_UNLIMITED = 1 << 30


def status_lines(
    report: Document, *, colour: bool = False, width: int | None = None, wide: bool = False
) -> list[str]:
    """The table of all workers in a report, and the problems of the system.

    Args:
        report: the server's answer.
        colour: colour the status words.
        width: how many columns the terminal has; None cuts nothing.
        wide: show the exact status, the last heartbeat, the generation, the lifetime count, what a pause
            does, CPU, memory and the command too.
    """
    workers = report["workers"]
    nodes = any(worker.get("node") for worker in workers)
    rows = [row(worker, wide=wide, nodes=nodes) for worker in workers]
    codes = [_code(worker) for worker in workers] if colour else None
    lines = (
        table(headings(wide=wide, nodes=nodes), rows, width=width, colours=codes) if rows else ["no workers"]
    )
    return [*lines, *(cut(line, width or _UNLIMITED) for line in footer(report))]


def table(
    heading: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int | None = None,
    colours: Sequence[str] | None = None,
) -> list[str]:
    """Rows under headings, each column as wide as its widest cell, no line wider than `width`.

    Args:
        heading: one word per column.
        rows: as many cells as headings; the last column is cut first.
        width: None cuts nothing.
        colours: of each row's second cell.
    """
    widths = [max(map(cells, column)) for column in zip(heading, *rows, strict=True)]
    limit = _UNLIMITED if width is None else width
    lines = [_line(heading, widths, limit)]
    if colours is None:
        return lines + [_line(each, widths, limit) for each in rows]
    lines[0] = _painted(lines[0], _HEADING)
    for each, code in zip(rows, colours, strict=True):
        start = len(padded(each[0], widths[0]) + _GAP)
        lines.append(_with_colour(_line(each, widths, limit), each[1], start, code))
    return lines


def headings(*, wide: bool = False, nodes: bool = False) -> tuple[str, ...]:
    """The headings of the table of workers, with their nodes in a cluster."""
    further = ("STATE", "HEARD", "GEN", "TOTAL", "PAUSE", "CPU", "MEMORY", "COMMAND") if wide else ()
    place = ("NODE",) if nodes else ()
    return ("WORKER", "STATUS", *place, "PID", "UPTIME", "JOB", "RESTARTS", *further, "NEXT")


def row(worker: Document, *, wide: bool = False, nodes: bool = False) -> tuple[str, ...]:
    """One worker's cells."""
    pid, uptime, job = worker["pid"], worker["uptime_ms"], worker["current_job"]
    further: tuple[str, ...] = ()
    if wide:
        age = worker.get("heartbeat_age_ms")
        further = (
            worker["status"] or "-",
            "-" if age is None else f"{span(age // 1000 * 1000)} ago",
            str(worker["generation"]),
            str(worker["restart_count"]),
            worker["pause_mode"],
            *_usage(worker),
            cut(printable(worker.get("command") or "-"), LONGEST_COMMAND),
        )
    return (
        printable(worker["component_id"]),
        worker["shown"],
        *((printable(worker.get("node") or "-"),) if nodes else ()),
        "-" if pid is None else str(pid),
        "-" if uptime is None else span(uptime // 1000 * 1000),
        "-" if job is None else cut(printable(str(job)), 20),
        restarts(worker),
        *further,
        outlook(worker),
    )


def _usage(worker: Document) -> tuple[str, str]:
    """The CPU and the memory that it uses now, if they were measured."""
    used = worker.get("usage")
    return ("-", "-") if used is None else (f"{used['cpu_percent']:.0f} %", f"{used['memory_mb']:.0f} MB")


def restarts(worker: Document) -> str:
    """Restarts used of the limit with the least left: `4/5`; the number in all if no limit applies."""
    nearest = None if worker["shown"] == "failed" else _nearest_limit(worker["budget"])
    return str(worker["restart_count"]) if nearest is None else "{}/{}".format(*nearest)


def outlook(worker: Document) -> str:
    """What happens next, or why nothing does; empty for a healthy worker."""
    shown = worker["shown"]
    if shown == "failed":
        return printable(f"failed: {worker['failure_reason'] or worker['why']}")
    if worker["paused"]:
        return _pause(worker)
    if worker["next_attempt_in_ms"] is not None:
        return _attempt(worker)
    if shown == "scheduled" and worker.get("schedule"):
        return printable(run_outlook(worker["schedule"]))
    if worker["waits_for"]:
        return printable(f"waits for {', '.join(worker['waits_for'])}")
    if shown == "starting" and worker.get("not_ready") and not worker["why"]:
        return printable(f"awaits {'; '.join(worker['not_ready'])}")
    if shown == "healthy" and worker.get("schedule") and worker["schedule"]["current"]:
        return f"run {worker['schedule']['current']['number']}"
    if shown == "healthy":
        return printable(_condition(worker))
    if worker["why_code"] == "stopped":
        return "stays stopped until it is started"
    return "" if worker["why_code"] == "stopping" else printable(worker["why"])


def _condition(worker: Document) -> str:
    """How far its jobs are, what it says of itself, and how its probe goes if it is not well."""
    if worker["status"] == "healthy":
        return "; ".join(filter(None, (progress_cell(worker), str(worker.get("said") or ""))))
    probes = worker.get("probes")
    return f"{worker['status'] or ''}: {probes[0]}" if probes else str(worker["status"] or "")


def footer(report: Document) -> list[str]:
    """The state of the system: pause, store, groups, breakers, gateways."""
    lines = []
    if report["paused"]:
        lines.append("The system is paused; to resume it, run: rekindle resume")
    lines += (_paused_queue(pause) for pause in report.get("paused_queues", ()))
    if report["degraded"] is not None:
        many = report["unsaved"]
        records = f"{many} record{'' if many == 1 else 's'}"
        lines.append(f"The store is degraded, {records} not saved yet: {printable(report['degraded'])}")
    lines += (group_line(group) for group in report.get("groups", ()))
    lines += (breaker_line(breaker) for breaker in report.get("breakers", ()))
    lines += (rollout_line(each) for each in report.get("rollouts", ()) if each["stage"] != "over")
    lines += nodes_lines(report.get("nodes", ()))
    lines += (_away(gateway) for gateway in report.get("gateways", ()) if not gateway["connected"])
    return ["", *lines] if lines else []


def _paused_queue(pause: Document) -> str:
    name, why = printable(pause["queue"]), printable(pause.get("reason") or "")
    left = pause.get("ends_in_ms")
    lasts = "" if left is None else f" for {countdown(left)} more"
    because = f": {why}" if why else ""
    return f"The queue {name} is paused{lasts}{because}; to resume it, run: rekindle queues resume {name}"


def nodes_lines(nodes: Sequence[Document]) -> list[str]:
    """The nodes of a cluster on one line: their states, and how old what they say of their workers is."""
    return [f"Nodes: {', '.join(map(_node, nodes))}"] if nodes else []


def _node(node: Document) -> str:
    age, why = node["age_ms"], node["why"]
    notes = [
        "this one" if node["is_own"] else "",
        "leads" if node["leads"] else "",
        "" if age is None or node["is_own"] else f"heard {age / 1000:.1f} s ago",
        f"{why}{f' ({by})' if (by := node['by']) else ''}" if why else "",
    ]
    noted = ", ".join(filter(None, notes))
    return printable(f"{node['name']} {node['state']}{f' ({noted})' if noted else ''}")


def rollout_line(rollout: Document) -> str:
    """How far a rollout is, and why it is ended, if it is."""
    so_far = f"{len(rollout['replaced'])} of {len(rollout['workers'])} replaced"
    beside = f"{', '.join(rollout['spares'])} beside"
    problem = f", ended because {rollout['problem']}" if rollout["problem"] else ""
    return printable(f"Rollout of {rollout['group']}: {so_far}, {beside}{problem}")


def group_line(group: Document) -> str:
    """A group that stands and falls together: its strategy, members and budget, or why it is given up."""
    what = f"Group {group['name']} ({group['strategy']}: {', '.join(group['members'])})"
    if group["given_up"] is not None:
        return printable(f"{what} is given up because of {group['because']}: {group['given_up']}")
    allowed = "" if group["max_in_window"] is None else f" of {group['max_in_window']}"
    return printable(f"{what}: {group['used']}{allowed} restarts used in {span(group['window_ms'])}")


def breaker_line(breaker: Document) -> str:
    """The workers that a breaker holds back, since when, and its canary."""
    held, canary = len(breaker["held"]), breaker["canary"]
    if canary is None:
        left = breaker["next_try_in_ms"] or 0
        then = f"canary in {countdown(left)}" if left > 0 else "canary as soon as possible"
    else:
        then = f"canary {canary} is being tried"
    many = f"{held} worker{'' if held == 1 else 's'} held back"
    what = f"Breaker {breaker['name']} open for {countdown(breaker['open_for_ms'])}, {many}, {then}"
    return printable(f"{what}: {breaker['why']}")


def _away(gateway: Document) -> str:
    dropped = f", {gateway['dropped']} dropped" if gateway["dropped"] else ""
    goods = "Alerts" if gateway["name"].startswith("alert sink") else "Events"
    what = f"{goods} are not delivered to {gateway['name']} ({gateway['waiting']} waiting{dropped})"
    return f"{what}: {printable(gateway['detail'])}"


def summary(workers: Iterable[Document]) -> str:
    """How many workers have each status: `3 workers: 2 healthy, 1 failed`."""
    counted = Counter(worker["shown"] for worker in workers)
    number = counted.total()
    listed = ", ".join(f"{counted[word]} {word}" for word in COLOURS if counted[word])
    return f"{number} worker{'' if number == 1 else 's'}" + (f": {listed}" if listed else "")


def _pause(worker: Document) -> str:
    reason, left = worker["pause_reason"], worker["pause_ends_in_ms"]
    text = f"paused: {printable(reason)}" if reason else "paused"
    return text if left is None else f"{text}, {countdown(left)} left"


def _attempt(worker: Document) -> str:
    nearest = _nearest_limit(worker["budget"])
    number = f"restart {worker['streak_count']}" if nearest is None else "restart {} of {}".format(*nearest)
    left = worker["next_attempt_in_ms"]
    when = f"{number} in {countdown(left)}" if left > 0 else f"{number} now"
    return f"{when}: {printable(worker['last_error'])}" if worker.get("last_error") else when


def _nearest_limit(budget: Document) -> tuple[int, int] | None:
    """(used, limit) of the limit with the least left; None without limits."""
    limits = [
        (int(budget[used]), int(budget[limit]))
        for used, limit in (
            ("in_window", "max_in_window"),
            ("consecutive", "max_consecutive"),
            ("lifetime", "max_lifetime"),
        )
        if budget[limit] is not None
    ]
    return min(limits, key=lambda pair: pair[1] - pair[0], default=None)


def _line(row: Sequence[str], widths: Sequence[int], limit: int) -> str:
    fitted = [padded(cell, width) for cell, width in zip(row[:-1], widths, strict=False)]
    return cut(_GAP.join([*fitted, row[-1]]).rstrip(), limit)


def _code(worker: Document) -> str:
    shown = worker["shown"]
    flagged = shown == "healthy" and worker["status"] != "healthy"
    return _FLAGGED if flagged else COLOURS.get(shown, "0")


def _with_colour(line: str, word: str, start: int, code: str) -> str:
    """The line with the word at that place coloured, unless it was cut."""
    end = start + len(word)
    return line[:start] + _painted(word, code) + line[end:] if line[start:end] == word else line


def _painted(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"
