"""Runs programs: the calls of both surfaces, their end, and their interruption."""

import asyncio
import os
import signal
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any, Callable, List, Optional
from unittest import mock

import boxbuild
from boxbuild import _blocking, aio
from boxbuild._call import Call, Output, Polling, Spawn, Steps, Stream, json_lines, program


def shell(script: str, **how: Any) -> Steps[Output]:
    """An operation of one call."""
    output = yield Call(["/bin/sh", "-c", script], **how)
    return output


def streamed(script: str) -> Stream[Any]:
    """Returns the output of a shell as JSON lines."""
    return Stream(["/bin/sh", "-c", script], json_lines)


def until(holds: Callable[[], bool]) -> None:
    """Waits for a condition."""
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it does not hold")


class Scratch(unittest.TestCase):
    """A directory for each test."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = Path(scratch.name)

    def undo(self, output: Output) -> Optional[Call]:
        """Notes what the interrupted program has printed."""
        return Call(["/bin/sh", "-c", f"cat >{self.path}/undone"], input=output.stdout)


class Blocking(Scratch):
    """The blocking surface."""

    def test_a_call(self) -> None:
        output = _blocking.run_steps(shell("cat; echo $ADDED; echo err >&2; exit 3", input=b"in ", env={"ADDED": "more"}))
        self.assertEqual(output, Output(3, b"in more\n", b"err\n"))

    def test_a_call_with_a_limit(self) -> None:
        for run in (_blocking.run_steps, lambda steps: asyncio.run(aio.run_steps(steps))):
            self.assertEqual(run(shell("echo out; echo err >&2; exit 3", limit=4)), Output(3, b"out\n", b"err\n"))
            output = run(shell("exec cat /dev/zero", limit=100_000))
            self.assertEqual(output.status, -signal.SIGKILL)
            self.assertTrue(100_000 < len(output.stdout) < 300_000)

    def test_an_operation_that_is_repeated(self) -> None:
        times: List[str] = []

        def poll() -> Steps[List[str]]:
            times.append((yield from shell("echo x")).stdout.decode())
            return times * (len(times) > 1)

        changes = _blocking._poll(Polling(poll, 0.01))
        self.assertEqual([next(changes), next(changes)], ["x\n", "x\n"])

        async def read() -> str:
            found = await aio._poll(Polling(poll, 0.01)).__anext__()
            return found

        self.assertEqual(asyncio.run(read()), "x\n")

    def test_large_input_and_output_do_not_block(self) -> None:
        data = b"x" * 3_000_000
        self.assertEqual(_blocking.run_steps(shell("cat", input=data)).stdout, data)

    def test_an_interrupted_call_ends_its_program(self) -> None:
        script = f"trap 'echo ended; exit 0' TERM; echo begun; touch {self.path}/ready; while :; do sleep 0.05; done"
        # A shell lets what it starts in the background ignore the signal.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        interrupted = threading.Thread(target=self.interrupt)
        interrupted.start()
        with self.assertRaises(KeyboardInterrupt):
            _blocking.run_steps(shell(script, undo=self.undo))
        interrupted.join()
        self.assertEqual((self.path / "undone").read_text(), "begun\nended\n")

    def interrupt(self) -> None:
        """Does what Ctrl-C does, when the program is ready."""
        until((self.path / "ready").exists)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def test_a_stream_ends_its_program(self) -> None:
        script = f"echo $$ >{self.path}/pid; echo '{{\"n\": 1}}'; exec sleep 1000"
        stream = _blocking._iterate(streamed(script))
        self.assertEqual(next(stream), {"n": 1})
        stream.close()
        process = int((self.path / "pid").read_text())
        self.assertRaises(ProcessLookupError, os.kill, process, 0)

    def test_a_stream_that_fails(self) -> None:
        with self.assertRaisesRegex(boxbuild.BoxbuildError, "no such box"):
            list(_blocking._iterate(streamed("echo 'error: no such box' >&2; exit 1")))

    def test_a_process(self) -> None:
        with _blocking.Process(Spawn(["/bin/sh", "-c", "cat; echo err >&2; exit 4"], False)) as process:
            process.stdin.write(b"in")
            process.stdin.close()
            assert process.stderr is not None
            self.assertEqual((process.stdout.read(), process.stderr.read(), process.wait()), (b"in", b"err\n", 4))
        with _blocking.Process(Spawn(["sleep", "1000"], False)) as process:
            self.assertIsNone(process.poll())
            self.assertRaises(ValueError, process.send_signal, signal.SIGUSR1)
        self.assertEqual(process.returncode, -signal.SIGKILL)

    def test_a_terminal(self) -> None:
        with _blocking.Process(Spawn(["/bin/sh"], True)) as process:
            process.resize(40, 100)
            process.stdin.write(b"stty size; test -t 0 && echo a ter''minal; exit 5\n")
            text = process.stdout.read().decode()
            self.assertEqual(process.wait(), 5)
        self.assertIn("40 100\r\n", text)
        self.assertIn("a terminal\r\n", text)
        self.assertIsNone(process.stderr)

    def test_a_missing_program(self) -> None:
        with mock.patch.dict(os.environ, {"BOXBUILD_BIN": str(self.path)}):
            with self.assertRaisesRegex(boxbuild.ProgramNotFoundError, "BOXBUILD_BIN names this directory"):
                boxbuild.list_boxes()
            with self.assertRaises(boxbuild.ProgramNotFoundError):
                asyncio.run(aio.list_boxes())
        with mock.patch.dict(os.environ, {"PATH": str(self.path)}):
            os.environ.pop("BOXBUILD_BIN", None)
            with self.assertRaisesRegex(boxbuild.ProgramNotFoundError, "BOXBUILD_BIN"):
                program("boxlaunch")


class Asynchronous(Scratch):
    """The asyncio surface."""

    def test_a_call(self) -> None:
        output = asyncio.run(aio.run_steps(shell("cat; exit 3", input=b"in")))
        self.assertEqual(output, Output(3, b"in", b""))

    def test_a_cancelled_call_ends_its_program(self) -> None:
        script = f"trap 'echo ended; exit 0' TERM; echo begun; touch {self.path}/ready; while :; do sleep 0.05; done"

        async def cancelled() -> None:
            call = asyncio.ensure_future(aio.run_steps(shell(script, undo=self.undo)))
            while not (self.path / "ready").exists():
                await asyncio.sleep(0.01)
            call.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await call

        asyncio.run(cancelled())
        self.assertEqual((self.path / "undone").read_text(), "begun\nended\n")

    def test_a_stream_ends_its_program(self) -> None:
        script = f"echo $$ >{self.path}/pid; echo '{{\"n\": 1}}'; exec sleep 1000"

        async def read() -> List[Any]:
            stream = aio._iterate(streamed(script))
            first = await stream.__anext__()
            await stream.aclose()
            return [first]

        self.assertEqual(asyncio.run(read()), [{"n": 1}])
        process = int((self.path / "pid").read_text())
        until(lambda: not Path(f"/proc/{process}").exists())

    def test_processes(self) -> None:
        async def talk() -> None:
            async with aio.spawning(lambda: Spawn(["/bin/sh", "-c", "cat; exit 4"], False))() as process:
                process.stdin.write(b"in")
                process.stdin.close()
                self.assertEqual((await process.stdout.read(), await process.wait()), (b"in", 4))
            async with aio.spawning(lambda: Spawn(["/bin/sh"], True))() as process:
                process.resize(40, 100)
                process.stdin.write(b"stty size; exit 5\n")
                self.assertIn(b"40 100\r\n", await process.stdout.read())
                self.assertEqual(await process.wait(), 5)
            async with aio.spawning(lambda: Spawn(["sleep", "1000"], False))() as process:
                self.assertIsNone(process.poll())
                with self.assertRaises(asyncio.TimeoutError):
                    await process.wait(timeout=0.01)
            self.assertEqual(process.returncode, -signal.SIGKILL)

        asyncio.run(talk())


@unittest.skipUnless("BOXBUILD_BIN" in os.environ, "BOXBUILD_BIN names no programs")
class Programs(Scratch):
    """The programs of BOXBUILD_BIN, with an empty state and an empty store."""

    def setUp(self) -> None:
        super().setUp()
        places = {"HOME": str(self.path), "BOXLAUNCH_STATE": f"{self.path}/state", "BOXBUILD_STORE": f"{self.path}/store"}
        places["XDG_RUNTIME_DIR"] = str(self.path)
        named = mock.patch.dict(os.environ, places)
        named.start()
        self.addCleanup(named.stop)

    def test_answers(self) -> None:
        self.assertEqual((boxbuild.list_boxes(all=True), boxbuild.images.list(), boxbuild.Environment.of("x").name), ([], [], "x"))
        self.assertEqual(asyncio.run(aio.images.prune(dry_run=True))["removed"], [])

    def test_errors(self) -> None:
        nobody = boxbuild.Box.of("nobody")
        operations: List[Callable[[], Any]] = [
            lambda: nobody.exec(["true"]),
            lambda: nobody.exec(["true"], env={"A": "it's $5\\ \"#\n\r\tend", "_b": "caf\u00e9 \U0001f600", "C": "\u2028\x1b\u3164", "D": ""}),
            lambda: nobody.files.read("/etc/hosts"),
            lambda: nobody.files.write("/tmp/x", "x"),
            nobody.skills.list,
            lambda: nobody.skills.load("skills/x"),
            nobody.network.denied,
            lambda: nobody.generate("hello"),
            nobody.agent.capabilities,
            nobody.agent.sessions.list,
            lambda: nobody.agent.sessions.send("s", "hello"),
            lambda: list(nobody.agent.sessions.events()),
            lambda: list(nobody.logs()),
            nobody.stats,
            nobody.task,
            nobody.ports,
            nobody.stop,
            nobody.kill,
            nobody.wait,
            nobody.inspect,
            nobody.status,
            lambda: nobody.files.list("/"),
            lambda: list(nobody.files.watch("/")),
        ]
        for operation in operations:
            with self.assertRaises(boxbuild.NameNotFoundError):
                operation()
        with self.assertRaises(boxbuild.BoxbuildError):
            list(nobody.events())
        with self.assertRaises(boxbuild.BoxNotFoundError):
            boxbuild.Box.start("nobody")
        with self.assertRaises(boxbuild.UsageError):
            boxbuild.Box.start("nobody", options=["--no-such-option"])
        with self.assertRaises(boxbuild.BoxfileNotFoundError):
            boxbuild.build(self.path / "Boxfile")

    def test_a_boxfile_with_an_error(self) -> None:
        path = self.path / "Boxfile"
        path.write_text('box "x"\nagent {\n    image "oci:x"\n    limits memory="10 GB"\n}\n')
        with self.assertRaises(boxbuild.BoxfileInvalidError) as raised:
            boxbuild.Box.start(str(path))
        self.assertEqual(raised.exception.problems[0]["labels"][0]["line"], 4)

    def test_a_cancelled_program_is_gone(self) -> None:
        async def cancelled() -> None:
            with self.assertRaises(asyncio.TimeoutError):
                events = aio.run_steps(shell(f"echo $$ >{self.path}/pid; exec {program('boxlaunch')} events"))
                await asyncio.wait_for(events, 0.5)

        asyncio.run(cancelled())
        self.assertFalse(Path("/proc", (self.path / "pid").read_text().strip()).exists())
