"""Pure: the evidence of a death, groups of crashes and a bug report as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from rekindle.actors.deaths.left_processes import listed

from .status_table import Document
from .text import (
    age,
    exit_words,
    moment,
    printable,
    signal_name,
    since,
    span,
)

_FINDINGS = {
    "operator": "stopped by an operator",
    "killed_by_us": "killed by Rekindle",
    "hung": "hung",
    "unhealthy": "unhealthy by its own report",
    "out_of_memory": "out of memory",
    "out_of_memory_suspected": "out of memory (suspected)",
    "segmentation_fault": "segmentation fault",
    "fatal_signal": "fatal signal",
    "exception": "exception",
    "exit": "exited on its own",
    "not_started": "not started",
    "unknown": "unknown",
}


def finding(word: str) -> str:
    """The cause of a death in a few words."""
    return _FINDINGS.get(word, printable(word))


def bundle_lines(bundle: Document, now_ms: int, groups: Sequence[Document] = ()) -> Iterator[str]:
    """One death with all its evidence."""
    id_, generation = printable(bundle["component_id"]), bundle["generation"]
    when = f"{moment(bundle['at_wall_ms'])} ({age(now_ms - bundle['at_wall_ms'])})"
    yield f"{id_}, generation {generation}, died {when}."
    yield printable(f"{finding(bundle['finding'])} ({bundle['confidence']}): {bundle['sentence']}")
    if not _is_ending(bundle):  # until then it cannot be compared with other crashes
        yield from (group_line(group, now_ms) for group in groups if group["crash"] == bundle["crash"])
    yield ""
    yield from (f"{name:<14} {value}" for name, value in facts(bundle))
    if bundle["last_words"]:
        yield from ("", "Traceback:")
        yield from (f"  {printable(line)}" for line in bundle["last_words"].splitlines())
    if bundle["output"]:
        yield from ("", "Last lines:")
        yield from (printable(f"  {stream} | {text}") for stream, text in bundle["output"])


def _is_ending(bundle: Document) -> bool:
    """Whether its process was taken for dead and is still being ended."""
    return (
        bundle["finding"] in ("hung", "unhealthy")
        and bundle["exit_code"] is None
        and bundle["signal"] is None
    )


def facts(bundle: Document) -> Iterator[tuple[str, str]]:
    """What is known besides the finding, as names and values."""
    yield "exit", "not yet" if _is_ending(bundle) else exit_words(bundle["exit_code"], bundle["signal"])
    cause = str(bundle["cause"]).replace("_", " ")
    detail = str(bundle["detail"])
    if bundle["finding"] == "operator":  # then the detail is a code
        detail = detail.replace("_", " ")
    yield "cause", printable(f"{cause}: {detail}" if detail else cause)
    yield "uptime", span(bundle["uptime_ms"])
    yield from _given("pid", bundle["pid"])
    yield from _given("directory", bundle.get("cwd"))
    yield from _given("job", bundle["job"])
    if bundle["heartbeat_wall_ms"] is not None:
        silence = span(bundle["at_wall_ms"] - bundle["heartbeat_wall_ms"])
        yield "last heartbeat", f"{silence} before its death"
    yield from _given("progress", bundle["progress"])
    yield from (("probe", printable(answer)) for answer in bundle.get("probes", ()))
    if bundle["sent"] is not None:
        yield "our signal", signal_name(bundle["sent"])
    if bundle.get("left"):
        yield "left", f"{listed(bundle['left'])}, ended by Rekindle"
    if bundle["usage"] is not None:
        yield from _usage(bundle["usage"], bundle["memory_limit_kb"])
    if bundle["oom_kills"] is not None:
        yield "OOM kills", f"{bundle['oom_kills']} in its cgroup while it lived"
    if _is_ending(bundle):
        return
    fingerprint = bundle["fingerprint"]
    yield (
        "fingerprint",
        printable(f"code {fingerprint['code'] or '?'}, configuration {fingerprint['configuration'] or '?'}"),
    )
    yield "crash", printable(str(bundle["crash"]))


def _given(name: str, value: object) -> Iterator[tuple[str, str]]:
    if value is not None:
        yield name, printable(str(value))


def _usage(usage: Document, limit_kb: int | None) -> Iterator[tuple[str, str]]:
    yield "CPU", f"{span(usage['user_ms'])} user, {span(usage['system_ms'])} system"
    most = "at most " if usage["peak_is_a_bound"] else ""
    of = "" if limit_kb is None else f" of {_megabytes(limit_kb)}"
    yield "peak memory", f"{most}{_megabytes(usage['peak_rss_kb'])}{of}"


def _megabytes(kilobytes: int) -> str:
    return f"{kilobytes / 1024:.0f} MB"


def group_line(group: Document, now_ms: int, shown: Callable[[str], str] = printable) -> str:
    """`The same crash, 14 times since Tuesday: …`."""
    sentence = shown(group["sentence"])
    if group["times"] == 1:
        return f"The only crash of this kind: {sentence}"
    began = since(group["first_wall_ms"], now_ms)
    return f"The same crash, {group['times']} times since {began}: {sentence}"


# ── a bug report ─────────────────────────────────────────────────────────────────────────


def report_lines(report: Document) -> Iterator[str]:
    """A bug report in Markdown. What a worker wrote is literal: it can mention, link and close nothing."""
    now_ms = report["at_wall_ms"]
    yield f"# {printable(report['id'])}"
    yield from ("", f"Rekindle {printable(report['rekindle'])} on {printable(report['platform'])},")
    yield f"Python {printable(report['python'])}; written {moment(now_ms)}."
    yield from ("", "## Now", "")
    yield from _fence(report["explanation"].split("\n"))
    yield from ("", "## Crashes", "")
    yield from (f"- {group_line(group, now_ms, literal)}" for group in report["groups"])
    for bundle in report["bundles"]:
        yield from _section(bundle, now_ms)
    yield from ("", "## Deaths", "", "| generation | at | ended | decision |", "|---|---|---|---|")
    yield from (_death_row(death) for death in report["deaths"])
    yield from ("", "## Declared", "", *_fence(_json_lines(report["declared"]), "json"))


def _section(bundle: Document, now_ms: int) -> Iterator[str]:
    yield from ("", f"## Generation {bundle['generation']}", "")
    yield f"{finding(bundle['finding'])} ({bundle['confidence']}): {literal(bundle['sentence'])}"
    yield ""
    yield from (f"- {name}: {literal(value)}" for name, value in facts(bundle))
    for title, lines in (
        ("Traceback", bundle["last_words"].splitlines()),
        ("Last lines", [f"{stream} | {text}" for stream, text in bundle["output"]]),
    ):
        if lines:
            yield from ("", f"{title}:", "", *_fence(lines))


def _fence(lines: Sequence[str], kind: str = "text") -> Iterator[str]:
    """Lines that Markdown does not interpret."""
    # Four backticks, so that three in the output do not end the block.
    yield from (f"````{kind}", *(printable(line).replace("````", "'''' ") for line in lines), "````")


def literal(text: str) -> str:
    """A text as a code span: one line that Markdown does not interpret."""
    shown = printable(text)
    if not shown:
        return shown
    quotes = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{quotes}{space}{shown}{space}{quotes}"


def _death_row(death: Document) -> str:
    how = exit_words(death["exit_code"], death["signal"])
    reason = literal(death["reason"]).replace("|", "\\|")
    return f"| {death['generation']} | {moment(death['died_at_wall_ms'])} | {how} | {reason} |"


def _json_lines(document: Document) -> list[str]:
    import json

    return json.dumps(document, indent=2).splitlines()
