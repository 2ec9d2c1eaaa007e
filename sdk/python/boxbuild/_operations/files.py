"""Files in a box."""

from __future__ import annotations

import os
import posixpath
import tempfile
from pathlib import Path
from typing import Callable, Dict, List, Optional, Union

from .. import _schema as schema
from .._archive import OVERHEAD, ArchivedFile, first_entry, malformed
from .._call import Call, Polling, Steps, ask, boxlaunch, of_text, option
from .._errors import IoError
from .._failure import BoxbuildError, printable
from .._listing import changes, entries_of
from .._result import FileChange, FileEntry
from .handle import AnyPath, Component, Handle

#: How many links are followed to a file.
_LINKS = 8


def read(
    self: Handle, path: str, *, component: Component = None, user: Optional[str] = None, max_size: int = 64 << 20
) -> Steps[bytes]:
    """Returns the content of a file.

    Args:
        path: The path in the box. A relative one begins in the working directory of the component.
        component: The component: `agent`, or `business`, the default if the box has it.
        user: The user who reads the file.
        max_size: The largest size in bytes. A larger file is an error, and is not read to its end.

    Raises:
        BoxbuildError: There is no such file, the user may not read it, it is a directory, or it is too large.

    Example:
        >>> box.files.read("/etc/hostname")
        b'business-host\\n'
    """
    for _ in range(_LINKS):
        found = yield from _first_entry(self, path, component, user, max_size + OVERHEAD)
        if not isinstance(found, str):
            break
        path = posixpath.join(posixpath.dirname(path), found)
    if not isinstance(found, ArchivedFile):
        raise IoError(f"{printable(path)} is a directory" if found is None else f"{printable(path)}: too many links")
    if found.size > max_size:
        hint = "a larger `max_size` reads it, and `copy_out` copies it to a file"
        raise BoxbuildError(f"{printable(path)} has {found.size} bytes, and at most {max_size} are read", hint=hint)
    if len(found.content) < found.size:
        raise malformed()
    return found.content


def _first_entry(
    self: Handle, path: str, component: Component, user: Optional[str], limit: int
) -> Steps[Union[ArchivedFile, str, None]]:
    """Copies at most `limit` bytes of an archive of the path, and returns its first entry."""
    words = [*option("--component", component), *option("--user", user)]
    output = yield Call(boxlaunch("cp", *words, _of_box(self, path), "-"), limit=limit)
    if output.status != 0 and len(output.stdout) <= limit:
        # An archive on standard output leaves no room for `--json`. An error of the box, and not of the file, has its code here.
        yield from ask(["ls", "--json", *words, _of_box(self, "/")])
        failure = of_text(output)
        raise IoError(str(failure.args[0]), hint=failure.hint, exit_status=output.status)
    return first_entry(output.stdout)


def read_text(
    self: Handle, path: str, *, component: Component = None, user: Optional[str] = None, max_size: int = 64 << 20
) -> Steps[str]:
    """Returns the content of a file in UTF-8 as text. The arguments are those of `read`."""
    return (yield from read(self, path, component=component, user=user, max_size=max_size)).decode()


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
    """Returns the entries of a directory, sorted by name.

    Args:
        path: The path in the box.
        component: The component: `agent`, or `business`, the default if the box has it.

    Raises:
        BoxbuildError: There is no such directory, or it has more than 10000 entries.

    Example:
        >>> [entry.name for entry in box.files.list("/work")]
        ['result.csv']
    """
    entries = yield from _listed(self, path, component)
    return sorted(entries.values(), key=lambda entry: entry.name)


def _listed(self: Handle, path: str, component: Component) -> Steps[Dict[str, FileEntry]]:
    listing: schema.Listing = yield from ask(["ls", "--json", *option("--component", component), _of_box(self, path)])
    return entries_of(listing)


def watch(self: Handle, path: str, *, interval: float = 1, component: Component = None) -> Polling[FileChange]:
    """Yields the changes of a directory, until the box ends, which is an error.

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
    return Polling(watching(lambda: _listed(self, path, component)), interval)


def watching(listed: Callable[[], Steps[Dict[str, FileEntry]]]) -> Callable[[], Steps[List[FileChange]]]:
    """Returns the operation that lists a directory, and returns what has changed since its last run."""
    old: Optional[Dict[str, FileEntry]] = None

    def poll() -> Steps[List[FileChange]]:
        nonlocal old
        new = yield from listed()
        found = [] if old is None else changes(old, new)
        old = new
        return found

    return poll
