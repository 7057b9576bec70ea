"""Checks before a start: whether the files, the user, the rights and the modules that a worker needs exist.

Nothing is run, and no module of the worker is imported.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec

from ...errors import Problem
from ...spec.program import Command, PythonCall
from ...spec.worker_spec import WorkerSpec
from .abilities import SETUID, Machine, cannot, lacking
from .posix_spawn import program_file
from .settlement import known_user, start_folder
from .worker_command import environment_of, import_path

_SHELL = re.compile(r"\s|[&|;<>$]")
"""What a program's name hardly ever has, and a shell line does."""


def missing(spec: WorkerSpec) -> Iterator[Problem]:
    """What the worker needs to start and this machine does not have, by the field that names it."""
    machine = Machine()
    folder = None if spec.cwd is None else _folder_problem(spec.cwd)
    if folder is not None:
        yield Problem("cwd", folder)
    if spec.user is not None and not _is_user(spec.user):
        yield Problem("user", f'there is no user "{spec.user}"')
    elif spec.user is not None and known_user(spec.user).pw_uid != os.geteuid() and not machine.may(SETUID):
        yield Problem("user", cannot(SETUID))
    yield from lacking(spec.surroundings, machine)
    match spec.run:
        case Command(argv=argv):
            path = environment_of(spec, os.environ).get("PATH", os.defpath)
            problem = program_problem(argv[0], path, start_folder(spec.user, spec.cwd))
            by_folder = folder is not None and "/" in argv[0] and not os.path.isabs(argv[0])
            if problem is not None and not by_folder:
                yield Problem("run", problem + _where(spec, argv[0]))
        case PythonCall(target=target) as call:
            yield from _modules_missing("run", [target.partition(":")[0]], spec)
            if isinstance(call.warm, tuple):
                yield from _modules_missing("warm", call.warm, spec)


def misplaced(spec: WorkerSpec) -> Iterator[Problem]:
    """The words of a command that name a file where we are, and none where the worker starts.

    They may mean something else, so the worker is not refused for them.
    """
    if spec.user is None or spec.cwd is not None or not isinstance(spec.run, Command):
        return
    home = start_folder(spec.user, None) or ""
    for word in spec.run.argv[1:]:
        if os.path.isfile(word) and not os.path.exists(os.path.join(home, word)):
            yield Problem("run", f'there is no file "{word}"{_where(spec, word)}')


def _modules_missing(field: str, modules: Sequence[str], spec: WorkerSpec) -> Iterator[Problem]:
    for module in modules:
        name = _missing_module(module, import_path(spec))
        if name is not None:
            yield Problem(field, f'there is no module "{name}" on its import path{_where(spec)}')


def _where(spec: WorkerSpec, file: str = "") -> str:
    """In which folder a relative name is looked for, if the file does not say it."""
    if spec.user is None or spec.cwd is not None or os.path.isabs(file):
        return ""
    return f": without cwd a worker with a user starts in {start_folder(spec.user, None)}"


def _folder_problem(path: str) -> str | None:
    try:
        os.stat(os.path.join(path, ""))
    except FileNotFoundError:
        return f'there is no folder "{path}"'
    except NotADirectoryError:
        return f'"{path}" is not a folder'
    except OSError:
        return None  # No permission to look: not known.
    return None


def _is_user(name: str) -> bool:
    try:
        known_user(name)
    except OSError:
        return False
    return True


def program_problem(name: str, path: str, cwd: str | None = None) -> str | None:
    """Why a program cannot be started; None if it can."""
    try:
        program_file(name, path, cwd)
    except OSError as error:
        if "/" in name and os.path.isdir(os.path.join(cwd or "", name)):
            return f'"{name}" is a folder'
        if error.errno == errno.EACCES:
            return f'"{name}" is not executable'
        if _SHELL.search(name):
            return f'there is no program "{name}"; a shell line is written as ["sh", "-c", "…"]'
        return f'there is no file "{name}"' if "/" in name else f'there is no program "{name}" on its PATH'
    return None


def _missing_module(name: str, folders: Sequence[str]) -> str | None:
    """The first part of a module's name that cannot be found; None if all exist.

    Not by `find_spec` alone, which imports the package of a submodule.
    """
    first, *parts = name.split(".")
    found = _top_level(first, folders)
    try:
        for part in parts:
            if found is None:
                return first
            first = f"{first}.{part}"
            found = PathFinder.find_spec(first, list(found.submodule_search_locations or ()))
    except KeyError:
        return None  # A namespace package inside another: only an import finds it.
    return first if found is None else None


def _top_level(name: str, folders: Sequence[str]) -> ModuleSpec | None:
    try:
        return find_spec(name) or PathFinder.find_spec(name, folders)
    except ValueError:
        return PathFinder.find_spec(name, folders)  # Such as __main__, which has no spec.
