"""The SQLite file: checked before it is opened, created atomically, never overwritten.

Only SQLite opens the file itself. A process that opens and closes a database
file by other means drops the locks that SQLite holds on it in the same process.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rekindle.actors.errors import StoreDamagedError, StoreError, StoreUnavailableError
from rekindle.worker.jobs.database_files import identity

_SMALLEST_DATABASE = 512
_LOCK_PATIENCE_S = 60.0
_LOCK_POLL_S = 0.02


def side_file(database: Path, suffix: str) -> Path:
    """A file beside the database: `.lock`, `-wal`."""
    return database.with_name(database.name + suffix)


def check_place(path: Path) -> None:
    """Refuse a place where another user could exchange the file, or choose which file it is.

    Raises:
        StoreError: it is a link of another user, or every user may write to its directory.
    """
    with suppress(OSError):
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode) and found.st_uid not in (0, os.geteuid()):
            raise StoreError(f"the store {path} is a symbolic link of another user (uid {found.st_uid})")
    with suppress(OSError):
        mode = path.resolve().parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            folder = path.resolve().parent
            raise StoreError(
                f"the store {path} is not safe: every user may write to {folder}: chmod o-w {folder}"
            )


def prepare(database: Path, create: Callable[[Path], None]) -> None:
    """Make sure that a plausible database exists; `create` fills a new one under a temporary name.

    Raises:
        StoreDamagedError: it is too small to be a database, or empty beside traces of use.
        StoreUnavailableError: it is not a file, or cannot be reached or created.
    """
    try:
        if _is_fresh(database):
            _create_whole(database, create)
    except OSError as error:
        raise StoreUnavailableError(
            f"the store {database} is unavailable: {error.strerror or error}"
        ) from error


def _is_fresh(database: Path) -> bool:
    try:
        found = os.stat(database)
    except FileNotFoundError:
        found = None
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise StoreUnavailableError(f"the store {database} is not a file")
    size = 0 if found is None else found.st_size
    if size >= _SMALLEST_DATABASE:
        return False
    if size > 0:
        raise StoreDamagedError(f"the store {database} is damaged: {size} bytes are too few for a database")
    # SQLite would replay an old log into a new database.
    traces = ["-wal", "-journal"] if found is None else ["-wal", "-journal", "-shm", ".lock", ".migrating"]
    for trace in (side_file(database, suffix) for suffix in traces):
        if trace.exists():
            state = "missing" if found is None else "empty"
            raise StoreDamagedError(
                f"the store {database} is damaged: it is {state}, but {trace.name} exists"
            )
    return True


class SameFile:
    """Whether the paths of a database and of its log still name the files that were opened.

    SQLite continues with a file that was removed, and everything that it writes is lost.
    """

    def __init__(self, database: Path) -> None:
        # As text, which is faster: they are looked up while a worker is down.
        self._database = str(database)
        self.log_name = str(side_file(database, "-wal"))
        self._identity = self._look()
        self._log: tuple[int, int] | None = None

    def learn_log(self) -> None:
        """Remember the identity of the log, which exists while a transaction is open."""
        self._log = None
        with suppress(OSError):
            self._log = identity(self.log_name)

    @property
    def has_lost_log(self) -> bool:
        """Whether writes certainly go into a log that was removed."""
        try:
            return self._log is not None and identity(self.log_name) != self._log
        except OSError:
            return False

    def confirm(self) -> None:
        """Refuse to write into a file that was removed.

        Raises:
            StoreUnavailableError: the file was removed or replaced, or cannot be inspected.
        """
        found = self._look()
        if found != self._identity:
            what = "was removed" if found is None else "is another one now"
            raise StoreUnavailableError(f"the store {self._database} is unavailable: its file {what}")

    def _look(self) -> tuple[int, int] | None:
        try:
            return identity(self._database)
        except OSError as error:
            raise StoreUnavailableError(
                f"the store {self._database} is unavailable: {error.strerror}"
            ) from error


def _create_whole(database: Path, create: Callable[[Path], None]) -> None:
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(side_file(database, ".migrating")):
        if database.exists() and database.stat().st_size > 0:
            return  # another first start was faster
        new = side_file(database, ".new")
        new.unlink(missing_ok=True)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        try:
            create(new)
            os.replace(new, database)
        finally:
            new.unlink(missing_ok=True)
        _sync_directory(database.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_lock(path: Path) -> int:
    """A descriptor to `flock`: not inherited, not through a link, private to the user."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a side file; another holder releases it within moments, unless it hangs.

    Raises:
        StoreUnavailableError: another process held it for a minute.
    """
    deadline = time.monotonic() + _LOCK_PATIENCE_S
    descriptor = open_lock(path)
    try:
        while not try_lock(descriptor):
            if time.monotonic() > deadline:
                raise StoreUnavailableError(f"{path} has been locked by another process for a minute")
            time.sleep(_LOCK_POLL_S)
        yield
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Take the lock if it is free. It belongs to this descriptor, not to the process."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
