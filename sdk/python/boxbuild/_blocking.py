"""The blocking surface: runs operations, and makes methods of them."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import tempfile
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Generator, IO, Optional, Tuple, Type, TypeVar, cast

from . import _schema as schema
from ._call import STDERR, Call, Output, Polling, Spawn, Steps, Stream, not_started, passed_on
from ._config import BoxConfig
from ._operations import commands, files, lifecycle, look, sessions, store, talk
from ._operations.handle import Handle, Owner
from ._surface import ONE_STREAM, PATIENCE, document, end_of, open_terminal, resize, tell_size

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")
S = TypeVar("S")
R = TypeVar("R")
B = TypeVar("B", bound="Box")


def run_steps(steps: Steps[T]) -> T:
    """Runs the calls of an operation, and returns its result."""
    try:
        call = next(steps)
        while True:
            try:
                output = _run(call)
            except BaseException as error:
                call = steps.throw(error)
            else:
                call = steps.send(output)
    except StopIteration as done:
        return cast(T, done.value)


def _popen(argv: Any, **how: Any) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(argv, **how)
    except OSError as error:
        raise not_started(argv, error) from error


def _run(call: Call) -> Output:
    """Runs a program to its end. If the caller is interrupted, ends the program, and takes back what it has done."""
    if call.limit is not None:
        return _run_limited(call, call.limit)
    pipe, stdin = subprocess.PIPE, subprocess.DEVNULL if call.input is None else subprocess.PIPE
    process = _popen(call.argv, stdin=stdin, stdout=pipe, stderr=pipe, env=call.environment())
    with process:
        try:
            return _talk(process, call.input)
        except BaseException:
            output = _interrupt(process, call)
            if call.undo and (undo := call.undo(output)):
                _run(undo)
            raise


def _run_limited(call: Call, limit: int) -> Output:
    """Runs a program without input, and kills it when it has printed more than the limit."""
    stdout = bytearray()
    with tempfile.TemporaryFile() as stderr:
        with _popen(call.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, env=call.environment()) as process:
            try:
                output = cast(io.BufferedReader, process.stdout)
                while len(stdout) <= limit and (chunk := output.read1(1 << 16)):
                    stdout += chunk
                if len(stdout) <= limit:
                    process.wait()
            finally:
                process.kill()
        return Output(process.returncode, bytes(stdout), end_of(stderr, STDERR))


def _interrupt(process: subprocess.Popen[bytes], call: Call) -> Output:
    process.send_signal(call.interrupt)
    try:
        return _talk(process, None, PATIENCE)
    except BaseException:
        process.kill()
        return _talk(process, None)


def _talk(process: subprocess.Popen[bytes], input: Optional[bytes], timeout: Optional[float] = None) -> Output:
    stdout, stderr = process.communicate(input, timeout)
    return Output(process.returncode, stdout, stderr)


def blocking(operation: Callable[P, Steps[T]]) -> Callable[P, T]:
    """Returns a method that runs an operation."""

    def method(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_steps(operation(*args, **kwargs))

    document(method, operation)
    return method


def making(operation: Callable[P, Steps[S]], make: Callable[[S], R], result: str) -> Callable[P, R]:
    """Returns a function that runs an operation, and makes a handle of its result."""

    def method(*args: P.args, **kwargs: P.kwargs) -> R:
        return make(run_steps(operation(*args, **kwargs)))

    document(method, operation, result)
    return method


def iterating(operation: Callable[P, Stream[T]]) -> Callable[P, Generator[T, None, None]]:
    """Returns a method that yields what a program prints. The program is ended with the iterator."""

    def method(*args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        return _iterate(operation(*args, **kwargs))

    document(method, operation)
    return method


def _iterate(stream: Stream[T]) -> Generator[T, None, None]:
    decode = stream.decoder()
    with tempfile.TemporaryFile() as stderr:
        process = _popen(stream.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr)
        with process:
            try:
                output = cast(io.BufferedReader, process.stdout)
                while chunk := output.read1(1 << 16):
                    yield from decode(chunk)
                process.wait()
            finally:
                process.kill()
        stream.check(process.returncode, end_of(stderr, STDERR))


def polling(operation: Callable[P, Polling[T]]) -> Callable[P, Generator[T, None, None]]:
    """Returns a method that yields what an operation finds, again and again."""

    def method(*args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        return _poll(operation(*args, **kwargs))

    document(method, operation)
    return method


def _poll(polled: Polling[T]) -> Generator[T, None, None]:
    while True:
        yield from run_steps(polled.poll())
        time.sleep(polled.interval)


def spawning(operation: Callable[P, Spawn]) -> Callable[P, Process]:
    """Returns a method that starts a command with streams."""

    def method(*args: P.args, **kwargs: P.kwargs) -> Process:
        return Process(operation(*args, **kwargs))

    document(method, operation, "Process")
    return method


class _Terminal(io.RawIOBase):
    """The own end of a terminal. Linux reports EIO when the last process has closed the other end."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = os.read(self._terminal, len(buffer))
        except OSError:
            data = b""
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            os.close(self._terminal)
        super().close()


class Process:
    """A command in a box, with its streams. As a context manager, it kills the command at the end of the block.

    Attributes:
        stdin: The standard input, as a binary file.
        stdout: The output, as a binary file. With `pty=True`, the terminal.
        stderr: The standard error. `None` with `pty=True`.
    """

    def __init__(self, spawn: Spawn) -> None:
        self._terminal: Optional[int] = None
        self.stdin: IO[bytes]
        self.stdout: IO[bytes]
        self.stderr: Optional[IO[bytes]]
        if spawn.pty:
            self._open_terminal(spawn)
            return
        pipe = subprocess.PIPE
        self._process = _popen(spawn.argv, stdin=pipe, stdout=pipe, stderr=pipe)
        self.stdin = cast(IO[bytes], self._process.stdin)
        self.stdout = cast(IO[bytes], self._process.stdout)
        self.stderr = self._process.stderr

    def _open_terminal(self, spawn: Spawn) -> None:
        own, other = open_terminal()
        try:
            self._process = _popen(spawn.argv, stdin=other, stdout=other, stderr=other, start_new_session=True)
        except BaseException:
            os.close(own)
            raise
        finally:
            os.close(other)
        self._terminal = own
        self.stdin = cast(IO[bytes], io.FileIO(own, "w", closefd=False))
        self.stdout = io.BufferedReader(_Terminal(own))
        self.stderr = None

    @property
    def returncode(self) -> Optional[int]:
        """The exit status. `None` as long as nobody has seen the end of the command."""
        return self._process.returncode

    def poll(self) -> Optional[int]:
        """Returns the exit status, or `None` if the command runs."""
        return self._process.poll()

    def wait(self, timeout: Optional[float] = None) -> int:
        """Waits for the end of the command, and returns its exit status. Read `stdout` first if it is long.

        Raises:
            subprocess.TimeoutExpired: The command runs after `timeout` seconds.
        """
        return self._process.wait(timeout)

    def communicate(self, input: Optional[bytes] = None, timeout: Optional[float] = None) -> Tuple[bytes, bytes]:
        """Writes `input` and its end, reads both streams until the command ends, and returns what it has written to them.

        Raises:
            subprocess.TimeoutExpired: The command runs after `timeout` seconds.
            ValueError: The command has a terminal.
        """
        if self._terminal is not None:
            raise ValueError(ONE_STREAM)
        return self._process.communicate(input, timeout)

    def send_signal(self, number: int) -> None:
        """Sends the command SIGINT, SIGTERM or SIGHUP. A second signal, and SIGKILL, kill it.

        Raises:
            ValueError: It is another signal.
        """
        self._process.send_signal(passed_on(number))

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kills the command."""
        self.send_signal(signal.SIGKILL)

    def resize(self, rows: int, columns: int) -> None:
        """Sets the size of the terminal of `pty=True`."""
        if self._terminal is None:
            raise ValueError("the command has no terminal: start it with pty=True")
        resize(self._terminal, rows, columns)
        tell_size(self._process.pid)

    def close(self) -> None:
        """Kills the command, and closes its streams."""
        self._process.kill()
        self._process.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Files(Handle):
    """The files of a box: `box.files`."""

    read = blocking(files.read)
    read_text = blocking(files.read_text)
    write = blocking(files.write)
    copy_in = blocking(files.copy_in)
    copy_out = blocking(files.copy_out)
    watch = polling(files.watch)
    list = blocking(files.list_files)


class Skills(Handle):
    """The skills of a box: `box.skills`."""

    load = blocking(talk.load_skills)
    unload = blocking(talk.unload_skills)
    list = blocking(talk.list_skills)


class Network(Handle):
    """The network of a box: `box.network`."""

    show = blocking(talk.show_network)
    allow = blocking(talk.allow)
    deny = blocking(talk.deny)
    denied = blocking(talk.denied)


class Sessions(Handle):
    """The sessions of an agent, in which it remembers earlier prompts: `box.agent.sessions`."""

    create = blocking(sessions.create)
    send = blocking(sessions.send)
    events = iterating(sessions.events)
    confirm = blocking(sessions.confirm)
    cancel = blocking(sessions.cancel)
    close = blocking(sessions.close_session)
    list = blocking(sessions.list_sessions)


class Agent(Handle):
    """The agent of a box, if it serves the interface of docs/agents.md: `box.agent`.

    Attributes:
        sessions: The methods for its sessions.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.sessions = Sessions(name)

    generate = blocking(talk.generate)
    health = blocking(talk.agent_health)
    capabilities = blocking(talk.agent_capabilities)
    skills = blocking(talk.agent_skills)


class Box(Owner):
    """A box that runs. `Box.start` starts one, and `Box.of` is one that runs already.

    As a context manager, it stops and removes the box at the end of the block, unless it was started with `keep=True`.

    Attributes:
        name: The name by which `boxlaunch` knows the box.
        report: The report of the start, with the time of each phase.
        files, skills, network, agent: The methods for these.

    Example:
        >>> with Box.start("hello") as box:
        ...     print(box.exec(["hostname"]).stdout)
    """

    def __init__(self, name: str, report: Optional[schema.Run] = None, *, keep: bool = True) -> None:
        super().__init__(name, report, keep=keep)
        self.files = Files(name)
        self.skills = Skills(name)
        self.network = Network(name)
        self.agent = Agent(name)

    @classmethod
    def of(cls: Type[B], name: str) -> B:
        """Returns the box that runs under a name. Nothing is started, and the end of a `with` block leaves it running."""
        return cls(name)

    start = staticmethod(making(lifecycle.starting(BoxConfig), lambda it: Box(it[0]["name"], it[0], keep=it[1]), "Box"))
    exec = blocking(commands.exec)
    popen = spawning(commands.popen)
    run_python = blocking(commands.run_python)
    run_node = blocking(commands.run_node)
    generate = blocking(talk.generate)
    task = blocking(talk.task)
    logs = iterating(look.logs)
    events = iterating(look.events)
    inspect = blocking(look.inspect)
    status = blocking(look.status)
    stats = blocking(look.stats)
    health = blocking(look.health)
    ports = blocking(look.ports)
    approvals = blocking(talk.approvals)
    follow_approvals = iterating(talk.follow_approvals)
    approve = blocking(talk.approve)
    deny = blocking(talk.deny_command)
    url = blocking(look.url)
    wait = blocking(lifecycle.wait)
    stop = blocking(lifecycle.stop)
    kill = blocking(lifecycle.kill)
    remove = blocking(lifecycle.remove)
    close = blocking(lifecycle.close)

    def __enter__(self: B) -> B:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


class Environment(Box):
    """The environment of a project: a box that is there again tomorrow, as docs/environments.md describes it.

    `Environment.up` starts it, and `Environment.of` is one that runs already. It has the methods of `Box`. The end of a `with` block
    leaves it running.
    """

    up = staticmethod(making(store.up, lambda it: Environment(it["name"]), "Environment"))
    remove = blocking(store.remove_environment)
    reset = blocking(store.reset)
    snapshot = blocking(store.create_snapshot)


class Images:
    """The boxes of the store: `boxbuild.images`."""

    pull = staticmethod(blocking(store.pull))
    remove = staticmethod(blocking(store.remove_images))
    prune = staticmethod(blocking(store.prune))
    list = staticmethod(blocking(store.list_images))


images = Images()
create_box = making(lifecycle.start_with, lambda it: Box(it[0]["name"], it[0], keep=it[1]), "Box")
run = blocking(lifecycle.run)
run_task = blocking(lifecycle.run_task)
build = blocking(store.build)
list_boxes = blocking(look.list_boxes)
