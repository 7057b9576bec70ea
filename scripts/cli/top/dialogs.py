"""The dialogs of the view: confirmation and help."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

HELP = """\
↑ ↓        select a worker or a group; its pages are below the table
Enter      open or close the selected group
r          restart it with its counters cleared; on a group: all its workers
p  u       pause it, resume it
x          clear its counters and its failure without starting it
s  t       start it, stop it
/          filter by name or status; Esc shows all workers
a          acknowledge the first open alert (on the alerts page: the selected one)
l          show its output and follow it
f          stop following the output, or follow it again
1 2 3 4    the pages: timeline, output, last crash, alerts
Tab        move between the table and the page
q          quit; the workers keep running
"""


class ConfirmDialog(ModalScreen[bool]):
    """Asks for confirmation before an order is sent."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
    ]

    def __init__(self, question: str, consequence: str) -> None:
        super().__init__()
        self._question = question
        self._consequence = consequence

    def compose(self) -> ComposeResult:
        """The question, the consequence of yes, and the keys."""
        with Vertical(classes="dialog"):
            yield Static(Text(self._question, style="bold"), id="question")
            yield Static(Text(self._consequence))
            yield Static(Text("\n[y] yes   [n] no", style="dim"))

    def action_answer(self, answer: bool) -> None:
        """Close with the answer."""
        self.dismiss(answer)


class Help(ModalScreen[None]):
    """Explains the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "close", "Close")]

    def compose(self) -> ComposeResult:
        """The keys."""
        with Vertical(classes="dialog"):
            yield Static(Text("Keys", style="bold"))
            yield Static(Text(HELP))

    def action_close(self) -> None:
        """Close it."""
        self.dismiss(None)
