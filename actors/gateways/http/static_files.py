"""The files of the dashboard, read once: a closed list, so that no request path reaches the disk."""

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
class StaticFile:
    """One file, ready to send."""

    body: bytes
    kind: str
    tag: str

    def response(self, known_tag: str | None) -> Response:
        """The file, or 304 if the browser has it."""
        headers = {"etag": self.tag, "cache-control": "no-cache"}
        if known_tag == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.body, headers=headers, media_type=self.kind)


def read_static_files() -> Mapping[str, StaticFile]:
    """Every file, by its request path."""
    pages = {
        f"/{path.relative_to(STATIC).as_posix()}": _page(path)
        for path in sorted(STATIC.rglob("*"))
        if path.suffix in _KINDS
    }
    return {"/": pages.pop("/index.html"), **pages}


def _page(path: Path) -> StaticFile:
    body = path.read_bytes()
    return StaticFile(body, _KINDS[path.suffix], f'"{hashlib.sha256(body).hexdigest()[:32]}"')
