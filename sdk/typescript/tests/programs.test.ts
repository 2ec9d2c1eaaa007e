/** Runs programs: their end, and their interruption. */

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";

import * as boxbuild from "boxbuild";
import { jsonLines, type Output } from "../src/answer.js";
import { program } from "../src/call.js";
import { Process } from "../src/process.js";
import { iterate, run } from "../src/run.js";
import { all, scratch, setVariables, until } from "./scratch.js";

function shell(script: string): string[] {
  return ["/bin/sh", "-c", script];
}

/** Returns the output of a shell as JSON lines. */
function streamed(script: string, signal?: AbortSignal): AsyncGenerator<unknown, void, undefined> {
  return iterate(shell(script), jsonLines(), signal);
}

function isGone(folder: string): boolean {
  return !existsSync(join("/proc", readFileSync(join(folder, "pid"), "utf8").trim()));
}

/** Aborts when a file exists, and checks that the work is rejected with the reason. */
async function aborted(ready: string, work: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  const controller = new AbortController();
  const working = work(controller.signal);
  await until(() => existsSync(ready));
  controller.abort(new Error("enough"));
  await assert.rejects(working, /^Error: enough$/);
}

test("a call", async () => {
  const output = await run(shell("cat; echo $ADDED; echo err >&2; exit 3"), { input: "in ", env: { ADDED: "more" } });
  assert.deepEqual(output, { status: 3, stdout: Buffer.from("in more\n"), stderr: Buffer.from("err\n") });
  assert.equal((await run(shell("kill -9 $$"))).status, -9);
});

test("a call with a limit", async () => {
  const output = await run(shell("echo out; echo err >&2; exit 3"), { limit: 4 });
  assert.deepEqual(output, { status: 3, stdout: Buffer.from("out\n"), stderr: Buffer.from("err\n") });
  const cut = await run(["cat", "/dev/zero"], { limit: 100_000 });
  assert.equal(cut.status, -9);
  assert(cut.stdout.length > 100_000 && cut.stdout.length < 300_000);
});

test("large input and output do not block", async () => {
  assert.equal((await run(["cat"], { input: "x".repeat(3_000_000) })).stdout.length, 3_000_000);
  assert.equal((await run(["true"], { input: "x".repeat(3_000_000) })).status, 0);
});

test("an aborted call ends its program, and takes back what it has done", async (test) => {
  const folder = scratch(test);
  const ready = join(folder, "ready");
  const script = `trap 'echo ended; exit 0' TERM; echo begun; touch ${ready}; while :; do sleep 0.05; done`;
  const undo = (output: Output) => shell(`printf '%s' '${output.stdout}' >${folder}/undone`);
  await aborted(ready, (signal) => run(shell(script), { undo, signal }));
  assert.equal(readFileSync(join(folder, "undone"), "utf8"), "begun\nended\n");
  await assert.rejects(run(shell(`touch ${folder}/started`), { signal: AbortSignal.abort() }), { name: "AbortError" });
  assert(!existsSync(join(folder, "started")));
});

test("a stream ends its program", async (test) => {
  const folder = scratch(test);
  const script = `echo $$ >${folder}/pid; echo '{"n": 1}'; exec sleep 1000`;
  for await (const found of streamed(script)) {
    assert.deepEqual(found, { n: 1 });
    break;
  }
  assert(isGone(folder));
  await aborted(join(folder, "pid"), (signal) => all(streamed(script, signal)));
  assert(isGone(folder));
});

test("a stream that fails", async () => {
  await assert.rejects(all(streamed("echo 'error: no such box' >&2; exit 1")), /no such box/);
});

test("a process", async () => {
  await using cat = await Process.start(shell("cat; echo err >&2; exit 4"), false);
  cat.stdin.end("in");
  assert.equal(await cat.wait(), 4);
  assert.deepEqual([await text(cat.stdout), await text(cat.stderr!), cat.returncode], ["in", "err\n", 4]);
  const sleeping = await Process.start(["sleep", "1000"], false);
  assert.equal(sleeping.poll(), null);
  assert.throws(() => sleeping.sendSignal("SIGUSR1"), TypeError);
  await assert.rejects(sleeping.resize(1, 1), TypeError);
  await sleeping.close();
  assert.equal(sleeping.returncode, -9);
});

test("a process is closed although nobody reads its output", { timeout: 20_000 }, async (test) => {
  const folder = scratch(test);
  const made = await Process.start(shell(`head -c 1000000 /dev/zero & touch ${folder}/ready; exec sleep 1000`), false);
  await until(() => existsSync(join(folder, "ready")));
  await made.close();
  assert.notEqual(made.returncode, null);
});

test("an aborted process", async (test) => {
  const ready = join(scratch(test), "ready");
  await aborted(ready, async (signal) => (await Process.start(shell(`touch ${ready}; exec sleep 1000`), false, signal)).wait());
  await aborted(ready, async (signal) => (await Process.start(["sleep", "1000"], true, signal)).wait());
});

test("a terminal", async () => {
  await using terminal = await Process.start(["/bin/sh", "-c", 'echo "$1"; exec sh', "sh", "it's"], true);
  await terminal.resize(40, 100);
  terminal.stdin.write("stty size; test -t 0 && echo a ter''minal; exit 5\n");
  const output = await text(terminal.stdout);
  for (const line of ["it's", "40 100", "a terminal"]) assert(output.includes(`${line}\r\n`), output);
  assert.deepEqual([await terminal.wait(), terminal.stderr], [5, null]);
});

test("a killed terminal", async (test) => {
  const folder = scratch(test);
  {
    await using _ = await Process.start(shell(`echo $$ >${folder}/pid; exec sleep 1000`), true);
    await until(() => existsSync(join(folder, "pid")));
  }
  await until(() => isGone(folder));
});

test("a missing program", async (test) => {
  const folder = scratch(test);
  setVariables(test, { BOXBUILD_BIN: folder });
  await assert.rejects(boxbuild.listBoxes(), { name: "ProgramNotFoundError", message: /BOXBUILD_BIN names this directory/ });
  await assert.rejects(all(boxbuild.Box.of("x").logs()), boxbuild.ProgramNotFoundError);
  await assert.rejects(boxbuild.Box.of("x").popen(["true"]), boxbuild.ProgramNotFoundError);
});

test("no program in PATH", (test) => {
  setVariables(test, { BOXBUILD_BIN: undefined, PATH: scratch(test) });
  assert.throws(() => program("boxlaunch"), /BOXBUILD_BIN/);
});

describe("the programs of BOXBUILD_BIN, with an empty state and an empty store", { skip: !process.env["BOXBUILD_BIN"] }, () => {
  const nobody = boxbuild.Box.of("nobody");

  test("answers", async (test) => {
    setPlaces(scratch(test));
    assert.deepEqual(await boxbuild.listBoxes({ all: true }), []);
    assert.deepEqual(await boxbuild.images.list(), []);
    assert.deepEqual((await boxbuild.images.prune({ dryRun: true })).removed, []);
  });

  test("errors", async (test) => {
    const folder = scratch(test);
    setPlaces(folder);
    const operations: (() => Promise<unknown>)[] = [
      () => nobody.exec(["true"], { timeout: 0.5 }),
      () => nobody.exec(["true"], { env: { A: "it's $5\\ \"#\n\r\tend", _b: "caf\u00e9 \u{1f600}", C: "\u2028\x1b\u3164", D: "" } }),
      () => nobody.files.read("/etc/hosts"),
      () => nobody.files.write("/tmp/x", "x"),
      () => nobody.skills.list(),
      () => nobody.skills.load("skills/x"),
      () => nobody.network.denied(),
      () => nobody.generate("hello"),
      () => nobody.agent.capabilities(),
      () => all(nobody.logs()),
      () => nobody.stats(),
      () => nobody.task(),
      () => nobody.ports(),
      () => nobody.stop(),
      () => nobody.kill(),
      () => nobody.wait(),
      () => nobody.inspect(),
      () => nobody.status(),
      () => nobody.files.list("/"),
      () => all(nobody.files.watch("/")),
    ];
    for (const operation of operations) await assert.rejects(operation(), boxbuild.NameNotFoundError, String(operation));
    await assert.rejects(all(nobody.events()), boxbuild.BoxbuildError);
    await assert.rejects(boxbuild.Box.start("nobody"), boxbuild.BoxNotFoundError);
    await assert.rejects(boxbuild.Box.start("nobody", { options: ["--no-such-option"] }), boxbuild.UsageError);
    await assert.rejects(boxbuild.build(join(folder, "Boxfile")), boxbuild.BoxfileNotFoundError);
  });

  test("a Boxfile with an error", async (test) => {
    const folder = scratch(test);
    setPlaces(folder);
    const path = join(folder, "Boxfile");
    writeFileSync(path, 'box "x"\nagent {\n    image "oci:x"\n    limits memory="10 GB"\n}\n');
    await assert.rejects(boxbuild.Box.start(path), (error) => {
      return error instanceof boxbuild.BoxfileInvalidError && error.problems[0]?.labels[0]?.line === 4;
    });
  });
});

/** Sets the places of the programs for the rest of this process, which runs these tests last. */
function setPlaces(folder: string): void {
  Object.assign(process.env, { HOME: folder, BOXLAUNCH_STATE: `${folder}/state`, BOXBUILD_STORE: `${folder}/store` });
  process.env["XDG_RUNTIME_DIR"] = folder;
}
