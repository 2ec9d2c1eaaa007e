"""What the answers of the programs mean."""

import io
import json
import os
import tarfile
import unittest
from typing import Any, Dict, List, Optional
from unittest import mock

import boxbuild
from boxbuild import CommandError, FileChange, Result
from boxbuild._call import Output, Steps, answer, json_lines
from boxbuild._operations import files, look
from boxbuild._operations.handle import Handle, Owner

from . import recorded


def failed(value: Any, status: int = 1) -> boxbuild.BoxbuildError:
    """Returns the error of a program that has printed an object."""
    try:
        answer(Output(status, json.dumps(value).encode()))
    except boxbuild.BoxbuildError as error:
        return error
    raise AssertionError("no error")


def result(steps: Steps[Any], output: Output) -> Any:
    """Returns the result of an operation whose last call has this output."""
    try:
        steps.send(output)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("another call")


def done(steps: Steps[Any], value: Any) -> Any:
    """Returns the result of an operation of one call, which prints this object."""
    next(steps)
    return result(steps, Output(0, json.dumps(value).encode()))


def packed(name: str, content: Optional[bytes] = None, link: str = "") -> bytes:
    """Returns an archive of a file, of a link, or of a directory."""
    archive = io.BytesIO()
    entry = tarfile.TarInfo(name)
    entry.type = tarfile.SYMTYPE if link else tarfile.DIRTYPE if content is None else tarfile.REGTYPE
    entry.linkname, entry.size = link, len(content or b"")
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as writer:
        writer.addfile(entry, io.BytesIO(content or b""))
    return archive.getvalue()


class Answers(unittest.TestCase):
    """An object becomes a result or an exception."""

    def setUp(self) -> None:
        named = mock.patch.dict(os.environ, {"BOXBUILD_BIN": "/programs"})
        named.start()
        self.addCleanup(named.stop)

    def test_a_result(self) -> None:
        result = Result.of(recorded.EXEC)  # type: ignore[arg-type]
        self.assertEqual((result.status, result.ok, result.duration), (3, False, 0.0125))
        self.assertEqual((result.stdout, result.stdout_bytes), ("caf\ufffd", b"caf\xe9"))
        self.assertEqual(result.stderr_bytes, b"no\nluck\n")
        with self.assertRaises(CommandError) as raised:
            result.check()
        self.assertEqual(str(raised.exception), "`sh -c cat; exit 3` has ended with the status 3: luck")

    def test_a_result_under_a_policy(self) -> None:
        self.assertIsNone(Result.of(recorded.EXEC).sandbox)  # type: ignore[arg-type]
        fenced = Result.of({**recorded.EXEC, "status": 126, "sandbox": recorded.SANDBOX})  # type: ignore[typeddict-item]
        self.assertEqual(fenced.sandbox, recorded.SANDBOX)

    def test_the_first_error_is_the_exception(self) -> None:
        error = failed(recorded.FAILURE)
        self.assertIs(type(error), boxbuild.NameNotFoundError)
        self.assertEqual((error.code, error.exit_status, len(error.problems)), ("name-not-found", 1, 2))
        self.assertEqual(str(error), "no started box has the name x (`boxlaunch ps -a` lists the started boxes)")
        self.assertIsInstance(failed(recorded.NAMED), boxbuild.NameNotFoundError)

    def test_a_code_of_a_later_version(self) -> None:
        problem = {**recorded.FAILURE["errors"][1], "code": "of-tomorrow"}
        error = failed({"errors": [problem]})
        self.assertIs(type(error), boxbuild.BoxbuildError)
        self.assertEqual(error.code, "of-tomorrow")

    def test_a_status_or_a_warning_is_no_error(self) -> None:
        self.assertEqual(answer(Output(1, json.dumps(recorded.HEALTH).encode())), recorded.HEALTH)
        warned = {"errors": recorded.FAILURE["errors"][:1]}
        self.assertEqual(answer(Output(0, json.dumps(warned).encode())), warned)

    def test_errors_as_text(self) -> None:
        cases = [
            (2, b"error: unexpected argument '--x' found\n\nUsage: boxlaunch\n", boxbuild.UsageError, "unexpected argument '--x' found"),
            (1, b"error: no box\n  = help: start one\n", boxbuild.BoxbuildError, "no box (start one)"),
            (2, b"error: wrong\n  [possible values: a, b]\n\n  tip: write 'a'\n", boxbuild.UsageError, "wrong ([possible values: a, b]; tip: write 'a')"),
            (70, b"boxlaunch has a bug\n", boxbuild.InternalError, "boxlaunch has a bug"),
            (-9, b"", boxbuild.BoxbuildError, "the program has ended with the status -9 and no answer"),
        ]
        for status, stderr, kind, message in cases:
            with self.assertRaises(boxbuild.BoxbuildError) as raised:
                answer(Output(status, b"", stderr))
            self.assertIs(type(raised.exception), kind)
            self.assertEqual((str(raised.exception), raised.exception.exit_status), (message, status))

    def test_lines_arrive_in_pieces(self) -> None:
        decode = json_lines()
        text = (json.dumps(recorded.LOGS) + "\n").encode()
        found = [it for at in range(0, len(text) * 2, 7) for it in decode((text * 2)[at : at + 7])]
        self.assertEqual(found, [recorded.LOGS] * 2)
        with self.assertRaises(boxbuild.NameNotFoundError):
            list(decode(json.dumps(recorded.FAILURE).encode() + b"\n"))

    def test_a_line_without_an_end(self) -> None:
        decode = json_lines()
        with self.assertRaisesRegex(boxbuild.BoxbuildError, "a line of more than 64 MiB"):
            for _ in range(9):
                list(decode(b" " * (8 << 20)))

    def test_changes_of_a_directory(self) -> None:
        stream = files.watch(Handle("x"), "/work")
        before = recorded.listing(["a\nb", "old"])
        after = recorded.listing(["a\nb", "new"])
        after["entries"][0]["size"] = 2
        self.assertEqual(done(stream.poll(), before), [], "the first listing is no change")
        expected = [FileChange("modified", "a\nb"), FileChange("created", "new"), FileChange("deleted", "old")]
        self.assertEqual(done(stream.poll(), after), expected)
        self.assertEqual(done(stream.poll(), after), [])

    def test_a_listing(self) -> None:
        entries = done(files.list_files(Handle("x"), "/"), recorded.LISTING)
        self.assertEqual([(it.name, oct(it.mode), it.is_dir) for it in entries], [("caf\udce9", "0o100644", False), ("d", "0o40755", True)])

    def test_a_box_cannot_lie_in_a_listing(self) -> None:
        wrong: List[Dict[str, Any]] = [{"name": name} for name in ("", ".", "..", "/", "../../.bashrc", "a\0", "x" * 256, 1)]
        wrong += [{"name_base64": name} for name in ("Li4=", "Li4vYQ==", "!", "")]
        wrong += [{"size": size} for size in (-1, 1 << 63, "1", 1.5, True)]
        wrong += [{"mtime": 1 << 63}, {"mode": "07777"}, {"mode": "x"}, {"type": "door"}]
        for changed in wrong:
            listing = recorded.listing(["a"])
            listing["entries"][0].update(changed)
            for operation in (files.list_files(Handle("x"), "/"), files.watch(Handle("x"), "/").poll()):
                with self.assertRaisesRegex(boxbuild.BoxbuildError, "^the box has sent a listing that is malformed$", msg=str(changed)):
                    done(operation, listing)
        with self.assertRaisesRegex(boxbuild.BoxbuildError, "10000"):
            done(files.list_files(Handle("x"), "/"), {**recorded.LISTING, "truncated": True})

    def test_what_a_box_prints_is_no_terminal_sequence(self) -> None:
        line = "\x1b[2Jerror: \u202eforged" + 600 * "x"
        error = CommandError(Result.of({**recorded.EXEC, "stderr": line, "argv": ["a\nb"]}))  # type: ignore[typeddict-item]
        self.assertTrue(str(error).isprintable(), str(error))
        self.assertLess(len(str(error)), 600)
        self.assertIn("`a\ufffdb` has ended with the status 3: \ufffd[2Jerror: \ufffdforged", str(error))

    def test_help_for_python(self) -> None:
        for hint in ("KVM is missing; `--emulated` cannot be used with --detach; `boxlaunch doctor` …", "run the box slowly without KVM: `x`"):
            error = failed({"errors": [{**recorded.FAILURE["errors"][1], "code": "kvm-unavailable", "help": hint}]})
            self.assertIn("without KVM: boxbuild.run(BoxConfig(…, emulated=True), command)", error.hint or "")
            self.assertNotIn("`--emulated`", error.hint or "")

    def test_the_content_of_a_file(self) -> None:
        read = files.read(Handle("x"), "/a/link", max_size=5)
        self.assertEqual(next(read).argv[1:], ["cp", "x:/a/link", "-"])
        copying = read.send(Output(0, packed("link", link="../b")))
        self.assertEqual(copying.argv[1:], ["cp", "x:/a/../b", "-"])
        self.assertEqual(result(read, Output(0, packed("b" * 200, b"hello"))), b"hello")

    def test_a_file_that_is_too_large_or_none(self) -> None:
        cases = [
            (Output(0, packed("b", b"hellos")), "at most 5 are read"),
            (Output(-9, packed("b", (256 << 10) * b"x")), "at most 5 are read"),
            (Output(0, packed("b")), "is a directory"),
            (Output(0, packed("b", b"hello")[:514]), "malformed"),
            (Output(0, b"\xff" * 2000), "malformed"),
            (Output(0, b""), "malformed"),
            (Output(0, packed("b", b"")[:124] + b"12x" + 400 * b"0"), "malformed"),
        ]
        for output, message in cases:
            steps = files.read(Handle("x"), "/b", max_size=5)
            next(steps)
            with self.assertRaisesRegex(boxbuild.BoxbuildError, message):
                steps.send(output)

    def test_a_link_to_itself(self) -> None:
        steps = files.read(Handle("x"), "/b")
        next(steps)
        with self.assertRaisesRegex(boxbuild.IoError, "too many links"):
            for _ in range(8):
                steps.send(Output(0, packed("b", link="b")))

    def test_an_error_of_a_file(self) -> None:
        steps = files.read(Handle("x"), "/b")
        next(steps)
        # The box answers, so it is the file.
        self.assertEqual(steps.send(Output(1, b"", b"error: /b: no such file\n")).argv[1:], ["ls", "--json", "x:/"])
        with self.assertRaisesRegex(boxbuild.IoError, "^/b: no such file$"):
            steps.send(Output(0, json.dumps(recorded.LISTING).encode()))

    def test_the_address_of_a_port(self) -> None:
        steps = look.url(Handle("x"), 8000)
        next(steps)
        with self.assertRaises(StopIteration) as done:
            steps.send(Output(0, json.dumps(recorded.PORT).encode()))
        self.assertEqual(done.exception.value, "http://127.0.0.1:40123")
        steps = look.url(Handle("x"), 81)
        next(steps)
        with self.assertRaisesRegex(LookupError, "ports=\\[81\\]"):
            steps.send(Output(0, json.dumps(recorded.PORT).encode()))

    def test_a_box_of_the_store_is_not_one_that_runs(self) -> None:
        boxes = {"boxes": [{"name": "hello-2", "state": "running"}]}
        started = Owner("hello", {"name": "hello"})  # type: ignore[arg-type]
        self.assertEqual(done(look.status(started), boxes), "ended")
        with self.assertRaises(boxbuild.NameNotFoundError) as raised:
            done(look.status(Owner("hello")), boxes)
        self.assertEqual(raised.exception.hint, "`boxlaunch ps -a` lists the started boxes")
