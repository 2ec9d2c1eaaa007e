"""The results that are more than an object of `--json`."""

from __future__ import annotations

import base64
import stat
from dataclasses import dataclass
from typing import List, Literal, Optional

from . import _schema as schema
from ._failure import CommandError


@dataclass(frozen=True)
class Result:
    """The result of a command in a box.

    Attributes:
        argv: The command.
        component: The component in which it ran: `agent` or `business`.
        status: The exit status. 128 + N if signal N has ended the command, and 124 after its time limit.
        stdout: The output as text. Bytes that are not UTF-8 are U+FFFD here.
        stderr: The same of the standard error.
        duration: How long the command took, in seconds.
        truncated: Whether it has written more than `stdout` and `stderr` have: of more than the limit, these have the start and the
            end, with a line such as `[… 4096 bytes left out …]` between them.
        timed_out: Whether it was killed after its time limit.
        oom_killed: Whether the kernel has killed a process for lack of memory.
        disk_full: Whether the command has failed, and the disk of the component is full.
        stdout_bytes: The output with all its bytes.
        stderr_bytes: The same of the standard error.
        sandbox: How the policy of the box (`sandbox` in its Boxfile) applied to the command: its `state`, the policy, and what was
            `denied`. `None` if no policy applies to the command.
    """

    argv: List[str]
    component: schema.Component
    status: int
    stdout: str
    stderr: str
    duration: float
    truncated: bool
    timed_out: bool
    oom_killed: bool
    disk_full: bool
    stdout_bytes: bytes
    stderr_bytes: bytes
    sandbox: Optional[schema.CommandSandbox] = None

    @classmethod
    def of(cls, report: schema.Exec) -> Result:
        """Returns the result of the object that `boxlaunch exec --json` prints."""
        return cls(
            argv=report["argv"],
            component=report["component"],
            status=report["status"],
            stdout=report["stdout"],
            stderr=report["stderr"],
            duration=report["duration_ms"] / 1000,
            truncated=report["truncated"],
            timed_out=report["timed_out"],
            oom_killed=report["oom_killed"],
            disk_full=report["disk_full"],
            stdout_bytes=_bytes(report["stdout"], report.get("stdout_base64")),
            stderr_bytes=_bytes(report["stderr"], report.get("stderr_base64")),
            sandbox=report.get("sandbox"),
        )

    @property
    def ok(self) -> bool:
        """Whether the status is 0."""
        return self.status == 0

    def check(self) -> Result:
        """Returns the result itself.

        Raises:
            CommandError: The status is not 0.
        """
        if not self.ok:
            raise CommandError(self)
        return self


def _bytes(text: str, encoded: Optional[str]) -> bytes:
    return text.encode() if encoded is None else base64.b64decode(encoded)


@dataclass(frozen=True)
class FileEntry:
    """An entry of a directory in a box.

    Attributes:
        name: The name in the directory. Bytes that are not UTF-8 are surrogates, as in `os.listdir`.
        mode: The type and the permissions, as in `os.stat_result.st_mode`.
        size: The size in bytes.
        mtime: When the content was changed last, in seconds since 1970.
    """

    name: str
    mode: int
    size: int
    mtime: int

    @property
    def is_dir(self) -> bool:
        """Whether the entry is a directory."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        """Whether the entry is a regular file."""
        return stat.S_ISREG(self.mode)


@dataclass(frozen=True)
class FileChange:
    """A change of a directory in a box.

    Attributes:
        kind: `created`, `modified` or `deleted`.
        name: The name of the entry.
    """

    kind: Literal["created", "modified", "deleted"]
    name: str
