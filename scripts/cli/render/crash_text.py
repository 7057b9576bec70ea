"""Pure: the evidence of a death, groups of crashes and a bug report as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    "operator": "requested by an operator",
    "killed_by_us": "killed by Rekindle",
    "hung": "hung",
    "out_of_memory": "out of memory",
    "out_of_memory_suspected": "out of memory (suspected)",
    "segmentation_fault": "segmentation fault",
    "fatal_signal": "fatal signal",
    "exception": "exception",
    "exit": "ended by itself",
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
    yield f"{finding(bundle['finding'])} ({bundle['confidence']}): {printable(bundle['sentence'])}"
    yield from (group_line(group, now_ms) for group in groups if group["crash"] == bundle["crash"])
    yield ""
    yield from (f"{name:<14} {value}" for name, value in facts(bundle))
    if bundle["last_words"]:
        yield from ("", "Traceback:")
        yield from (f"  {printable(line)}" for line in bundle["last_words"].splitlines())
    if bundle["output"]:
        yield from ("", "Last lines:")
        yield from (f"  {stream} | {printable(text)}" for stream, text in bundle["output"])


def facts(bundle: Document) -> Iterator[tuple[str, str]]:
    """What is known besides the finding, as names and values."""
    yield "exit", exit_words(bundle["exit_code"], bundle["signal"])
    cause = str(bundle["cause"]).replace("_", " ")
    detail = str(bundle["detail"])
    if bundle["finding"] == "operator":  # then the detail is a code
        detail = detail.replace("_", " ")
    yield "cause", printable(f"{cause}: {detail}" if detail else cause)
    yield "uptime", span(bundle["uptime_ms"])
    yield from _given("pid", bundle["pid"])
    yield from _given("job", bundle["job"])
    if bundle["heartbeat_wall_ms"] is not None:
        silence = span(bundle["at_wall_ms"] - bundle["heartbeat_wall_ms"])
        yield "last heartbeat", f"{silence} before its death"
    yield from _given("progress", bundle["progress"])
    if bundle["sent"] is not None:
        yield "our signal", signal_name(bundle["sent"])
    if bundle["usage"] is not None:
        yield from _usage(bundle["usage"], bundle["memory_limit_kb"])
    if bundle["oom_kills"] is not None:
        yield "OOM kills", f"{bundle['oom_kills']} in its cgroup while it lived"
    fingerprint = bundle["fingerprint"]
    yield (
        "fingerprint",
        f"code {fingerprint['code'] or '?'}, configuration {fingerprint['configuration'] or '?'}",
    )
    yield "crash", bundle["crash"]


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


def group_line(group: Document, now_ms: int) -> str:
    """`The same crash, 14 times since Tuesday: …`."""
    if group["times"] == 1:
        return f"The only crash of this kind: {printable(group['sentence'])}"
    began = since(group["first_wall_ms"], now_ms)
    return f"The same crash, {group['times']} times since {began}: {printable(group['sentence'])}"


# ── a bug report ─────────────────────────────────────────────────────────────────────────


def report_lines(report: Document) -> Iterator[str]:
    """A bug report in Markdown."""
    now_ms = report["at_wall_ms"]
    yield f"# {printable(report['id'])}"
    yield from ("", f"Rekindle {printable(report['rekindle'])} on {printable(report['platform'])},")
    yield f"Python {printable(report['python'])}; written {moment(now_ms)}."
    yield from ("", "## Now", "")
    yield from (printable(line) for line in report["explanation"].splitlines())
    yield from ("", "## Crashes", "")
    yield from (f"- {group_line(group, now_ms)}" for group in report["groups"])
    for bundle in report["bundles"]:
        yield from _section(bundle, now_ms)
    yield from ("", "## Deaths", "", "| generation | at | ended | decision |", "|---|---|---|---|")
    yield from (_death_row(death) for death in report["deaths"])
    yield from ("", "## Declared", "", "```json", *_json_lines(report["declared"]), "```")


def _section(bundle: Document, now_ms: int) -> Iterator[str]:
    yield from ("", f"## Generation {bundle['generation']}", "")
    yield f"{finding(bundle['finding'])} ({bundle['confidence']}): {printable(bundle['sentence'])}"
    yield ""
    yield from (f"- {name}: {value}" for name, value in facts(bundle))
    for title, lines in (
        ("Traceback", bundle["last_words"].splitlines()),
        ("Last lines", [f"{stream} | {text}" for stream, text in bundle["output"]]),
    ):
        if lines:
            # Four backticks, so that three in the output do not end the block.
            yield from ("", f"{title}:", "", "````text", *(_fenced(line) for line in lines), "````")


def _fenced(line: str) -> str:
    return printable(line).replace("````", "'''' ")


def _death_row(death: Document) -> str:
    how = exit_words(death["exit_code"], death["signal"])
    reason = printable(death["reason"]).replace("|", "\\|")
    return f"| {death['generation']} | {moment(death['died_at_wall_ms'])} | {how} | {reason} |"


def _json_lines(document: Document) -> list[str]:
    import json

    return json.dumps(document, indent=2).splitlines()
