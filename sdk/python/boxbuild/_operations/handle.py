"""The names of boxes, and the types of arguments."""

from __future__ import annotations

import os
from typing import Optional, Sequence, Union

from .. import _schema as schema
from .._call import operand

AnyPath = Union[str, "os.PathLike[str]"]
#: The program and its arguments, or a line for `sh`.
Command = Union[str, Sequence[str]]
Component = Optional[schema.Component]
Data = Union[None, str, bytes]


class Handle:
    """A box with a name.

    Attributes:
        name: The name by which `boxlaunch` knows the box.
    """

    def __init__(self, name: str) -> None:
        self.name = operand(name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class Owner(Handle):
    """A box that was started here, or one that runs already.

    Attributes:
        report: The report of the start. `None` for a box that was running already.
    """

    def __init__(self, name: str, report: Optional[schema.Run] = None, *, keep: bool = True) -> None:
        super().__init__(name)
        self.report = report
        #: Whether the end of the block stops the box. `close` does that once.
        self._ends_with_block = not keep
