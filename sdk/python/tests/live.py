"""Tests with real boxes: tests/boot/sdk.rs runs them on the virtual host, which has the boxes in /boxes.

    python3 -m unittest tests.live
"""

import asyncio
import contextlib
import importlib.util
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Callable, Dict, List
from unittest import mock

import boxbuild
from boxbuild import Box, BoxConfig, FileChange, aio

BOXES = Path(os.environ.get("SDK_BOXES", "/boxes"))
PAGE = Path(os.environ.get("SDK_PAGE", "/sdk.md"))
PACKAGE = str(Path(__file__).resolve().parent.parent)
EXAMPLES = Path(PACKAGE, "examples")
PLAIN = BoxConfig(str(BOXES / "plain"), secrets={"KEY": "0123456789"})
#: Starts a box, and is killed.
KILLED = "import os; from boxbuild import Box; Box.start({!r}, secrets={{'KEY': '0123456789'}}); os.kill(os.getpid(), 9)"


def until(holds: Callable[[], bool]) -> None:
    """Waits for a condition."""
    for _ in range(300):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it does not hold")


def example(name: str) -> ModuleType:
    """Loads an example."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def no_box() -> bool:
    """Returns whether no box has a record."""
    return boxbuild.list_boxes(all=True) == []


def answers(box: Box) -> List[str]:
    """Approves the command that ends with `yes`, denies others, and returns their last words when the box has ended."""
    answered: Dict[int, str] = {}
    for report in box.follow_approvals():
        for question in report["questions"]:
            number, word = question["question"], question["argv"][-1]
            if number in answered:
                continue
            if word == "yes":
                box.approve(number)
            else:
                box.deny(number)
            answered[number] = word
    return list(answered.values())


async def opened(project: str) -> aio.Environment:
    """Returns the environment of a project."""
    return await aio.Environment.up(project)


class Scratch(unittest.TestCase):
    """A working directory for each test, and no box afterwards."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(scratch.name)

    def tearDown(self) -> None:
        until(no_box)


class Page(Scratch):
    """The blocks of docs/sdk.md are one script, which prints what the page shows."""

    def test_the_page(self) -> None:
        os.symlink(BOXES / "sandbox", "sandbox.box")
        script = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE))
        expected = re.findall(r"^ *print\(.*\)  # (.*)$", script, re.MULTILINE)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(script, str(PAGE), "exec"), {"__name__": "page"})
        lines = printed.getvalue().splitlines()
        self.assertEqual(len(lines), len(expected), lines)
        # A `…` at the end stands for any text.
        short = [f"{line[: len(shown) - 1]}…" if shown.endswith("…") else line for line, shown in zip(lines, expected)]
        self.assertEqual(short, expected)


class Lifecycle(Scratch):
    """Boxes end with what has started them."""

    def test_a_killed_interpreter_leaves_no_box(self) -> None:
        command = [sys.executable, "-c", KILLED.format(PLAIN.box)]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": PACKAGE}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGKILL, ""))
        until(no_box)

    def test_a_cancelled_start_leaves_no_box(self) -> None:
        async def cancelled(delay: float) -> None:
            start = asyncio.ensure_future(aio.create_box(PLAIN))
            await asyncio.sleep(delay)
            start.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await (await start).close()
                raise asyncio.CancelledError  # the start was faster

        for delay in (0.01, 0.05, 0.1, 0.2):
            asyncio.run(cancelled(delay))
            self.assertTrue(no_box(), delay)

    def test_a_box_that_stays(self) -> None:
        with Box.start(PLAIN.box, name="kept", secrets=PLAIN.secrets, keep=True):
            pass
        kept = Box.of("kept")
        self.assertEqual((kept.status(), kept.health()["healthy"]), ("running", True))
        with self.assertRaises(boxbuild.NameTakenError):
            Box.start(PLAIN.box, name="kept", secrets=PLAIN.secrets)
        kept.stop(grace=0)
        self.assertEqual(kept.status(), "ended")
        with self.assertRaises(boxbuild.NotRunningError):
            kept.exec(["true"])
        kept.remove()

    def test_a_box_that_ends_by_itself(self) -> None:
        with boxbuild.create_box(PLAIN) as box:
            box.kill()
            until(lambda: box.status() == "ended")
            with self.assertRaises(boxbuild.NameNotFoundError):
                box.exec(["true"])

    def test_the_environment_of_a_project(self) -> None:
        project = os.path.realpath("project")
        Path(project).mkdir()
        with boxbuild.Environment.up(project, box=str(BOXES / "echo")) as environment:
            self.assertEqual(environment.exec(["cat", "/note"], cwd="/").status, 1)
            environment.exec("echo kept >/note; echo x >made", cwd=project, check=True)
        self.assertTrue(Path(project, "made").exists())
        environment.stop()
        self.assertEqual(environment.snapshot("before")["name"], "before")
        again = asyncio.run(opened(project))
        self.assertEqual((again.name, environment.files.read("/note")), (environment.name, b"kept\n"))
        environment.reset()
        self.assertFalse(environment.exec(["test", "-e", "/note"]).ok)
        environment.remove()

    def test_a_command_and_a_task_in_a_new_box(self) -> None:
        self.assertEqual(boxbuild.run(PLAIN, ["wc", "-c"], input="12345").stdout.strip(), "5")
        spec = {"id": "1", "type": "count", "description": "Count", "input": "one two three"}
        task = boxbuild.run_task(str(BOXES / "counter"), spec)
        self.assertEqual((task["status"], task.get("result")), ("completed", {"words": 3}))


class Work(Scratch):
    """What a program does with a box."""

    def test_commands(self) -> None:
        with boxbuild.create_box(PLAIN) as box:
            self.assertEqual(box.exec("echo $KEY", component="agent").stdout, "0123456789\n")
            env = {"A": "it's $5\\ \"#\n\tend", "B": "\x1b"}
            self.assertEqual(box.exec('printf "%s|%s" "$A" "$B"', env=env).stdout, "|".join(env.values()))
            self.assertEqual(box.exec(["printf", r"\351"]).stdout_bytes, b"\xe9")
            self.assertEqual(box.exec("head -c 3000 /dev/zero", max_output=1000).truncated, True)

    def test_a_command_costs_at_most_twice_as_much_as_one_of_boxlaunch(self) -> None:
        def cost(run: Callable[[], object]) -> float:
            times = []
            for _ in range(5):
                began = time.monotonic()
                run()
                times.append(time.monotonic() - began)
            return sorted(times)[2]

        with boxbuild.create_box(PLAIN) as box:
            program = cost(lambda: subprocess.run(["boxlaunch", "exec", box.name, "true"], check=True))
            own = cost(lambda: box.exec(["true"]))
        print(f"exec: {own * 1000:.1f} ms, of boxlaunch alone {program * 1000:.1f} ms", file=sys.stderr)
        self.assertLess(own, 2 * program)

    def test_signals(self) -> None:
        with boxbuild.create_box(PLAIN) as box:
            with box.popen("trap 'echo asked; exit 7' TERM; echo ready; while :; do sleep 0.1; done") as process:
                self.assertEqual(process.stdout.readline(), b"ready\n")
                process.terminate()
                self.assertEqual((process.stdout.read(), process.wait()), (b"asked\n", 7))
            with box.popen("head -c 200000 /dev/zero >&2; cat") as process:
                stdout, stderr = process.communicate(b"x" * 300_000)
                self.assertEqual((len(stdout), len(stderr), process.returncode), (300_000, 200_000, 0))
            with box.popen(["sleep", "1000"]):
                until(lambda: "sleep 1000" in box.exec("ps -o args").stdout)
            until(lambda: "sleep 1000" not in box.exec("ps -o args").stdout)

    def test_files_and_skills(self) -> None:
        with boxbuild.create_box(PLAIN) as box:
            box.exec("mkdir /tmp/d; ln -s /tmp/d/file /tmp/link; ln -s nowhere /tmp/d/broken", check=True)
            box.files.write("/tmp/d/file", b"\x00\xff", mode=0o755)
            self.assertEqual(box.files.read("/tmp/link"), b"\x00\xff")
            entries = {entry.name: entry for entry in box.files.list("/tmp/d")}
            self.assertEqual((sorted(entries), entries["file"].size, oct(entries["file"].mode)), (["broken", "file"], 2, "0o100755"))
            with self.assertRaises(boxbuild.IoError):
                box.files.list("/missing")
            with self.assertRaises(boxbuild.IoError):
                box.files.read("/missing")
            with self.assertRaisesRegex(boxbuild.IoError, "is a directory"):
                box.files.read("/tmp/d")
            with self.assertRaisesRegex(boxbuild.BoxbuildError, "at most 1 are read"):
                box.files.read("/tmp/d/file", max_size=1)
            box.exec("dd if=/dev/zero of=/tmp/large bs=1024k count=0 seek=1024", check=True)
            with self.assertRaisesRegex(boxbuild.BoxbuildError, "at most 67108864 are read"):
                box.files.read("/tmp/large")
            Path("notes").mkdir()
            Path("notes/SKILL.md").write_text("---\nname: notes\ndescription: Keeps notes.\n---\n")
            self.assertEqual([it["name"] for it in box.skills.load("notes")], ["notes"])
            self.assertEqual([it["source"] for it in box.skills.list()], ["loaded"])
            box.skills.unload("notes")
            with self.assertRaises(boxbuild.SkillNotFoundError):
                box.skills.unload("notes")

    def test_a_policy_asks_and_a_skill_is_of_the_host(self) -> None:
        Path("hot").mkdir()
        Path("hot/SKILL.md").write_text("---\nname: hot\ndescription: Is of the host.\n---\n")
        config = BoxConfig(str(BOXES / "asking"), skills={"hot": os.path.realpath("hot")})
        with ThreadPoolExecutor(1) as pool:
            with boxbuild.create_box(config) as box:
                self.assertIn("Is of the host.", box.exec(["cat", "/a3s/skills/hot/SKILL.md"]).stdout)
                answered = pool.submit(answers, box)
                self.assertEqual(box.exec(["echo", "yes"]).stdout, "yes\n")
                denied = box.exec(["echo", "no"])
            self.assertEqual(answered.result(), ["yes", "no"])
        assert denied.sandbox
        self.assertEqual((denied.status, denied.sandbox["state"], denied.sandbox["preset"]), (126, "not-started", "default"))
        expected = [{"kind": "process", "subject": "echo no", "rule": "echo *", "reason": "person: the Boxfile asks for it"}]
        self.assertEqual(denied.sandbox["denied"], expected)

    def test_a_directory_is_watched(self) -> None:
        async def watched() -> List[FileChange]:
            async with aio.create_box(PLAIN) as box:
                await box.exec("mkdir /tmp/w; touch /tmp/w/old")
                changes = box.files.watch("/tmp/w", interval=0.2)
                first = asyncio.ensure_future(changes.__anext__())
                await asyncio.sleep(1)
                await box.exec("rm /tmp/w/old; echo x >/tmp/w/new")
                found = [await first, await changes.__anext__()]
                await changes.aclose()
                return found

        expected = {FileChange("deleted", "old"), FileChange("created", "new")}
        self.assertEqual(set(asyncio.run(watched())), expected)

    def test_an_agent_with_an_interface(self) -> None:
        with Box.start(str(BOXES / "echo")) as box:
            self.assertEqual(box.generate("Say it again")["text"], "Say it again")
            self.assertEqual((box.agent.health()["status"], box.agent.skills()[0]["name"]), ("healthy", "echo"))
            info = box.agent.capabilities()["info"]
            assert info is not None
            self.assertEqual(info["name"], "echo")
            with self.assertRaises(boxbuild.ComponentNotFoundError):
                box.exec(["true"], component="business")


class Examples(Scratch):
    """The programs to copy."""

    def test_untrusted_code(self) -> None:
        report = example("untrusted_code").run(str(BOXES / "sandbox"), "import sys; print(6 * 7); sys.exit(3)")
        self.assertEqual(report, "status 3\n42\n")

    def test_boxes_in_parallel(self) -> None:
        arguments = ["parallel.py", str(BOXES / "echo"), "3"]
        printed = io.StringIO()
        parallel = example("parallel")
        with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(printed):
            asyncio.run(parallel.main())
        self.assertEqual(printed.getvalue(), "0 1 4\n")

    def test_a_tool(self) -> None:
        with Box.start(str(BOXES / "sandbox")) as box:
            tool = example("tool").python_tool(box)
            self.assertIn("sandbox", tool.__doc__)
            self.assertEqual(tool("open('/tmp/x', 'w').write('kept'); print('done')"), "done\n")
            self.assertEqual(tool("print(open('/tmp/x').read())"), "kept\n")
            self.assertIn("ZeroDivisionError", tool("1 / 0"))

    def test_an_agent_with_a_model(self) -> None:
        subprocess.run(["cp", "-r", "/example/project", "project"], check=True)
        Path("key").write_text("secret-key")
        model = subprocess.Popen(["assistant-model", "127.0.0.1:4180", "key"], stdout=subprocess.PIPE)
        self.addCleanup(model.wait)
        self.addCleanup(model.kill)
        assert model.stdout
        self.addCleanup(model.stdout.close)
        self.assertEqual(model.stdout.readline(), b"ready\n")
        given = {"MODEL_URL": "https://127.0.0.1:4180/v1", "MODEL_KEY": "secret-key", "SSL_CERT_FILE": "/ca.pem"}
        printed = io.StringIO()
        arguments = ["agent.py", str(BOXES / "workshop"), "project", "The test of slug.js fails. Make it pass."]
        with mock.patch.dict(os.environ, given), mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(printed):
            example("agent").main()
        self.assertEqual(printed.getvalue(), "Only the first space of a title became a hyphen.\n")
        self.assertIn("[^a-z0-9]+", Path("project/slug.js").read_text())
