"""What the answers of the programs mean."""

import json
import os
import unittest
from typing import Any
from unittest import mock

import boxbuild
from boxbuild import CommandError, FileChange, Result
from boxbuild._call import Output, answer, json_lines
from boxbuild._operations import files, look
from boxbuild._operations.handle import Handle

from . import recorded


def failed(value: Any, status: int = 1) -> boxbuild.BoxbuildError:
    """Returns the error of a program that has printed an object."""
    try:
        answer(Output(status, json.dumps(value).encode()))
    except boxbuild.BoxbuildError as error:
        return error
    raise AssertionError("no error")


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

    def test_changes_of_a_directory(self) -> None:
        decode = files.watching()
        listings = [
            b"81a4 1 5\na\nb\x0081a4 1 5\nold\x00\x00",
            b"81a4 2 6\na\nb\x0041ed 0 6\nnew\x00\x00",
        ]
        self.assertEqual(list(decode(listings[0])), [], "the first listing is no change")
        expected = [FileChange("modified", "a\nb"), FileChange("created", "new"), FileChange("deleted", "old")]
        self.assertEqual(list(decode(listings[1][:9])) + list(decode(listings[1][9:])), expected)
        self.assertTrue(files.entries_of([b"41ed 0 6\nnew"])["new"].is_dir)

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
        steps = look.status(Handle("hello"))
        next(steps)
        with self.assertRaises(StopIteration) as done:
            steps.send(Output(0, json.dumps({"boxes": [{"name": "hello-2", "state": "running"}]}).encode()))
        self.assertEqual(done.exception.value, "ended")
