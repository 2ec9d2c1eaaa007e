/** Commands in a box. */

import { flag, given, option, pairs, preciseSeconds, type Abortable } from "./call.js";
import type * as schema from "./schema.js";

/** The program and its arguments, or a line for `sh`. */
export type Command = string | readonly string[];

/** How a quoted value of a file of variables has these characters. */
const ESCAPES: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", '"': '\\"' };
/** Control characters, spaces other than U+0020, and characters without a shape. */
const INVISIBLE =
  /(?! )[\p{C}\p{Z}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\u{13440}-\u{13455}\u{16fe4}\u{e0100}-\u{e01ef}]/u;

/** The component of a box to which an operation applies. */
export interface InComponent extends Abortable {
  /** The component: `agent`, or `business`, the default if the box has it. */
  component?: schema.Component | undefined;
}

/** How code is run. */
export interface CodeOptions extends InComponent {
  /** Kills the command after this many seconds, such as 0.5. */
  timeout?: number | undefined;
  /** Whether a status other than 0 is an error. */
  check?: boolean | undefined;
}

/** How a command is run, with streams or without. */
interface CommandOptions extends InComponent {
  /** The working directory, which must exist. */
  cwd?: string | undefined;
  /** Variables of the command. With `exec` without `input`, their values are on no command line. */
  env?: Readonly<Record<string, string>> | undefined;
  /** `USER[:GROUP]`: names of the component, or numbers. */
  user?: string | undefined;
  /** Kills the command after this many seconds, such as 0.5. */
  timeout?: number | undefined;
}

/** How a command is run to its end. */
export interface ExecOptions extends CommandOptions {
  /** The standard input, which is empty otherwise. */
  input?: string | Uint8Array | undefined;
  /** How much of each output is kept, instead of 1 MiB: bytes, or a text such as `16MiB`. */
  maxOutput?: number | string | undefined;
  /** Whether a status other than 0 is an error. */
  check?: boolean | undefined;
}

/** How a command with streams is started. */
export interface PopenOptions extends CommandOptions {
  /** Whether the command gets a terminal. Its `stdin` and `stdout` are then that terminal, and `stderr` is `null`. */
  pty?: boolean | undefined;
}

/** Returns the options of a command for `boxlaunch exec` and `run`. */
export function commandWords(options: ExecOptions): string[] {
  return [
    ...option("--component", options.component),
    ...option("--workdir", options.cwd),
    ...option("--env", ...pairs(options.env)),
    ...option("--user", options.user),
    ...flag("--interactive", options.input !== undefined),
    ...option("--timeout", preciseSeconds(options.timeout)),
    ...option("--max-output", options.maxOutput),
  ];
}

/**
 * Returns the variables that the file of `--env-file` can have, with their values as it has them.
 *
 * It can have no invisible characters but line ends and tabs.
 */
export function ofFile(env: Readonly<Record<string, string>>): Record<string, string> {
  const quoted = given(env).map(([name, value]) => [name, `"${value.replace(/[\n\r\t\\"]/g, (it) => ESCAPES[it]!)}"`]);
  const fits = ([name, value]: string[]) => /^[A-Za-z_]\w*$/.test(name!) && !INVISIBLE.test(value!);
  return Object.fromEntries(quoted.filter(fits)) as Record<string, string>;
}

/** Returns the words of a command. */
export function argv(command: Command): readonly string[] {
  const words = typeof command === "string" ? ["/bin/sh", "-c", command] : command;
  if (words.length === 0) throw new TypeError("the command is empty");
  return words;
}
