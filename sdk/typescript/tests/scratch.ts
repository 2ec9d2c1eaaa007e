/** Directories and programs for tests. */

import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestContext } from "node:test";

/** Prints the answer of the file beside it, and keeps its arguments and its input. */
const RECORDER = `#!/bin/sh
folder=$(dirname "$0")
printf '%s\\0' "$(basename "$0")" "$@" >"$folder/arguments"
env >"$folder/environment"
case " $* " in *" -- "*|*" - "*|*--interactive*|*--env-file=-*) cat >"$folder/input";; esac
for word in "$@"; do
  case "$word" in
    --task=*) cp "\${word#--task=}" "$folder/task";;
    /*/boxbuild-*) cp -p "$word" "$folder/copied";;
  esac
done
cat "$folder/answer" 2>/dev/null
`;

/** Returns a directory that exists until the test has ended. */
export function scratch(test: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "boxbuild-test-"));
  test.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Sets variables of this process until the test has ended. */
export function setVariables(test: TestContext, variables: Record<string, string | undefined>): void {
  for (const [name, value] of Object.entries(variables)) {
    const before = process.env[name];
    assign(name, value);
    test.after(() => assign(name, before));
  }
}

function assign(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name];
  else process.env[name] = value;
}

/** Programs that answer with recorded objects, in the place of boxbuild and boxlaunch. */
export class Recorder {
  readonly folder: string;

  constructor(test: TestContext) {
    this.folder = scratch(test);
    for (const name of ["boxbuild", "boxlaunch"]) {
      writeFileSync(join(this.folder, name), RECORDER);
      chmodSync(join(this.folder, name), 0o755);
    }
    setVariables(test, { BOXBUILD_BIN: this.folder });
  }

  /** Makes the programs print this. */
  print(answer: string | Buffer): void {
    writeFileSync(join(this.folder, "answer"), answer);
  }

  /** Returns the program and the arguments of the last call of an operation that gets this answer. */
  async words(answer: unknown, operation: () => Promise<unknown>): Promise<string[]> {
    this.print(`${JSON.stringify(answer)}\n`);
    await operation();
    return this.read("arguments").split("\0").slice(0, -1);
  }

  /** Returns what the last call has left: its `input`, `environment`, `task`, or the file that it has `copied`. */
  read(name: string): string {
    return readFileSync(join(this.folder, name), "utf8");
  }
}

/** Waits for a condition. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1000; tries += 1) {
    if (await holds()) return;
    await sleep(20);
  }
  throw new Error("it does not hold");
}

/** Returns the results of an iterator. */
export async function all<T>(iterator: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of iterator) found.push(one);
  return found;
}
