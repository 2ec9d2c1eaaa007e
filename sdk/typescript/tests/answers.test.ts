/** What the answers of the programs mean. */

import assert from "node:assert/strict";
import { test } from "node:test";

import * as boxbuild from "boxbuild";
import { answer, jsonLines } from "../src/answer.js";
import { firstEntry } from "../src/archive.js";
import { changes, entriesOf } from "../src/listing.js";
import * as recorded from "./recorded.js";
import { Recorder } from "./scratch.js";

/** Returns the error of a program that has printed this. */
function failed(status: number, stdout: string, stderr = ""): boxbuild.BoxbuildError {
  try {
    answer({ status, stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) });
  } catch (error) {
    assert(error instanceof boxbuild.BoxbuildError);
    return error;
  }
  throw new Error("no error");
}

function answered(status: number, value: unknown): unknown {
  return answer({ status, stdout: Buffer.from(JSON.stringify(value)), stderr: Buffer.alloc(0) });
}

test("a result", () => {
  const result = new boxbuild.Result(recorded.EXEC);
  assert.deepEqual([result.status, result.ok, result.duration], [3, false, 0.0125]);
  assert.deepEqual([result.stdout, result.stdoutBytes], ["caf\ufffd", Buffer.from("caf\xe9", "latin1")]);
  assert.deepEqual(result.stderrBytes, Buffer.from("no\nluck\n"));
  const message = "`sh -c cat; exit 3` has ended with the status 3: luck";
  assert.throws(() => result.check(), (error) => error instanceof boxbuild.CommandError && error.message === message);
});

test("a result under a policy", () => {
  assert.equal(new boxbuild.Result(recorded.EXEC).sandbox, undefined);
  const fenced = new boxbuild.Result({ ...recorded.EXEC, status: 126, sandbox: recorded.SANDBOX });
  assert.deepEqual(fenced.sandbox, recorded.SANDBOX);
});

test("the first error is the exception", () => {
  const error = failed(1, JSON.stringify(recorded.FAILURE));
  assert.equal(error.constructor, boxbuild.NameNotFoundError);
  assert.equal(error.name, "NameNotFoundError");
  assert.deepEqual([error.code, error.exitStatus, error.problems.length], ["name-not-found", 1, 2]);
  assert.equal(error.message, "no started box has the name x (`boxlaunch ps -a` lists the started boxes)");
  assert.equal(error.hint, "`boxlaunch ps -a` lists the started boxes");
  assert(failed(1, JSON.stringify(recorded.NAMED)) instanceof boxbuild.NameNotFoundError);
  assert.equal(new boxbuild.NameNotFoundError("x").code, "name-not-found");
});

test("a code of a later version", () => {
  const error = failed(1, JSON.stringify({ errors: [{ ...recorded.ERROR, code: "of-tomorrow" }] }));
  assert.equal(error.constructor, boxbuild.BoxbuildError);
  assert.equal(error.code, "of-tomorrow");
});

test("a status or a warning is no error", () => {
  assert.deepEqual(answered(1, recorded.HEALTH), recorded.HEALTH);
  assert.deepEqual(answered(0, { errors: [recorded.WARNING] }), { errors: [recorded.WARNING] });
});

test("errors as text", () => {
  const cases: [number, string, typeof boxbuild.BoxbuildError, string][] = [
    [2, "error: unexpected argument '--x' found\n\nUsage: boxlaunch\n", boxbuild.UsageError, "unexpected argument '--x' found"],
    [1, "error: no box\n  = help: start one\n", boxbuild.BoxbuildError, "no box (start one)"],
    [2, "error: no\n  [possible values: a, b]\n\n  tip: write 'a'\n", boxbuild.UsageError, "no ([possible values: a, b]; tip: write 'a')"],
    [70, "boxlaunch has a bug\n", boxbuild.InternalError, "boxlaunch has a bug"],
    [-9, "", boxbuild.BoxbuildError, "the program has ended with the status -9 and no answer"],
  ];
  for (const [status, stderr, kind, message] of cases) {
    const error = failed(status, "", stderr);
    assert.equal(error.constructor, kind);
    assert.deepEqual([error.message, error.exitStatus], [message, status]);
  }
});

test("lines arrive in pieces", () => {
  const decode = jsonLines();
  const text = Buffer.from(`${JSON.stringify(recorded.LOGS)}\n`.repeat(2));
  const found: unknown[] = [];
  for (let at = 0; at < text.length; at += 7) found.push(...decode(text.subarray(at, at + 7)));
  assert.deepEqual(found, [recorded.LOGS, recorded.LOGS]);
  const failure = Buffer.from(`${JSON.stringify(recorded.FAILURE)}\n`);
  assert.throws(() => [...decode(failure)], boxbuild.NameNotFoundError);
});

test("a line without an end", () => {
  const decode = jsonLines();
  const chunk = Buffer.alloc(8 << 20, " ");
  assert.throws(() => Array.from({ length: 9 }, () => [...decode(chunk)]), /a line of more than 64 MiB/);
});

test("changes of a directory", () => {
  const before = entriesOf(recorded.listing(["a\nb", "old"]));
  const after = recorded.listing(["a\nb", "new"]);
  after.entries[0]!.size = 2;
  const expected = [
    { kind: "modified", name: "a\nb" },
    { kind: "created", name: "new" },
    { kind: "deleted", name: "old" },
  ];
  assert.deepEqual(changes(before, entriesOf(after)), expected);
  const entry = new boxbuild.FileEntry("new", 0o40755, 0, 6);
  assert.deepEqual([entry.isDir, entry.isFile], [true, false]);
});

test("a listing", () => {
  const entries = [...entriesOf(recorded.LISTING).values()].map((it) => [it.name, it.mode.toString(8), it.isDir]);
  assert.deepEqual(entries, [["caf\ufffd", "100644", false], ["d", "40755", true]]);
});

test("a box cannot lie in a listing", () => {
  const names = ["", ".", "..", "/", "../../.bashrc", "a\0", "x".repeat(256), 1].map((name) => ({ name }));
  const encoded = ["Li4=", "Li4vYQ==", "!", ""].map((it) => ({ name_base64: it }));
  const sizes = [-1, 2 ** 63, "1", 1.5, true].map((size) => ({ size }));
  const wrong = [...names, ...encoded, ...sizes, { mtime: 2 ** 63 }, { mode: "07777" }, { mode: "x" }, { type: "door" }];
  for (const changed of wrong) {
    const listing = recorded.listing(["a"]);
    Object.assign(listing.entries[0]!, changed);
    assert.throws(() => entriesOf(listing), { message: "the box has sent a listing that is malformed" }, JSON.stringify(changed));
  }
  assert.throws(() => entriesOf({ ...recorded.LISTING, truncated: true }), /10000/);
});

test("what a box prints is no terminal sequence", () => {
  const stderr = `\x1b[2Jerror: \u202eforged${"x".repeat(600)}`;
  const { message } = new boxbuild.CommandError(new boxbuild.Result({ ...recorded.EXEC, argv: ["a\nb"], stderr }));
  assert(message.length < 600 && !/[\p{C}\u2028]/u.test(message), message);
  assert(message.startsWith("`a\ufffdb` has ended with the status 3: \ufffd[2Jerror: \ufffdforged"), message);
});

test("help for TypeScript", () => {
  for (const help of ["no KVM; `--emulated` cannot be used with --detach; `boxlaunch doctor` …", "run the box slowly without KVM: `x`"]) {
    const { hint } = failed(1, JSON.stringify({ errors: [{ ...recorded.ERROR, code: "kvm-unavailable", help }] }));
    assert.match(hint!, /without KVM: run\(\{ box: …, emulated: true \}, command\)/);
    assert(!hint!.includes("`--emulated`"));
  }
});

/** Returns a header of an archive, and what follows it. */
function packed(kind: string, content: string, link = ""): Buffer {
  const header = Buffer.alloc(512);
  header.write("name");
  header.write(`${Buffer.byteLength(content).toString(8).padStart(11, "0")}\0`, 124);
  header.write(kind, 156);
  header.write(link, 157);
  return Buffer.concat([header, Buffer.from(content), Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

test("the first entry of an archive", () => {
  const name = packed("L", "n".repeat(600));
  assert.deepEqual(firstEntry(Buffer.concat([name, packed("0", "hello")])), { size: 5, content: Buffer.from("hello") });
  assert.deepEqual(firstEntry(packed("0", "hello").subarray(0, 514)), { size: 5, content: Buffer.from("he") });
  assert.equal(firstEntry(packed("2", "", "../b")), "../b");
  const target = `/${"t".repeat(200)}`;
  assert.equal(firstEntry(Buffer.concat([packed("K", `${target}\0`), packed("2", "", "/ttt")])), target);
  assert.equal(firstEntry(packed("5", "")), undefined);
  const large = packed("0", "");
  large.set([0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0], 124);
  assert.equal((firstEntry(large) as { size: number }).size, 2 ** 33);
  const digits = packed("0", "");
  digits.write("12x", 124);
  for (const wrong of [Buffer.alloc(0), Buffer.alloc(1024), packed("0", "").subarray(0, 511), packed("3", ""), digits]) {
    assert.throws(() => firstEntry(wrong), /malformed/);
  }
});

test("a file that is too large, or none", async (test) => {
  const programs = new Recorder(test);
  const { files } = boxbuild.Box.of("x");
  const read = async (archive: Buffer) => {
    programs.print(archive);
    return (await files.read("/a/b", { maxSize: 5 })).toString();
  };
  assert.equal(await read(packed("0", "hello")), "hello");
  assert.deepEqual(programs.read("arguments").split("\0").slice(1, -1), ["cp", "x:/a/b", "-"]);
  await assert.rejects(read(packed("0", "hellos")), /has 6 bytes, and at most 5 are read/);
  await assert.rejects(read(packed("0", "x".repeat(256 << 10))), /at most 5 are read/);
  await assert.rejects(read(packed("5", "")), boxbuild.IoError);
  await assert.rejects(read(packed("0", "hello").subarray(0, 514)), /malformed/);
  await assert.rejects(read(packed("2", "", "b")), /too many links/);
});

test("the address of a port", async (test) => {
  const programs = new Recorder(test);
  const box = boxbuild.Box.of("x");
  await programs.words(recorded.PORT, async () => assert.equal(await box.url(8000), "http://127.0.0.1:40123"));
  await assert.rejects(box.url(81), /ports: \[81\]/);
});

test("a box of the store is not one that runs", async (test) => {
  const boxes = { boxes: [{ name: "hello-2", state: "running" }] };
  const programs = new Recorder(test);
  await programs.words({ name: "hello" }, async () => {
    const started = await boxbuild.Box.start("hello");
    await programs.words(boxes, async () => assert.equal(await started.status(), "ended"));
  });
  const hint = "`boxlaunch ps -a` lists the started boxes";
  const unknown = () => assert.rejects(boxbuild.Box.of("hello").status(), { name: "NameNotFoundError", hint });
  await programs.words(boxes, unknown);
});
