"""Commands in a box."""

from __future__ import annotations

import signal
from typing import List, Mapping, Optional, Tuple, Union

from .._call import Spawn, Steps, ask, boxlaunch, flag, option, pairs, seconds
from .._result import Result
from .handle import Command, Component, Data, Handle

#: The longest program text on a command line. Linux allows one word 128 KiB.
_WORD = 100_000


def exec(
    self: Handle,
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
    """Runs a command in the box, and returns when it has ended.

    The command is killed if the caller is interrupted: by Ctrl-C, or because an asyncio task is cancelled.

    Args:
        command: The program and its arguments, or a line for `sh`.
        component: The component: `agent`, or `business`, the default if the box has it.
        cwd: The working directory, which must exist.
        env: Variables of the command.
        user: `USER[:GROUP]`: names of the component, or numbers.
        input: The standard input, which is empty otherwise.
        timeout: Kills the command after this many seconds. They are rounded up to whole ones.
        max_output: How much of each output is kept, instead of 1 MiB: bytes, or a text such as `16MiB`.
        check: Whether a status other than 0 is an error.

    Returns:
        The result of the command.

    Raises:
        BoxbuildError: The box does not run, or has no such component.
        CommandError: The command has failed, with `check=True`.

    Example:
        >>> box.exec(["sort"], input="b\\na\\n").stdout
        'a\\nb\\n'
    """
    options = command_options(component, cwd, env, user, input, timeout, max_output)
    words = ["exec", "--json", *options, self.name, "--", *argv(command)]
    result = Result.of((yield from ask(words, input=data(input), interrupt=signal.SIGKILL)))
    return result.check() if check else result


def run_python(
    self: Handle, code: str, *, component: Component = None, timeout: Optional[float] = None, check: bool = False
) -> Steps[Result]:
    """Runs a program in Python. The component needs a `python3`.

    Args:
        code: The text of the program.
        component: The component: `agent`, or `business`, the default if the box has it.
        timeout: Kills the program after this many seconds.
        check: Whether a status other than 0 is an error.

    Example:
        >>> box.run_python("print(6 * 7)").stdout
        '42\\n'
    """
    return _run_code(self, ("python3", "-c"), code, component, timeout, check)


def run_node(
    self: Handle, code: str, *, component: Component = None, timeout: Optional[float] = None, check: bool = False
) -> Steps[Result]:
    """Runs a program in JavaScript. The component needs a `node`.

    Args:
        code: The text of the program.
        component: The component: `agent`, or `business`, the default if the box has it.
        timeout: Kills the program after this many seconds.
        check: Whether a status other than 0 is an error.

    Example:
        >>> box.run_node("console.log(6 * 7)").stdout
        '42\\n'
    """
    return _run_code(self, ("node", "-e"), code, component, timeout, check)


def _run_code(
    self: Handle, words: Tuple[str, str], code: str, component: Component, timeout: Optional[float], check: bool
) -> Steps[Result]:
    if len(code.encode()) < _WORD:
        return exec(self, [*words, code], component=component, timeout=timeout, check=check)
    return exec(self, [words[0], "-"], input=code, component=component, timeout=timeout, check=check)


def popen(
    self: Handle,
    command: Command,
    *,
    component: Component = None,
    cwd: Optional[str] = None,
    env: Optional[Mapping[str, str]] = None,
    user: Optional[str] = None,
    timeout: Optional[float] = None,
    pty: bool = False,
) -> Spawn:
    """Starts a command in the box, and returns at once. The caller reads and writes its streams.

    Args:
        command: The program and its arguments, or a line for `sh`.
        component: The component: `agent`, or `business`, the default if the box has it.
        cwd: The working directory, which must exist.
        env: Variables of the command.
        user: `USER[:GROUP]`: names of the component, or numbers.
        timeout: Kills the command after this many seconds.
        pty: Whether the command gets a terminal. Its `stdin` and `stdout` are then that terminal, and `stderr` is `None`.

    Returns:
        The running command.

    Example:
        >>> with box.popen(["cat"]) as process:
        ...     process.stdin.write(b"hello")
        ...     process.stdin.close()
        ...     print(process.stdout.read())
    """
    options = command_options(component, cwd, env, user, "", timeout, None)
    words = ["exec", *flag("--tty", pty), *flag("--raw", not pty), *options, self.name, "--", *argv(command)]
    return Spawn(boxlaunch(*words), pty)


def command_options(
    component: Component,
    cwd: Optional[str],
    env: Optional[Mapping[str, str]],
    user: Optional[str],
    input: Data,
    timeout: Optional[float],
    max_output: Union[None, int, str],
) -> List[str]:
    """Returns the options of a command for `boxlaunch exec` and `run`."""
    return [
        *option("--component", component),
        *option("--workdir", cwd),
        *option("--env", *pairs(env)),
        *option("--user", user),
        *flag("--interactive", input is not None),
        *option("--timeout", seconds(timeout)),
        *option("--max-output", max_output),
    ]


def argv(command: Command) -> List[str]:
    """Returns the words of a command."""
    words = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    if not words:
        raise ValueError("the command is empty")
    return words


def data(input: Data) -> Optional[bytes]:
    """Returns the bytes of an input."""
    return input.encode() if isinstance(input, str) else input
