"""Pure: the groups of workers that stand and fall together, as `[group.NAME]` tables declare them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from rekindle.actors.errors import Problem, SpecError
from rekindle.actors.spec.group_order import group_problems
from rekindle.actors.spec.policies.group import Group

from ..file_tables import WORKER_NAME, Given
from ..problems import NOTHING, ConfigFinding

GroupTables = Mapping[str, Group]

_NAME_RULE = "a group's name has letters, digits, _ and -, at most 48 of them"


def group_tables_of(file: Given, workers: Collection[str], findings: list[ConfigFinding]) -> dict[str, Group]:
    """The groups of a file by name; empty if one has a problem, which is added to the findings."""
    known = {finding.path for finding in findings}
    tables: dict[str, Given] = file.get("group", {})
    groups: dict[str, Group] = {}
    found: list[ConfigFinding] = []
    for name, table in tables.items():
        try:
            groups[name] = Group(name, **table)
        except SpecError as error:
            found += (_finding(name, table, problem) for problem in error.problems)
    # A group that is refused is known by its name: its members are not reported as well.
    names = [*workers, *(tables.keys() - groups.keys())]
    for name, problem in group_problems(groups, names):
        found.append(_finding(name, tables[name], problem))
    findings += (each for each in found if each.path not in known)
    return {} if found else groups


def workers_of(name: str, groups: GroupTables) -> Iterator[str]:
    """The names of the worker tables in a group and in the groups inside it, in order."""
    for word in groups[name].members:
        if word in groups:
            yield from workers_of(word, groups)
        else:
            yield word


def _finding(name: str, table: Given, problem: Problem) -> ConfigFinding:
    if problem.field == "name":
        valid = WORKER_NAME.fullmatch(name)
        return ConfigFinding(
            ("group", name), problem.reason if valid else f"is not a valid name; {_NAME_RULE}"
        )
    return ConfigFinding(("group", name, problem.field), problem.reason, table.get(problem.field, NOTHING))
