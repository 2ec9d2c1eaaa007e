/** What the answers of boxbuild and boxlaunch mean. */

import { BY_CODE, InternalError, UsageError } from "./errors.js";
import { BoxbuildError, printable } from "./failure.js";
import type { Problem } from "./schema.js";

/** How much of a stream is kept that is no whole piece yet. */
const UNFINISHED = 64 << 20;
/** What the programs say about KVM, and what it means in this package. */
const EMULATION = /run the box slowly without KVM: `[^`]*`|`--emulated` cannot be used with [^;]*/g;
const WITHOUT_KVM = "without KVM: run({ box: …, emulated: true }, command)";

/** What a program has printed, and its exit status: the negative number of a signal that has ended it. */
export interface Output {
  status: number;
  stdout: Buffer;
  stderr: Buffer;
}

/** Returns the object in the output of a program. */
export function answer(output: Output): unknown {
  const found = object(output.stdout.toString());
  if (found === undefined) throw ofText(output.status, output.stderr);
  check(found, output.status);
  return found;
}

function object(text: string): object | undefined {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null ? found : undefined;
  } catch {
    return undefined;
  }
}

/** Throws the first error in an object of a program. Warnings are no errors. */
function check(found: { errors?: readonly Problem[] | null }, exitStatus: number | null): void {
  const problems = found.errors ?? [];
  for (const problem of problems) {
    if (problem.severity !== "error") continue;
    const { code } = problem;
    const hint = problem.help?.replace(EMULATION, WITHOUT_KVM);
    throw new (BY_CODE.get(code) ?? BoxbuildError)(problem.message, { code, hint, exitStatus, problems });
  }
}

/** Returns the error that a program has printed as text: a wrong command line, a bug, or one of a command without `--json`. */
export function ofText(exitStatus: number, stderr: Buffer, otherKind = BoxbuildError): BoxbuildError {
  const text = stderr.toString();
  const message = /^error: (.+)$/m.exec(text)?.[1];
  const hint = [...text.matchAll(/^ *(?:= help: |(?=\[possible values: |tip: ))(.+)$/gm)].map((it) => it[1]).join("; ");
  const kind = exitStatus === 2 ? UsageError : exitStatus === 70 ? InternalError : otherKind;
  const otherwise = printable(text.trim()) || `the program has ended with the status ${exitStatus} and no answer`;
  return new kind(message ?? otherwise, { hint, exitStatus });
}

/** Turns a chunk of the output of a program into results. */
export type Decoder<T> = (chunk: Buffer) => Iterable<T>;

/** Returns the decoder of one JSON object on each line. */
export function jsonLines<T>(): Decoder<T> {
  const lines = separated(10);
  return function* (chunk) {
    for (const line of lines(chunk)) {
      const found = JSON.parse(line.toString()) as T & object;
      check(found, null);
      yield found;
    }
  };
}

/**
 * Returns the decoder of pieces that end with the byte `end`. It throws a `BoxbuildError` if a piece does not end.
 */
export function separated(end: number): (chunk: Buffer) => Buffer[] {
  let rest: Buffer[] = [];
  let length = 0;
  return (chunk) => {
    const pieces: Buffer[] = [];
    let start = 0;
    for (let at = chunk.indexOf(end); at >= 0; at = chunk.indexOf(end, start)) {
      pieces.push(Buffer.concat([...rest, chunk.subarray(start, at)]));
      [rest, length, start] = [[], 0, at + 1];
    }
    rest.push(chunk.subarray(start));
    length += chunk.length - start;
    if (length > UNFINISHED) throw new BoxbuildError(`the program has printed a line of more than ${UNFINISHED >> 20} MiB`);
    return pieces;
  };
}
