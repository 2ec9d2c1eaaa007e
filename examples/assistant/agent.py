"""An agent that makes the tests of a project pass.

It takes its task from /task, lets a model choose what to read and to write (by the API of chat completions, which
most servers of models have), changes the project's files, and runs the tests in the business component, until they
pass. It needs nothing but Python's standard library: copy it as the start of an agent of your own.
"""

import errno
import http.client
import json
import os
import secrets
import stat
import subprocess
import sys
import traceback
import urllib.error
import urllib.request
from pathlib import Path

TASK = Path("/task")
PROJECT = Path("/a3s/workspace")
SKILLS = Path("/a3s/skills")

ROUNDS = 12  # answers of the model until the agent gives up
CALLS = 16  # of tools in one answer
PATIENCE = 120  # seconds until an answer of the model begins
TEST_SECONDS = 60  # that the tests may take
SHOWN = 8000  # bytes of the tests' output that the model gets, and characters of its last word
LONGEST = 1 << 20  # bytes of an answer
LONGEST_FILE = 1 << 16  # bytes of a file that the model gets

ROLE = """You make the tests of a project pass. Read its files, change them, and run the tests with the tools that you
have. Write whole files, with paths relative to the project. When the tests pass, say in one sentence what was wrong."""

PATH = {"path": {"type": "string", "description": "relative to the project"}}
TOOLS = {
    "read_file": ("Returns the text of a file of the project.", PATH),
    "write_file": ("Writes a file of the project.", {**PATH, "content": {"type": "string"}}),
    "run_tests": ("Runs the tests; returns their exit status and output.", {}),
}

# Neither through a link, nor waiting for somebody to open the other end of a pipe.
SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# No more can be done on a disk like this, whatever the model proposes.
BROKEN_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}


class Failure(Exception):
    """Why the task has failed, in one sentence."""


def main():
    """Does the task, and returns the exit status."""
    changed = []
    try:
        result = {"ok": True, "summary": work(changed)}
    except Failure as failure:
        result = {"ok": False, "error": str(failure)}
    except Exception as error:
        traceback.print_exc()
        result = {"ok": False, "error": f"nobody expected this: {error!r}"}
    text = json.dumps({**result, "changed": changed}, ensure_ascii=False)
    (TASK / "result.json").write_bytes(text.encode(errors="replace"))
    say("done" if result["ok"] else f"failed: {result['error']}")
    return 0 if result["ok"] else 1


def work(changed):
    """Talks with the model until the tests pass, and returns what it says of it; adds the files that were changed."""
    task = json.loads((TASK / "spec.json").read_text())
    say(f"task {task['id']}: {task['description']}")
    tools = Tools(test_command(task), changed)
    messages = [
        {"role": "system", "content": "\n\n".join([ROLE, *skills()])},
        {"role": "user", "content": task["description"]},
    ]
    for _ in range(ROUNDS):
        answer = ask(messages)
        messages.append(answer)
        calls = answer.get("tool_calls")
        if not calls:
            tools.must_pass()
            return str(answer.get("content") or "")[:SHOWN]
        if len(calls) > CALLS:
            raise Failure(f"the model has called {len(calls)} tools at once, and may call {CALLS}")
        for call in calls:
            result = tools.use(call["function"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    raise Failure(f"the model was not done after {ROUNDS} answers")


def test_command(task):
    """Returns the program that runs the tests, and its arguments."""
    given = task["input"]
    command = given.get("test") if isinstance(given, dict) else None
    if not command or not isinstance(command, list):
        raise Failure('the input of the task does not say how the tests are run, as {"test": ["node", "test.js"]} does')
    return command


def skills():
    """Returns the text of each skill that the box has."""
    found = sorted(SKILLS.glob("*/SKILL.md"))
    for skill in found:
        say(f"skill {skill.parent.name}")
    return [skill.read_text() for skill in found]


def ask(messages):
    """Sends the conversation to the model, and returns the message that it answers with."""
    declared = [declaration(name, *rest) for name, rest in TOOLS.items()]
    body = {"model": os.environ["MODEL"], "messages": messages, "tools": declared}
    # The host adds the key: see `service` in the Boxfile.
    headers = {"Content-Type": "application/json"}
    url = os.environ["MODEL_URL"] + "/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read(LONGEST))["choices"][0]["message"]
    except urllib.error.HTTPError as error:
        raise Failure(f"asking the model failed with the status {error.code}: {reason(error)}") from error
    except (OSError, http.client.HTTPException) as error:
        raise Failure(f"the model's server does not answer: {error}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise Failure(f"the model's server sent no chat completion: {error!r}") from error


def declaration(name, description, properties):
    """Returns a tool as the model is told of it."""
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def reason(error):
    """Returns why a request was refused: the API's message, or the text of whoever is in between."""
    text = error.read(SHOWN).decode(errors="replace")
    try:
        text = json.loads(text)["error"]["message"]
    except (ValueError, LookupError, TypeError):
        pass
    return " ".join(text.split())


class Tools:
    """What the model can do. All that it says may be wrong, so nothing of it is trusted."""

    def __init__(self, test, changed):
        self.test = test
        self.changed = changed
        self.steps = 0

    def use(self, call):
        """Uses the tool that the model has called, and returns what it shall know of that."""
        name, path = call["name"], ""
        try:
            arguments = json.loads(call["arguments"] or "{}")
            path = str(arguments.get("path", ""))
            if name not in TOOLS:
                raise ValueError(f"there is no tool {name}")
            result = getattr(self, name)(**arguments)
        except OSError as error:
            if error.errno in BROKEN_DISK:
                self.step(name, path, error.strerror)
                raise Failure(f"{path} cannot be written: {error.strerror}") from error
            result = f"error: {error.strerror}"
        except (AttributeError, TypeError, ValueError) as error:
            result = f"error: {error}"
        self.step(name, path, outcome(name, result))
        return result

    def read_file(self, path):
        with os.fdopen(inside(path, os.open(PROJECT / path, os.O_RDONLY | SAFELY)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError(f"{path} is no file")
            text = file.read(LONGEST_FILE + 1)
        if len(text) > LONGEST_FILE:
            raise ValueError(f"{path} has more than {LONGEST_FILE} bytes")
        return text.decode()

    def write_file(self, path, content):
        if os.path.normpath(path) in self.test:
            raise ValueError(f"{path} is the test, which stays as it is")
        target = PROJECT / path
        if ".." in target.parts or not target.is_relative_to(PROJECT) or target == PROJECT:
            raise ValueError(f"{path} is outside of the project")
        target.parent.mkdir(parents=True, exist_ok=True)
        directory = inside(path, os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | SAFELY))
        try:
            replace(directory, target.name, content)
        finally:
            os.close(directory)
        if path not in self.changed:
            self.changed.append(path)
        return "written"

    def run_tests(self):
        # The agent has no node: the business component has.
        command = ["/a3s/bin/box-exec", "-w", PROJECT, "--timeout", str(TEST_SECONDS), *self.test]
        output = b""
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as tests:
            while piece := tests.stdout.read1(1 << 16):  # all of it may be more than there is memory
                output = (output + piece)[-SHOWN:]
        return f"exit status {tests.returncode}\n{output.decode(errors='replace')}"

    def must_pass(self):
        """Runs the tests once more: that they pass is not a thing to take the model's word for."""
        result = self.run_tests()
        self.step("run_tests", "", outcome("run_tests", result))
        if not result.startswith("exit status 0\n"):
            raise Failure(f"the model says that it is done, but the tests fail: {last_line(result)}")

    def step(self, name, path, result):
        self.steps += 1
        say(f"step {self.steps}: {name}{path and ' ' + path}: {result}")


def inside(path, opened):
    """Returns an open file if it is one of the project. The tests could exchange what a path leads to at any time, and so
    could a model by means of them: what is open stays what it is."""
    if Path(os.readlink(f"/proc/self/fd/{opened}")).is_relative_to(PROJECT):
        return opened
    os.close(opened)
    raise ValueError(f"{path} is outside of the project")


def replace(directory, name, content):
    """Writes a file of an open directory so that it is there as a whole or as it was before."""
    draft = f".{name}.{secrets.token_hex(4)}"
    opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=directory)
    try:
        with open(opened, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(opened)
        try:
            os.chmod(draft, os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode & 0o777, dir_fd=directory)
        except FileNotFoundError:
            pass
        os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        os.unlink(draft, dir_fd=directory)
        raise


def outcome(name, result):
    """Returns the result of a tool in a few words, for people."""
    if result.startswith("error: ") or name == "write_file":
        return result
    return last_line(result) if name == "run_tests" else f"{len(result)} characters"


def last_line(text):
    return text.strip().rpartition("\n")[2]


def say(line):
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
