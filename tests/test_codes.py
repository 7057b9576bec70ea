"""Every code in the name of a test is explained in tests/README.md."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
LISTED = {
    code.replace("-", "").lower()
    for code in re.findall(
        r"\*\*((?:[A-Z]{2}-|[TP])\d+)|^\| (F\d+)", (TESTS / "README.md").read_text(), re.MULTILINE
    )
    for code in code
    if code
}
CODE = re.compile(r"(rd|bo|hm|pp|ps|sc|sd|jr|ev|nt|rl|cf|f|t|p)_?(\d+)")


def codes(name: str) -> set[str]:
    """The codes with which a test's name begins."""
    found: set[str] = set()
    rest = name.removeprefix("test_")
    while match := re.match(rf"(?:and_)?{CODE.pattern}(?:_|$)", rest):
        found.add(match[1] + match[2])
        rest = rest[match.end() :]
    return found


def test_every_code_in_a_test_name_is_listed() -> None:
    names = [
        (path.name, name)
        for path in TESTS.rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text())
    ]
    used = {(file, name, code) for file, name in names for code in codes(name)}
    assert len({code for _, _, code in used}) > 150
    assert [entry for entry in sorted(used) if entry[2] not in LISTED] == []
