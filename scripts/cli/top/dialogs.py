"""What the view asks and explains in front of everything else."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

HELP = """\
↑ ↓        choose a worker; its pages are below
r          restart it: counters cleared, started now
p  u       pause it, resume it
x          reset it: counters cleared, not started
s  t       start it, stop it
/          show only workers whose name or status contains a word; Esc shows all
a          take note of the first alert that wants it (Alerts page: of the chosen one)
1 2 3 4    the pages: timeline, output, last crash, alerts
Tab        go between the workers and the page
q          leave; nothing is stopped
"""


class Question(ModalScreen[bool]):
    """Asks before anything is done to a worker."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
    ]

    def __init__(self, question: str, consequence: str) -> None:
        super().__init__()
        self._question = question
        self._consequence = consequence

    def compose(self) -> ComposeResult:
        """The question, what follows from yes, and the keys."""
        with Vertical(classes="dialog"):
            yield Static(Text(self._question, style="bold"), id="question")
            yield Static(Text(self._consequence))
            yield Static(Text("\n[y] yes   [n] no", style="dim"))

    def action_answer(self, answer: bool) -> None:
        """Close with the answer."""
        self.dismiss(answer)


class Help(ModalScreen[None]):
    """Says what the keys do."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "close", "Close")]

    def compose(self) -> ComposeResult:
        """The keys."""
        with Vertical(classes="dialog"):
            yield Static(Text("Keys", style="bold"))
            yield Static(Text(HELP))

    def action_close(self) -> None:
        """Close it."""
        self.dismiss(None)
