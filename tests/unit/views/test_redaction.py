"""What is masked in a text, and what stays readable."""

from __future__ import annotations

import time

import pytest

from rekindle.actors.views.redaction import masked_text

SECRETS = {
    "RuntimeError: password=hunter2hunter2 for bob": "RuntimeError: password=*** for bob",
    "password = hunter": "password = ***",
    "DB_PASSWORD=swordfish": "DB_PASSWORD=***",
    "passwd:swordfish at login": "passwd:*** at login",
    "password: swordfish": "password: ***",
    "password: pa55word was refused": "password: *** was refused",
    "PWD=letmein;Server=h": "PWD=***;Server=h",
    "db_password_1='with spaces' x": "db_password_1='***' x",
    "clientSecret=abc&next=1": "clientSecret=***&next=1",
    "api_key: AKIAABCDEFGHIJKLMNOP": "api_key: ***",
    "used AKIAABCDEFGHIJKLMNOP there": "used *** there",
    "aws_secret_access_key=wJalrXUtnFEMI/K7MDENG": "aws_secret_access_key=***",
    "apiKey=abcdef)": "apiKey=***)",
    "connect(token=abc, user=bob)": "connect(token=***, user=bob)",
    '{"password": "x", "user": "bob"}': '{"password": "***", "user": "bob"}',
    '{"pin": 1, "password": 1234}': '{"pin": 1, "password": ***}',
    "{'token': 'abc', 'n': 1}": "{'token': '***', 'n': 1}",
    r'{"body": "{\"secret\": \"a b\", \"n\": 1}"}': r'{"body": "{\"secret\": \"***\", \"n\": 1}"}',
    r'password="a\"b" rest': 'password="***" rest',
    'password="cut in the mid': 'password="***',
    "credentials: abcdefghijklmnopqrstuvwxyz left": "credentials: *** left",
    "Authorization: Bearer abcdefghijklmnop": "Authorization: Bearer ***",
    "Authorization: Basic dXNlcjpwdw== sent": "Authorization: Basic *** sent",
    "Authorization: Digest abcdef sent": "Authorization: Digest *** sent",
    "-H 'authorization: bearer abc.def'": "-H 'authorization: bearer ***'",
    "sent Bearer abcdefghijklmnop to it": "sent Bearer *** to it",
    "sent Basic dXNlcjpwdw to it": "sent Basic *** to it",
    "Cookie: session=abc; theme=dark": "Cookie: ***",
    "jwt eyJhbGciOiJIUzI1.eyJzdWIiOiIx.abc-_ ok": "jwt *** ok",
    "push with ghp_abcdefghijklmnopqrstuvwxyz01": "push with ***",
    "secret: token: abc123": "secret: token: ***",
    "postgresql://u:pw12345@h/db": "postgresql://u:***@h/db",
    "redis://:pw@h and amqp://a:b@c": "redis://:***@h and amqp://a:***@c",
    "password=first\npassword: second\nthird": "password=***\npassword: ***\nthird",
}
ORDINARY = [
    "SyntaxError: token: expected ')'",
    "unexpected token: '}' in line 3",
    "unexpected token: 'else'",
    "the password is wrong",
    "password: must not be empty",
    "secret: not found in the vault",
    "authorization: denied for bob",
    "password:",
    "password=",
    'password=""',
    "token=None, secret: null",
    "def login(user: str, password: str) -> None:",
    "max_tokens=4096 tokens: 12",
    "token_count=512 password_file=/run/x token_type: bearer",
    "secretary: Bob, tokenizer=fast",
    "if token == expected",
    "std::token::Kind and secret://vault",
    "PWD=/srv/app",
    "Basic understanding of Bearer authentication",
    "http://host:8080/path at 12:30:05",
    "KeyError: 'name'",
]


@pytest.mark.parametrize("text", SECRETS)
def test_what_looks_like_a_secret_is_masked(text: str) -> None:
    assert masked_text(text) == SECRETS[text]


@pytest.mark.parametrize("text", SECRETS)
def test_masking_what_is_masked_changes_nothing(text: str) -> None:
    assert masked_text(SECRETS[text]) == SECRETS[text]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert masked_text(text) == text


@pytest.mark.parametrize(
    "piece",
    ["a", "token", "token:", "token: ", "token: x ", "token='", "token=\\'\"", 'password="', "password=\\",
     "secret_", "secret-a", "eyJ", "eyJa-", ".eyJaaaaaaaaaa", "http://", "http://a:", "://", "cookie:a",
     "cookie: a= ", "Bearer ", "bearer aaaaaaaa", "AKIA", "pwd=)", "pwd= ", "pwd:\t", "'pwd': '", "=", "\\"],
)  # fmt: skip
def test_nasty_output_takes_no_longer_than_its_length_allows(piece: str) -> None:
    def taken(length: int) -> float:
        text = (piece * length)[:length]
        began = time.process_time()
        masked_text(text)
        return time.process_time() - began

    assert taken(64 * 1024) < 1.0
