"""What everything that a host may do with a system needs: the actors, and their answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from ..errors import PausedError, Problem, RequestRefusedError, SpecError, UnknownWorkerError
from ..messages import Done, Refused, StatusReport, WorkersChanged, WorkersStopped
from ..ports import Receiver, Store
from ..processes.fingerprints import Fingerprints
from ..processes.process_table import RealProcesses
from ..runtime.resilient_actor import tell
from ..spec.start_order import check_order, longest_stop_s
from ..spec.worker_spec import WorkerSpec
from .assembly import Actors
from .inboxes import Inbox

ANSWER_S = 5.0
"""How long a request may take that waits for nothing but the actors."""

Answer = Done | WorkersStopped | WorkersChanged | StatusReport


class Asking:
    """Tells the actors something, and waits for what they answer."""

    def __init__(self, specs: Iterable[WorkerSpec], store: Store) -> None:
        self._specs = distinct(specs)
        self._knowing = threading.RLock()
        """Held while the specs become others: two threads may both want that, or a signal's handler."""
        self._store = store
        self._actors: Actors | None = None
        self._processes: RealProcesses | None = None
        self._fingerprints = Fingerprints()

    def _longest_stop(self) -> float:
        return longest_stop_s(self._specs) + ANSWER_S

    def _running(self) -> Actors:
        if self._actors is None:
            raise RequestRefusedError("the system is not running")
        return self._actors

    def _unknown(self, component_id: str) -> UnknownWorkerError:
        return UnknownWorkerError(component_id, (spec.id for spec in self._specs))

    def _ask(self, request: Callable[[Receiver], object], timeout_s: float = ANSWER_S) -> Answer:
        """Tell the Supervisor a request with a place for the answer, and wait for it there."""
        inbox = Inbox()
        if not tell(self._running().supervisor, request(inbox)):
            raise RequestRefusedError("the supervisor has ended")
        answer: Answer | Refused = inbox.get(timeout_s)
        if isinstance(answer, Refused):
            if answer.unknown is not None:
                raise self._unknown(answer.unknown)
            if answer.paused is not None:
                raise PausedError(answer.reason, answer.paused)
            raise RequestRefusedError(answer.reason)
        return answer


def distinct(specs: Iterable[WorkerSpec]) -> tuple[WorkerSpec, ...]:
    """These workers, if they can be supervised together.

    Raises:
        SpecError: two of them share an id, or wait for each other.
    """
    chosen: dict[str, WorkerSpec] = {}
    for spec in specs:
        if spec.id in chosen:
            raise SpecError(spec.id, [Problem("id", "is used by two workers")])
        chosen[spec.id] = spec
    check_order(chosen.values())
    return tuple(chosen.values())
