"""The view: a table of workers in their groups, pages about the selected one, keys that control it."""

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
from .board import Board, alert_rows, badge, breaker_lines, has_new_critical, heading, rollout_lines
from .dialogs import ConfirmDialog, Help
from .feed import Feed
from .log_follower import LogFollower
from .worker_rows import Row, columns, rows

BELL_REST_S = 30.0
TICK_S = 1.0

ACTIONS = {
    "restart": ("Restart {}?", "It starts again now, with its counters cleared."),
    "pause": (
        "Pause {}?",
        "Its process is stopped, or idles with pause_mode idle, until you resume it.",
    ),
    "resume": ("Resume {}?", "It starts at once if the pause held it back."),
    "reset": ("Reset {}?", "Its counters and its failure are cleared. It does not start."),
    "start": ("Start {}?", "It starts now and keeps its counters."),
    "stop": (
        "Stop {}?",
        "It can finish its job, then stays down until you start it or restart the supervisor.",
    ),
}


class FromThread(Message):
    """A call from another thread, to be made in the view's thread."""

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
        Binding("l", "log", "Log"),
        Binding("f", "follow", "Follow", show=False),
        Binding("slash", "filter", "Filter"),
        Binding("escape", "show_all", "All", show=False),
        *(Binding(str(n), f"page('{name}')", name, show=False) for n, name in enumerate(pages.NAMES, 1)),
        Binding("question_mark", "help", "Help"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, client: ControlClient) -> None:
        super().__init__()
        self._control = client
        self._feed = Feed(client, self._show_soon)
        self._board = Board()
        self._newest: Board | None = None
        """The board to show next."""
        self._filter_text = ""
        self._columns: tuple[str, ...] = ()
        """The headings of the table; they depend on the width of the terminal."""
        self._listed: dict[str, Row] = {}
        """The lines of the table, by their keys."""
        self._selected_key: str | None = None
        self._toggled: dict[str, bool] = {}
        """The groups that the user opened or closed."""
        self._followed: LogFollower | None = None
        self._is_following = True
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
        """Fill in the headings and start the feed."""
        self._alerts.add_columns("#", "SEVERITY", "WORKER", "COUNT", "MESSAGE", "ACKNOWLEDGED")
        self.query_one("#filter", Input).display = False
        self._table.focus()
        self.set_interval(TICK_S, self._tick)
        self._feed.start()

    def on_unmount(self) -> None:
        """Stop the feed."""
        self._feed.stop()

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one("#workers", DataTable)

    @property
    def _alerts(self) -> DataTable[Text]:
        return self.query_one("#alert-table", DataTable)

    def _from_thread(self, call: Callable[..., None], *arguments: Any) -> None:
        """Make a call in the view's thread, unless the view is closing.

        Sent as a message: `call_from_thread` leaves a coroutine that is never awaited if the view
        closes at that moment.
        """
        with suppress(RuntimeError):  # the event loop is closed
            self.post_message(FromThread(partial(call, *arguments)))

    def on_from_thread(self, message: FromThread) -> None:
        """Make a call for another thread."""
        with suppress(NoMatches):  # a dialog covers the widget that it would change
            message.call()

    # ── display ──────────────────────────────────────────────────────────────────────────

    def _show_soon(self, board: Board) -> None:
        """Show a board soon; if drawing is slow, only the latest board is queued."""
        is_queued, self._newest = self._newest is not None, board
        if not is_queued:
            self._from_thread(self._show_newest)

    def _show_newest(self) -> None:
        board, self._newest = self._newest, None
        if board is not None:
            self._show(board)

    def _show(self, board: Board) -> None:
        critical = bool(self._board.at) and has_new_critical(self._board.alerts, board.alerts)
        self._board = board
        if critical:
            self._ring()
        self._draw()
        self._draw_alerts()
        self._load_pages()

    def _ring(self) -> None:
        now = time.monotonic()
        if self._rang_at is None or now - self._rang_at >= BELL_REST_S:
            self._rang_at = now
            self.bell()

    def _tick(self) -> None:
        with suppress(NoMatches):  # the view is closing
            self._draw()
            self._follow_log()

    def _draw(self) -> None:
        """Update the head and the table; the selected worker stays selected."""
        head = self.query_one("#summary", Static)
        head.update(heading(self._board))
        head.set_class(bool(self._board.trouble), "lost")
        label = self.query_one("#badge", Static)
        label.update(badge(self._board.alerts))
        label.display = bool(badge(self._board.alerts))
        notices = [*breaker_lines(self._board, time.monotonic()), *rollout_lines(self._board)]
        lines = self.query_one("#breakers", Static)
        lines.update("\n".join(notices))
        lines.display = bool(notices)
        if columns(self.size.width) != self._columns:
            self._columns = columns(self.size.width)
            self._table.clear(columns=True)
            self._table.add_columns(*self._columns)
        listed = rows(self._board, self._filter_text, time.monotonic(), self.size.width, self._toggled)
        self._listed = {row.key: row for row in listed}
        if list(self._listed) == [key.value for key in self._table.rows]:
            for row in listed:
                self._update_row(row)
        else:
            self._fill(listed)

    def _update_row(self, row: Row) -> None:
        for column, cell in zip(self._table.ordered_columns, _cells(row), strict=True):
            if self._table.get_cell(row.key, column.key) != cell:
                self._table.update_cell(row.key, column.key, cell, update_width=True)

    def _fill(self, listed: list[Row]) -> None:
        selected = self._selected_key
        self._table.clear()
        for row in listed:
            self._table.add_row(*_cells(row), key=row.key)
        keys = [row.key for row in listed]
        if selected in keys:
            self._table.move_cursor(row=keys.index(selected))
        elif keys:
            self._select(keys[0])

    def _draw_alerts(self) -> None:
        at = self._alerts.cursor_row
        self._alerts.clear()
        for number, cells, style in alert_rows(self._board.alerts):
            texts = [Text(cell, style=style if place == 1 else "") for place, cell in enumerate(cells)]
            self._alerts.add_row(*texts, key=str(number))
        if self._alerts.row_count:
            self._alerts.move_cursor(row=min(at, self._alerts.row_count - 1))

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Another line was selected."""
        if event.data_table.id == "workers" and event.row_key.value is not None:
            self._select(event.row_key.value)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter on the head of a group opens or closes it."""
        row = self._selected
        if event.data_table.id == "workers" and row is not None and row.members:
            self._toggled[row.component_id] = row.cells[0].startswith("▸")
            self._draw()

    def _select(self, key: str) -> None:
        if key != self._selected_key:
            self._selected_key = key
            self._followed = LogFollower(self._control, self._chosen_ids)
            self._write_pages(dict.fromkeys(pages.WORKER_PAGES, "…"))
            self._load_pages()

    @property
    def _selected(self) -> Row | None:
        return self._listed.get(self._selected_key or "")

    @property
    def _chosen_ids(self) -> tuple[str, ...]:
        """The selected worker, or those of the selected group."""
        row = self._selected
        return () if row is None else row.members or (row.component_id,)

    @work(thread=True, exclusive=True, group="pages")
    def _load_pages(self) -> None:
        row, key, followed = self._selected, self._selected_key, self._followed
        if row is None or self._board.trouble:
            return
        if row.members:
            members = [each for each in self._listed.values() if each.component_id in row.members]
            found = pages.of_group(row.component_id, members)
        else:
            found = pages.fetch(self._control, row.component_id)
        self._from_thread(self._show_pages, key, found)
        if followed is not None and followed.is_new:
            self._fetch_log(key, followed)

    def _show_pages(self, key: str, found: Mapping[str, str]) -> None:
        if key == self._selected_key:
            self._write_pages(found)

    # ── the log ──────────────────────────────────────────────────────────────────────────

    def _follow_log(self) -> None:
        """Ask for new lines while the page with the output is shown and not paused."""
        shown = self.query_one("#pages", TabbedContent).active == "output"
        if shown and self._is_following and self._followed is not None and not self._board.trouble:
            self._fetch_log_soon(self._selected_key, self._followed)

    @work(thread=True, exclusive=True, group="log")
    def _fetch_log_soon(self, key: str | None, followed: LogFollower) -> None:
        self._fetch_log(key, followed)

    def _fetch_log(self, key: str | None, followed: LogFollower) -> None:
        text = followed.fetch()
        if text is not None:
            self._from_thread(self._show_log, key, text)

    def _show_log(self, key: str | None, text: str) -> None:
        if key != self._selected_key:
            return
        self._write_pages({"output": text})
        if self._is_following:
            self.query_one("#output VerticalScroll", VerticalScroll).scroll_end(animate=False)

    def action_log(self) -> None:
        """Show the output of the selected worker, and follow it."""
        self.action_page("output")
        self._is_following = True
        self._follow_log()

    def action_follow(self) -> None:
        """Stop following the output, to read it; or follow it again."""
        self._is_following = not self._is_following
        self.notify(
            "The log is followed." if self._is_following else "The log is paused; f follows it again."
        )
        self._follow_log()

    def _write_pages(self, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            # Right after the start, and at the end, a row may be selected while a page is not there.
            for page in self.query(f"#{name}-text").results(Static):
                page.update(text)

    # ── orders ───────────────────────────────────────────────────────────────────────────

    def action_order(self, order: str) -> None:
        """Ask for confirmation, then give the order for the selected worker, or those of the group."""
        row, ids = self._selected, self._chosen_ids
        if row is None:
            return
        question, consequence = ACTIONS[order]
        name = f"the {len(ids)} workers of {row.component_id}" if row.members else row.component_id
        if row.members:
            consequence = f"For each of them: {consequence[0].lower()}{consequence[1:]}"
        self.push_screen(ConfirmDialog(question.format(name), consequence), partial(self._give, order, ids))

    def _give(self, order: str, ids: tuple[str, ...], sure: bool | None) -> None:
        for id_ in ids if sure else ():
            self._post(path_of("workers", id_, order), f"{order}: {id_}")

    def action_acknowledge(self) -> None:
        """Acknowledge an alert: the selected one on the alerts page, else the first unacknowledged one."""
        open_alerts = [alert for alert in self._board.alerts if not alert["acknowledged_at_wall_ms"]]
        open_alerts = [alert for alert in open_alerts if not alert["resolved_at_wall_ms"]]
        selected = self._alerts.cursor_row if self.focused is self._alerts else 0
        listed = [number for number, _, _ in alert_rows(self._board.alerts)]
        number = listed[selected] if self.focused is self._alerts and listed else None
        number = open_alerts[0]["id"] if number is None and open_alerts else number
        if number is not None:
            self._post(path_of("alerts", str(number), "acknowledge"), f"Alert {number} is acknowledged.")

    @work(thread=True, group="orders")
    def _post(self, path: str, done: str) -> None:
        try:
            self._control.post(path)
        except ControlError as error:
            self._say(str(error), "error")
        else:
            self._say(done, "information")
        self._feed.refresh()

    def _say(self, text: str, severity: Any) -> None:
        show: Callable[..., None] = partial(self.notify, text, severity=severity, markup=False)
        self._from_thread(show)

    def action_page(self, name: str) -> None:
        """Show one of the pages."""
        self.query_one("#pages", TabbedContent).active = name
        if name == "alerts":
            self._alerts.focus()

    def action_filter(self) -> None:
        """Show the filter field."""
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    def action_show_all(self) -> None:
        """Clear the filter."""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self._table.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Apply the filter as it is typed."""
        self._filter_text = event.value
        self._draw()

    def on_input_submitted(self) -> None:
        """Return to the table; the filter stays."""
        self._table.focus()

    def action_help(self) -> None:
        """Show the help."""
        self.push_screen(Help())


def _cells(row: Row) -> list[Text]:
    """Literal text, so that markup in a worker's name has no effect."""
    return [Text(cell, style=row.style if place == 1 else "") for place, cell in enumerate(row.cells)]
