"""Which code a worker runs under which configuration, as two short hashes.

The configuration is the whole spec. The code is the content of the files that can be found
without running anything: the module file of a Python function; the program of a command and those
of its arguments that are files. What these import, load or read is not examined, nor is a module
that `-m` names: a change there alone does not change the fingerprint. A large file counts by its
size and modification time: it may be data, such as a film.

A worker may be able to replace these files, so only regular files are opened, without waiting, and not more
than a limit is read. A file on a file system that hangs still blocks: call this on a thread that may.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator

from ..deaths.evidence import Fingerprint
from ..spec.program import Command, PythonCall
from ..spec.worker_spec import WorkerSpec
from .spawn.posix_spawn import executable
from .spawn.settlement import start_folder
from .spawn.worker_command import import_path

LENGTH = 12
MOST_FILES = 8
LARGEST_READ = 1 << 20

_Stamp = tuple[int, int, int, int]


class Fingerprints:
    """Caches hashes: a file is read again only after it has changed. For any thread."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[_Stamp, str]] = {}
        self._specs: dict[str, tuple[WorkerSpec, str, tuple[str, ...]]] = {}

    def of(self, spec: WorkerSpec) -> Fingerprint:
        """The fingerprint of a start at this moment."""
        known = self._specs.get(spec.id)
        if known is None or known[0] is not spec:
            known = self._specs[spec.id] = (spec, _short(repr(spec).encode()), tuple(_files(spec)))
        _, configuration, files = known
        contents = [self._content(file) for file in files]
        if not all(contents):
            # Look for the files again next time.
            self._specs.pop(spec.id, None)
        return Fingerprint(code=_code(contents), configuration=configuration)

    def versions(self, specs: Iterable[WorkerSpec]) -> dict[str, str]:
        """The versions of the workers with `clear_failed_on_change`, by their id."""
        found = {spec.id: self.of(spec).version for spec in specs if spec.restart.clear_failed_on_change}
        return {id_: version for id_, version in found.items() if version is not None}

    def forget(self, component_id: str) -> None:
        """Drop what is cached of a removed worker."""
        self._specs.pop(component_id, None)

    def _content(self, file: str) -> str:
        try:
            known = self._files.get(file)
            if known is None or known[0] != _stamp(os.stat(file)):
                known = self._files[file] = _read(file)
        except OSError:
            return ""
        return known[1]


def _code(contents: list[str]) -> str:
    """One hash of all files; empty if one of them could not be read."""
    if not all(contents):
        return ""
    return contents[0] if len(contents) == 1 else _short("".join(contents).encode())


def _files(spec: WorkerSpec) -> Iterator[str]:
    match spec.run:
        case PythonCall(target=target):
            yield _module_file(target.partition(":")[0], import_path(spec))
        case Command(argv=argv):
            folder = start_folder(spec.user, spec.cwd)
            arguments = [os.path.join(folder or "", argument) for argument in argv[1:MOST_FILES]]
            yield executable(argv[0], spec.env.get("PATH", os.environ.get("PATH", os.defpath)), folder)
            yield from (argument for argument in arguments if os.path.isfile(argument))


def _module_file(name: str, folders: Iterable[str]) -> str:
    """The file of a module, found without importing its packages."""
    below = name.replace(".", os.sep)
    for folder in folders:
        for candidate in (f"{below}{os.sep}__init__.py", f"{below}.py"):
            file = os.path.join(folder, candidate)
            if os.path.isfile(file):
                return file
    return below


def _stamp(found: os.stat_result) -> _Stamp:
    """What changes with a file's content.

    Raises:
        OSError: not a regular file.
    """
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _read(path: str) -> tuple[_Stamp, str]:
    """A file's stamp and hash."""
    _stamp(os.stat(path))  # to open a device may have an effect
    # Checked again, and opened without waiting: it may have been replaced by a FIFO.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with open(descriptor, "rb") as file:
        stamp = _stamp(os.fstat(descriptor))
        _, _, size, changed_ns = stamp
        if size > LARGEST_READ:
            return stamp, _short(f"{size} {changed_ns}".encode())
        return stamp, _short(file.read(LARGEST_READ))


def _short(data: bytes) -> str:
    return hashlib.blake2b(data).hexdigest()[:LENGTH]
