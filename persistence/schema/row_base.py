"""The base class of the typed models."""

from __future__ import annotations

from sqlalchemy.orm import DeclarativeBase

from . import tables


class Model(DeclarativeBase):
    """The base class of the models."""

    metadata = tables.METADATA
