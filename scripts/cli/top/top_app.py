"""The view itself: a table of workers, pages about the chosen one, keys that act on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.css.query import NoMatches
from textual.message import Message
from textual.widgets import DataTable, Footer, Input, Static, TabbedContent, TabPane

from ..client import ControlClient, ControlError, path_of
from . import pages
from .board import (
    COLUMNS,
    Board,
    Row,
    alert_rows,
    badge,
    breaker_lines,
    heading,
    new_noise,
    rows,
)
from .dialogs import Help, Question
from .feed import Feed

BELL_REST_S = 30.0
TICK_S = 1.0

ACTIONS = {
    "restart": ("Restart {}?", "Its counters are cleared and it is started afresh, now."),
    "pause": ("Pause {}?", "It is held back until it is resumed, also across restarts of the supervisor."),
    "resume": ("Resume {}?", "What the pause held back starts at once."),
    "reset": ("Reset {}?", "Its counters and its failure are cleared; it is not started."),
    "start": ("Start {}?", "It is started now; its counters stay."),
    "stop": ("Stop {}?", "It may finish its job, and stays down until it is started, or the supervisor is."),
}


class FromThread(Message):
    """Something that another thread wants done by the view's own."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__()
        self.call = call


class Top(App[None]):
    """`rekindle top`."""

    CSS_PATH = "top.tcss"
    TITLE = "rekindle"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "order('restart')", "Restart"),
        Binding("p", "order('pause')", "Pause"),
        Binding("u", "order('resume')", "Resume"),
        Binding("x", "order('reset')", "Reset"),
        Binding("s", "order('start')", "Start", show=False),
        Binding("t", "order('stop')", "Stop", show=False),
        Binding("a", "acknowledge", "Ack"),
        Binding("slash", "filter", "Filter"),
        Binding("escape", "show_all", "All", show=False),
        *(Binding(str(n), f"page('{name}')", name, show=False) for n, name in enumerate(pages.NAMES, 1)),
        Binding("question_mark", "help", "Help"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, socket_path: str, client: ControlClient) -> None:
        super().__init__()
        self._control = client
        self._feed = Feed(socket_path, client, self._show_soon)
        self._board = Board()
        self._newest: Board | None = None
        """What is to be shown next."""
        self._wanted = ""
        self._chosen: str | None = None
        self._rang_at: float | None = None

    def compose(self) -> ComposeResult:
        """The head line, the table, the pages, the keys."""
        with Horizontal(id="head"):
            yield Static(id="summary", markup=False)
            yield Static(id="badge", markup=False)
        yield Static(id="breakers", markup=False)
        yield DataTable(id="workers", cursor_type="row", zebra_stripes=False)
        yield Input(placeholder="name or status", id="filter")
        with TabbedContent(id="pages"):
            for name in pages.WORKER_PAGES:
                with TabPane(name, id=name), VerticalScroll():
                    yield Static(id=f"{name}-text", markup=False)
            with TabPane("alerts", id="alerts"):
                yield DataTable(id="alert-table", cursor_type="row")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to listen."""
        self._table.add_columns(*COLUMNS)
        self._alerts.add_columns("#", "SEVERITY", "WORKER", "TIMES", "WHAT", "NOTED")
        self.query_one("#filter", Input).display = False
        self._table.focus()
        self.set_interval(TICK_S, self._draw)
        self._feed.start()

    def on_unmount(self) -> None:
        """Stop listening."""
        self._feed.stop()

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one("#workers", DataTable)

    @property
    def _alerts(self) -> DataTable[Text]:
        return self.query_one("#alert-table", DataTable)

    def _from_thread(self, call: Callable[..., None], *arguments: Any) -> None:
        """Have something done by the view's own thread; a view that is closing does no more.

        By a message: `call_from_thread` leaves a coroutine behind that nobody awaits when the view
        closes at that moment.
        """
        with suppress(RuntimeError):  # its loop is closed
            self.post_message(FromThread(partial(call, *arguments)))

    def on_from_thread(self, message: FromThread) -> None:
        """Do what another thread wants done."""
        with suppress(NoMatches):  # a question stands before what it would change
            message.call()

    # ── what is shown ────────────────────────────────────────────────────────────────────

    def _show_soon(self, board: Board) -> None:
        """Have a board shown; if drawing takes its time, only the newest one waits for it."""
        is_awaited, self._newest = self._newest is not None, board
        if not is_awaited:
            self._from_thread(self._show_newest)

    def _show_newest(self) -> None:
        board, self._newest = self._newest, None
        if board is not None:
            self._show(board)

    def _show(self, board: Board) -> None:
        noisy = bool(self._board.at) and new_noise(self._board.alerts, board.alerts)
        self._board = board
        if noisy:
            self._ring()
        self._draw()
        self._draw_alerts()
        self._load_pages()

    def _ring(self) -> None:
        now = time.monotonic()
        if self._rang_at is None or now - self._rang_at >= BELL_REST_S:
            self._rang_at = now
            self.bell()

    def _draw(self) -> None:
        """Bring the head and the table up to date; the chosen worker stays chosen."""
        head = self.query_one("#summary", Static)
        head.update(heading(self._board))
        head.set_class(bool(self._board.trouble), "lost")
        label = self.query_one("#badge", Static)
        label.update(badge(self._board.alerts))
        label.display = bool(badge(self._board.alerts))
        breakers = breaker_lines(self._board, time.monotonic())
        open_ones = self.query_one("#breakers", Static)
        open_ones.update("\n".join(breakers))
        open_ones.display = bool(breakers)
        listed = rows(self._board, self._wanted, time.monotonic(), self.size.width)
        if [row.component_id for row in listed] == [key.value for key in self._table.rows]:
            for row in listed:
                self._update_row(row)
        else:
            self._fill(listed)

    def _update_row(self, row: Row) -> None:
        for column, cell in zip(self._table.ordered_columns, _cells(row), strict=True):
            if self._table.get_cell(row.component_id, column.key) != cell:
                self._table.update_cell(row.component_id, column.key, cell, update_width=True)

    def _fill(self, listed: list[Row]) -> None:
        chosen = self._chosen
        self._table.clear()
        for row in listed:
            self._table.add_row(*_cells(row), key=row.component_id)
        ids = [row.component_id for row in listed]
        if chosen in ids:
            self._table.move_cursor(row=ids.index(chosen))
        elif ids:
            self._choose(ids[0])

    def _draw_alerts(self) -> None:
        at = self._alerts.cursor_row
        self._alerts.clear()
        for number, cells, style in alert_rows(self._board.alerts):
            texts = [Text(cell, style=style if place == 1 else "") for place, cell in enumerate(cells)]
            self._alerts.add_row(*texts, key=str(number))
        if self._alerts.row_count:
            self._alerts.move_cursor(row=min(at, self._alerts.row_count - 1))

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Another worker was chosen."""
        if event.data_table.id == "workers" and event.row_key.value is not None:
            self._choose(event.row_key.value)

    def _choose(self, component_id: str) -> None:
        if component_id != self._chosen:
            self._chosen = component_id
            for name in pages.WORKER_PAGES:
                self.query_one(f"#{name}-text", Static).update("…")
            self._load_pages()

    @work(thread=True, exclusive=True, group="pages")
    def _load_pages(self) -> None:
        if self._chosen is None or self._board.trouble:
            return
        chosen = self._chosen
        found = pages.asked(self._control, chosen)
        self._from_thread(self._show_pages, chosen, found)

    def _show_pages(self, component_id: str, found: Mapping[str, str]) -> None:
        if component_id == self._chosen:
            for name, text in found.items():
                self.query_one(f"#{name}-text", Static).update(text)

    # ── what is done ─────────────────────────────────────────────────────────────────────

    def action_order(self, order: str) -> None:
        """Ask, then give the order for the chosen worker."""
        if self._chosen is None:
            return
        question, consequence = ACTIONS[order]
        give = partial(self._give, order, self._chosen)
        self.push_screen(Question(question.format(self._chosen), consequence), give)

    def _give(self, order: str, component_id: str, sure: bool | None) -> None:
        if sure:
            path = path_of("workers", component_id, order)
            self._post(path, f"{order}: {component_id}")

    def action_acknowledge(self) -> None:
        """Take note of an alert: the chosen one on its page, else the first that wants it."""
        loud = [alert for alert in self._board.alerts if not alert["acknowledged_at_wall_ms"]]
        loud = [alert for alert in loud if not alert["resolved_at_wall_ms"]]
        chosen = self._alerts.cursor_row if self.focused is self._alerts else 0
        listed = [number for number, _, _ in alert_rows(self._board.alerts)]
        number = listed[chosen] if self.focused is self._alerts and listed else None
        number = loud[0]["id"] if number is None and loud else number
        if number is not None:
            self._post(path_of("alerts", str(number), "acknowledge"), f"alert {number} noted")

    @work(thread=True, group="orders")
    def _post(self, path: str, done: str) -> None:
        try:
            self._control.post(path)
        except ControlError as error:
            self._say(str(error), "error")
        else:
            self._say(done, "information")
        self._feed.hurry()

    def _say(self, text: str, severity: Any) -> None:
        told: Callable[..., None] = partial(self.notify, text, severity=severity, markup=False)
        self._from_thread(told)

    def action_page(self, name: str) -> None:
        """Show one of the pages."""
        self.query_one("#pages", TabbedContent).active = name
        if name == "alerts":
            self._alerts.focus()

    def action_filter(self) -> None:
        """Have a word to look for."""
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    def action_show_all(self) -> None:
        """Look for nothing any more."""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self._table.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what is looked for, letter by letter."""
        self._wanted = event.value
        self._draw()

    def on_input_submitted(self) -> None:
        """Back to the table; the word stays."""
        self._table.focus()

    def action_help(self) -> None:
        """Say what the keys do."""
        self.push_screen(Help())


def _cells(row: Row) -> list[Text]:
    """Literal text: what a worker is called never styles anything."""
    return [Text(cell, style=row.style if place == 1 else "") for place, cell in enumerate(row.cells)]
