"""The asyncio surface: the same names as in `boxbuild`, with `await`.

Cancelling a task ends what it has started: a command is killed, and a box that was starting is removed.

Example:
    >>> async with aio.Box.start("hello") as box:
    ...     print((await box.exec(["hostname"])).stdout)
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any, AsyncGenerator, Callable, Coroutine, Generator, Generic, Optional, Tuple, Type, TypeVar, cast

from . import _errors
from . import _schema as schema
from ._call import STDERR, Call, Output, Polling, Spawn, Steps, Stream, not_started, passed_on
from ._config import BoxConfig
from ._errors import *  # noqa: F403
from ._failure import BoxbuildError, CommandError, ProgramNotFoundError
from ._operations import commands, files, lifecycle, look, sessions, store, talk
from ._operations.handle import Handle, Owner
from ._result import FileChange, FileEntry, Result
from ._surface import ONE_STREAM, PATIENCE, document, end_of, open_terminal, resize, tell_size

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")
S = TypeVar("S")
R = TypeVar("R")
B = TypeVar("B", bound="Box")


async def run_steps(steps: Steps[T]) -> T:
    """Runs the calls of an operation, and returns its result."""
    try:
        call = next(steps)
        while True:
            try:
                output = await _run(call)
            except BaseException as error:
                call = steps.throw(error)
            else:
                call = steps.send(output)
    except StopIteration as done:
        return cast(T, done.value)


async def _start(argv: Any, **how: Any) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(*argv, **how)
    except OSError as error:
        raise not_started(argv, error) from error


async def _run(call: Call) -> Output:
    """Runs a program to its end. If the task is cancelled, ends the program, and takes back what it has done."""
    if call.limit is not None:
        return await _run_limited(call, call.limit)
    pipe, stdin = subprocess.PIPE, subprocess.DEVNULL if call.input is None else subprocess.PIPE
    start = asyncio.ensure_future(_start(call.argv, stdin=stdin, stdout=pipe, stderr=pipe, env=call.environment()))
    talk = asyncio.ensure_future(_talk(start, call.input))
    try:
        return await asyncio.shield(talk)
    except asyncio.CancelledError:
        await asyncio.shield(_interrupt(call, start, talk))
        raise


async def _run_limited(call: Call, limit: int) -> Output:
    """Runs a program without input, and kills it when it has printed more than the limit."""
    stdout = bytearray()
    with tempfile.TemporaryFile() as stderr:
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": stderr, "env": call.environment()}
        process = await _start(call.argv, **how)
        try:
            output = cast(asyncio.StreamReader, process.stdout)
            while len(stdout) <= limit and (chunk := await output.read(1 << 16)):
                stdout += chunk
            if len(stdout) <= limit:
                await process.wait()
        finally:
            _signal(process, signal.SIGKILL)
            await _gone(process)
        return Output(cast(int, process.returncode), bytes(stdout), end_of(stderr, STDERR))


async def _gone(process: asyncio.subprocess.Process) -> None:
    """Waits for the end of a killed program, and drops the rest of its output."""
    while await cast(asyncio.StreamReader, process.stdout).read(1 << 16):
        pass
    await process.wait()


async def _talk(start: asyncio.Future[asyncio.subprocess.Process], input: Optional[bytes]) -> Output:
    process = await start
    stdout, stderr = await process.communicate(input)
    return Output(cast(int, process.returncode), stdout, stderr)


async def _interrupt(call: Call, start: asyncio.Future[asyncio.subprocess.Process], talk: asyncio.Future[Output]) -> None:
    process = await start
    _signal(process, call.interrupt)
    done, _ = await asyncio.wait([talk], timeout=PATIENCE)
    if not done:
        _signal(process, signal.SIGKILL)
    output = await talk
    if call.undo and (undo := call.undo(output)):
        await _run(undo)


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except ProcessLookupError:
        pass


class Opening(Generic[R]):
    """A handle that is being made: `box = await Box.start(…)`, or `async with Box.start(…) as box:`."""

    def __init__(self, made: Coroutine[Any, Any, R]) -> None:
        self._made = made
        self._handle: Optional[R] = None

    def __await__(self) -> Generator[Any, None, R]:
        return self._made.__await__()

    async def __aenter__(self) -> R:
        self._handle = await self._made
        return self._handle

    async def __aexit__(self, *_: object) -> None:
        await cast(Box, self._handle).close()


def awaiting(operation: Callable[P, Steps[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Returns a method that runs an operation."""

    async def method(*args: P.args, **kwargs: P.kwargs) -> T:
        return await run_steps(operation(*args, **kwargs))

    document(method, operation)
    return method


def making(operation: Callable[P, Steps[S]], make: Callable[[S], R], result: str) -> Callable[P, Opening[R]]:
    """Returns a function that runs an operation, and makes a handle of its result."""

    async def made(*args: P.args, **kwargs: P.kwargs) -> R:
        return make(await run_steps(operation(*args, **kwargs)))

    def method(*args: P.args, **kwargs: P.kwargs) -> Opening[R]:
        return Opening(made(*args, **kwargs))

    document(method, operation, result)
    return method


def iterating(operation: Callable[P, Stream[T]]) -> Callable[P, AsyncGenerator[T, None]]:
    """Returns a method that yields what a program prints. The program is ended with the iterator."""

    def method(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        return _iterate(operation(*args, **kwargs))

    document(method, operation)
    return method


async def _iterate(stream: Stream[T]) -> AsyncGenerator[T, None]:
    decode = stream.decoder()
    with tempfile.TemporaryFile() as stderr:
        process = await _start(stream.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr)
        try:
            output = cast(asyncio.StreamReader, process.stdout)
            while chunk := await output.read(1 << 16):
                for piece in decode(chunk):
                    yield piece
            await process.wait()
        finally:
            _signal(process, signal.SIGKILL)
            await _gone(process)
        stream.check(cast(int, process.returncode), end_of(stderr, STDERR))


def polling(operation: Callable[P, Polling[T]]) -> Callable[P, AsyncGenerator[T, None]]:
    """Returns a method that yields what an operation finds, again and again."""

    def method(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        return _poll(operation(*args, **kwargs))

    document(method, operation)
    return method


async def _poll(polled: Polling[T]) -> AsyncGenerator[T, None]:
    while True:
        for found in await run_steps(polled.poll()):
            yield found
        await asyncio.sleep(polled.interval)


def spawning(operation: Callable[P, Spawn]) -> Callable[P, Opening[Process]]:
    """Returns a method that starts a command with streams."""

    async def made(*args: P.args, **kwargs: P.kwargs) -> Process:
        spawn = operation(*args, **kwargs)
        return await (_in_terminal(spawn) if spawn.pty else _with_pipes(spawn))

    def method(*args: P.args, **kwargs: P.kwargs) -> Opening[Process]:
        return Opening(made(*args, **kwargs))

    document(method, operation, "Opening[Process]")
    return method


async def _with_pipes(spawn: Spawn) -> Process:
    pipe = subprocess.PIPE
    process = await _start(spawn.argv, stdin=pipe, stdout=pipe, stderr=pipe)
    stdin, stdout = cast(asyncio.StreamWriter, process.stdin), cast(asyncio.StreamReader, process.stdout)
    return Process(process, stdin, stdout, process.stderr)


async def _in_terminal(spawn: Spawn) -> Process:
    own, other = open_terminal()
    try:
        process = await _start(spawn.argv, stdin=other, stdout=other, stderr=other, start_new_session=True)
    except BaseException:
        os.close(own)
        raise
    finally:
        os.close(other)
    loop = asyncio.get_running_loop()
    stdout = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: _Terminal(stdout), os.fdopen(os.dup(own), "rb", 0))
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(own, "wb", 0))
    stdin = asyncio.StreamWriter(transport, protocol, None, loop)
    return Process(process, stdin, stdout, None, own)


class _Terminal(asyncio.StreamReaderProtocol):
    """The reader of a terminal. Linux reports EIO when the last process has closed the other end."""

    def connection_lost(self, exc: Optional[Exception]) -> None:
        super().connection_lost(None if isinstance(exc, OSError) else exc)


class Process:
    """A command in a box, with its streams. `async with` kills the command at the end of the block.

    Attributes:
        stdin: The standard input.
        stdout: The output. With `pty=True`, the terminal.
        stderr: The standard error. `None` with `pty=True`.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
        stderr: Optional[asyncio.StreamReader],
        terminal: Optional[int] = None,
    ) -> None:
        self._process = process
        self._terminal = terminal
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr

    @property
    def returncode(self) -> Optional[int]:
        """The exit status. `None` if the command runs."""
        return self._process.returncode

    def poll(self) -> Optional[int]:
        """Returns the exit status, or `None` if the command runs."""
        return self.returncode

    async def wait(self, timeout: Optional[float] = None) -> int:
        """Waits for the end of the command, and returns its exit status. Read `stdout` first if it is long.

        Raises:
            asyncio.TimeoutError: The command runs after `timeout` seconds.
        """
        return await asyncio.wait_for(self._process.wait(), timeout)

    async def communicate(self, input: Optional[bytes] = None, timeout: Optional[float] = None) -> Tuple[bytes, bytes]:
        """Writes `input` and its end, reads both streams until the command ends, and returns what it has written to them.

        Raises:
            asyncio.TimeoutError: The command runs after `timeout` seconds.
            ValueError: The command has a terminal.
        """
        if self._terminal is not None:
            raise ValueError(ONE_STREAM)
        return await asyncio.wait_for(self._process.communicate(input or b""), timeout)

    def send_signal(self, number: int) -> None:
        """Sends the command SIGINT, SIGTERM or SIGHUP. A second signal, and SIGKILL, kill it.

        Raises:
            ValueError: It is another signal.
        """
        _signal(self._process, passed_on(number))

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

    async def close(self) -> None:
        """Kills the command, and closes its streams."""
        _signal(self._process, signal.SIGKILL)
        await self._process.communicate()
        self.stdin.close()

    async def __aenter__(self) -> Process:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Files(Handle):
    """The files of a box: `box.files`."""

    read = awaiting(files.read)
    read_text = awaiting(files.read_text)
    write = awaiting(files.write)
    copy_in = awaiting(files.copy_in)
    copy_out = awaiting(files.copy_out)
    watch = polling(files.watch)
    list = awaiting(files.list_files)


class Skills(Handle):
    """The skills of a box: `box.skills`."""

    load = awaiting(talk.load_skills)
    unload = awaiting(talk.unload_skills)
    list = awaiting(talk.list_skills)


class Network(Handle):
    """The network of a box: `box.network`."""

    show = awaiting(talk.show_network)
    allow = awaiting(talk.allow)
    deny = awaiting(talk.deny)
    denied = awaiting(talk.denied)


class Sessions(Handle):
    """The sessions of an agent, in which it remembers earlier prompts: `box.agent.sessions`."""

    create = awaiting(sessions.create)
    send = awaiting(sessions.send)
    events = iterating(sessions.events)
    confirm = awaiting(sessions.confirm)
    cancel = awaiting(sessions.cancel)
    close = awaiting(sessions.close_session)
    list = awaiting(sessions.list_sessions)


class Agent(Handle):
    """The agent of a box, if it serves the interface of docs/agents.md: `box.agent`.

    Attributes:
        sessions: The methods for its sessions.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.sessions = Sessions(name)

    generate = awaiting(talk.generate)
    health = awaiting(talk.agent_health)
    capabilities = awaiting(talk.agent_capabilities)
    skills = awaiting(talk.agent_skills)


class Box(Owner):
    """A box that runs. `Box.start` starts one, and `Box.of` is one that runs already.

    `async with` stops and removes the box at the end of the block, unless it was started with `keep=True`.

    Attributes:
        name: The name by which `boxlaunch` knows the box.
        report: The report of the start, with the time of each phase.
        files, skills, network, agent: The methods for these.

    Example:
        >>> async with aio.Box.start("hello") as box:
        ...     print((await box.exec(["hostname"])).stdout)
    """

    def __init__(self, name: str, report: Optional[schema.Run] = None, *, keep: bool = True) -> None:
        super().__init__(name, report, keep=keep)
        self.files = Files(name)
        self.skills = Skills(name)
        self.network = Network(name)
        self.agent = Agent(name)

    @classmethod
    def of(cls: Type[B], name: str) -> B:
        """Returns the box that runs under a name. Nothing is started, and the end of `async with` leaves it running."""
        return cls(name)

    start = staticmethod(making(lifecycle.starting(BoxConfig), lambda it: Box(it[0]["name"], it[0], keep=it[1]), "Opening[Box]"))
    exec = awaiting(commands.exec)
    popen = spawning(commands.popen)
    run_python = awaiting(commands.run_python)
    run_node = awaiting(commands.run_node)
    generate = awaiting(talk.generate)
    task = awaiting(talk.task)
    logs = iterating(look.logs)
    events = iterating(look.events)
    inspect = awaiting(look.inspect)
    status = awaiting(look.status)
    stats = awaiting(look.stats)
    health = awaiting(look.health)
    ports = awaiting(look.ports)
    approvals = awaiting(talk.approvals)
    follow_approvals = iterating(talk.follow_approvals)
    approve = awaiting(talk.approve)
    deny = awaiting(talk.deny_command)
    url = awaiting(look.url)
    wait = awaiting(lifecycle.wait)
    stop = awaiting(lifecycle.stop)
    kill = awaiting(lifecycle.kill)
    remove = awaiting(lifecycle.remove)
    close = awaiting(lifecycle.close)

    async def __aenter__(self: B) -> B:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Environment(Box):
    """The environment of a project: a box that is there again tomorrow, as docs/environments.md describes it.

    `Environment.up` starts it, and `Environment.of` is one that runs already. It has the methods of `Box`. The end of `async with`
    leaves it running.
    """

    up = staticmethod(making(store.up, lambda it: Environment(it["name"]), "Opening[Environment]"))
    remove = awaiting(store.remove_environment)
    reset = awaiting(store.reset)
    snapshot = awaiting(store.create_snapshot)


class Images:
    """The boxes of the store: `boxbuild.aio.images`."""

    pull = staticmethod(awaiting(store.pull))
    remove = staticmethod(awaiting(store.remove_images))
    prune = staticmethod(awaiting(store.prune))
    list = staticmethod(awaiting(store.list_images))


images = Images()
create_box = making(lifecycle.start_with, lambda it: Box(it[0]["name"], it[0], keep=it[1]), "Opening[Box]")
run = awaiting(lifecycle.run)
run_task = awaiting(lifecycle.run_task)
build = awaiting(store.build)
list_boxes = awaiting(look.list_boxes)

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
    "Opening",
    "Process",
    "ProgramNotFoundError",
    "Result",
    "Sessions",
    "Skills",
    "build",
    "create_box",
    "images",
    "list_boxes",
    "run",
    "run_task",
    "schema",
]
__all__ += _errors.__all__
