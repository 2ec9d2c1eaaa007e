"""The base of all errors, and the errors that are not in the programs' own list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Sequence

if TYPE_CHECKING:
    from ._result import Result
    from ._schema import Problem


def printable(text: str, most: int = 500) -> str:
    """Returns a text that came from a box for a message: on one line, without control characters, and not too long."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    return "".join(it if it.isprintable() else "\ufffd" for it in short)


class BoxbuildError(Exception):
    """The base of all errors of this package.

    Each code of docs/errors.md has a class: `name-not-found` is `NameNotFoundError`. An error with a code that this version of the
    package does not know is a `BoxbuildError` with that code.

    Attributes:
        code: The stable code of the error. `None` if the program has printed none.
        hint: How to correct the error. `None` if the program has printed no help.
        exit_status: The exit status of the program. `None` if it was not started.
        problems: All errors and warnings that the program has printed, with their positions in files.

    Example:
        >>> try:
        ...     Box.start("hello", name="one")
        ... except NameTakenError as error:
        ...     print(error, error.hint)
    """

    code: Optional[str] = None

    def __init__(
        self,
        message: str,
        *,
        code: Optional[str] = None,
        hint: Optional[str] = None,
        exit_status: Optional[int] = None,
        problems: Sequence[Problem] = (),
    ) -> None:
        super().__init__(message)
        self.code = code or self.code
        self.hint = hint
        self.exit_status = exit_status
        self.problems = list(problems)

    def __str__(self) -> str:
        message = str(self.args[0])
        return f"{message} ({self.hint})" if self.hint else message


class ProgramNotFoundError(BoxbuildError):
    """There is no `boxlaunch` or `boxbuild` in `BOXBUILD_BIN`, in the package, or in PATH."""


class CommandError(BoxbuildError):
    """A command in a box has ended with another status than 0, and `check=True` was given.

    Attributes:
        result: The result of the command.
    """

    def __init__(self, result: Result) -> None:
        what = "was killed after its time limit" if result.timed_out else f"has ended with the status {result.status}"
        last = printable(result.stderr.strip().rpartition("\n")[2])
        super().__init__(f"`{printable(' '.join(result.argv))}` {what}" + (f": {last}" if last else ""), exit_status=result.status)
        self.result = result
