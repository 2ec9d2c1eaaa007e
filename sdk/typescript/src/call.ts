/** The command lines of boxbuild and boxlaunch. */

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

import { answer } from "./answer.js";
import { ProgramNotFoundError } from "./failure.js";
import { BIN, run, type How } from "./run.js";

/** The programs in the package, which is compiled to `dist/src`. */
const OWN = fileURLToPath(new URL("../../bin/", import.meta.url));

/** An option that each operation has. */
export interface Abortable {
  /** Stops what the operation has started when it is aborted. The promise is then rejected with the reason. */
  signal?: AbortSignal | undefined;
}

/**
 * Returns the path of `boxbuild` or `boxlaunch`.
 *
 * @throws {ProgramNotFoundError} There is no such program.
 */
export function program(name: string): string {
  const named = process.env[BIN];
  if (named) return join(named, name);
  const folders = [OWN, ...(process.env["PATH"] ?? "").split(delimiter).filter(Boolean)];
  const found = folders.map((folder) => join(folder, name)).find(isExecutable);
  if (found !== undefined) return found;
  throw new ProgramNotFoundError(`there is no ${name}`, {
    hint: `install boxbuild, or name the directory of the programs in ${BIN}`,
  });
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns a command line of boxlaunch. */
export function boxlaunch(...words: string[]): string[] {
  return [program("boxlaunch"), ...words];
}

/**
 * Runs `boxlaunch` with `--json`, and returns the object that it prints. The caller names its type.
 *
 * @throws {BoxbuildError} The program has printed an error, or no object.
 */
export async function ask<T>(words: readonly string[], how: How = {}): Promise<T> {
  return answer(await run(boxlaunch(...words), how)) as T;
}

/**
 * Returns a word of the command line that is no option.
 *
 * @throws {TypeError} The word is empty, or the program would take it for an option.
 */
export function operand(word: string): string {
  if (word && !word.startsWith("-")) return word;
  throw new TypeError(`${JSON.stringify(word)} is not a name or a path; write ./${word} for a path`);
}

/** Returns `operand` of one word, or of each. */
export function operands(words: string | readonly string[]): string[] {
  return (typeof words === "string" ? [words] : words).map(operand);
}

/** Returns an option once for each value that is not `undefined`. */
export function option(name: string, ...values: readonly (string | number | undefined)[]): string[] {
  return values.filter((it) => it !== undefined).map((it) => `${name}=${it}`);
}

/** Returns an option without a value, if it is given. */
export function flag(name: string, given: boolean | undefined): string[] {
  return given ? [name] : [];
}

/**
 * Returns a time as an option takes it: a text such as `15m` as it is, and a number as whole seconds, rounded up.
 *
 * @throws {TypeError} The time is negative.
 */
export function seconds(time: number | string | undefined): string | undefined {
  return typeof time === "number" ? String(natural(time, time)) : time;
}

/** Returns a time as `seconds` does, but with milliseconds. */
export function preciseSeconds(time: number | string | undefined): string | undefined {
  return typeof time === "number" ? String(natural(time * 1000, time) / 1000) : time;
}

function natural(number: number, time: number): number {
  if (number >= 0 && number < Infinity) return Math.ceil(number);
  throw new TypeError(`${time} is no time: write seconds, at least 0`);
}

/** Returns `NAME=VALUE` for each entry. */
export function pairs(values: Readonly<Record<string, string>> | undefined): string[] {
  return given(values ?? {}).map(([name, value]) => `${name}=${value}`);
}

/**
 * Returns variables that all have a value.
 *
 * @throws {TypeError} A value is `null` or `undefined`, which could mean an empty value or no variable.
 */
export function given(values: Readonly<Record<string, string>>): [string, string][] {
  const entries = Object.entries(values);
  const missing = entries.find(([, value]) => value === null || value === undefined);
  if (missing) throw new TypeError(`the value of ${missing[0]} is ${missing[1]}: leave it out, or give a text, also an empty one`);
  return entries;
}
