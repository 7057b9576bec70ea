"""One order to several workers: each is tried, each is told of, the first trouble is the exit code."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import click

from ..client import ControlError, NoSupervisorError
from ..render.text import printable
from .exits import FAILED, exit_code, say
from .options import print_json

Order = Callable[[str], dict[str, Any]]
Sentence = Callable[[str, dict[str, Any]], str]
Answer = dict[str, Any] | ControlError


def give(ids: Sequence[str], order: Order, sentence: Sentence, *, as_json: bool, at_once: int = 1) -> None:
    """Give an order to each of these workers, whatever becomes of the others.

    Args:
        ids: an empty one stands for the whole system.
        order: gives it, and returns the server's answer.
        sentence: what was done, from the id and the answer.
        as_json: print the answers instead.
        at_once: so many are given at the same time, if each takes its time.

    Raises:
        NoSupervisorError: there is nobody to give it to.
    """
    results: list[dict[str, Any]] = []
    code = 0
    for id_, answer in _answers(tuple(dict.fromkeys(ids)), order, at_once):
        if isinstance(answer, ControlError):
            code = code or exit_code(answer)
            results.append({"id": id_ or None, "result": answer.error or "failed", "message": str(answer)})
            say(f"{answer}{_remedy(answer, id_)}")
            continue
        results.append({"id": id_ or None, **answer})
        if answer["detail"].get("gone") is False:
            code = code or FAILED
        if not as_json:
            click.echo(sentence(printable(id_), answer["detail"]))
    if as_json:
        print_json({"results": results})
    if code:
        raise SystemExit(code)


def _answers(ids: Sequence[str], order: Order, at_once: int) -> Iterator[tuple[str, Answer]]:
    """What came of each, in their order."""

    def tried(id_: str) -> Answer:
        try:
            return order(id_)
        except NoSupervisorError:
            raise
        except ControlError as error:
            return error

    if at_once == 1 or len(ids) == 1:
        yield from ((id_, tried(id_)) for id_ in ids)
        return
    yield from _at_once(ids, tried, at_once)


def _at_once(ids: Sequence[str], tried: Callable[[str], Answer], hands: int) -> Iterator[tuple[str, Answer]]:
    """Try so many at the same time; whoever has had enough need not wait for any of them."""
    from threading import Thread

    todo, answers = deque(ids), dict[str, Answer | NoSupervisorError]()

    def work() -> None:
        with suppress(IndexError):
            while True:
                id_ = todo.popleft()
                try:
                    answers[id_] = tried(id_)
                except NoSupervisorError as error:
                    answers[id_] = error

    threads = [Thread(target=work, daemon=True) for _ in range(min(hands, len(ids)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for id_ in ids:
        answer = answers[id_]
        if isinstance(answer, NoSupervisorError):
            raise answer
        yield id_, answer


def _remedy(error: ControlError, id_: str) -> str:
    """The command that removes what is in the way, if there is one."""
    match error.error:
        case "worker_paused":
            return f": rekindle resume {printable(id_)}"
        case "everything_paused":
            return ": rekindle resume"
        case _:
            return ""
