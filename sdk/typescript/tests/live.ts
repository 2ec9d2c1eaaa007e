/**
 * Tests with real boxes: tests/boot/sdk.rs runs them on the virtual host, which has the boxes in /boxes.
 *
 *     node dist/tests/live.js
 */

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import * as boxbuild from "boxbuild";
import { squares } from "../examples/parallel.js";
import { pythonTool } from "../examples/tool.js";
import { run as runUntrusted } from "../examples/untrustedCode.js";
import { all, scratch, until } from "./scratch.js";

const BOXES = process.env["SDK_BOXES"] ?? "/boxes";
const PAGE = process.env["SDK_PAGE"] ?? "/sdk.md";
const PLAIN = { box: join(BOXES, "plain"), secrets: { KEY: "0123456789" } };
const SELF = fileURLToPath(import.meta.url);
const runNode = promisify(execFile);

/** Returns the path of a compiled script of this package. */
function script(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

async function noBox(): Promise<boolean> {
  return (await boxbuild.listBoxes({ all: true })).length === 0;
}

/** Starts boxes with a signal that is aborted after each of the delays. */
async function abortStarts(delays: readonly number[]): Promise<void> {
  for (const delay of delays) {
    const signal = AbortSignal.timeout(delay);
    const start = boxbuild.createBox(PLAIN, { signal }).then((box) => box.close());
    await start.catch((error: unknown) => assert.equal(error, signal.reason));
    assert(await noBox(), `${delay} ms`);
  }
}

/** Starts a process with the model of examples/assistant. */
async function startModel(test: TestContext, folder: string): Promise<void> {
  writeFileSync(join(folder, "key"), "secret-key");
  const model = spawn("assistant-model", ["127.0.0.1:4180", join(folder, "key")]);
  test.after(() => model.kill());
  await once(model.stdout, "data");
}

/** Approves the command that ends with `yes`, denies others, and returns their last words when the box has ended. */
async function answers(box: boxbuild.Box): Promise<string[]> {
  const answered = new Map<number, string>();
  for await (const { questions } of box.followApprovals()) {
    for (const { question, argv } of questions.filter((it) => !answered.has(it.question))) {
      const word = argv.at(-1)!;
      await (word === "yes" ? box.approve(question) : box.deny(question));
      answered.set(question, word);
    }
  }
  return [...answered.values()];
}

/** With this argument, this script starts a box and is killed. */
if (process.argv[2] === "killed") {
  await boxbuild.createBox(PLAIN);
  process.kill(process.pid, "SIGKILL");
}

afterEach(() => until(noBox));

test("the blocks of the page print what it shows", async (test) => {
  const cwd = scratch(test);
  symlinkSync(join(BOXES, "sandbox"), join(cwd, "sandbox.box"));
  const { stdout } = await runNode(process.execPath, [script("page.js")], { cwd });
  const blocks = [...readFileSync(PAGE, "utf8").matchAll(/^```ts\n(.*?)^```$/gms)].map((it) => it[1]).join("\n");
  const shown = [...blocks.matchAll(/^ *(?:if .*)?console\.log\(.*\); \/\/ (.*)$/gm)].map((it) => it[1]!);
  const lines = stdout.trimEnd().split("\n");
  assert.equal(lines.length, shown.length, stdout);
  // A `…` at the end stands for any text.
  const short = lines.map((line, at) => (shown[at]!.endsWith("…") ? `${line.slice(0, shown[at]!.length - 1)}…` : line));
  assert.deepEqual(short, shown);
});

test("a killed interpreter leaves no box", async () => {
  await assert.rejects(runNode(process.execPath, [SELF, "killed"]), { signal: "SIGKILL", stderr: "" });
});

test("an aborted start leaves no box", () => abortStarts([1, 30, 100]));

test("work in a box", async (test) => {
  await using box = await boxbuild.createBox(PLAIN);
  const following = all(box.logs({ follow: true }));
  assert.equal((await box.exec("echo $KEY", { component: "agent" })).stdout, "0123456789\n");
  assert.deepEqual((await box.exec(["printf", "\\351"])).stdoutBytes, Buffer.from([0xe9]));
  assert.deepEqual(await all(box.events()), [], "a box without `logs` has no events");

  const sleeping = new AbortController();
  const command = box.exec(["sleep", "1000"], { signal: sleeping.signal });
  const isSleeping = async () => (await box.exec("ps -o args")).stdout.includes("sleep 1000");
  await until(isSleeping);
  sleeping.abort();
  await assert.rejects(command, { name: "AbortError" });
  await until(async () => !(await isSleeping()));

  const trap = "trap 'echo asked; exit 7' TERM; echo ready; while :; do sleep 0.1; done";
  await using trapping = await box.popen(trap);
  await once(trapping.stdout, "readable");
  trapping.terminate();
  assert.equal(await trapping.wait(), 7);
  assert.equal(String(trapping.stdout.read()), "ready\nasked\n");

  await using both = await box.popen("head -c 200000 /dev/zero >&2; cat");
  const wrote = await both.communicate("x".repeat(300_000));
  assert.deepEqual([wrote.stdout.length, wrote.stderr.length, both.returncode], [300_000, 200_000, 0]);

  await box.exec("mkdir /tmp/d; echo x >/tmp/d/old; ln -s /tmp/d/file /tmp/link", { check: true });
  const changes = box.files.watch("/tmp/d", { interval: 0.2 });
  const first = changes.next();
  await sleep(1000);
  await box.files.write("/tmp/d/file", Buffer.from([0, 255]), { mode: 0o755 });
  assert.deepEqual((await first).value, { kind: "created", name: "file" });
  await changes.return();
  assert.deepEqual(await box.files.read("/tmp/link"), Buffer.from([0, 255]));
  const entries = (await box.files.list("/tmp/d")).map((it) => [it.name, it.size, it.mode.toString(8)]);
  assert.deepEqual(entries[0], ["file", 2, "100755"]);
  await assert.rejects(box.files.list("/missing"), boxbuild.IoError);
  await assert.rejects(box.files.read("/missing"), boxbuild.IoError);
  await assert.rejects(box.files.read("/tmp/d"), /is a directory/);
  await assert.rejects(box.files.read("/tmp/d/file", { maxSize: 1 }), /at most 1 are read/);
  const env = { A: "it's $5\\ \"#\n\tend", B: "\x1b" };
  assert.equal((await box.exec('printf "%s|%s" "$A" "$B"', { env })).stdout, `${env.A}|${env.B}`);
  await assert.rejects(box.skills.load(scratch(test)), boxbuild.BoxbuildError);

  await box.close();
  assert.deepEqual(await following, []);
  await assert.rejects(box.exec(["true"]), boxbuild.NameNotFoundError);
});

test("a policy asks, and a skill is of the host", async (test) => {
  const hot = join(scratch(test), "hot");
  mkdirSync(hot);
  writeFileSync(join(hot, "SKILL.md"), "---\nname: hot\ndescription: Is of the host.\n---\n");
  await using box = await boxbuild.createBox({ box: join(BOXES, "asking"), skills: { hot } });
  assert.match((await box.exec(["cat", "/a3s/skills/hot/SKILL.md"])).stdout, /Is of the host\./);
  const answered = answers(box);
  assert.equal((await box.exec(["echo", "yes"])).stdout, "yes\n");
  const { status, sandbox } = await box.exec(["echo", "no"]);
  assert.deepEqual([status, sandbox?.state, sandbox?.preset], [126, "not-started", "default"]);
  assert.deepEqual(sandbox?.denied, [{ kind: "process", subject: "echo no", rule: "echo *", reason: "person: the Boxfile asks for it" }]);
  await box.close();
  assert.deepEqual(await answered, ["yes", "no"]);
});

test("an agent with an interface, a task, and a command in a new box", async () => {
  await using box = await boxbuild.Box.start(join(BOXES, "echo"));
  assert.equal((await box.generate("Say it again")).text, "Say it again");
  await assert.rejects(box.exec(["true"], { component: "business" }), boxbuild.ComponentNotFoundError);
  assert.equal((await boxbuild.run(PLAIN, ["wc", "-c"], { input: "12345" })).stdout.trim(), "5");
  const spec = { id: "1", type: "count", description: "Count", input: "one two three" };
  const task = await boxbuild.runTask(join(BOXES, "counter"), spec);
  assert.deepEqual([task.status, task.result], ["completed", { words: 3 }]);
});

test("the examples", async (test) => {
  const report = await runUntrusted(join(BOXES, "sandbox"), "import sys; print(6 * 7); sys.exit(3)");
  assert.equal(report, "status 3\n42\n");
  assert.deepEqual(await squares(join(BOXES, "echo"), 3), [0, 1, 4]);
  await using box = await boxbuild.Box.start(join(BOXES, "sandbox"));
  const tool = pythonTool(box);
  assert.equal(await tool.execute({ code: "open('/tmp/x', 'w').write('kept'); print('done')" }), "done\n");
  assert.equal(await tool.execute({ code: "print(open('/tmp/x').read())" }), "kept\n");
  assert.match(await tool.execute({ code: "1 / 0" }), /ZeroDivisionError/);
  await box.close();

  const cwd = scratch(test);
  cpSync("/example/project", join(cwd, "project"), { recursive: true });
  await startModel(test, cwd);
  const given = { MODEL_URL: "https://127.0.0.1:4180/v1", MODEL_KEY: "secret-key", NODE_EXTRA_CA_CERTS: "/ca.pem" };
  const words = [script("../examples/agent.js"), join(BOXES, "workshop"), "project", "The test of slug.js fails. Make it pass."];
  const { stdout } = await runNode(process.execPath, words, { cwd, env: { ...process.env, ...given } });
  assert.equal(stdout, "Only the first space of a title became a hyphen.\n");
  assert(readFileSync(join(cwd, "project/slug.js"), "utf8").includes("[^a-z0-9]+"));
});
