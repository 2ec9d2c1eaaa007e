/** The command lines of the operations. Programs that record them stand in for boxbuild and boxlaunch. */

import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Box, Environment, images, runTask } from "boxbuild";
import { preciseSeconds, program, seconds } from "../src/call.js";
import { boxfileOf } from "../src/config.js";
import * as recorded from "./recorded.js";
import { all, Recorder } from "./scratch.js";

const HELLO = Box.of("hello");
const RUN = { name: "hello-1234", box: "sha256:0" };

test("exec", async (test) => {
  const programs = new Recorder(test);
  const given = { component: "agent", cwd: "/tmp", env: { A: "1" }, user: "app", timeout: 0.5 } as const;
  const options = ["--component=agent", "--workdir=/tmp", "--user=app", "--timeout=0.5", "--env-file=-"];
  const words = await programs.words(recorded.EXEC, () => HELLO.exec(["ls", "-l"], given));
  assert.deepEqual(words, ["boxlaunch", "exec", "--json", ...options, "hello", "--", "ls", "-l"]);
  assert.equal(programs.read("input"), 'A="1"\n');
  for (const input of [undefined, "text"]) {
    await assert.rejects(HELLO.exec("env", { env: { A: null as unknown as string }, input }), /value of A is null/);
  }
  const piped = await programs.words(recorded.EXEC, () => HELLO.exec("cat | wc", { input: "text" }));
  assert.deepEqual(piped.slice(2), ["--json", "--interactive", "hello", "--", "/bin/sh", "-c", "cat | wc"]);
  assert.equal(programs.read("input"), "text");
});

test("the variables of a command are on no command line", async (test) => {
  const programs = new Recorder(test);
  const env = { A: "it's $5\\ \"#\n\tend", B: "caf\u00e9", C: "\x1b", "D.E": "x", F: "" };
  const words = await programs.words(recorded.EXEC, () => HELLO.exec("env", { env }));
  assert.deepEqual(words.slice(3, -5), ["--env=C=\x1b", "--env=D.E=x", "--env-file=-"]);
  assert.equal(programs.read("input"), 'A="it\'s $5\\\\ \\"#\\n\\tend"\nB="caf\u00e9"\nF=""\n');
  const piped = await programs.words(recorded.EXEC, () => HELLO.exec("env", { env: { A: "1" }, input: "text" }));
  assert.deepEqual([piped.slice(3, -5), programs.read("input")], [["--env=A=1", "--interactive"], "text"]);
});

test("times", async (test) => {
  assert.deepEqual([undefined, 0, 0.5, 2, "15m"].map(seconds), [undefined, "0", "1", "2", "15m"]);
  assert.deepEqual([0, 0.5, 60, 0.0001, 12345.678].map(preciseSeconds), ["0", "0.5", "60", "0.001", "12345.678"]);
  for (const wrong of [-1, Infinity, NaN]) {
    assert.throws(() => seconds(wrong), TypeError);
    assert.throws(() => preciseSeconds(wrong), TypeError);
  }
  const words = await new Recorder(test).words({}, () => HELLO.stop({ grace: 0.5 }));
  assert.deepEqual(words.slice(1), ["stop", "--json", "--grace=1", "hello"]);
});

test("wrong options", async () => {
  const cases: [object, RegExp][] = [
    [{ shares: "a:/b" }, /^TypeError: shares has to be a list, such as shares: \[…\], and not a value of the type string$/],
    [{ ports: 80 }, /ports has to be a list/],
    [{ secrets: ["X"] }, /secrets has to be an object/],
    [{ secrets: { X: 5123 } }, /^((?!5123).)*$/],
    [{ env: "A=1" }, /env has to be an object/],
    [{ name: 5 }, /name has to be a text/],
    [{ emulated: true }, /emulated: true \}, command\) starts/],
  ];
  for (const [options, message] of cases) await assert.rejects(Box.start("hello", options), message);
});

test("code that fits into no word is input", async (test) => {
  const programs = new Recorder(test);
  const words = await programs.words(recorded.EXEC, () => HELLO.runPython("pass"));
  assert.deepEqual(words.slice(3), ["hello", "--", "python3", "-c", "pass"]);
  const piped = await programs.words(recorded.EXEC, () => HELLO.runNode("0;".repeat(60_000)));
  assert.deepEqual(piped.slice(3), ["--interactive", "hello", "--", "node", "-"]);
  assert.equal(programs.read("input").length, 120_000);
});

test("a start", async (test) => {
  const programs = new Recorder(test);
  const given = { name: "one", env: { A: "1" }, shares: ["a:/b"], ports: [80, "81:82"], memory: 512, lifetime: 90.2 };
  const words = await programs.words(RUN, () => Box.start("hello", given));
  const start = ["boxlaunch", "run", "--json", "--detach"];
  const options = ["--name=one", "--env=A=1", "--share=a:/b", "--publish=0:80", "--publish=81:82", "--memory=512", "--lifetime=91"];
  assert.deepEqual(words, [...start, "--rm", "--with-parent", ...options, "hello"]);
  const kept = await programs.words(RUN, () => Box.start({ box: "hello", keep: true }));
  assert.deepEqual(kept, [...start, "hello"]);
});

test("a secret is on no command line", async (test) => {
  const programs = new Recorder(test);
  const secrets = { KEY: "hidden", CERT: { file: "/cert" } };
  const words = await programs.words(RUN, () => Box.start("hello", { secrets }));
  assert(!words.join(" ").includes("hidden"));
  assert(words.includes("--secret=CERT=file:/cert"));
  const variable = words.find((word) => word.startsWith("--secret=KEY=env:"))?.split(":")[1];
  assert.match(programs.read("environment"), new RegExp(`^${variable}=hidden$`, "m"));
});

test("a Boxfile is built first", async (test) => {
  const programs = new Recorder(test);
  const words = await programs.words({ ...RUN, box: "sha256:1" }, () => Box.start("project/Boxfile"));
  assert.equal(words.at(-1), "sha256:1");
  const names = ["Boxfile", "Boxfile.toml", "ci.Boxfile", "Boxfile.lock", "ci.Boxfile.lock", "Boxfile.toml.lock", "hello"];
  assert.deepEqual(names.filter((box) => boxfileOf({ box })), names.slice(0, 3));
});

test("a task is in a file while the box starts", async (test) => {
  const programs = new Recorder(test);
  const words = await programs.words({ task: { status: "completed" } }, async () => {
    assert.deepEqual(await runTask("counter", { id: "1" }), { status: "completed" });
  });
  const path = words.find((word) => word.startsWith("--task="))!.slice("--task=".length);
  assert.equal(programs.read("task"), '{"id":"1"}');
  assert.throws(() => statSync(path), { code: "ENOENT" });
});

test("the end of a block", async (test) => {
  const programs = new Recorder(test);
  const box = await Box.start("hello", { keep: true }).catch(() => HELLO);
  await box.close();
  assert.equal(programs.read("arguments").split("\0")[1], "run", "a box that stays is not stopped");
  const words = await programs.words(RUN, async () => {
    await using started = await Box.start("hello");
    assert.equal(started.name, "hello-1234");
  });
  assert.deepEqual(words.slice(1), ["stop", "--json", "--grace=2", "hello-1234"]);
  let own = HELLO;
  await programs.words(RUN, async () => (own = await Box.start("hello")));
  // The box has ended by itself.
  await programs.words(recorded.FAILURE, () => own.close());
});

test("names are no options", async () => {
  for (const wrong of ["", "--all", "-f"]) assert.throws(() => Box.of(wrong), TypeError);
  await assert.rejects(HELLO.network.allow("--x"), TypeError);
  await assert.rejects(HELLO.skills.load("-x"), TypeError);
  await assert.rejects(images.pull("--x"), TypeError);
  await assert.rejects(images.remove("-f"), TypeError);
  await assert.rejects(Box.start("--help"), TypeError);
  await assert.rejects(Box.start({}), TypeError);
  await assert.rejects(Box.start({ box: "hello", image: "python:3.12" }), TypeError);
});

test("files", async (test) => {
  const programs = new Recorder(test);
  const copied = await programs.words(recorded.CP, () => HELLO.files.copyIn("a:b/.", "/work"));
  assert.deepEqual(copied.slice(1), ["cp", "--json", `${process.cwd()}/a:b/.`, "hello:/work"]);
  const out = await programs.words(recorded.CP, () => HELLO.files.copyOut("/a", "/b", { user: "0" }));
  assert.deepEqual(out.slice(1), ["cp", "--json", "--user=0", "hello:/a", "/b"]);
  const written = await programs.words(recorded.CP, () => HELLO.files.write("/tmp/run.sh", "echo", { mode: 0o755 }));
  assert.match(written[3]!, /\/run\.sh$/);
  assert.equal(programs.read("copied"), "echo");
  assert.equal(statSync(join(programs.folder, "copied")).mode & 0o777, 0o755);
  assert.throws(() => statSync(written[3]!), { code: "ENOENT" });
});

test("talking and looking", async (test) => {
  const programs = new Recorder(test);
  const skills = await programs.words({ skills: [] }, () => HELLO.skills.load(["skills/a", "b"]));
  assert.deepEqual(skills.slice(1), ["skills", "--json", "hello", "load", "skills/a", "b"]);
  const denied = await programs.words({}, () => HELLO.network.deny("a.example"));
  assert.deepEqual(denied.slice(1), ["network", "--json", "hello", "deny", "a.example"]);
  const waiting = await programs.words({ questions: [] }, async () => assert.deepEqual(await HELLO.approvals(), []));
  assert.deepEqual(waiting.slice(1), ["approvals", "--json", "hello"]);
  const approved = await programs.words({ question: 3, answer: "approve-always" }, () => HELLO.approve(3, { always: true }));
  assert.deepEqual(approved.slice(1), ["approve", "--json", "--always", "hello", "3"]);
  const refused = await programs.words({ question: 3, answer: "deny" }, () => HELLO.deny(3));
  assert.deepEqual(refused.slice(1), ["deny", "--json", "hello", "3"]);
  const said = await programs.words({}, () => HELLO.generate("-v", { session: "s", timeout: 5 }));
  assert.deepEqual(said.slice(1), ["agent", "generate", "--json", "--session=s", "--timeout=5", "hello", "-"]);
  assert.equal(programs.read("input"), "-v");
  const { sessions } = HELLO.agent;
  const created = await programs.words({ session: "s" }, async () => assert.equal(await sessions.create("s"), "s"));
  assert.deepEqual(created.slice(2), ["session", "create", "--json", "--session=s", "hello"]);
  const sent = await programs.words({}, () => sessions.send("s", "-v", { timeout: 5 }));
  assert.deepEqual(sent.slice(2), ["session", "send", "--json", "--timeout=5", "hello", "s", "-"]);
  assert.equal(programs.read("input"), "-v");
  const confirmed = await programs.words({}, () => sessions.confirm("s", "t", { deny: true, reason: "no" }));
  assert.deepEqual(confirmed.slice(2), ["session", "confirm", "--json", "--deny", "--reason=no", "hello", "s", "t"]);
  const cancelled = await programs.words({}, () => sessions.cancel("s", { operation: "1" }));
  assert.deepEqual(cancelled.slice(2), ["session", "cancel", "--json", "--operation=1", "hello", "s"]);
  const closed = await programs.words({}, () => sessions.close("s"));
  assert.deepEqual(closed.slice(2), ["session", "close", "--json", "hello", "s"]);
  await assert.rejects(sessions.close("-x"), TypeError);
  const events = await programs.words({}, async () => assert.equal((await all(sessions.events("s"))).length, 1));
  assert.deepEqual(events.slice(2), ["session", "events", "--json", "hello", "s"]);
  const logs = await programs.words(recorded.LOGS, async () => {
    assert.deepEqual(await all(HELLO.logs({ follow: true, tail: 5 })), [recorded.LOGS]);
  });
  assert.deepEqual(logs.slice(1), ["logs", "--json", "--follow", "--tail=5", "--component=agent", "hello"]);
  const up = await programs.words(recorded.UP, () => Environment.up("/p", { accept: true }));
  assert.deepEqual(up.slice(1), ["up", "--json", "--accept", "/p"]);
  const pruned = await programs.words({}, () => images.prune({ maxSize: "50G", olderThan: "7d", dryRun: true }));
  assert.deepEqual(pruned.slice(1), ["prune", "--json", "--max-size=50G", "--older-than=7d", "--dry-run"]);
  assert.equal(program("boxlaunch"), join(programs.folder, "boxlaunch"));
});
