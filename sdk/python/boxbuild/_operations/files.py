"""Files in a box."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Union

from .. import _schema as schema
from .._call import Steps, Stream, ask, boxlaunch, option, separated
from .._errors import IoError
from .._result import FileChange, FileEntry, changes
from .commands import exec
from .handle import AnyPath, Component, Handle

#: Prints the entries of a directory, each with its mode, size and time, its name and a zero byte. It needs `sh` and `stat`.
_LIST = """cd -- "$1" || exit 1
for name in * .[!.]* ..?*; do
  if [ -e "$name" ] || [ -L "$name" ]; then stat -c '%f %s %Y' -- "$name" && printf '%s\\0' "$name"; fi
done"""
#: Prints the entries again and again. An empty piece ends a listing.
_WATCH = f"while :; do ({_LIST}) || exit 1; printf '\\0'; sleep \"$2\"; done"


def read(self: Handle, path: str, *, component: Component = None, user: Optional[str] = None) -> Steps[bytes]:
    """Returns the content of a file.

    Args:
        path: The path in the box. A relative one begins in the working directory of the component.
        component: The component: `agent`, or `business`, the default if the box has it.
        user: The user who reads the file.

    Raises:
        BoxbuildError: There is no such file, or the user may not read it.

    Example:
        >>> box.files.read("/etc/hostname")
        b'business-host\\n'
    """
    with tempfile.TemporaryDirectory(prefix="boxbuild-") as directory:
        copy = Path(directory, "content")
        try:
            yield from copy_out(self, path, copy, component=component, user=user)
        except IoError:
            # `boxlaunch cp` copies no file through a symbolic link.
            real = yield from exec(self, ["readlink", "-f", "--", path], component=component, user=user)
            target = real.stdout.rstrip("\n")
            if target in ("", path):
                raise
            yield from copy_out(self, target, copy, component=component, user=user)
        return copy.read_bytes()


def read_text(self: Handle, path: str, *, component: Component = None, user: Optional[str] = None) -> Steps[str]:
    """Returns the content of a file in UTF-8 as text. The arguments are those of `read`."""
    return (yield from read(self, path, component=component, user=user)).decode()


def write(
    self: Handle,
    path: str,
    data: Union[str, bytes],
    *,
    mode: int = 0o644,
    component: Component = None,
    user: Optional[str] = None,
) -> Steps[None]:
    """Writes a file, and replaces an existing one.

    Args:
        path: The path in the box, whose directory exists.
        data: The content.
        mode: The permissions.
        component: The component: `agent`, or `business`, the default if the box has it.
        user: The user who writes the file, and owns it.

    Raises:
        BoxbuildError: The directory does not exist, or the user may not write to it.

    Example:
        >>> box.files.write("/tmp/run.sh", "echo hello", mode=0o755)
    """
    with tempfile.TemporaryDirectory(prefix="boxbuild-") as directory:
        copy = Path(directory, os.path.basename(path) or "content")
        copy.write_bytes(data.encode() if isinstance(data, str) else data)
        copy.chmod(mode)
        yield from copy_in(self, copy, path, component=component, user=user)


def copy_in(
    self: Handle, source: AnyPath, destination: str, *, component: Component = None, user: Optional[str] = None
) -> Steps[schema.Cp]:
    """Copies a file or a directory of this host into the box.

    Args:
        source: The path of this host. With `/.` at its end, the content of the directory is copied.
        destination: The path in the box. Into a directory, the copy gets the name of the source.
        component: The component: `agent`, or `business`, the default if the box has it.
        user: The user who owns the copy.

    Returns:
        The report; `note` says which entries were left out.

    Example:
        >>> box.files.copy_in("./project/.", "/work")
    """
    return (yield from _copy(_of_host(source), _of_box(self, destination), component, user))


def copy_out(
    self: Handle, source: str, destination: AnyPath, *, component: Component = None, user: Optional[str] = None
) -> Steps[schema.Cp]:
    """Copies a file or a directory of the box to this host.

    Args:
        source: The path in the box. With `/.` at its end, the content of the directory is copied.
        destination: The path of this host. Into a directory, the copy gets the name of the source.
        component: The component: `agent`, or `business`, the default if the box has it.
        user: The user who reads the files.

    Returns:
        The report; `note` says which entries were left out, such as links that lead out of the copy.

    Example:
        >>> box.files.copy_out("/work/result.csv", ".")
    """
    return (yield from _copy(_of_box(self, source), _of_host(destination), component, user))


def _copy(source: str, destination: str, component: Component, user: Optional[str]) -> Steps[schema.Cp]:
    report: schema.Cp = yield from ask(["cp", "--json", *option("--component", component), *option("--user", user), source, destination])
    return report


def _of_host(path: AnyPath) -> str:
    # An absolute path has no name of a box before its first colon. `join` keeps a slash or `/.` at the end.
    return os.path.join(os.getcwd(), os.fspath(path))


def _of_box(self: Handle, path: str) -> str:
    if not path:
        raise ValueError("the path in the box is empty")
    return f"{self.name}:{path}"


def list_files(self: Handle, path: str, *, component: Component = None) -> Steps[List[FileEntry]]:
    """Returns the entries of a directory, sorted by name. The component needs `sh` and `stat`.

    Args:
        path: The path in the box.
        component: The component: `agent`, or `business`, the default if the box has it.

    Raises:
        CommandError: There is no such directory.

    Example:
        >>> [entry.name for entry in box.files.list("/work")]
        ['result.csv']
    """
    listed = yield from exec(self, ["/bin/sh", "-c", _LIST, "sh", path], component=component, max_output="64MiB", check=True)
    entries = entries_of(listed.stdout_bytes.split(b"\0")[:-1])
    return sorted(entries.values(), key=lambda entry: entry.name)


def entries_of(pieces: Sequence[bytes]) -> Dict[str, FileEntry]:
    """Returns the entries that the script has printed, by name."""
    found = {}
    for piece in pieces:
        line, _, name = piece.partition(b"\n")
        mode, size, mtime = line.split()
        entry = FileEntry(os.fsdecode(name), int(mode, 16), int(size), int(mtime))
        found[entry.name] = entry
    return found


def watch(self: Handle, path: str, *, interval: float = 1, component: Component = None) -> Stream[FileChange]:
    """Yields the changes of a directory. The component needs `sh`, `stat` and `sleep`.

    The directory is listed again and again, without its subdirectories. Two changes within an interval, or of the same size within
    a second, are seen as one or not at all.

    Args:
        path: The path in the box.
        interval: The pause between two listings, in seconds.
        component: The component: `agent`, or `business`, the default if the box has it.

    Example:
        >>> for change in box.files.watch("/work"):
        ...     print(change.kind, change.name)
    """
    words = [*option("--component", component), self.name, "--", "/bin/sh", "-c", _WATCH, "sh", path, str(interval)]
    return Stream(boxlaunch("exec", "--raw", *words), watching)


def watching() -> Callable[[bytes], Iterator[FileChange]]:
    """Returns the decoder of the listings of `watch`."""
    pieces = separated(b"\0")
    listing: List[bytes] = []
    old: Optional[Dict[str, FileEntry]] = None

    def decode(chunk: bytes) -> Iterator[FileChange]:
        nonlocal listing, old
        for piece in pieces(chunk):
            if piece:
                listing.append(piece)
                continue
            new, listing = entries_of(listing), []
            found = [] if old is None else changes(old, new)
            old = new
            yield from found

    return decode
