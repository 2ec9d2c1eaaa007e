/** The base of all errors, and the errors that are not in the programs' own list. */

import type { Result } from "./result.js";
import type { Problem } from "./schema.js";

/** Returns a text that came from a box for a message: on one line, without control characters, and not too long. */
export function printable(text: string, most = 500): string {
  const short = text.length <= most ? text : `${text.slice(0, most - 1)}…`;
  return short.replace(/(?! )[\p{C}\p{Z}]/gu, "\ufffd");
}

/** What the program has printed about an error. */
export interface ErrorDetails {
  code?: string | undefined;
  hint?: string | null | undefined;
  exitStatus?: number | null | undefined;
  problems?: readonly Problem[] | undefined;
}

/**
 * The base of all errors of this package.
 *
 * Each code of docs/errors.md has a class: `name-not-found` is `NameNotFoundError`. An error with a code that this version of the
 * package does not know is a `BoxbuildError` with that code.
 *
 * @example
 * try {
 *   await Box.start("hello", { name: "one" });
 * } catch (error) {
 *   if (error instanceof NameTakenError) console.log(error.hint);
 * }
 */
export class BoxbuildError extends Error {
  /** The code of all errors of the class. */
  static readonly code: string | undefined = undefined;
  /** The stable code of the error. `undefined` if the program has printed none. */
  readonly code: string | undefined;
  /** How to correct the error. `null` if the program has printed no help. */
  readonly hint: string | null;
  /** The exit status of the program: the negative number of a signal that has ended it. `null` if it was not started. */
  readonly exitStatus: number | null;
  /** All errors and warnings that the program has printed, with their positions in files. */
  readonly problems: readonly Problem[];

  constructor(message: string, details: ErrorDetails = {}) {
    super(details.hint ? `${message} (${details.hint})` : message);
    this.name = new.target.name;
    this.code = details.code ?? new.target.code;
    this.hint = details.hint ?? null;
    this.exitStatus = details.exitStatus ?? null;
    this.problems = details.problems ?? [];
  }
}

/** There is no `boxlaunch` or `boxbuild` in `BOXBUILD_BIN`, in the package, or in PATH. */
export class ProgramNotFoundError extends BoxbuildError {}

/** A command in a box has ended with another status than 0, and `check: true` was given. */
export class CommandError extends BoxbuildError {
  /** The result of the command. */
  readonly result: Result;

  constructor(result: Result) {
    const what = result.timedOut ? "was killed after its time limit" : `has ended with the status ${result.status}`;
    const last = printable(result.stderr.trim().split("\n").at(-1) ?? "");
    super(`\`${printable(result.argv.join(" "))}\` ${what}${last ? `: ${last}` : ""}`, { exitStatus: result.status });
    this.result = result;
  }
}
