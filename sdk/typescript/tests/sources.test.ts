/** The package agrees with the documents and with the package for Python. Its working directory is sdk/typescript. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";

import * as boxbuild from "boxbuild";
import { Process } from "../src/process.js";

const ROOT = resolve("../..");
/** What the package for TypeScript has in another form. */
const OTHERWISE = ["aio"];

function source(path: string): string {
  return readFileSync(resolve(ROOT, path), "utf8");
}

/** Returns the names of a value's methods. */
function methods(value: object): string[] {
  const kind: unknown = Object.getPrototypeOf(value);
  return kind === Object.prototype || !kind ? [] : [...Object.getOwnPropertyNames(kind), ...methods(kind)];
}

/** Returns a name in the form of TypeScript: `run_python` is `runPython`. */
function camel(name: string): string {
  return name.replace(/(?<=[a-z])_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the names of a class of the package for Python, from its source. */
function ofPython(kind: string): string[] {
  const text = source("sdk/python/boxbuild/aio.py");
  const body = new RegExp(`^class ${kind}\\b.*\\n((?:    .*\\n|\\n)*)`, "m").exec(text)?.[1] ?? "";
  return [...body.matchAll(/^ {4}([a-z]\w*) = |^ {4}(?:async )?def ([a-z]\w*)\(self/gm)].map((it) => camel((it[1] ?? it[2])!));
}

test("generated files are up to date", () => {
  assert.equal(execFileSync("python3", ["-B", resolve(ROOT, "sdk/generate.py"), "--check"], { encoding: "utf8" }), "");
});

test("the version is that of the programs", () => {
  const cargo = /^version = "(.+)"$/m.exec(source("Cargo.toml"))?.[1];
  const project = JSON.parse(source("sdk/typescript/package.json")) as { version: string };
  assert.equal(project.version, cargo);
});

test("it has the names of the package for Python", () => {
  const listed = /^__all__ = \[\n((?: {4}".*\n)*)/m.exec(source("sdk/python/boxbuild/__init__.py"))?.[1] ?? "";
  const names = [...listed.matchAll(/"(\w+)"/g)].map((it) => camel(it[1]!));
  assert(names.length > 15, listed);
  const index = source("sdk/typescript/src/index.ts");
  const missing = names.filter((name) => !OTHERWISE.includes(name) && !new RegExp(`\\b${name}\\b`).test(index));
  assert.deepEqual(missing, []);
  const box = boxbuild.Box.of("x");
  const kinds = { Process: Process.prototype, Environment: boxbuild.Environment.of("x"), Box: box, Files: box.files, Skills: box.skills, Network: box.network, Agent: box.agent, Sessions: box.agent.sessions, Images: boxbuild.images };
  for (const [kind, value] of Object.entries(kinds)) {
    const own = new Set([...Object.getOwnPropertyNames(value), ...methods(value), ...Object.getOwnPropertyNames(value.constructor)]);
    const python = ofPython(kind);
    assert(python.length > 2, kind);
    assert.deepEqual(python.filter((name) => !own.has(name)), [], kind);
  }
});

test("the page shows each step in both languages", () => {
  const languages = [...source("docs/sdk.md").matchAll(/^```(python|ts)$/gm)].map((it) => it[1]);
  assert(languages.length > 10);
  languages.forEach((language, at) => assert.equal(language, at % 2 === 0 ? "python" : "ts", `block ${at}`));
});
