"""Files for TLS and logins: certificates, and the signed JWTs of NATS accounts."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import nkeys
from nacl.signing import SigningKey
from tests.services import unavailable

_PREFIXES = {"O": 14 << 3, "A": 0, "U": 20 << 3}
_SEED = 18 << 3


class Key:
    """A key of an operator, account or user."""

    def __init__(self, kind: str) -> None:
        raw = bytes(SigningKey.generate())
        prefix = _PREFIXES[kind]
        self.seed = _encoded(bytes([_SEED | prefix >> 5, (prefix & 31) << 3]) + raw)
        self._pair = nkeys.from_seed(bytearray(self.seed))

    @property
    def public(self) -> str:
        """The public key."""
        return bytes(self._pair.public_key).decode()

    def token(self, subject: str, name: str, claims: dict[str, Any]) -> str:
        """A JWT about a subject, signed with this key."""
        body = {"iat": int(time.time()), "iss": self.public, "sub": subject, "name": name}
        digest = hashlib.sha256(json.dumps({**body, "nats": claims}).encode()).digest()
        body |= {"jti": base64.b32encode(digest).decode().rstrip("="), "nats": {**claims, "version": 2}}
        head = {"typ": "JWT", "alg": "ed25519-nkey"}
        text = ".".join(_url(json.dumps(each).encode()) for each in (head, body))
        return f"{text}.{_url(self._pair.sign(text.encode()))}"


def account(directory: Path) -> tuple[str, Path]:
    """The server configuration of an operator with an account, and a .creds file of one of its users."""
    operator, owner, user = Key("O"), Key("A"), Key("U")
    limits = dict.fromkeys(("subs", "data", "payload", "conn", "leaf", "imports", "exports"), -1)
    grants = {"limits": {**limits, "wildcards": True}, "type": "account"}
    account_token = operator.token(owner.public, "acme", grants)
    config = (
        f"operator: {operator.token(operator.public, 'op', {'type': 'operator'})}\n"
        f'resolver: MEMORY\nresolver_preload: {{ {owner.public}: "{account_token}" }}\n'
    )
    claims = {"pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1, "type": "user"}
    credentials = directory / "ada.creds"
    credentials.write_text(
        f"-----BEGIN NATS USER JWT-----\n{owner.token(user.public, 'ada', claims)}\n"
        f"------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n"
        "------END USER NKEY SEED------\n"
    )
    credentials.chmod(0o600)
    return config, credentials


def certificate(directory: Path) -> tuple[Path, Path]:
    """A self-signed certificate of 127.0.0.1, and its key."""
    program = shutil.which("openssl")
    if program is None:
        unavailable("openssl is not installed")
    cert, key = directory / "cert.pem", directory / "key.pem"
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost")
    files = ("-keyout", str(key), "-out", str(cert))
    subprocess.run([program, "req", "-x509", *kind, *names, *files], check=True, capture_output=True)
    key.chmod(0o600)
    return cert, key


def _encoded(raw: bytes) -> bytes:
    return base64.b32encode(raw + _checksum(raw).to_bytes(2, "little")).rstrip(b"=")


def _checksum(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def _url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
