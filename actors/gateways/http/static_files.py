"""The dashboard's files, read once: a closed list, so that a path never reaches the disk."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.responses import Response

STATIC = Path(__file__).with_name("static")
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Page:
    """One file, ready to be sent."""

    body: bytes
    kind: str
    tag: str

    def response(self, known_tag: str | None) -> Response:
        """The file, or that the browser has it already."""
        headers = {"etag": self.tag, "cache-control": "no-cache"}
        if known_tag == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.body, headers=headers, media_type=self.kind)


def read_pages() -> Mapping[str, Page]:
    """Every file by the path under which it is served."""
    pages = {
        f"/{path.relative_to(STATIC).as_posix()}": _page(path)
        for path in sorted(STATIC.rglob("*"))
        if path.suffix in _KINDS
    }
    return {"/": pages.pop("/index.html"), **pages}


def _page(path: Path) -> Page:
    body = path.read_bytes()
    return Page(body, _KINDS[path.suffix], f'"{hashlib.sha256(body).hexdigest()[:32]}"')
