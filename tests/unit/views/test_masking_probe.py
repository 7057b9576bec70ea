"""Secrets of every kind that workers print: none of them is in what `report` shows."""

from __future__ import annotations

import base64
import time

import pytest

from rekindle.actors.views.bug_report import cleaner, secrets_of, without_secrets
from rekindle.actors.views.redaction import masked, masked_text, masked_words

S = "Zq7wX2kLm9"
"""The secret part of every case."""
LONG = S + "Ab3Cd4Ef5Gh6Ij7Kl8Mn9Op0Qr1"
HEX = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"

TEXTS = [
    # keys of well-known services
    f"ghp_{LONG}",
    f"github_pat_11ABCDEFG0{LONG}",
    f"glpat-{LONG}",
    f"xapp-1-A02-{LONG}",
    f"xoxb-123-456-{LONG}",
    f"sk_live_{LONG}",
    f"rk_test_{LONG}",
    f"whsec_{LONG}",
    f"sk-{LONG}",
    f"sk-proj-{LONG}",
    f"sk-ant-api03-{LONG}",
    f"AIzaSyA{LONG}",
    f"ya29.{LONG}",
    f"GOCSPX-{LONG}",
    f"npm_{LONG}",
    f"pypi-AgEI{LONG}",
    f"dckr_pat_{LONG}",
    f"hf_{LONG}",
    f"SG.{LONG}.{LONG}",
    f"hvs.{LONG}",
    f"AGE-SECRET-KEY-1{LONG.upper()}",
    f"https://hooks.slack.com/services/T000/B000/{LONG}",
    f"https://discord.com/api/webhooks/1234/{LONG}",
    f"https://api.telegram.org/bot123456789:AA{LONG}/sendMessage",
    f"123456789:AA{LONG}xyz",
    f"Cookie: rekindle-8377={LONG}.{HEX}{HEX}",
    f"the session session-{(LONG + HEX + HEX)[:43]} ended",
    f"eyJhbGciOiJIUzI1NiJ9.eyJ{LONG}.{LONG}",
    # values under a name
    f"DB_PASS={S}",
    f"SMTP_PW={S}",
    f"STRIPE_KEY={S}",
    f"NPM_AUTH={S}",
    f"//registry.example/:_authToken={S}",
    f"//registry.example/:_auth={S}",
    f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={S}==;EndpointSuffix=x",
    f"Endpoint=sb://x/;SharedAccessKey={S}=",
    f"https://x.blob.core.windows.net/c?sv=2020&sig={S}%3D&se=2030",
    f"signed: sig={S}",
    f"https://b.s3.amazonaws.com/k?X-Amz-Credential=a&X-Amz-Signature={S}",
    f"Passwort: {S}",
    f"Kennwort={S}",
    f"password={S}",
    f'{{"pass": "{S}"}}',
    f"'pw': '{S}'",
    f"X-Api-Key: {S}",
    f"client_secret={S}&grant_type=x",
    f"aws_secret_access_key = {S}",
    f"Authorization: Bearer {S}",
    f"Authorization: token {S}",
    f"Proxy-Authorization: Basic {S}",
    f"SECRET_KEY='{S}'",
    f"private_key: {S}",
    f'SSH_PASSPHRASE="{S} {S}"',
    f"Set-Cookie: sid={S}; HttpOnly",
    # URLs
    f"https://{S}@github.com/a/b.git",
    f"git+https://{LONG}@github.com/a/b.git",
    f"https://user:{S}@host/path",
    f"postgresql://u:a@{S}@h/db",
    f"postgresql://u:{S}/x@h/db",
    f"postgresql://u:a/{S}@x/y@h/db",
    f"redis://:{S}@h:6379/0",
    f"amqp://a:b@c and mongodb+srv://u:{S}@h",
    f"postgresql://h/db?user=u&password={S}",
    f"postgresql://h/db?sslpassword={S}&x=1",
    f"https://{LONG}:x-oauth-basic@github.com/a",
    f"https://sentry.example/?dsn=https://{S}@o1.ingest.example/2",
    # commands in a text
    f"exec: curl -u admin:{S} https://h",
    f"ran mysqldump --password {S} db",
    f"ran mysqldump -p{S} db",
    f"ran tool --token {S}",
    f"ran tool --token -{S}",
    f"ran tool --api-key '{S}' x",
    # private keys
    f"-----BEGIN RSA PRIVATE KEY-----\n{LONG}\n{LONG}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN OPENSSH PRIVATE KEY-----\\n{LONG}\\n-----END OPENSSH PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY-----\n{LONG}\n{LONG}",
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{LONG}\n-----END PGP PRIVATE KEY BLOCK-----",
]
WORDS = [
    ["mysql", "-p", S],
    ["mysql", f"-p{S}"],
    ["curl", "-u", f"admin:{S}", "https://h"],
    ["curl", "--user", f"admin:{S}"],
    ["tool", "--pass", S],
    ["tool", "--password", S],
    ["tool", "--token", f"-{S}"],
    ["tool", f"--token={S}"],
    ["tool", "--smtp-pw", S],
    ["tool", "--auth", S],
    ["docker", "run", "-e", f"DB_PASS={S}"],
    ["env", f"STRIPE_KEY={S}", "app"],
    ["app", f"https://{S}@host/"],
    ["app", f"postgresql://u:a@{S}@h/db"],
]
ORDINARY_WORDS = [
    ["ssh", "-p", "2222", "host"],
    ["docker", "run", "-p", "8080:80/tcp", "-p8080:80", "nginx"],
    ["find", ".", "-print", "-prune"],
    ["docker", "run", "--user", "1000:1000", "image"],
    ["cp", "-p", "./from", "-p", "/etc/hosts"],
    ["tool", "--use-token", "--verbose"],
    ["tool", "--password-file", "-v"],
]
ORDINARY = [
    "tests pass: 12 of 14, pass=",
    "sort_key=name primary_key=id key=value",
    "https://host/@scope/package and https://medium.com/@someone",
    "http://host:8080/users/me@example.org",
    "ssh://git@example.org/repository.git",
    "bypass=1, compass: north, passing=3",
    "KeyError: 'KEY'",
    "see --token in the manual, and --password too",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "npm_config_cache=/tmp sk-learn pypi-server",
    "task-key-1 finished",
    "killed, sig=9, signal=15",
    "find . -print0, docker run -p8080:80, gcc -pthread2 -pipe",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_secret_in_a_text_is_masked(text: str) -> None:
    shown = masked_text(text)
    assert S not in shown
    assert S.upper() not in shown
    assert masked_text(shown) == shown


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_a_secret_in_a_command_is_masked(words: list[str]) -> None:
    assert S not in str(masked_words(words))


@pytest.mark.parametrize("words", ORDINARY_WORDS, ids=" ".join)
def test_an_ordinary_command_stays_as_it_is(words: list[str]) -> None:
    assert masked_words(words) == words


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_text_stays_as_it_is(text: str) -> None:
    assert masked_text(text) == text


@pytest.mark.parametrize("name", ["DB_PASS", "SMTP_PW", "STRIPE_KEY", "NPM_AUTH", "SENTRY_DSN", "AccountKey"])
def test_a_variable_of_this_name_is_masked(name: str) -> None:
    assert masked(name, S) == "***"


BASIC = base64.b64encode(f"admin:{S}".encode()).decode()


@pytest.mark.parametrize(
    "text",
    [
        f"printed {S}",
        f"printed {base64.b64encode(S.encode()).decode()} as base64",
        *(
            f"sent {base64.b64encode(('x' * n + S + 'yy').encode()).decode()} within other bytes"
            for n in range(1, 4)
        ),
        f"header {BASIC}",
        "https%3A%2F%2Fp%40ss%2Fword1 quoted",
        r'''repr of "quo'te\x00d-value"''',
        "the database wants db-Pa55word",
        "the database wants query-Pa55word",
        "inherited-Value in a line",
    ],
)
def test_the_values_that_the_supervisor_knows_are_masked_in_every_form(text: str) -> None:
    environment = {
        "API_TOKEN": S,
        "WEB_SECRET": "https://p@ss/word1",
        "ODD_SECRET": "quo'te\x00d-value",
        "DATABASE_URL": "postgresql://u:db-Pa55word@h/db",
        "INHERITED_SECRET": "inherited-Value",
        "AUTH": "none",
        "PATH": "/usr/bin",
    }
    secrets = secrets_of(environment, "postgresql://h/db?user=u&password=query-Pa55word")
    assert "none" not in secrets
    assert "/usr/bin" not in secrets
    shown = cleaner(secrets)(text)
    assert "***" in shown
    assert not any(secret in shown for secret in secrets)


def test_every_text_of_a_document_is_masked() -> None:
    key = ["-----BEGIN EC PRIVATE KEY-----", LONG, "MHcCAQEE", "-----END EC PRIVATE KEY-----"]
    document = {
        "deaths": [{"job": f"https://svc:{S}@host", "generation": 3}],
        "worker": {"current_job": {"id": f"token={S}"}, "paused": False},
        "output": [["out", "before"], *(["err", line] for line in key), ["out", "an ordinary line"]],
        "lines": [*key, "after"],
    }
    shown = without_secrets(document, ())
    assert S not in str(shown)
    assert "MHcCAQEE" not in str(shown)
    assert "an ordinary line" in str(shown)
    assert "after" in str(shown)
    assert isinstance(shown, dict)
    assert shown["deaths"][0]["generation"] == 3


@pytest.mark.parametrize(
    "piece",
    ["-----BEGIN PRIVATE KEY-----", "://a:b@", "://", "://a:", "@", "SG.aaaaaaaaaa.", "sk-", "--token ",
     "--a-", "-u a:", "-u a", "AA1_KEY=", "?sig=", "&password=", "pass=", "xapp-", "hvs.", "123456789:AA",
     "session-", "bot1:", "hooks.slack.com/services/", "--a-a-a-a-a-pass", "'pw'", "_auth=",
     " -pa1", " -p", "-p", "sig="],
)  # fmt: skip
def test_masking_takes_no_longer_than_the_length_allows(piece: str) -> None:
    text = (piece * 65536)[:65536]
    began = time.process_time()
    masked_text(text)
    assert time.process_time() - began < 1.0
