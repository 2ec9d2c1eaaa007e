"""Starts and ends boxes."""

from __future__ import annotations

import inspect
import json
import tempfile
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, Tuple, Union

from .. import _schema as schema
from .._call import Call, Output, Steps, answer, ask, boxlaunch, option, seconds
from .._config import BoxConfig, config_of
from .._errors import BoxEndedError, NameNotFoundError, NotRunningError
from .._failure import BoxbuildError
from .._result import Result
from .commands import argv, command_options, data
from .handle import Command, Component, Data, Handle, Owner
from .store import build

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")

#: What the start of a box returns: its report, and whether the box stays.
Started = Tuple[schema.Run, bool]
#: How long programs may take to end when a `with` block ends, in seconds.
_GRACE = 2


def start_with(config: Union[str, BoxConfig]) -> Steps[Started]:
    """Starts a box, and returns when its agent is ready.

    Without `keep`, the box ends with the `with` block and with this process, even if that is killed.

    Args:
        config: The box and what it gets from its host, or only the box, as for `BoxConfig`.

    Returns:
        The running box.

    Raises:
        ValueError: The box is emulated.
        BoxbuildError: The box was not started; for example `BoxNotFoundError` or `StartupTimeoutError`.

    Example:
        >>> with create_box(BoxConfig("hello", memory="1GiB")) as box:
        ...     print(box.exec(["hostname"]).stdout)
    """
    config = config_of(config)
    if config.emulated:
        raise ValueError("only boxbuild.run(BoxConfig(…, emulated=True), command) starts a box without KVM")
    box = yield from _box_of(config)
    with _file_of(config.task) as task:
        words = ["run", "--json", "--detach", *option("--task", task), *config.words(box)]
        report: schema.Run = yield from ask(words, env=config.variables(), undo=_undo)
    return report, config.keep


def starting(config: Callable[P, BoxConfig]) -> Callable[P, Steps[Started]]:
    """Returns `start_with` with the arguments of `BoxConfig`."""

    @wraps(config)
    def start(*args: P.args, **kwargs: P.kwargs) -> Steps[Started]:
        return start_with(config(*args, **kwargs))

    arguments = (inspect.getdoc(config) or "").partition("Args:\n")[2].partition("\n\nExample:")[0]
    start.__name__ = "start"
    own = "    config: The box and what it gets from its host, or only the box, as for `BoxConfig`."
    text = (inspect.getdoc(start_with) or "").replace(own, arguments)
    start.__doc__ = text.replace('create_box(BoxConfig("hello", memory="1GiB"))', 'Box.start("hello", memory="1GiB")')
    return start


def _box_of(config: BoxConfig) -> Steps[str]:
    """Returns the box of a configuration, after its Boxfile is built."""
    return (yield from build(config.boxfile))["box"] if config.boxfile else config.box


@contextmanager
def _file_of(task: Optional[Mapping[str, Any]]) -> Iterator[Optional[Path]]:
    """Writes a task to a file, which exists in the `with` block."""
    if task is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="boxbuild-") as directory:
        path = Path(directory, "task.json")
        path.write_text(json.dumps(task), encoding="utf-8")
        yield path


def _undo(output: Output) -> Optional[Call]:
    """Returns the call that removes a box whose start was complete when the caller was interrupted."""
    try:
        return Call(boxlaunch("rm", "--force", "--json", answer(output)["name"]))
    except BoxbuildError:
        return None


def run(
    box: Union[str, BoxConfig],
    command: Command,
    *,
    component: Component = None,
    cwd: Optional[str] = None,
    env: Optional[Mapping[str, str]] = None,
    user: Optional[str] = None,
    input: Data = None,
    timeout: Optional[float] = None,
    max_output: Union[None, int, str] = None,
    check: bool = False,
) -> Steps[Result]:
    """Starts a box for one command, and removes it when the command has ended.

    Args:
        box: The box, as for `BoxConfig`, or a whole `BoxConfig`.
        command: The program and its arguments, or a line for `sh`.
        component: The component: `agent`, or `business`, the default if the box has it.
        cwd: The working directory, which must exist.
        env: Variables of the command.
        user: `USER[:GROUP]`: names of the component, or numbers.
        input: The standard input, which is empty otherwise.
        timeout: Kills the command after this many seconds, such as 0.5.
        max_output: How much of each output is kept, instead of 1 MiB: bytes, or a text such as `16MiB`.
        check: Whether a status other than 0 is an error.

    Returns:
        The result of the command.

    Raises:
        BoxbuildError: The box was not started.
        CommandError: The command has failed, with `check=True`.

    Example:
        >>> boxbuild.run(BoxConfig(image="python:3.12"), ["python3", "-c", "print(6 * 7)"]).stdout
        '42\\n'
    """
    config = config_of(box)
    options = command_options(component, cwd, env, user, input, timeout, max_output)
    words = ["run", "--json", *options, *config.words((yield from _box_of(config))), "--", *argv(command)]
    report: schema.Run = yield from ask(words, env=config.variables(), input=data(input))
    if report["command"] is None:
        raise BoxbuildError(f"the box {report['name']} has ended before the command")
    result = Result.of(report["command"])
    return result.check() if check else result


def run_task(box: Union[str, BoxConfig], spec: Mapping[str, Any]) -> Steps[schema.Task]:
    """Starts a box for one task, and removes it when its agent has ended.

    Args:
        box: The box, as for `BoxConfig`, or a whole `BoxConfig`.
        spec: The task: `id`, `type` and `description`; optionally `input`, `tags` and `timeout_seconds`.

    Returns:
        The task with its verdict: `status` is `completed` or `failed`, and `error` is the reason of a failure. `result` is what the
        agent has left, or `None` if that is not JSON.

    Raises:
        BoxbuildError: The box was not started. A failed task is no error.

    Example:
        >>> boxbuild.run_task("counter", {"id": "1", "type": "count", "description": "Count", "input": "one two"})["result"]
        {'words': 2}
    """
    config = config_of(box)
    ref = yield from _box_of(config)
    with _file_of(spec) as path:
        report = yield from ask(["run", "--json", *option("--task", path), *config.words(ref)], env=config.variables())
    task: schema.Task = report["task"]
    return task


def stop(self: Handle, *, grace: Optional[float] = None) -> Steps[None]:
    """Asks the programs of the box to end, and powers it off.

    Args:
        grace: How long programs may take to end before they are killed, in seconds, which are rounded up. 10 by default.
    """
    yield from ask(["stop", "--json", *option("--grace", seconds(grace)), self.name])


def kill(self: Handle, signal: str = "KILL") -> Steps[None]:
    """Sends a signal to the main program of the agent. The box ends with that program.

    Args:
        signal: The name of the signal, such as `HUP`.
    """
    yield from ask(["kill", "--json", *option("--signal", signal), self.name])


def remove(self: Handle) -> Steps[None]:
    """Removes the box with its logs and its disk. A box that runs is killed."""
    yield from ask(["rm", "--force", "--json", self.name])


def close(self: Owner) -> Steps[None]:
    """Stops the box and removes it, as the end of the `with` block does. A box of `keep=True` and one of `Box.of` stay."""
    if not self._ends_with_block:
        return
    self._ends_with_block = False
    try:
        # The record is removed with the end, because the box was started with `--rm`.
        yield from stop(self, grace=_GRACE)
    except (BoxEndedError, NameNotFoundError, NotRunningError):
        pass


def wait(self: Handle) -> Steps[Optional[int]]:
    """Waits until the box has ended.

    Returns:
        The exit status of the agent; `None` if the box has ended without one.
    """
    status: Optional[int] = (yield from ask(["wait", "--json", self.name]))["boxes"][0]["status"]
    return status
