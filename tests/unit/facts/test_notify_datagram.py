"""What a datagram to a notify socket says."""

from __future__ import annotations

import pytest

from rekindle.actors.facts.notify_datagram import LONGEST_S, NotifyDatagram, parse


@pytest.mark.parametrize(
    ("data", "notice"),
    [
        (b"READY=1", NotifyDatagram(is_ready=True)),
        (b"READY=1\nSTATUS=serving\n", NotifyDatagram(is_ready=True, status="serving")),
        (b"READY=0", NotifyDatagram()),
        (b"WATCHDOG=1", NotifyDatagram(is_alive=True)),
        (b"WATCHDOG=trigger", NotifyDatagram(gives_up=True)),
        (b"WATCHDOG_USEC=2500000", NotifyDatagram(watchdog_s=2.5)),
        (b"EXTEND_TIMEOUT_USEC=10000000", NotifyDatagram(extend_s=10.0)),
        (b"STOPPING=1", NotifyDatagram(is_stopping=True)),
        (b"MAINPID=7", NotifyDatagram(main_pid="7")),
        (b"STATUS=", NotifyDatagram(status="")),
        (b"FDSTORE=1\nFDNAME=x\nBARRIER=1\nRELOADING=1", NotifyDatagram()),
    ],
)
def test_what_systemd_defines_is_understood(data: bytes, notice: NotifyDatagram) -> None:
    assert parse(data) == notice


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 90, b"=", b"READY", b"\xff\xfe=1", b"WATCHDOG_USEC=-1", b"EXTEND_TIMEOUT_USEC=1e9"]
)
def test_anything_else_says_nothing(data: bytes) -> None:
    assert parse(data) == NotifyDatagram()


def test_a_status_is_one_short_printable_line() -> None:
    status = parse(b"STATUS=\x1b[31m" + b"x" * 3000).status
    assert status is not None
    assert status.isprintable()
    assert len(status) <= 210


def test_no_time_is_longer_than_a_week() -> None:
    assert parse(b"WATCHDOG_USEC=" + b"9" * 60).watchdog_s == LONGEST_S
