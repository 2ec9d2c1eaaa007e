"""The first entry of an archive of `boxlaunch cp NAME:PATH -`, which a box has sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from ._failure import BoxbuildError

_BLOCK = 512
#: How many bytes of an archive are no content of its file: headers, a long name, and the end.
OVERHEAD = 64 << 10


@dataclass(frozen=True)
class ArchivedFile:
    """A file. `content` ends early if the archive was cut off."""

    size: int
    content: bytes


def malformed() -> BoxbuildError:
    """Returns the error for an archive that is none."""
    return BoxbuildError("the box has sent an archive that is malformed")


def first_entry(archive: bytes) -> Union[ArchivedFile, str, None]:
    """Returns the file of an archive, the target of a symbolic link, or `None` for a directory.

    Raises:
        BoxbuildError: The archive is malformed.
    """
    at, target = 0, None
    while True:
        header = archive[at : at + _BLOCK]
        at += _BLOCK
        if len(header) < _BLOCK or not header.strip(b"\0"):
            raise malformed()
        size, kind = _number(header[124:136]), header[156:157]
        content = archive[at : at + size]
        if kind in (b"0", b"\0"):
            return ArchivedFile(size, content)
        if kind == b"2":
            return _text(header[157:257] if target is None else target)
        if kind == b"5":
            return None
        if kind not in (b"L", b"K"):
            raise malformed()
        target = content if kind == b"K" else target
        at += -(-size // _BLOCK) * _BLOCK


def _number(field: bytes) -> int:
    """Returns a number of a header: octal digits, or if it is large, binary ones."""
    if field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    try:
        return int(field.strip(b"\0 ") or b"0", 8)
    except ValueError:
        raise malformed() from None


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")
