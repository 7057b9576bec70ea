"""The base class of the models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.orm.decl_api import DeclarativeAttributeIntercept

from . import tables

if TYPE_CHECKING:

    class _Columns(DeclarativeAttributeIntercept):
        """Tells type checkers that a model has more attributes than its class names."""

        def __getattr__(cls, name: str) -> Any: ...  # noqa: N805

else:
    _Columns = DeclarativeAttributeIntercept


class Model(DeclarativeBase, metaclass=_Columns):
    """The base class of the models; the attributes of a model are the columns of its `__table__`."""

    metadata = tables.METADATA

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
