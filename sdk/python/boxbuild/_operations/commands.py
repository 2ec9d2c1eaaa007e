"""Commands in a box."""

from __future__ import annotations

import re
import signal
from typing import Dict, List, Mapping, Optional, Tuple, Union

from .._call import Spawn, Steps, ask, boxlaunch, flag, given, option, pairs, precise_seconds
from .._result import Result
from .handle import Command, Component, Data, Handle

#: The longest program text on a command line. Linux allows one word 128 KiB.
_WORD = 100_000
#: How a quoted value of a file of variables has these characters.
_ESCAPES = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", '"': '\\"'})
#: Characters without a shape, which Python takes for printable.
_SHAPELESS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U00013440-\U00013455\U00016fe4\U000e0100-\U000e01ef]"
)


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
        env: Variables of the command. Without `input`, their values are on no command line.
        user: `USER[:GROUP]`: names of the component, or numbers.
        input: The standard input, which is empty otherwise.
        timeout: Kills the command after this many seconds, such as 0.5.
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
    hidden = {} if input is not None else _of_file(env or {})
    shown = {name: value for name, value in (env or {}).items() if name not in hidden}
    options = [*command_options(component, cwd, shown, user, input, timeout, max_output), *flag("--env-file=-", bool(hidden))]
    words = ["exec", "--json", *options, self.name, "--", *argv(command)]
    given = "".join(f"{name}={it}\n" for name, it in hidden.items()).encode() if hidden else data(input)
    result = Result.of((yield from ask(words, input=given, interrupt=signal.SIGKILL)))
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
        *option("--timeout", precise_seconds(timeout)),
        *option("--max-output", max_output),
    ]


def _of_file(env: Mapping[str, str]) -> Dict[str, str]:
    """Returns the variables that the file of `--env-file` can have, with their values as it has them.

    It can have no invisible characters but line ends and tabs.
    """
    texts = {name: str(value) for name, value in given(env).items() if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name)}
    quoted = {name: f'"{it.translate(_ESCAPES)}"' for name, it in texts.items()}
    return {name: it for name, it in quoted.items() if it.isprintable() and not _SHAPELESS.search(it)}


def argv(command: Command) -> List[str]:
    """Returns the words of a command."""
    words = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    if not words:
        raise ValueError("the command is empty")
    return words


def data(input: Data) -> Optional[bytes]:
    """Returns the bytes of an input."""
    return input.encode() if isinstance(input, str) else input
