/** Runs a command in a box to its end. */

import { ask, flag } from "./call.js";
import { argv, commandWords, ofFile, type Command, type ExecOptions } from "./commands.js";
import { Result } from "./result.js";
import type * as schema from "./schema.js";

/** Runs a command in the box of this name. `Box.exec` describes it. */
export async function execIn(name: string, command: Command, options: ExecOptions): Promise<Result> {
  const { env = {}, input, signal, check } = options;
  const hidden = input === undefined ? ofFile(env) : {};
  const shown = Object.fromEntries(Object.entries(env).filter(([name]) => !Object.hasOwn(hidden, name)));
  const file = Object.entries(hidden).map(([name, value]) => `${name}=${value}\n`);
  const given = file.length > 0 ? file.join("") : input;
  const line = [...commandWords({ ...options, env: shown }), ...flag("--env-file=-", file.length > 0)];
  const words = ["exec", "--json", ...line, name, "--", ...argv(command)];
  const result = new Result(await ask<schema.Exec>(words, { input: given, signal, interrupt: "SIGKILL" }));
  return check ? result.check() : result;
}
