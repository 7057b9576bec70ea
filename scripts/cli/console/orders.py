"""One order for several workers: each is tried and reported; the first error sets the exit code."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import click

from ..client import ControlError, NoSupervisorError, path_of
from ..render.text import printable
from .exits import FAILED, exit_code, say
from .options import Where, client_of, print_json

Order = Callable[[str], dict[str, Any]]
Sentence = Callable[[str, dict[str, Any]], str]
Answer = dict[str, Any] | ControlError

EVERYTHING = ("",)
"""Stands for the whole system where ids are expected."""


def post_order(
    state: Where, id_: str, order: str, body: dict[str, Any] | None = None, *, timeout_s: float | None = None
) -> Any:
    """Send an order for one worker, or for the whole system if the id is empty."""
    path = path_of("workers", id_, order) if id_ else path_of(order)
    return client_of(state).post(path, body, timeout_s=timeout_s)


def give(ids: Sequence[str], order: Order, sentence: Sentence, *, as_json: bool, at_once: int = 1) -> None:
    """Give an order to each of these workers, even if it fails for others.

    Args:
        ids: the workers; an empty id stands for the whole system.
        order: sends the order for one id and returns the server's answer.
        sentence: describes what was done, from the id and the answer.
        as_json: print the answers instead of sentences.
        at_once: how many orders may be under way at the same time.

    Raises:
        NoSupervisorError: no supervisor is running.
    """
    results: list[dict[str, Any]] = []
    code = 0
    for id_, answer in _answers(tuple(dict.fromkeys(ids)), order, at_once):
        if isinstance(answer, ControlError):
            code = code or exit_code(answer)
            results.append({**_named(id_), "result": answer.error or "failed", "message": str(answer)})
            about = "" if not id_ or id_ in str(answer) else f"{printable(id_)}: "
            say(f"{about}{answer}{_remedy(answer, id_)}")
            continue
        results.append({**_named(id_), **answer})
        if answer["detail"].get("gone") is False:
            code = code or FAILED
        if not as_json:
            click.echo(sentence(printable(id_), answer["detail"]))
    if as_json:
        print_json({"results": results})
    if code:
        raise SystemExit(code)


def _named(id_: str) -> dict[str, Any]:
    """The worker of a result, also under the name that it has in other documents; None: the whole system."""
    return {"id": id_ or None, "component_id": id_ or None}


def _answers(ids: Sequence[str], order: Order, at_once: int) -> Iterator[tuple[str, Answer]]:
    """The answer for each id, in the order of the ids."""

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


def _at_once(
    ids: Sequence[str], tried: Callable[[str], Answer], threads_at_most: int
) -> Iterator[tuple[str, Answer]]:
    """Try several at the same time, in daemon threads, so that Ctrl-C does not wait for them."""
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

    threads = [Thread(target=work, daemon=True) for _ in range(min(threads_at_most, len(ids)))]
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
    """The command that removes the obstacle, if there is one."""
    match error.error:
        case "worker_paused":
            return f": rekindle resume {printable(id_)}"
        case "everything_paused":
            return ": rekindle resume"
        case _:
            return ""
