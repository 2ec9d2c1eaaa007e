"""The command lines of the operations."""

import json
import os
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple, Type, Union
from unittest import mock

from boxbuild import BoxConfig
from boxbuild._call import Call, Output, Steps, precise_seconds, seconds
from boxbuild._operations import commands, files, lifecycle, look, sessions, store, talk
from boxbuild._operations.handle import Handle, Owner

from . import recorded

HELLO = Handle("hello")
RUN = {"name": "hello-1234", "box": "sha256:0"}


def first(steps: Steps[Any]) -> Call:
    """Returns the first call of an operation."""
    return next(steps)


def words(steps: Steps[Any]) -> List[str]:
    """Returns the arguments of the first call of an operation."""
    return list(first(steps).argv[1:])


def printed(value: Any) -> Output:
    """Returns the output of a program that has printed an object."""
    return Output(0, json.dumps(value).encode())


class Calls(unittest.TestCase):
    """Each operation starts the program that it names, with its arguments as options."""

    def setUp(self) -> None:
        named = mock.patch.dict(os.environ, {"BOXBUILD_BIN": "/programs"})
        named.start()
        self.addCleanup(named.stop)

    def test_exec(self) -> None:
        call = first(commands.exec(HELLO, ["ls", "-l"], component="agent", cwd="/tmp", env={"A": "1"}, user="app", timeout=0.5))
        options = ["--component=agent", "--workdir=/tmp", "--user=app", "--timeout=0.5", "--env-file=-"]
        self.assertEqual(call.argv, ["/programs/boxlaunch", "exec", "--json", *options, "hello", "--", "ls", "-l"])
        self.assertEqual(call.input, b'A="1"\n')
        call = first(commands.exec(HELLO, "cat | wc", input="text"))
        self.assertEqual(call.argv[2:], ["--json", "--interactive", "hello", "--", "/bin/sh", "-c", "cat | wc"])
        self.assertEqual(call.input, b"text")

    def test_the_variables_of_a_command_are_on_no_command_line(self) -> None:
        env = {"A": "it's $5\\ \"#\n\tend", "B": "caf\u00e9", "C": "\x1b", "D.E": "x", "F": ""}
        call = first(commands.exec(HELLO, "env", env=env))
        self.assertEqual(call.argv[3:-5], ["--env=C=\x1b", "--env=D.E=x", "--env-file=-"])
        self.assertEqual((call.input or b"").decode(), 'A="it\'s $5\\\\ \\"#\\n\\tend"\nB="caf\u00e9"\nF=""\n')
        for input in (None, "text"):
            with self.assertRaisesRegex(TypeError, "value of A is None"):
                first(commands.exec(HELLO, "env", env={"A": None}, input=input))  # type: ignore[dict-item]
        call = first(commands.exec(HELLO, "env", env={"A": "1"}, input="text"))
        self.assertEqual((call.argv[3:-5], call.input), (["--env=A=1", "--interactive"], b"text"))

    def test_times(self) -> None:
        self.assertEqual([seconds(it) for it in (None, 0, 0.5, 2, "15m")], [None, "0", "1", "2", "15m"])
        times: List[Tuple[Union[None, float, str], Optional[str]]] = [(0, "0"), (0.5, "0.5"), (60, "60"), (0.0001, "0.001"), (12345.678, "12345.678"), ("1m", "1m"), (None, None)]
        self.assertEqual([precise_seconds(it) for it, _ in times], [text for _, text in times])
        for wrong in (-1, float("inf"), float("nan")):
            self.assertRaises(ValueError, seconds, wrong)
            self.assertRaises(ValueError, precise_seconds, wrong)
        self.assertEqual(words(lifecycle.stop(HELLO, grace=0.5)), ["stop", "--json", "--grace=1", "hello"])
        self.assertEqual(words(lifecycle.stop(HELLO, grace=0)), ["stop", "--json", "--grace=0", "hello"])

    def test_code_that_fits_into_no_word_is_input(self) -> None:
        self.assertEqual(words(commands.run_python(HELLO, "pass"))[2:], ["hello", "--", "python3", "-c", "pass"])
        call = first(commands.run_node(HELLO, "0;" * 60_000))
        self.assertEqual(call.argv[3:], ["--interactive", "hello", "--", "node", "-"])

    def test_a_start(self) -> None:
        config = BoxConfig("hello", name="one", env={"A": "1"}, shares=["a:/b"], ports=[80, "81:82"], memory=512, lifetime=90.2)
        given = ["--name=one", "--env=A=1", "--share=a:/b", "--publish=0:80", "--publish=81:82", "--memory=512", "--lifetime=91"]
        self.assertEqual(
            words(lifecycle.start_with(config)), ["run", "--json", "--detach", "--rm", "--with-parent", *given, "hello"]
        )
        self.assertEqual(words(lifecycle.start_with(BoxConfig("hello", keep=True))), ["run", "--json", "--detach", "hello"])

    def test_a_secret_is_on_no_command_line(self) -> None:
        call = first(lifecycle.start_with(BoxConfig("hello", secrets={"KEY": "hidden", "CERT": Path("/cert")})))
        self.assertNotIn("hidden", " ".join(call.argv))
        self.assertIn("--secret=CERT=file:/cert", call.argv)
        (option,) = [word for word in call.argv if word.startswith("--secret=KEY=env:")]
        self.assertEqual(call.env[option.rpartition(":")[2]], "hidden")
        self.assertNotIn("hidden", repr(BoxConfig("hello", secrets={"KEY": "hidden"})))

    def test_a_boxfile_is_built_first(self) -> None:
        steps = lifecycle.start_with(BoxConfig("project/Boxfile"))
        self.assertEqual(next(steps).argv, ["/programs/boxbuild", "build", "--json", "--file=project/Boxfile"])
        self.assertEqual(steps.send(printed({"box": "sha256:1"})).argv[-1], "sha256:1")
        names = ("Boxfile", "Boxfile.toml", "ci.Boxfile", "Boxfile.lock", "ci.Boxfile.lock", "Boxfile.toml.lock", "hello")
        self.assertEqual([bool(BoxConfig(it).boxfile) for it in names], 3 * [True] + 4 * [False])

    def test_wrong_arguments(self) -> None:
        cases: List[Tuple[Dict[str, Any], Type[Exception], str]] = [
            ({"shares": "a:/b"}, TypeError, r"^shares has to be a list, such as shares=\[…\], and not a value of the type str$"),
            ({"ports": 80}, TypeError, "ports has to be a list"),
            ({"ports": [8.5]}, TypeError, "ports has to be numbers or texts"),
            ({"secrets": ["X"]}, TypeError, "secrets has to be a dict"),
            ({"secrets": {"X": b"hidden"}}, TypeError, "^((?!hidden).)*$"),
            ({"env": "A=1"}, TypeError, "env has to be a dict"),
            ({"name": 5}, TypeError, "name has to be a text"),
            ({"emulated": True}, ValueError, "boxbuild.run"),
        ]
        for arguments, kind, message in cases:
            with self.assertRaisesRegex(kind, message):
                next(lifecycle.start_with(BoxConfig("hello", **arguments)))
        self.assertEqual(words(lifecycle.start_with("greeter"))[-1], "greeter")

    def test_an_interrupted_start_removes_the_box(self) -> None:
        undo = first(lifecycle.start_with(BoxConfig("hello"))).undo
        assert undo is not None
        removing = undo(printed(RUN))
        assert removing is not None
        self.assertEqual(removing.argv[1:], ["rm", "--force", "--json", "hello-1234"])
        self.assertIsNone(undo(printed(recorded.FAILURE)))

    def test_a_task_is_in_a_file_while_the_box_starts(self) -> None:
        steps = lifecycle.run_task("counter", {"id": "1"})
        (option,) = [word for word in next(steps).argv if word.startswith("--task=")]
        path = Path(option.partition("=")[2])
        self.assertEqual(json.loads(path.read_text()), {"id": "1"})
        with self.assertRaises(StopIteration) as done:
            steps.send(printed({"task": {"status": "completed"}}))
        self.assertEqual(done.exception.value, {"status": "completed"})
        self.assertFalse(path.exists())

    def test_the_end_of_a_block(self) -> None:
        self.assertEqual(list(lifecycle.close(Owner("hello"))), [])
        owner = Owner("hello", keep=False)
        steps = lifecycle.close(owner)
        self.assertEqual(next(steps).argv[1:], ["stop", "--json", "--grace=2", "hello"])
        with self.assertRaises(StopIteration):
            # The box has ended by itself.
            steps.send(Output(1, json.dumps(recorded.FAILURE).encode()))
        self.assertEqual(list(lifecycle.close(owner)), [], "only once")

    def test_names_are_no_options(self) -> None:
        for wrong in ("", "--all", "-f"):
            with self.assertRaises(ValueError):
                Handle(wrong)
        wrong_calls: List[Callable[[], Steps[Any]]] = [
            lambda: talk.allow(HELLO, "--x"),
            lambda: talk.load_skills(HELLO, "-x"),
            lambda: sessions.close_session(HELLO, "-x"),
            lambda: store.pull("--x"),
            lambda: store.remove_images("-f"),
            lambda: lifecycle.start_with(BoxConfig("--help")),
        ]
        for call in wrong_calls:
            with self.assertRaises(ValueError):
                next(call())
        with self.assertRaises(ValueError):
            BoxConfig()

    def test_files(self) -> None:
        host = os.getcwd()
        self.assertEqual(words(files.copy_in(HELLO, "a:b/.", "/work")), ["cp", "--json", f"{host}/a:b/.", "hello:/work"])
        self.assertEqual(words(files.copy_out(HELLO, "/a", "/b", user="0")), ["cp", "--json", "--user=0", "hello:/a", "/b"])
        steps = files.write(HELLO, "/tmp/run.sh", "echo", mode=0o755)
        source = Path(next(steps).argv[3])
        self.assertEqual((source.name, source.read_text(), source.stat().st_mode & 0o777), ("run.sh", "echo", 0o755))
        steps.close()
        self.assertFalse(source.exists())

    def test_talking_and_looking(self) -> None:
        self.assertEqual(words(talk.load_skills(HELLO, "skills/a")), ["skills", "--json", "hello", "load", "skills/a"])
        self.assertEqual(words(talk.deny(HELLO, "a.example")), ["network", "--json", "hello", "deny", "a.example"])
        self.assertEqual(words(talk.approvals(HELLO)), ["approvals", "--json", "hello"])
        self.assertEqual(words(talk.approve(HELLO, 3, always=True)), ["approve", "--json", "--always", "hello", "3"])
        self.assertEqual(words(talk.deny_command(HELLO, 3)), ["deny", "--json", "hello", "3"])
        self.assertEqual(talk.follow_approvals(HELLO).argv[1:], ["approvals", "--follow", "--json", "hello"])
        call = first(talk.generate(HELLO, "-v", session="s", timeout=5))
        self.assertEqual(call.argv[1:], ["agent", "generate", "--json", "--session=s", "--timeout=5", "hello", "-"])
        self.assertEqual(call.input, b"-v")
        session = ["agent", "session"]
        self.assertEqual(words(sessions.create(HELLO, "s")), [*session, "create", "--json", "--session=s", "hello"])
        call = first(sessions.send(HELLO, "s", "-v", timeout=5))
        self.assertEqual((call.argv[1:], call.input), ([*session, "send", "--json", "--timeout=5", "hello", "s", "-"], b"-v"))
        self.assertEqual(sessions.events(HELLO, "s").argv[1:], [*session, "events", "--json", "hello", "s"])
        denied = sessions.confirm(HELLO, "s", "t", deny=True, reason="no")
        self.assertEqual(words(denied), [*session, "confirm", "--json", "--deny", "--reason=no", "hello", "s", "t"])
        self.assertEqual(words(sessions.cancel(HELLO, "s", operation="1")), [*session, "cancel", "--json", "--operation=1", "hello", "s"])
        self.assertEqual(words(sessions.close_session(HELLO, "s")), [*session, "close", "--json", "hello", "s"])
        logs = look.logs(HELLO, follow=True, tail=5)
        self.assertEqual(logs.argv[1:], ["logs", "--json", "--follow", "--tail=5", "--component=agent", "hello"])
        self.assertEqual(words(store.up("/p", accept=True)), ["up", "--json", "--accept", "/p"])
