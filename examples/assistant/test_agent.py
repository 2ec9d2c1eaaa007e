"""Tests of agent.py without a box: a server plays the model, and a script plays box-exec."""

import contextlib
import io
import json
import os
import stat
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock

import agent

BOX_EXEC = '#!/bin/sh\ncd "$2"; shift 4; exec "$@"\n'
TEST = 'test -e right || { echo "right is missing"; exit 1; }\n'
GREET = """---
name: greet
description: Greets somebody.
system_prompt: prompts/system.md
tools:
  - name: greet
    description: Prints a greeting.
    script: tools/greet.sh
    parameters:
      - name: name
        type: string
        required: true
      - name: times
        type: integer
  - name: fail # a JSON Schema this time
    bin: tools/fail.sh
    parameters:
      type: object
      properties: {why: {type: string}}
      required: [why]
---

# Greet

Greet everybody.
"""
SCRIPTS = {
    "greet.sh": '#!/bin/sh\necho "$TOOL_ARG_NAME, $TOOL_ARG_TIMES times: $TOOL_ARGS"; pwd\n',
    "fail.sh": '#!/bin/sh\necho "because of $TOOL_ARG_WHY" >&2; exit 3\n',
}


class Model(BaseHTTPRequestHandler):
    """Answers with the next of the server's answers, and keeps what it was asked."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        status, answer = 200, self.server.answers.pop(0)
        if callable(answer):
            answer = answer()
        if isinstance(answer, tuple):
            status, answer = answer
        else:
            answer = json.dumps({"choices": [{"message": {"role": "assistant", **answer}}]})
        self.send_response(status)
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_):
        pass


def call(name, /, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}


REPAIR = call("write_file", path="right", content="x")
DONE = {"content": "It was missing."}
NESTED = '{"error": {"message": {"a": 1}}}'


class Agent(unittest.TestCase):
    def setUp(self):
        at = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.project, self.skills, self.session, self.allowed = (at / it for it in ("p", "skills", "session", "tools.json"))
        for folder in (self.project, self.skills):
            folder.mkdir()
        (self.project / "test.sh").write_text(TEST)
        self.write(at / "box-exec", BOX_EXEC)
        task = {"id": "t-1", "description": "Repair it.", "input": {"test": ["sh", "test.sh"]}}
        (at / "spec.json").write_text(json.dumps(task))
        places = {"TASK": at, "PROJECT": self.project, "SKILLS": self.skills, "SESSION": self.session}
        more = {"ALLOWED": self.allowed, "BOX_EXEC": at / "box-exec"}
        self.enterContext(mock.patch.multiple(agent, **places, **more))
        self.result = at / "result.json"
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
        self.addCleanup(self.server.server_close)
        threading.Thread(target=self.server.serve_forever, args=(0.01,)).start()
        self.addCleanup(self.server.shutdown)
        url = f"http://127.0.0.1:{self.server.server_port}"
        self.enterContext(mock.patch.dict(os.environ, {"MODEL": "m", "MODEL_URL": url}))

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def load(self, name="greet", text=GREET):
        for script, content in SCRIPTS.items():
            self.write(self.skills / name / "tools" / script, content)
        self.write(self.skills / name / "prompts/system.md", "Be polite.\n")
        self.write(self.skills / name / "SKILL.md", text.replace("name: greet\ndesc", f"name: {name}\ndesc"))

    def unload(self, name):
        (self.skills / name).rename(self.skills.parent / f"{name}.unloaded")

    def run_with(self, *answers):
        """Runs the agent. Returns its result, its lines, and the requests of the model."""
        self.server.asked, self.server.answers = [], list(answers)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = agent.main()
        result = json.loads(self.result.read_text())
        self.assertEqual(status, 0 if result["ok"] else 1)
        self.assertEqual(self.server.answers, [])
        return result, printed.getvalue().splitlines(), self.server.asked

    def result_of(self, *answers):
        """Returns what the model got for its last call before it repaired the project."""
        _, _, asked = self.run_with(*answers, REPAIR, DONE)
        return asked[len(answers)]["messages"][-1]["content"]

    def names(self, request):
        return [it["function"]["name"] for it in request["tools"]]


class Skills(Agent):
    def test_a_skill_is_activated_and_deactivated_between_two_answers(self):
        def load():
            self.load()
            return call("read_file", path="test.sh")

        def unload():
            self.unload("greet")
            return call("read_file", path="test.sh")

        greet = call("greet", name="Ada", times=2)
        _, lines, asked = self.run_with(load, greet, unload, greet, REPAIR, DONE)
        own = ["read_file", "write_file", "run_tests"]
        self.assertEqual([self.names(it) == own for it in asked], [True, False, False, True, True, True])
        self.assertEqual(self.names(asked[1]), [*own, "greet", "fail"])
        systems = [it["messages"][0]["content"] for it in asked]
        self.assertIn("The skill greet: Greets somebody.\n\nBe polite.\n\n# Greet\n", systems[1])
        self.assertEqual((systems[0], systems[3]), (agent.ROLE, agent.ROLE))
        contents = [it.get("content") for it in asked[-1]["messages"]]
        self.assertIn("The skill greet was loaded.", contents)
        self.assertIn("The skill greet was unloaded. Its rules and tools are gone.", contents)
        self.assertIn(f'Ada, 2 times: {{"name": "Ada", "times": 2}}\n{self.project}\n', contents)
        self.assertIn("error: there is no tool greet", contents)
        self.assertIn("skill greet loaded", lines)
        self.assertIn("skill greet unloaded", lines)

    def test_both_forms_of_parameters_are_passed_on(self):
        self.load()
        _, _, asked = self.run_with(REPAIR, DONE)
        greet, fail = (it["function"]["parameters"] for it in asked[0]["tools"][3:])
        properties = {"name": {"type": "string"}, "times": {"type": "integer"}}
        self.assertEqual(greet, {"type": "object", "properties": properties, "required": ["name"]})
        properties = {"why": {"type": "string"}}
        self.assertEqual(fail, {"type": "object", "properties": properties, "required": ["why"]})

    def test_a_tool_that_fails_says_why(self):
        self.load()
        self.assertEqual(self.result_of(call("fail", why="rain")), "error: exit status 3\nbecause of rain\n")
        self.assertEqual(self.result_of(call("fail")), "error: why is missing")
        (self.skills / "greet/tools/greet.sh").chmod(0o644)
        self.assertEqual(self.result_of(call("greet", name="x")), "error: Permission denied")
        self.assertEqual(self.result_of(call("fail", why="a\0b")), "error: embedded null byte")

    def test_a_tool_has_a_time_limit_and_a_bound_of_its_output(self):
        self.load()
        self.write(self.skills / "greet/tools/fail.sh", "#!/bin/sh\nhead -c 100000 /dev/zero | tr '\\0' x; echo end\n")
        result = self.result_of(call("fail", why="x"))
        self.assertEqual((len(result), result[-5:]), (agent.SHOWN, "xend\n"))
        self.write(self.skills / "greet/tools/fail.sh", "#!/bin/sh\necho begins; sleep 100 & sleep 100\n")
        with mock.patch.object(agent, "TOOL_SECONDS", 1):
            self.assertEqual(self.result_of(call("fail", why="x")), "error: killed after 1 seconds\nbegins\n")

    def test_what_a_tool_leaves_is_ended_with_it(self):
        self.load()
        for command in ("sleep 100", "yes"):
            self.write(self.skills / "greet/tools/fail.sh", f"#!/bin/sh\n{command} &\necho $! >left\n")
            before = time.monotonic()
            self.assertNotIn("error: ", self.result_of(call("fail", why="x")))
            self.assertLess(time.monotonic() - before, 30)
            left = Path("/proc", (self.project / "left").read_text().strip(), "stat")
            # Its new parent may be slow to take notice of its end.
            self.assertTrue(not left.exists() or ") Z " in left.read_text())

    def test_a_tool_gets_no_argument_that_it_does_not_declare(self):
        self.load()
        result = self.result_of(call("greet", name="Ada", Name="Eve", times=1, more=[7]))
        self.assertEqual(result, f'Ada, 1 times: {{"name": "Ada", "times": 1}}\n{self.project}\n')
        self.load(text=GREET.replace("name: times", "name: NAME"))
        _, lines, _ = self.run_with(DONE)
        text = "skill greet loaded, as a text only: two parameters of its tool greet have the same variable"
        self.assertIn(text, lines)

    def test_parameters_that_are_no_schema_make_a_skill_a_text(self):
        schema = "type: object\n      properties: {why: {type: string}}\n      required: [why]"
        for parameters in (
            "properties: [x]",
            "properties: {w: string}",
            "properties:",
            "type: string",
            "required: true",
            "required: [[why]]",
            schema.replace("[why]", "[why, when]"),
            "- x",
            "- type: string",
            "- name: 7",
            "- name: [x]",
        ):
            self.load(text=GREET.replace(schema, parameters))
            _, lines, asked = self.run_with(DONE)
            text = "the parameters of its tool fail are no JSON Schema of an object"
            self.assertIn(f"skill greet loaded, as a text only: {text}", lines, parameters)
            self.assertEqual(len(asked[0]["tools"]), 3, parameters)

    def test_a_tool_of_a_skill_needs_bash(self):
        self.load(text=GREET.replace("name: greet\n    d", "name: write_file\n    d"))
        for allowed, names in {'["read_file"]': ["read_file"], '["bash"]': ["run_tests", "fail"]}.items():
            self.allowed.write_text(allowed)
            self.assertEqual(self.names(self.run_with(DONE)[2][0]), names)

    def test_a_program_of_a_tool_is_a_file_of_the_skill(self):
        self.load()
        os.symlink("/bin/true", self.skills / "greet/tools/link")
        for program in ("/bin/true", "tools/link", "../greet2/x", "."):
            text = GREET.replace("tools/greet.sh", program) if program != "." else GREET.replace("script:", "url:")
            self.load(text=text)
            with self.assertRaisesRegex(ValueError, "its tool greet names no program of the skill"):
                agent.tool_of(self.skills / "greet", agent.front_matter(text)[0]["tools"][0])
        image = {"name": "true", "bin": "/bin/true"}
        self.assertEqual(agent.tool_of(self.skills / "greet", image)[1].program, Path("/bin/true"))

    def test_a_skill_is_read_through_no_link_and_within_bounds(self):
        (self.skills.parent / "secret").write_text("s3cret")
        for name in ("file", "folder", "fifo", "long", "prompt", "up", "absolute"):
            self.load(name)
            (self.skills / name / "SKILL.md").unlink()
        os.symlink("../../secret", self.skills / "file/SKILL.md")
        os.mkfifo(self.skills / "fifo/SKILL.md")
        (self.skills / "long/SKILL.md").write_text((agent.LONGEST_FILE + 1) * "x")
        (self.skills / "prompt/prompts").rename(self.skills.parent / "outside")
        os.symlink(self.skills.parent / "outside", self.skills / "prompt/prompts")
        self.load("more")
        (self.skills / "folder").rename(self.skills.parent / "elsewhere")
        self.write(self.skills.parent / "elsewhere/SKILL.md", GREET)
        os.symlink("../elsewhere", self.skills / "folder")
        for name, prompt in {"prompt": "prompts/system.md", "up": "../../secret", "absolute": "/proc/self/environ"}.items():
            self.write(self.skills / name / "SKILL.md", GREET.replace("prompts/system.md", prompt))
        _, lines, asked = self.run_with(DONE)
        for line in (
            "absolute loaded, as a text only: /proc/self/environ is not relative to the skill",
            "fifo loaded, as a text only: SKILL.md is no file",
            "file loaded, as a text only: [Errno 40] Too many levels of symbolic links: 'SKILL.md'",
            f"folder loaded, as a text only: [Errno 20] Not a directory: '{self.skills}/folder'",
            f"long loaded, as a text only: SKILL.md has more than {agent.LONGEST_FILE} bytes",
            "more loaded",
            "prompt loaded, as a text only: [Errno 20] Not a directory: 'prompts'",
            "up loaded, as a text only: ../../secret is outside of the skill",
        ):
            self.assertIn(f"skill {line}", lines)
        system = asked[0]["messages"][0]["content"]
        self.assertNotIn("s3cret", system)
        self.assertIn(f"The skill long cannot be read: SKILL.md has more than {agent.LONGEST_FILE} bytes", system)

    def test_the_model_gets_a_bounded_number_of_skills_and_of_their_characters(self):
        for name in "abc":
            self.load(name)
        self.enterContext(mock.patch.multiple(agent, MOST_SKILLS=2, LONGEST_SKILLS=100))
        _, lines, _ = self.run_with(REPAIR, DONE)
        text = "skill b loaded, as a text only: all skills together have more than 100 characters"
        more = "more than 2 skills: the others are left out"
        self.assertEqual(lines[1:4], [more, "skill a loaded", text])
        self.assertEqual(lines.count(more), 1)
        self.assertFalse(any(it.startswith("skill c") for it in lines))

    def test_a_skill_is_loaded_again_when_it_has_changed(self):
        self.load()

        def change():
            self.load(text=GREET.replace("Greet everybody.", "Greet nobody."))
            return REPAIR

        _, lines, asked = self.run_with(change, DONE)
        self.assertEqual(lines.count("skill greet loaded"), 2)
        self.assertIn("Greet nobody.", asked[1]["messages"][0]["content"])

    def test_what_this_agent_does_not_understand_is_a_text(self):
        self.load(text=GREET.replace("Greets somebody.", "*somebody"))
        self.load("other", text="no front matter")
        self.load("third", text=GREET.replace("tools/greet.sh", "../greet/tools/greet.sh"))
        _, lines, asked = self.run_with(REPAIR, DONE)
        self.assertEqual(len(asked[0]["tools"]), 3)
        self.assertIn("no front matter", asked[0]["messages"][0]["content"])
        self.assertIn("skill greet loaded, as a text only: this agent cannot read *somebody", lines)
        self.assertIn("skill other loaded, as a text only: it does not begin with a front matter", lines)
        self.assertIn("skill third loaded, as a text only: its tool greet names no program of the skill", lines)

    def test_a_tool_of_a_skill_replaces_no_other_tool(self):
        self.load("one", GREET.replace("name: fail", "name: run_tests"))
        self.load("two", GREET.replace("Prints a greeting.", "Is the second."))
        _, _, asked = self.run_with(REPAIR, call("run_tests"), DONE)
        self.assertEqual(self.names(asked[0]), ["read_file", "write_file", "run_tests", "greet", "fail"])
        self.assertNotIn("Is the second.", str(asked[0]["tools"]))
        self.assertEqual(asked[2]["messages"][-1]["content"], "exit status 0\n")

    def test_the_skill_of_the_example_is_understood(self):
        found = list(Path(agent.__file__).resolve().parent.glob("skills/*/SKILL.md"))
        self.assertTrue(found)
        for path in found:
            skill = agent.read_skill(path.parent)
            self.assertEqual((skill.problem, len(skill.tools)), ("", 1), path)


class Yaml(unittest.TestCase):
    def read(self, text):
        return agent.front_matter(f"---\n{text}\n---\n")[0]

    def test_values_are_what_yaml_means(self):
        for text, value in {
            "a: it is # a comment": {"a": "it is"},
            "a: 'it''s # not'": {"a": "it's # not"},
            'a: "\\u00e4" # b': {"a": "ä"},
            "a: >-\n  one\n  two\nb: http://x#y": {"a": "one two", "b": "http://x#y"},
            "a: one\n  two": {"a": "one two"},
            "a: [b, 1, true, null, 'c, d', {e: f}]": {"a": ["b", 1, True, None, "c, d", {"e": "f"}]},
            "a:\n- b: 1\n  c:\n  - x\n  -\n    y: z\n# d\n- - e": {"a": [{"b": 1, "c": ["x", {"y": "z"}]}, ["e"]]},
            "a:\nb: 01": {"a": None, "b": "01"},
            "a: it's # a comment": {"a": "it's"},
            '"a b" : c\nd  e: f': {"a b": "c", "d  e": "f"},
            "a: |\n  # Heading\n  b: c\nd: e": {"a": "# Heading b: c", "d": "e"},
        }.items():
            self.assertEqual(self.read(text), value, text)
        self.assertEqual(agent.front_matter("---\r\na: b\r\n---\r\nc\r\n"), ({"a": "b"}, "c\n"))

    def test_everything_else_is_refused(self):
        for text in ("a: &b c", "a: *b", "a: !c d", "a: b: c", "a: 'b", 'a: "b', "a: [b", "a: 1\na: 2", "- a\nb: c", "a: b\n}"):
            with self.assertRaises(ValueError, msg=text):
                self.read(text)


    def test_a_line_is_read_in_no_more_than_a_moment(self):
        length = agent.LONGEST_FRONT_MATTER - 9
        for piece in ('\\"', "'", '"', "a ", " ", "[", "#", " #", ":", "''", "- ", "'a", ',"\\"', "a\n", "\n", "a: b\n"):
            for start in ("a: ", "a: [", 'a: "', "", "x"):
                before = time.monotonic()
                with contextlib.suppress(*agent.MALFORMED):
                    self.read((start + length * piece)[:length])
                self.assertLess(time.monotonic() - before, 1, (start, piece))
        with self.assertRaisesRegex(ValueError, "its front matter has more than 16384 characters"):
            self.read("a: " + (1 << 14) * "b")


class Sessions(Agent):
    def setUp(self):
        super().setUp()
        self.session.mkdir()
        self.file = self.session / "tasks.json"

    def test_the_next_task_continues_the_conversation(self):
        self.run_with(REPAIR, DONE)
        _, lines, asked = self.run_with(DONE)
        self.assertIn("tasks before in this session: 1", lines)
        roles = [it["role"] for it in asked[0]["messages"]]
        self.assertEqual(roles, ["system", "user", "assistant", "tool", "assistant", "user"])
        self.assertEqual(len(json.loads(self.file.read_text())), 2)
        self.assertEqual(os.listdir(self.session), ["tasks.json"])

    def test_the_oldest_tasks_are_dropped_and_a_failed_one_is_not_kept(self):
        self.enterContext(mock.patch.object(agent, "LONGEST_SESSION", 1000))
        self.run_with(REPAIR, DONE)
        for number in range(4):
            self.run_with({"content": f"{number}" + 200 * "x"})
        (self.project / "right").unlink()
        _, lines, _ = self.run_with(DONE)
        kept = json.loads(self.file.read_text())
        self.assertEqual([it[-1]["content"][0] for it in kept], ["1", "2", "3"])
        self.assertIn("tasks before in this session: 3", lines)

    def test_a_damaged_session_begins_anew(self):
        lengths = ("[" * 100000, "x" * (agent.LONGEST_SESSION + 1))
        call = {"id": "1", "function": {"name": "run_tests", "arguments": "{}"}}
        wrong = [{"id": 1}, {"function": {}}, {"function": {"name": 1, "arguments": ""}}]
        messages = [
            {"role": "system", "content": "x"},
            {"role": "user"},
            {"role": "user", "content": ["x"]},
            {"role": "tool", "content": None},
            {"role": "assistant", "content": 7},
            {"role": "assistant", "tool_calls": "run_tests"},
            {"role": "assistant", "tool_calls": {"x": call}},
            *({"role": "assistant", "tool_calls": [{**call, **it}]} for it in wrong),
        ]
        kept = [json.dumps([[it]]) for it in messages]
        for text in ("", "[[{", "7", "null", "[7]", "[{}]", "[[7]]", "[[{}]]", *lengths, *kept):
            self.file.write_text(text)
            _, lines, asked = self.run_with(REPAIR, DONE)
            self.assertEqual(len(asked[0]["messages"]), 2)
            self.assertTrue(any(it.startswith("the session begins anew: ") for it in lines), text[:9])
            self.assertEqual(len(json.loads(self.file.read_text())), 1)
        os.remove(self.file)
        os.symlink("/etc/passwd", self.file)
        self.assertEqual(len(self.run_with(DONE)[2][0]["messages"]), 2)

    def test_a_session_that_others_may_have_written_begins_anew(self):
        def link():
            os.link(self.file, self.session / "other")

        def replace_by_a_fifo():
            self.file.unlink()
            os.mkfifo(self.file, 0o600)

        for change in (lambda: self.file.chmod(0o622), lambda: self.file.chmod(0o606), link, replace_by_a_fifo):
            self.run_with(REPAIR, DONE)
            self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
            change()
            _, lines, asked = self.run_with(DONE)
            self.assertEqual(len(asked[0]["messages"]), 2)
            self.assertTrue(any(it.startswith("the session begins anew: ") for it in lines), lines)
            (self.session / "other").unlink(missing_ok=True)

    def test_without_a_place_nothing_is_kept(self):
        self.session.rmdir()
        self.run_with(REPAIR, DONE)
        self.assertFalse(self.session.exists())

    def test_a_place_that_cannot_be_written_fails_no_task(self):
        (self.session / "tasks.json").mkdir()
        result, lines, _ = self.run_with(REPAIR, DONE)
        self.assertTrue(result["ok"])
        self.assertIn("the session is not kept: Is a directory", lines)
        self.assertEqual(os.listdir(self.session), ["tasks.json"])


class Files(Agent):
    def test_the_test_stays_as_it_is(self):
        os.symlink(".", self.project / "link")
        os.symlink("test.sh", self.project / "again.sh")
        for path in ("test.sh", "./test.sh", "link/test.sh", str(self.project / "test.sh"), "link/../test.sh"):
            self.assertTrue(self.result_of(call("write_file", path=path, content="")).startswith("error: "), path)
        with mock.patch.object(agent, "test_command", lambda _: ["sh", "./again.sh"]):
            for path in ("test.sh", "again.sh"):
                result = self.result_of(call("write_file", path=path, content=""))
                self.assertEqual(result, f"error: {path} is the test, which stays as it is")
        self.assertEqual((self.project / "test.sh").read_text(), TEST)

    def test_nothing_outside_of_the_project_is_read_or_written(self):
        outside = self.project.parent / "outside"
        outside.mkdir()
        (outside / "file").write_text("s3cret")
        os.symlink(outside, self.project / "link")
        os.symlink(outside / "file", self.project / "file")
        for path, error in {
            "": " is outside of the project",
            "../outside/file": "../outside/file is outside of the project",
            str(self.project / "x"): f"{self.project}/x is not relative to the project",
            "link/file": "Not a directory",
        }.items():
            self.assertEqual(self.result_of(call("read_file", path=path)), f"error: {error}")
            self.assertEqual(self.result_of(call("write_file", path=path, content="")), f"error: {error}")
        self.result_of(call("write_file", path="link/made/file", content=""))
        self.assertEqual(os.listdir(outside), ["file"])
        self.assertEqual(self.result_of(call("read_file", path="file")), "error: Too many levels of symbolic links")
        self.assertEqual(self.result_of(call("write_file", path="file", content="x")), "written")
        self.assertEqual((outside / "file").read_text(), "s3cret")

    def test_a_file_keeps_its_mode_and_gets_its_directories(self):
        for mode in (0o755, 0o600):
            self.write(self.project / "run.sh", "")
            (self.project / "run.sh").chmod(mode)
            self.assertEqual(self.result_of(call("write_file", path="run.sh", content="x")), "written")
            self.assertEqual(stat.S_IMODE((self.project / "run.sh").stat().st_mode), mode)
        self.assertEqual(self.result_of(call("write_file", path="a/b/c", content="x")), "written")
        self.assertEqual((self.project / "a/b/c").read_text(), "x")


class Task(Agent):
    def test_what_the_model_says_stays_within_a_line(self):
        evil = call("read_file", path="a\n\x1b[2Jdone\udc80\u2028ä")
        _, lines, _ = self.run_with(evil, call("x" * 100000), REPAIR, DONE)
        self.assertIn("step 1: read_file a\\n\\x1b[2Jdone\\udc80\\u2028ä: error: No such file or directory", lines)
        self.assertLessEqual(max(map(len, lines)), agent.SHOWN)
        printed = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        with contextlib.redirect_stdout(printed):
            agent.say("ä")
        self.assertEqual(printed.buffer.getvalue(), b"?\n")

    def test_a_model_that_says_that_it_is_done_while_the_tests_fail_has_failed(self):
        result, lines, _ = self.run_with(DONE)
        error = "the model says that it is done, but the tests fail: right is missing"
        self.assertEqual(result, {"ok": False, "error": error, "changed": []})
        self.assertEqual(lines[-2:], ["step 1: run_tests: right is missing", f"failed: {error}"])

    def test_a_refused_request_is_the_reason_of_a_failure(self):
        for answer, text in (('{"error": {"message": "no\\nkey"}}', "no key"), ("not\nallowed", "not allowed"), (NESTED, "{'a': 1}")):
            result, _, _ = self.run_with((403, answer))
            self.assertEqual(result["error"], f"asking the model failed with the status 403: {text}")

    def test_only_the_tools_that_the_boxfile_allows_are_offered(self):
        self.allowed.write_text('["read_file", "write_file"]')
        _, _, asked = self.run_with(call("run_tests"), REPAIR, DONE)
        self.assertEqual(self.names(asked[0]), ["read_file", "write_file"])
        self.assertEqual(asked[1]["messages"][-1]["content"], "error: there is no tool run_tests")
        self.allowed.write_text('["bash"]')
        self.assertEqual(self.names(self.run_with(DONE)[2][0]), ["run_tests"])


if __name__ == "__main__":
    unittest.main()
