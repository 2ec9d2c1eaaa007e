"""An agent that makes the tests of a project pass.

It takes its task from /task, lets a model choose what to read and to write (by the API of chat completions, which
most servers of models have), changes the project's files, and runs the tests in the business component, until they
pass. It activates the skills of the box, also those that are loaded while it works, and continues its conversation if
it has a place to keep it. It needs nothing but Python's standard library: copy it as the start of an agent of your own.
"""

import collections
import contextlib
import errno
import http.client
import json
import os
import re
import secrets
import select
import signal
import stat
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

TASK = Path("/task")
PROJECT = Path("/a3s/workspace")
SKILLS = Path("/a3s/skills")
ALLOWED = Path("/a3s/tools.json")  # the names of tools that the Boxfile allows
SESSION = Path("/a3s/session")  # a volume, if the conversation is to be kept
BOX_EXEC = "/a3s/bin/box-exec"  # runs a command in the business component

ROUNDS = 12  # answers of the model until the agent gives up
CALLS = 16  # of tools in one answer
PATIENCE = 120  # seconds until an answer of the model begins
TOOL_SECONDS = 60  # that the tests, or a tool of a skill, may take
SHOWN = 8000  # bytes of a program's output that the model gets, and characters of a line for people
LONGEST = 1 << 20  # bytes of an answer
LONGEST_FILE = 1 << 16  # bytes of a file that the model gets
LONGEST_FRONT_MATTER = 1 << 14  # characters
LONGEST_SKILLS = 1 << 18  # characters of all skills together
MOST_SKILLS = 128
LONGEST_SESSION = 1 << 18  # bytes of the kept conversation

ROLE = """You make the tests of a project pass. Read its files, change them, and run the tests with the tools that you
have. Write whole files, with paths relative to the project. When the tests pass, say in one sentence what was wrong."""

PATH = {"name": "path", "type": "string", "description": "relative to the project", "required": True}
CONTENT = {"name": "content", "type": "string", "required": True}
TOOLS = {
    "read_file": ("Returns the text of a file of the project.", [PATH]),
    "write_file": ("Writes a file of the project.", [PATH, CONTENT]),
    "run_tests": ("Runs the tests; returns their exit status and output.", []),
}

# Neither through a link, nor waiting for somebody to open the other end of a pipe.
SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | SAFELY
# What a malformed file leads to.
MALFORMED = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
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
    tools.look_for_skills()
    earlier = remembered()
    messages = [{"role": "user", "content": task["description"]}]
    for _ in range(ROUNDS):
        answer = ask(tools, sum(earlier, []) + messages)
        messages.append(answer)
        calls = answer.get("tool_calls")
        if not calls:
            tools.must_pass()
            remember([*earlier, messages])
            return str(answer.get("content") or "")[:SHOWN]
        if len(calls) > CALLS:
            raise Failure(f"the model has called {len(calls)} tools at once, and may call {CALLS}")
        for call in calls:
            result = tools.use(call["function"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        # Skills can be loaded and unloaded at any time. Reading a few small files again is nothing beside an answer.
        messages += [{"role": "user", "content": news} for news in tools.look_for_skills()]
    raise Failure(f"the model was not done after {ROUNDS} answers")


def test_command(task):
    """Returns the program that runs the tests, and its arguments."""
    given = task["input"]
    command = given.get("test") if isinstance(given, dict) else None
    if not command or not isinstance(command, list):
        raise Failure('the input of the task does not say how the tests are run, as {"test": ["node", "test.js"]} does')
    return command


def ask(tools, messages):
    """Sends the conversation to the model, and returns the message that it answers with."""
    system = {"role": "system", "content": "\n\n".join([ROLE, *(skill.text for skill in tools.skills.values())])}
    declared = [declaration(name, tool) for name, tool in tools.offered.items()]
    body = {"model": os.environ["MODEL"], "messages": [system, *messages], "tools": declared}
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


def declaration(name, tool):
    """Returns a tool as the model is told of it."""
    function = {"name": name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def reason(error):
    """Returns why a request was refused: the API's message, or the text of whoever is in between."""
    text = error.read(SHOWN).decode(errors="replace")
    try:
        text = json.loads(text)["error"]["message"]
    except (ValueError, LookupError, TypeError):
        pass
    return " ".join(str(text).split())


class Tool(NamedTuple):
    """A tool that the model may call."""

    description: str
    parameters: dict  # a JSON Schema
    program: Path | None = None  # of a skill; the others are methods of `Tools`
    variables: dict = {}  # each parameter's variable, for the program


class Skill(NamedTuple):
    """What a skill brings."""

    text: str  # for the model
    tools: dict  # each name's tool
    problem: str = ""  # why it has no tools


def offer(skills):
    """Returns the tools that the Boxfile allows. Who may run the tests may run what the model has written, so that needs
    `bash`, as the programs of skills do. No tool of a skill replaces one of the agent's own, or one of another skill."""
    try:
        allowed = json.loads(ALLOWED.read_text())
    except FileNotFoundError:
        allowed = [*TOOLS, "bash"]
    own = {name: Tool(text, schema(parameters)) for name, (text, parameters) in TOOLS.items()}
    offered = {name: tool for name, tool in own.items() if {"run_tests": "bash"}.get(name, name) in allowed}
    for name, tool in (it for skill in skills.values() for it in skill.tools.items()):
        if name not in TOOLS and "bash" in allowed:
            offered.setdefault(name, tool)
    return offered


def schema(parameters):
    """Returns the JSON Schema of a tool's parameters, which are such a schema, or a list of names and types."""
    if isinstance(parameters, dict):
        return {"type": "object", "properties": {}, **parameters}
    properties = {it["name"]: {key: it[key] for key in it if key not in ("name", "required")} for it in parameters}
    required = [it["name"] for it in parameters if it.get("required")]
    return {"type": "object", "properties": properties, "required": required}


def is_schema_of_an_object(given):
    """Returns whether this is a JSON Schema of an object that has each property which it requires."""
    properties, required = given["properties"], given.get("required", [])
    if given["type"] != "object" or not isinstance(properties, dict) or not isinstance(required, list):
        return False
    is_named = all(isinstance(it, str) for it in [*properties, *required])
    return is_named and all(isinstance(it, (dict, bool)) for it in properties.values()) and {*required} <= {*properties}


def find_skills(paths):
    """Returns the skills of these `SKILL.md`, by name. If one cannot be read, the model gets the reason as its text."""
    found, room = {}, LONGEST_SKILLS
    for path in paths:
        name = path.parent.name
        try:
            skill = read_skill(path.parent)
            if len(skill.text) > room:
                raise ValueError(f"all skills together have more than {LONGEST_SKILLS} characters")
        except FileNotFoundError:
            continue  # it was unloaded just now
        except (OSError, ValueError) as error:
            skill = Skill(f"The skill {name} cannot be read: {error}", {}, str(error))
        room -= len(skill.text)
        found[name] = skill
    return found


def read_skill(folder):
    """Returns the skill of a directory. Without a definition that this agent understands, it is a text for the model."""
    text = read(folder, "SKILL.md").decode(errors="replace")
    try:
        about, body = front_matter(text)
        prompt = about.get("system_prompt")
        texts = [read(folder, prompt).decode(errors="replace").strip()] if prompt else []
        heading = f"The skill {folder.name}: {about.get('description')}"
        tools = dict(tool_of(folder, it) for it in about.get("tools") or [])
        return Skill("\n\n".join([heading, *texts, body.strip()]), tools)
    except MALFORMED as error:
        return Skill(text, {}, str(error) if isinstance(error, (OSError, ValueError)) else repr(error))


def tool_of(folder, about):
    """Returns the name of a skill's tool, and the tool."""
    name, backend, script = str(about.get("name")), about.get("backend") or {}, about.get("script")
    path = Path(script or about.get("bin") or (backend.get("type") == "binary" and backend.get("path")) or "")
    of_image = path.is_absolute() and not script
    is_own = Path(os.path.realpath(folder / path)).is_relative_to(os.path.realpath(folder))
    if not path.parts or not (of_image or is_own):
        raise ValueError(f"its tool {name} names no program of the skill")
    if not re.fullmatch(r"[\w-]{1,64}", name, re.ASCII):
        raise ValueError(f"{name} is no name of a tool")
    parameters = parameters_of(name, about)
    variables = {it: "TOOL_ARG_" + re.sub(r"\W", "_", it.upper(), flags=re.ASCII) for it in parameters["properties"]}
    if len(set(variables.values())) < len(variables):
        raise ValueError(f"two parameters of its tool {name} have the same variable")
    return name, Tool(str(about.get("description") or ""), parameters, folder / path, variables)


def parameters_of(name, about):
    """Returns the JSON Schema of the parameters of a skill's tool."""
    with contextlib.suppress(LookupError, TypeError):
        parameters = schema(about.get("parameters") or [])
        if is_schema_of_an_object(parameters):
            return parameters
    raise ValueError(f"the parameters of its tool {name} are no JSON Schema of an object")


class Tools:
    """What the model can do. All that it says may be wrong, so nothing of it is trusted."""

    def __init__(self, test, changed):
        self.test = test
        self.changed = changed
        self.steps = 0
        self.skills = {}
        self.has_too_many_skills = False
        self.offered = offer({})

    def look_for_skills(self):
        """Activates the skills that the box has now. Returns a sentence for the model about each that has changed."""
        paths = sorted(SKILLS.glob("*/SKILL.md"))
        if len(paths) > MOST_SKILLS and not self.has_too_many_skills:
            self.has_too_many_skills = True
            say(f"more than {MOST_SKILLS} skills: the others are left out")
        before, self.skills = self.skills, find_skills(paths[:MOST_SKILLS])
        self.offered = offer(self.skills)
        names = [it for it in sorted({*before, *self.skills}) if before.get(it) != self.skills.get(it)]
        return [self.tell(name, "loaded" if name in self.skills else "unloaded") for name in names]

    def tell(self, name, what):
        """Tells people that a skill was loaded or unloaded, and returns a sentence that tells the model."""
        skill = self.skills.get(name)
        problem = f", as a text only: {skill.problem}" if skill and skill.problem else ""
        say(f"skill {name} {what}{problem}")
        return f"The skill {name} was {what}." + ("" if skill else " Its rules and tools are gone.")

    def use(self, call):
        """Uses the tool that the model has called, and returns what it shall know of that."""
        name, path = call["name"], ""
        try:
            arguments = json.loads(call["arguments"] or "{}")
            path = str(arguments.get("path", ""))
            if name not in self.offered:
                raise ValueError(f"there is no tool {name}")
            program = self.offered[name].program
            result = self.run_tool(name, arguments) if program else getattr(self, name)(**arguments)
        except OSError as error:
            if error.errno in BROKEN_DISK:
                self.step(name, path, error.strerror)
                raise Failure(f"{path} cannot be written: {error.strerror}") from error
            result = f"error: {error.strerror}"
        except (AttributeError, TypeError, ValueError, RecursionError) as error:
            result = f"error: {error}"
        self.step(name, path, outcome(name, result))
        return result

    def read_file(self, path):
        return read(PROJECT, path).decode()

    def write_file(self, path, content):
        tests = [PROJECT / str(word) for word in self.test]
        with folder_of(PROJECT, path, make=True) as directory:
            if str(PROJECT / path) in {*map(os.path.normpath, tests), *map(os.path.realpath, tests)}:
                raise ValueError(f"{path} is the test, which stays as it is")
            replace(directory, Path(path).name, content)
        if path not in self.changed:
            self.changed.append(path)
        return "written"

    def run_tests(self):
        # The agent has no node: the business component has. It ends the tests, so it gets a moment more.
        command = [BOX_EXEC, "-w", PROJECT, "--timeout", str(TOOL_SECONDS), *self.test]
        return "\n".join(run(command, TOOL_SECONDS + 10))

    def run_tool(self, name, arguments):
        """Runs the program of a skill's tool, here in the agent's component. It gets the declared arguments."""
        tool = self.offered[name]
        missing = [it for it in tool.parameters.get("required", []) if it not in arguments]
        if missing:
            raise ValueError(f"{missing[0]} is missing")
        given = {key: arguments[key] for key in tool.variables if key in arguments}
        texts = {tool.variables[key]: it if isinstance(it, str) else json.dumps(it) for key, it in given.items()}
        env = {**os.environ, **texts, "TOOL_ARGS": json.dumps(given)}
        ended, output = run([tool.program], TOOL_SECONDS, cwd=PROJECT, env=env)
        return output if ended == "exit status 0" else f"error: {ended}\n{output}"

    def must_pass(self):
        """Runs the tests once more: that they pass is not a thing to take the model's word for."""
        result = self.run_tests()
        self.step("run_tests", "", outcome("run_tests", result))
        if not result.startswith("exit status 0\n"):
            raise Failure(f"the model says that it is done, but the tests fail: {last_line(result)}")

    def step(self, name, path, result):
        self.steps += 1
        say(f"step {self.steps}: {name}{path and ' ' + path}: {result}")


@contextlib.contextmanager
def folder_of(root, path, make=False):
    """Opens the directory of a file below `root`, which is the project, for example. It follows no link: the tests could
    exchange what a path leads to at any time, and so could a model by means of them."""
    where = "project" if root == PROJECT else "skill"
    if Path(path).is_absolute():
        raise ValueError(f"{path} is not relative to the {where}")
    if ".." in Path(path).parts or not Path(path).name:
        raise ValueError(f"{path} is outside of the {where}")
    opened = os.open(root, DIRECTORY)
    try:
        for name in Path(path).parts[:-1]:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=opened)
            above, opened = opened, os.open(name, DIRECTORY, dir_fd=opened)
            os.close(above)
        yield opened
    finally:
        os.close(opened)


def read(root, path, longest=LONGEST_FILE, private=False):
    """Returns the bytes of a file below `root`. Nobody else may have written a private one."""
    with folder_of(root, path) as directory:
        opened = os.open(Path(path).name, os.O_RDONLY | SAFELY, dir_fd=directory)
    with os.fdopen(opened, "rb") as file:
        it = os.fstat(opened)
        if not stat.S_ISREG(it.st_mode):
            raise ValueError(f"{path} is no file")
        if private and (it.st_uid, it.st_nlink, it.st_mode & 0o022) != (os.geteuid(), 1, 0):
            raise ValueError(f"others may have written {path}")
        text = file.read(longest + 1)
    if len(text) > longest:
        raise ValueError(f"{path} has more than {longest} bytes")
    return text


def replace(directory, name, content, private=False):
    """Writes a file of an open directory so that it is there as a whole or as it was before."""
    draft, mode = f".{name}.{secrets.token_hex(4)}", 0o600 if private else 0o644
    opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode, dir_fd=directory)
    try:
        with open(opened, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            with contextlib.suppress(FileNotFoundError):
                before = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
                if stat.S_ISREG(before) and not private:
                    os.fchmod(opened, before & 0o777)
            os.fsync(opened)
        os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        os.unlink(draft, dir_fd=directory)
        raise


def run(command, seconds, **options):
    """Runs a program until its time is up, and ends what it leaves in its process group. Returns how it ended, and the
    end of its output."""
    output, has_ended, deadline = b"", False, time.monotonic() + seconds
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "bufsize": 0}
    with subprocess.Popen(command, start_new_session=True, **streams, **options) as program:
        readable = [program.stdout]
        while not has_ended and (left := deadline - time.monotonic()) > 0:
            # It stays a zombie, so that the number of its group is no other's.
            has_ended = os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            if select.select(readable, [], [], 0 if has_ended else min(left, 0.02))[0]:
                piece = program.stdout.read(1 << 16)
                output = (output + piece)[-SHOWN:]  # all of it may be more than there is memory
                readable = readable if piece else []
        os.killpg(program.pid, signal.SIGKILL)
        ended = f"exit status {program.wait()}" if has_ended else f"killed after {seconds} seconds"
    return ended, output.decode(errors="replace")


def remembered():
    """Returns the completed tasks of this session, each as its messages, the oldest first."""
    try:
        tasks = json.loads(read(SESSION, "tasks.json", LONGEST_SESSION, private=True))
        if not all(isinstance(it, list) and all(map(is_kept, it)) for it in tasks):
            raise ValueError("its file has something else than messages")
    except FileNotFoundError:
        return []
    except MALFORMED as error:
        say(f"the session begins anew: {error}")
        return []
    say(f"tasks before in this session: {len(tasks)}")
    return tasks


def is_kept(message):
    """Returns whether this is a message as the agent keeps them: not one of the system, for example."""
    calls = message.get("tool_calls") or []
    texts = [text for it in calls for text in (it["id"], it["function"]["name"], it["function"]["arguments"])]
    if message["role"] != "assistant" or message.get("content") is not None:
        texts.append(message["content"])
    is_typed = isinstance(calls, list) and all(isinstance(text, str) for text in texts)
    return is_typed and message["role"] in ("user", "assistant", "tool")


def remember(tasks):
    """Keeps the completed tasks, without the oldest if they are too long."""
    if not SESSION.is_dir():
        return
    while len(text := json.dumps(tasks)) > LONGEST_SESSION:
        tasks = tasks[1:]
    try:
        with folder_of(SESSION, "tasks.json") as directory:
            replace(directory, "tasks.json", text, private=True)
    except OSError as error:
        say(f"the session is not kept: {error.strerror}")


def front_matter(text):
    """Returns the values of a `SKILL.md`, which are between its first two lines `---`, and the text below."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0] != "---" or "---" not in lines[1:]:
        raise ValueError("it does not begin with a front matter")
    end = lines.index("---", 1)
    if sum(map(len, lines[1:end])) > LONGEST_FRONT_MATTER:
        raise ValueError(f"its front matter has more than {LONGEST_FRONT_MATTER} characters")
    yaml = Yaml(lines[1:end])
    values = yaml.block(0)
    if yaml.lines:
        raise ValueError(f"this does not belong here: {yaml.lines[0].strip()}")
    return values, "\n".join(lines[end + 1 :])


class Yaml:
    """Reads the YAML that skills need: mappings, lists and scalars, also `[…]` and `{…}` within one line."""

    # Each pattern passes over a text once, whatever is in it: a quote without an end goes to the end of the text.
    QUOTED = r"""(?:"(?:\\.|[^"\\])*(?:"|\\?$)|'(?:''|[^'])*(?:'|$))"""
    COMMENT = re.compile(rf"((?<![^\s\[{{,:]){QUOTED})|(?<!\S)#.*")
    KEY = re.compile(r"""(["']?)([\w$](?:[^:"'#]*[^:"'#\s])?)\1\s*:(?:\s+(.*))?""")
    FLOW = re.compile(rf"""{QUOTED}|[^\s\[\]{{}},:"'](?:[^\[\]{{}},:]|:(?!\s))*""")
    TYPED = re.compile(r"true|false|null|-?(0|[1-9]\d*)(\.\d+)?")

    def __init__(self, lines):
        self.lines = collections.deque(lines)

    def next(self):
        """Returns the indentation and the text of the next line that is neither empty nor a comment."""
        while self.lines and not self.lines[0].split("#")[0].strip():
            self.lines.popleft()
        return (indentation(self.lines[0]), self.lines[0].strip()) if self.lines else (-1, "")

    def is_item(self, indent):
        return self.next()[0] == indent and (self.next()[1] + " ").startswith("- ")

    def block(self, least):
        """Reads the value whose lines are indented by at least `least`. Without one, it is null."""
        indent, text = self.next()
        if indent < least:
            return None
        if not self.is_item(indent):
            is_mapping = self.KEY.fullmatch(text)
            return self.mapping(indent) if is_mapping else self.scalar(self.lines.popleft(), least - 1)
        items = []
        while self.is_item(indent):
            self.lines[0] = self.lines[0].replace("-", " ", 1)  # what follows is indented
            items.append(self.block(indent + 1))
        return items

    def mapping(self, indent):
        values = {}
        while self.next()[0] == indent and (found := self.KEY.fullmatch(self.next()[1])):
            if found[2] in values:
                raise ValueError(f"{found[2]} is there twice")
            self.lines.popleft()
            text = self.COMMENT.sub(r"\1", found[3] or "").strip()
            if text:
                values[found[2]] = self.scalar(text, indent)
            else:
                values[found[2]] = self.block(indent if self.is_item(indent) else indent + 1)
        return values

    def scalar(self, text, indent):
        """Reads a text whose further lines are indented by more than `indent`. All of them become one line."""
        more = []
        while self.lines and (not self.lines[0].strip() or indentation(self.lines[0]) > indent):
            more.append(self.lines.popleft())
        if re.fullmatch(r"[|>][+-]?", text):
            return " ".join(" ".join(more).split())
        return self.plain(" ".join(" ".join(self.COMMENT.sub(r"\1", line) for line in [text, *more]).split()))

    def plain(self, text):
        """Returns the value of a scalar, or of a `[…]` or `{…}`."""
        if text[:1] in ("[", "{"):
            return json.loads(self.FLOW.sub(lambda found: json.dumps(self.plain(found[0].strip())), text))
        if re.fullmatch(r"'(''|[^'])*'", text):
            return text[1:-1].replace("''", "'")
        if text[:1] == '"' or self.TYPED.fullmatch(text):
            return json.loads(text)
        if text[:1] in tuple("'&*!|>%@`]}#,") or ": " in text or text.endswith(":"):
            raise ValueError(f"this agent cannot read {text}")
        return text


def indentation(line):
    return len(line) - len(line.lstrip(" "))


def outcome(name, result):
    """Returns the result of a tool in a few words, for people."""
    if result.startswith("error: ") or name == "write_file":
        return result.partition("\n")[0]
    return last_line(result) if name == "run_tests" else f"{len(result)} characters"


def last_line(text):
    return text.strip().rpartition("\n")[2]


def say(line):
    """Prints a line for people. Much of it is the model's, so nothing in it begins another line or moves the cursor."""
    text = "".join(it if it.isprintable() else ascii(it)[1:-1] for it in line[:SHOWN])
    coding = sys.stdout.encoding or "utf-8"
    print(text.encode(coding, errors="replace").decode(coding), flush=True)


if __name__ == "__main__":
    sys.exit(main())
