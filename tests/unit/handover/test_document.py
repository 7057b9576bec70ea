"""The hand-over document: sealed, strict, and refused with a sentence if it does not fit."""

from __future__ import annotations

import os

import msgspec
import pytest

from rekindle.actors.handover import FORMAT, Estate, HandOver, HandOverError, Inheritance
from rekindle.actors.handover.document import decode, encode
from rekindle.actors.handover.sealed_file import read_sealed, sealed


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a part."""

    number: int
    data: bytes = b""


def document(estate: Estate, number: int = FORMAT) -> HandOver:
    return HandOver(format=number, version="1.0", number=1, at=2.5, back=("python",), parts=estate.parts)


def test_a_part_takes_what_it_left_and_takes_it_once() -> None:
    estate = Estate()
    estate.leave("guardian", Known(7, b"\x00\xff"), socket=11, pidfd=12)
    file = sealed(encode(document(estate)))
    inheritance = Inheritance(decode(read_sealed(file)))
    os.close(file)
    assert inheritance.take("guardian", Known) == (Known(7, b"\x00\xff"), {"socket": 11, "pidfd": 12})
    assert inheritance.take("guardian", Known) is None


def test_text_that_has_no_bytes_does_not_keep_the_rest_from_being_handed_over() -> None:
    estate = Estate()
    estate.leave("worker", {"job": "half a pair: \ud800", "path": "größer"})
    (part,) = decode(encode(document(estate))).parts.values()
    assert part.state == {"job": "half a pair: ?", "path": "größer"}


def test_another_format_is_refused_with_both_numbers() -> None:
    with pytest.raises(
        HandOverError, match=f"hands over in format 999, and this version reads format {FORMAT}"
    ):
        decode(encode(document(Estate(), 999)))


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\xff", b'{"format": 1}', b'{"format": 1, "more": 2}'])
def test_what_is_not_a_document_is_refused(data: bytes) -> None:
    with pytest.raises(HandOverError):
        decode(data)


def test_a_field_that_this_version_does_not_know_is_refused_by_its_name() -> None:
    estate = Estate()
    estate.leave("part", {"number": 1, "colour": "red"})
    with pytest.raises(HandOverError, match=r"does not understand part .* `colour`"):
        Inheritance(document(estate)).take("part", Known)


def test_a_file_that_can_be_changed_is_refused() -> None:
    file = os.memfd_create("rekindle-hand-over", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(file, encode(document(Estate())))
    with pytest.raises(HandOverError, match="is not sealed: it may have been tampered with"):
        read_sealed(file)
    os.close(file)


def test_a_sealed_file_cannot_be_changed() -> None:
    file = sealed(b"{}")
    with pytest.raises(PermissionError):
        os.pwrite(file, b"[]", 0)
    with pytest.raises(PermissionError):
        os.ftruncate(file, 0)
    os.close(file)


def test_a_file_on_disk_and_a_missing_descriptor_are_refused() -> None:
    with open(__file__, "rb") as file, pytest.raises(HandOverError, match="is not a file in memory"):
        read_sealed(file.fileno())
    with pytest.raises(HandOverError, match="there is no hand-over document"):
        read_sealed(-1)
