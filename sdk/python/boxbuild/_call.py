"""The calls of boxbuild and boxlaunch, and what their answers mean.

An operation of this package is a generator: it yields a [`Call`], gets its [`Output`], and returns the result. So it neither starts a
program nor waits, and one text serves the blocking and the asyncio surface, which have a runner each.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Generator, Generic, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from ._errors import BY_CODE, InternalError, UsageError
from ._failure import BoxbuildError, ProgramNotFoundError, printable

T = TypeVar("T")
#: The directory of the programs, which takes precedence over those of the package and of PATH.
BIN = "BOXBUILD_BIN"
#: How much of a stream is kept that is no whole piece yet.
_UNFINISHED = 64 << 20
#: How much of the standard error of a stream is read.
STDERR = 64 << 10
#: What the programs say about KVM, and what it means in this package.
_EMULATION = (
    r"run the box slowly without KVM: `[^`]*`|`--emulated` cannot be used with [^;]*",
    "without KVM: boxbuild.run(BoxConfig(…, emulated=True), command)",
)


@dataclass(frozen=True)
class Output:
    """What a program has printed, and its exit status."""

    status: int
    stdout: bytes = b""
    stderr: bytes = b""


@dataclass(frozen=True)
class Call:
    """One start of a program.

    Attributes:
        argv: The program and its arguments.
        input: The standard input.
        env: The variables that the program gets in addition to those of this process.
        interrupt: The signal that ends the program if the caller is interrupted.
        undo: Returns the call that takes back what the program has done, if the caller is interrupted.
        limit: Kills the program when it has printed more than this many bytes. The output has more bytes then.
    """

    argv: Sequence[str]
    input: Optional[bytes] = field(default=None, repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    interrupt: int = signal.SIGTERM
    undo: Optional[Callable[[Output], Optional[Call]]] = None
    limit: Optional[int] = None

    def environment(self) -> Mapping[str, str]:
        """Returns the variables of the program."""
        return {**os.environ, **self.env}


@dataclass(frozen=True)
class Stream(Generic[T]):
    """A program whose output is read while it runs.

    Attributes:
        argv: The program and its arguments.
        decoder: Makes the function that turns a chunk of the output into results.
    """

    argv: Sequence[str]
    decoder: Callable[[], Callable[[bytes], Iterable[T]]]

    def check(self, status: int, stderr: bytes) -> None:
        """Raises the error of a program that has failed."""
        if status != 0:
            raise of_text(Output(status, b"", stderr))


@dataclass(frozen=True)
class Polling(Generic[T]):
    """An operation that is repeated, and what it finds each time.

    Attributes:
        poll: Returns the operation.
        interval: The pause between two runs, in seconds.
    """

    poll: Callable[[], Steps[List[T]]]
    interval: float


@dataclass(frozen=True)
class Spawn:
    """A command in a box whose streams the caller reads and writes, in a terminal if `pty` is true."""

    argv: Sequence[str]
    pty: bool


Steps = Generator[Call, Output, T]
#: The signals that `boxlaunch exec` passes on to its command, and the one that kills both.
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)


def passed_on(number: int) -> int:
    """Returns the signal.

    Raises:
        ValueError: `boxlaunch exec` does not pass it on.
    """
    if number not in PASSED_ON:
        raise ValueError("a command in a box can be sent SIGINT, SIGTERM, SIGHUP and SIGKILL; use `kill` in the box for others")
    return number


def program(name: str) -> str:
    """Returns the path of `boxbuild` or `boxlaunch`.

    Raises:
        ProgramNotFoundError: There is no such program.
    """
    named = os.environ.get(BIN)
    if named:
        return os.path.join(named, name)
    own = Path(__file__).parent / "bin" / name
    found = str(own) if own.exists() else shutil.which(name)
    if found is None:
        raise ProgramNotFoundError(f"there is no {name}", hint=f"install boxbuild, or name the directory of the programs in {BIN}")
    return found


def not_started(argv: Sequence[str], error: OSError) -> BoxbuildError:
    """Returns the error for a program that could not be started."""
    named = os.environ.get(BIN)
    is_named = bool(named) and argv[0] == os.path.join(named or "", os.path.basename(argv[0]))
    hint = f"{BIN} names this directory; it must have boxlaunch and boxbuild" if is_named else None
    return ProgramNotFoundError(f"{argv[0]} cannot be started: {error.strerror}", hint=hint)


def boxlaunch(*words: str) -> List[str]:
    """Returns a command line of boxlaunch."""
    return [program("boxlaunch"), *words]


def ask(words: Sequence[str], *, tool: str = "boxlaunch", **how: Any) -> Steps[Any]:
    """Runs a program with `--json`, and returns the object that it prints.

    Raises:
        BoxbuildError: The program has printed an error, or no object.
    """
    return answer((yield Call([program(tool), *words], **how)))


def answer(output: Output) -> Any:
    """Returns the object in the output of a program."""
    try:
        found = json.loads(output.stdout)
    except ValueError:
        raise of_text(output) from None
    check(found, output.status)
    return found


def check(found: Any, status: Optional[int]) -> None:
    """Raises the first error in an object of a program. Warnings are no errors."""
    problems = found.get("errors") or []
    for problem in problems:
        if problem["severity"] == "error":
            code, hint = problem["code"], re.sub(*_EMULATION, problem["help"] or "") or None
            raise BY_CODE.get(code, BoxbuildError)(problem["message"], code=code, hint=hint, exit_status=status, problems=problems)


def of_text(output: Output) -> BoxbuildError:
    """Returns the error that a program has printed as text: a wrong command line, a bug, or one of a command without `--json`."""
    text = output.stderr.decode(errors="replace")
    message = re.search(r"^error: (.+)$", text, re.MULTILINE)
    hint = "; ".join(re.findall(r"^ *(?:= help: |(?=\[possible values: |tip: ))(.+)$", text, re.MULTILINE)) or None
    kind = {2: UsageError, 70: InternalError}.get(output.status, BoxbuildError)
    otherwise = printable(text.strip()) or f"the program has ended with the status {output.status} and no answer"
    return kind(message[1] if message else otherwise, hint=hint, exit_status=output.status)


def json_lines() -> Callable[[bytes], Iterator[Any]]:
    """Returns the decoder of one JSON object on each line."""
    lines = separated(b"\n")

    def decode(chunk: bytes) -> Iterator[Any]:
        for line in lines(chunk):
            found = json.loads(line)
            check(found, None)
            yield found

    return decode


def separated(end: bytes) -> Callable[[bytes], List[bytes]]:
    """Returns the decoder of pieces that end with `end`.

    Raises:
        BoxbuildError: A piece does not end.
    """
    rest = b""

    def decode(chunk: bytes) -> List[bytes]:
        nonlocal rest
        *pieces, rest = (rest + chunk).split(end)
        if len(rest) > _UNFINISHED:
            raise BoxbuildError(f"the program has printed a line of more than {_UNFINISHED >> 20} MiB")
        return pieces

    return decode


def operand(word: Union[str, os.PathLike[str]]) -> str:
    """Returns a word of the command line that is no option.

    Raises:
        ValueError: The word is empty, or the program would take it for an option.
    """
    text = os.fspath(word)
    if not text or text.startswith("-"):
        raise ValueError(f"{text!r} is not a name or a path; write ./{text} for a path")
    return text


def option(name: str, *values: Union[None, str, int, os.PathLike[str]]) -> List[str]:
    """Returns an option once for each value that is not `None`."""
    return [f"{name}={os.fspath(it) if isinstance(it, os.PathLike) else it}" for it in values if it is not None]


def flag(name: str, given: bool) -> List[str]:
    """Returns an option without a value, if it is given."""
    return [name] if given else []


def seconds(time: Union[None, float, str]) -> Optional[str]:
    """Returns a time as an option takes it: a text such as `15m` as it is, and a number as whole seconds, rounded up.

    Raises:
        ValueError: The time is negative.
    """
    return time if time is None or isinstance(time, str) else str(_natural(time, time))


def precise_seconds(time: Union[None, float, str]) -> Optional[str]:
    """Returns a time as `seconds` does, but with milliseconds."""
    if time is None or isinstance(time, str):
        return time
    whole, rest = divmod(_natural(time * 1000, time), 1000)
    return f"{whole}.{rest:03}".rstrip("0").rstrip(".") if rest else str(whole)


def _natural(number: float, time: float) -> int:
    if not 0 <= number < math.inf:
        raise ValueError(f"{time} is no time: write seconds, at least 0")
    return math.ceil(number)


def pairs(values: Optional[Mapping[str, Any]]) -> Tuple[str, ...]:
    """Returns `NAME=VALUE` for each entry."""
    return tuple(f"{name}={value}" for name, value in given(values or {}).items())


def given(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns variables that all have a value.

    Raises:
        TypeError: A value is `None`, which could mean an empty value or no variable.
    """
    for name, value in values.items():
        if value is None:
            raise TypeError(f"the value of {name} is None: leave it out, or give a text, also an empty one")
    return values
