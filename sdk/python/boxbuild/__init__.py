"""Boxes for programs: microVMs for code that nobody has read yet, and for agents.

A box is built by `boxbuild` from a Boxfile, and started by `boxlaunch`. This package starts these programs, and reads their JSON.

Example:
    >>> from boxbuild import Box
    >>> with Box.start("hello") as box:
    ...     print(box.exec(["hostname"]).stdout)

`boxbuild.aio` has the same names for asyncio. `boxbuild.schema` has the types of what the programs print.
The programs are those of the directory `BOXBUILD_BIN`, else those of the package, else the first ones in PATH.
"""

from . import _errors, aio
from . import _schema as schema
from ._blocking import (
    Agent,
    Box,
    Environment,
    Files,
    Images,
    Network,
    Process,
    Sessions,
    Skills,
    build,
    create_box,
    images,
    list_boxes,
    run,
    run_task,
)
from ._config import BoxConfig
from ._errors import *  # noqa: F403
from ._failure import BoxbuildError, CommandError, ProgramNotFoundError
from ._result import FileChange, FileEntry, Result

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Box",
    "BoxConfig",
    "BoxbuildError",
    "CommandError",
    "Environment",
    "FileChange",
    "FileEntry",
    "Files",
    "Images",
    "Network",
    "Process",
    "ProgramNotFoundError",
    "Result",
    "Sessions",
    "Skills",
    "aio",
    "build",
    "create_box",
    "images",
    "list_boxes",
    "run",
    "run_task",
    "schema",
]
__all__ += _errors.__all__
