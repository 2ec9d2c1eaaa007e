"""The listings of `boxlaunch ls --json`, which a box has sent."""

from __future__ import annotations

import base64
import re
import stat
from typing import Dict, List

from . import _schema as schema
from ._failure import BoxbuildError
from ._result import FileChange, FileEntry

_KINDS = {
    "file": stat.S_IFREG,
    "directory": stat.S_IFDIR,
    "symlink": stat.S_IFLNK,
    "char-device": stat.S_IFCHR,
    "block-device": stat.S_IFBLK,
    "fifo": stat.S_IFIFO,
    "socket": stat.S_IFSOCK,
    "unknown": 0,
}
#: The longest name of a file, in bytes.
_NAME = 255
#: The largest size and time.
_MODE = re.compile("[0-7]{1,4}")
_NUMBER = 1 << 63


def entries_of(listing: schema.Listing) -> Dict[str, FileEntry]:
    """Returns the entries of a listing, by name.

    Raises:
        BoxbuildError: The listing is malformed, or the directory has too many entries.
    """
    if listing["truncated"]:
        raise BoxbuildError("the directory has more than 10000 entries", hint="list it with a command, such as `find`")
    try:
        return {entry.name: entry for entry in map(_entry, listing["entries"])}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise BoxbuildError("the box has sent a listing that is malformed") from None


def _entry(listed: schema.ListingEntry) -> FileEntry:
    name, mode = listed["name"].encode(), listed["mode"]
    if "name_base64" in listed:
        name = base64.b64decode(listed["name_base64"], validate=True)
    # A caller may append the name to a path of this host.
    if not 0 < len(name) <= _NAME or name in (b".", b"..") or b"/" in name or b"\0" in name:
        raise ValueError("name")
    if not _MODE.fullmatch(mode):
        raise ValueError("mode")
    text = name.decode("utf-8", "surrogateescape")
    return FileEntry(text, _KINDS[listed["type"]] | int(mode, 8), _number(listed["size"], 0), _number(listed["mtime"], -_NUMBER))


def _number(number: int, least: int) -> int:
    if type(number) is not int or not least <= number < _NUMBER:
        raise ValueError("number")
    return number


def changes(old: Dict[str, FileEntry], new: Dict[str, FileEntry]) -> List[FileChange]:
    """Returns the differences between two listings of a directory."""
    found = [FileChange("deleted", name) for name in old if name not in new]
    found += [FileChange("created", name) for name in new if name not in old]
    found += [FileChange("modified", name) for name, entry in new.items() if name in old and old[name] != entry]
    return sorted(found, key=lambda change: change.name)
