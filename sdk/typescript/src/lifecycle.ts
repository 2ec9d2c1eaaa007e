/** Starts boxes. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { answer, type Output } from "./answer.js";
import { ask, boxlaunch, option, type Abortable } from "./call.js";
import { argv, commandWords, type Command, type ExecOptions } from "./commands.js";
import { boxfileOf, configOf, configVariables, configWords, type BoxConfig } from "./config.js";
import { BoxbuildError } from "./failure.js";
import { Result } from "./result.js";
import { inDirectory } from "./run.js";
import type * as schema from "./schema.js";
import { build } from "./store.js";

/** Starts a box, and returns its report when its agent is ready. */
export async function startBox(config: BoxConfig, { signal }: Abortable): Promise<schema.Run> {
  const words = configWords(config, await boxOf(config, signal));
  return withFile(config.task, (task) => {
    const line = ["run", "--json", "--detach", ...option("--task", task), ...words];
    return ask<schema.Run>(line, { env: configVariables(config), undo, signal });
  });
}

/** Returns the box of a configuration, after its Boxfile is built. */
async function boxOf(config: BoxConfig, signal: AbortSignal | undefined): Promise<string | undefined> {
  const boxfile = boxfileOf(config);
  return boxfile === undefined ? config.box : (await build(boxfile, { signal })).box;
}

/** Writes a task to a file, which exists until the promise of `use` settles. */
async function withFile<T>(task: BoxConfig["task"], use: (path?: string) => Promise<T>): Promise<T> {
  if (task === undefined) return use();
  return inDirectory(async (directory) => {
    const path = join(directory, "task.json");
    await writeFile(path, JSON.stringify(task));
    return use(path);
  });
}

/** Returns the call that removes a box whose start was complete when the caller aborted. */
function undo(output: Output): string[] | undefined {
  try {
    return boxlaunch("rm", "--force", "--json", (answer(output) as schema.Run).name);
  } catch {
    return undefined;
  }
}

/**
 * Starts a box for one command, and removes it when the command has ended.
 *
 * @param box The box, or what it gets from its host, too.
 * @param command The program and its arguments, or a line for `sh`.
 * @throws {BoxbuildError} The box was not started.
 * @throws {CommandError} The command has failed, with `check: true`.
 * @example
 * (await run({ image: "python:3.12" }, ["python3", "-c", "print(6 * 7)"])).stdout  // "42\n"
 */
export async function run(box: string | BoxConfig, command: Command, options: ExecOptions = {}): Promise<Result> {
  const config = configOf(box);
  const { input, signal } = options;
  const words = [...commandWords(options), ...configWords(config, await boxOf(config, signal)), "--", ...argv(command)];
  const report = await ask<schema.Run>(["run", "--json", ...words], { env: configVariables(config), input, signal });
  if (!report.command) throw new BoxbuildError(`the box ${report.name} has ended before the command`);
  const result = new Result(report.command);
  return options.check ? result.check() : result;
}

/**
 * Starts a box for one task, and removes it when its agent has ended.
 *
 * @param box The box, or what it gets from its host, too.
 * @param spec The task: `id`, `type` and `description`; optionally `input`, `tags` and `timeout_seconds`.
 * @returns The task with its verdict: `status` is `completed` or `failed`, and `error` is the reason of a failure. `result` is what
 *   the agent has left, or `null` if that is not JSON.
 * @throws {BoxbuildError} The box was not started. A failed task is no error.
 * @example
 * (await runTask("counter", { id: "1", type: "count", description: "Count", input: "one two" })).result  // { words: 2 }
 */
export async function runTask(
  box: string | BoxConfig,
  spec: Readonly<Record<string, unknown>>,
  { signal }: Abortable = {},
): Promise<schema.Task> {
  const config = configOf(box);
  const words = configWords(config, await boxOf(config, signal));
  const env = configVariables(config);
  const report = await withFile(spec, (path) =>
    ask<schema.Run>(["run", "--json", ...option("--task", path), ...words], { env, signal }),
  );
  return report.task!;
}
