"""The records that wait when a system ends or is replaced: written, or kept aside for the next start."""

from __future__ import annotations

import threading
import time

from loguru import logger

from ..errors import RequestTimeoutError, StoreUnavailableError
from ..facts.records import HealthMirrored, Record
from ..messages.internal.to_persistence import Flush, Flushed, FlushForUpgrade
from ..ports import Store
from ..processes.process_table import RealProcesses
from ..runtime.resilient_actor import tell
from ..runtime.thread_runtime import ThreadRuntime
from .assembly import RETRY_S
from .inboxes import Inbox
from .requests import REPLY_TIMEOUT_S, Requests

WRITABLE_S = 10.0
"""How long a store that cannot be written is waited for: before the first worker starts, since without it
no generation is reserved and a next run would not recognise our processes; and after the last one ended."""


ROUNDS = 5
"""How often what the actors did last is written, until they have nothing more to do."""


class LastRecords:
    """Has the persistence actor write what waits, and keeps what could not be written."""

    def __init__(self, requests: Requests, store: Store) -> None:
        self._requests = requests
        self._store = store
        self.unsaved = 0
        """How many records could not be written."""
        self.left: tuple[Record, ...] = ()
        self.patience_s = 0.0
        """How long a store that cannot be written may still be waited for before the first start."""
        self.hurries = threading.Event()
        """Set when a stop becomes more forceful: it then no longer waits for the store."""
        self._is_handed_over = False
        """Whether the persistence actor has been told to write nothing more."""

    def take_back(self, patience_s: float) -> None:
        """Write what the former run could not write at its end.

        A store that cannot be written is waited for: what this run writes makes some of it worthless.
        """
        deadline, self.patience_s = time.monotonic() + patience_s, patience_s
        while True:
            try:
                if count := self._store.take_back():
                    logger.info("store: {} records that the former run could not write are stored now", count)
            except StoreUnavailableError as error:
                if time.monotonic() < deadline and not self.hurries.wait(RETRY_S):
                    continue
                logger.warning("store: records of the former run are kept for the next start: {}", str(error))
                self.patience_s = 0.0
            return

    def flush(self) -> None:
        """Write what waits; a store that is unavailable has a few seconds to return, once."""
        if self._is_handed_over:
            return
        deadline = time.monotonic() + (0.0 if self.unsaved else WRITABLE_S)
        try:
            flushed = self._flushed(Flush)
            if flushed.is_unavailable and _waiting(flushed) and not self.unsaved:
                text = "store: {} records are not written yet; the stop waits up to {:g} s for the database"
                logger.warning(text, len(_waiting(flushed)), WRITABLE_S)
            while _waiting(flushed) and not flushed.is_final and time.monotonic() < deadline:
                if flushed.is_unavailable and self.hurries.wait(RETRY_S):
                    break
                flushed = self._flushed(Flush)
        except RequestTimeoutError:
            logger.error("store: no answer to the last commit within {:g} s", REPLY_TIMEOUT_S)
            flushed = self._handed_over()
        self.left = _waiting(flushed)
        self.unsaved = max(flushed.unsaved, len(self.left))

    def are_written(self) -> bool:
        """Write what waits; whether the store took it.

        Raises:
            RequestTimeoutError: the persistence actor does not answer.
        """
        flushed = self._flushed(Flush)
        return not (flushed.is_unavailable or flushed.is_final)

    def _flush_once(self) -> int | None:
        """Write what waits; the number of the latest commit, or None if the store cannot be written."""
        try:
            flushed = self._flushed(Flush)
        except RequestTimeoutError:
            return None
        return None if flushed.is_unavailable else flushed.number

    def come_to_rest(self, runtime: ThreadRuntime, processes: RealProcesses, timeout_s: float) -> None:
        """Let the actors finish, and write what they say; take what cannot be written.

        Nothing is committed after this.
        """
        latest = -1
        for _ in range(ROUNDS):
            runtime.run_empty(timeout_s)
            number = self._flush_once()
            processes.watches(timeout_s)  # what the actors ordered last is carried out
            # A commit leads to further messages, which may lead to further records.
            if (runtime.run_empty(timeout_s) and number == latest) or number is None:
                break
            latest = number
        self._take()

    def _take(self) -> None:
        self.left = _waiting(self._handed_over())
        self.unsaved = len(self.left)

    def keep_aside(self, mark: str) -> None:
        """Keep what the last flush could not write; nothing is committed after this.

        Args:
            mark: that of the run.
        """
        if not self.unsaved:
            return
        where = self._store.keep_aside(self.left, mark) if self.left else None
        if where is None:
            logger.error("store: {} records could not be written and are lost", self.unsaved)
        else:
            text = "store: {} records could not be written; they are kept in {} and stored at the next start"
            logger.error(text, self.unsaved, where)

    def _handed_over(self) -> Flushed:
        """Take what waits from the persistence actor, also what a commit under way may still write."""
        self._is_handed_over = True
        try:
            return self._flushed(FlushForUpgrade)
        except RequestTimeoutError:
            return Flushed(1)  # at least

    def _flushed(self, request: type[Flush | FlushForUpgrade]) -> Flushed:
        inbox = Inbox()
        if not tell(self._requests.actors.persistence, request(inbox)):
            return Flushed(0)
        flushed: Flushed = inbox.get(REPLY_TIMEOUT_S)
        return flushed


def _waiting(flushed: Flushed) -> tuple[Record, ...]:
    """What waits and matters after this run, with the events."""
    return tuple(record for record in flushed.left if not isinstance(record, HealthMirrored))
