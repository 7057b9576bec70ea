"""The statements that a restart waits for, compiled once."""

from __future__ import annotations

from sqlalchemy import Dialect

from rekindle.actors.deaths.death import Action

from . import statements as sql
from .compiled import Prepared
from .encoding import BUNDLE_COLUMNS, DEATH_COLUMNS, EVENT_COLUMNS


class HotStatements:
    """What is written at every death: the death itself, its count, its evidence, its events."""

    def __init__(self, upserts: sql.Upserts, dialect: Dialect) -> None:
        self.add_death = Prepared(upserts.add_death, dialect, DEATH_COLUMNS)
        self.add_event = Prepared(upserts.add_event, dialect, EVENT_COLUMNS)
        self.keep_bundle = Prepared(upserts.keep_bundle, dialect, BUNDLE_COLUMNS)
        self.prune_bundles = Prepared(sql.PRUNE_BUNDLES, dialect)
        self.count = {
            Action.RESTART: Prepared(upserts.count_restart, dialect),
            Action.MARK_FAILED: Prepared(upserts.mark_failed, dialect),
        }
