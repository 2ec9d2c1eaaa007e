"""The command lines of the operations."""

import json
import os
import unittest
from pathlib import Path
from typing import Any, Callable, List
from unittest import mock

from boxbuild import BoxConfig
from boxbuild._call import Call, Output, Steps
from boxbuild._operations import commands, files, lifecycle, look, store, talk
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
        options = ["--component=agent", "--workdir=/tmp", "--env=A=1", "--user=app", "--timeout=1"]
        self.assertEqual(call.argv, ["/programs/boxlaunch", "exec", "--json", *options, "hello", "--", "ls", "-l"])
        self.assertIsNone(call.input)
        call = first(commands.exec(HELLO, "cat | wc", input="text"))
        self.assertEqual(call.argv[2:], ["--json", "--interactive", "hello", "--", "/bin/sh", "-c", "cat | wc"])
        self.assertEqual(call.input, b"text")

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
        call = first(talk.generate(HELLO, "-v", session="s", timeout=5))
        self.assertEqual(call.argv[1:], ["agent", "generate", "--json", "--session=s", "--timeout=5", "hello", "-"])
        self.assertEqual(call.input, b"-v")
        logs = look.logs(HELLO, follow=True, tail=5)
        self.assertEqual(logs.argv[1:], ["logs", "--json", "--follow", "--tail=5", "--component=agent", "hello"])
        self.assertEqual(words(store.up("/p", accept=True)), ["up", "--json", "--accept", "/p"])
