"""What the blocking and the asyncio surface share: the documentation of methods, and terminals."""

from __future__ import annotations

import inspect
import os
import pty
import signal
import termios
from fcntl import ioctl
from struct import pack
from typing import Any, BinaryIO, Callable, Tuple

#: How long a program may take to end after a signal before it is killed, in seconds.
PATIENCE = 15
#: Why a command in a terminal has no `communicate`.
ONE_STREAM = "a command in a terminal has one stream: read `stdout`"


def document(method: Callable[..., Any], operation: Callable[..., Any], result: str = "") -> None:
    """Gives a method the name, the text and the signature of its operation. `result` is the type of its result."""
    method.__name__, method.__doc__ = operation.__name__, operation.__doc__
    method.__qualname__ = operation.__name__
    signature = inspect.signature(operation)
    kind = str(signature.return_annotation)
    inner = kind.partition("[")[2].rpartition("]")[0]
    if kind.startswith(("Stream[", "Polling[")):
        inner = f"Iterator[{inner}]"
    own = [it.replace(annotation=it.empty) if it.name == "self" else it for it in signature.parameters.values()]
    method.__signature__ = signature.replace(parameters=own, return_annotation=result or inner)  # type: ignore[attr-defined]


def end_of(file: BinaryIO, most: int) -> bytes:
    """Returns the last bytes of a file."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - most))
    return file.read()


def open_terminal() -> Tuple[int, int]:
    """Returns the two ends of a new terminal: this program's and the command's."""
    own, other = pty.openpty()
    resize(own, 24, 80)
    return own, other


def resize(terminal: int, rows: int, columns: int) -> None:
    """Sets the size of a terminal."""
    ioctl(terminal, termios.TIOCSWINSZ, pack("HHHH", rows, columns, 0, 0))


def tell_size(process: int) -> None:
    """Tells `boxlaunch` that the size of its terminal has changed. The kernel would only tell the processes of that terminal."""
    os.kill(process, signal.SIGWINCH)
