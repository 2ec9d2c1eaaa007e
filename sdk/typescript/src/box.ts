/** Boxes and environments. */

import { homedir } from "node:os";

import { ask, flag, operand, option, type Abortable } from "./call.js";
import { configOf, type BoxConfig, type BoxOptions } from "./config.js";
import { startBox } from "./lifecycle.js";
import { Running } from "./running.js";
import type * as schema from "./schema.js";

/**
 * A box that runs. `Box.start` starts one, and `Box.of` is one that runs already.
 *
 * `await using` stops and removes the box at the end of the block, unless it was started with `keep: true`.
 *
 * @example
 * await using box = await Box.start("hello");
 * console.log((await box.exec(["hostname"])).stdout);
 */
export class Box extends Running {
  /** Returns the box that runs under a name. Nothing is started, and the end of the block leaves it running. */
  static of(name: string): Box {
    return new Box(name);
  }

  /**
   * Starts a box, and returns when its agent is ready.
   *
   * Without `keep`, the box ends with `close`, and with this process, even if that is killed. A start that is aborted leaves no box.
   *
   * @param box A name in the store, `HOST/NAME:TAG` of a registry, a digest, a directory, or a Boxfile; or all of a `BoxConfig`.
   * @param options What the box gets from its host.
   * @throws {TypeError} An option is wrong, or the box is emulated.
   * @throws {BoxbuildError} The box was not started; for example `BoxNotFoundError` or `StartupTimeoutError`.
   */
  static async start(box: string | BoxConfig, options: BoxOptions & Abortable = {}): Promise<Box> {
    const { signal, ...given } = options;
    const config = configOf({ ...(typeof box === "object" ? box : { box }), ...given });
    if (config.emulated) throw new TypeError("only run({ box: …, emulated: true }, command) starts a box without KVM");
    const report = await startBox(config, { signal });
    return new Box(report.name, report, config.keep ?? false);
  }
}

/** Starts a box, as `Box.start` does. */
export async function createBox(config: string | BoxConfig, options: Abortable = {}): Promise<Box> {
  return Box.start(config, options);
}

/** How the environment of a project is started. */
export interface EnvironmentOptions extends Abortable {
  /** The box, at the first start: a Boxfile, a name in the store, a directory, `HOST/NAME:TAG` or a digest. By default, the project's. */
  box?: string | undefined;
  /** The snapshot to begin with. */
  snapshot?: string | undefined;
  /** Whether to permit what a changed Boxfile asks for. */
  accept?: boolean | undefined;
  /** Further options of `boxlaunch up` for the first start. */
  options?: readonly string[] | undefined;
}

/**
 * The environment of a project: a box that is there again tomorrow, as docs/environments.md describes it.
 *
 * `Environment.up` starts it, and `Environment.of` is one that runs already. It has the methods of `Box`. The end of the block leaves
 * it running.
 */
export class Environment extends Running {
  /** Returns the environment whose box has a name. Nothing is started. */
  static of(name: string): Environment {
    return new Environment(name);
  }

  /**
   * Starts the environment of a project, or does nothing if it runs. It outlives this process, with what was installed in it.
   *
   * @param path The directory of the project.
   * @example
   * const page = await Environment.up("~/src/page", { accept: true });
   * await page.exec("make test", { check: true });
   */
  static async up(path = ".", options: EnvironmentOptions = {}): Promise<Environment> {
    const { box, snapshot, accept, signal } = options;
    const words = [...option("--box", box), ...option("--from", snapshot), ...flag("--accept", accept)];
    const project = operand(path.replace(/^~(?=\/|$)/, homedir()));
    const report = await ask<schema.Up>(["up", "--json", ...words, ...(options.options ?? []), project], { signal });
    return new Environment(report.name);
  }

  /** Removes the environment with its disk and its volumes. The directory of the project stays. */
  override async remove({ signal }: Abortable = {}): Promise<void> {
    await ask(["rm", "--force", "--all-data", "--json", this.name], { signal });
  }

  /** Removes what programs have written to the root of the environment. Volumes and the project stay. */
  async reset({ signal }: Abortable = {}): Promise<void> {
    await ask(["reset", "--json", this.name], { signal });
  }

  /**
   * Copies the disk of the environment, which must be stopped.
   *
   * @param name The name of the snapshot. By default, the name of the box with a running number.
   */
  async snapshot(name?: string, { signal }: Abortable = {}): Promise<schema.Snapshot> {
    const words = ["snapshot", "create", "--json", this.name, ...(name === undefined ? [] : [operand(name)])];
    const { snapshots } = await ask<schema.Snapshots>(words, { signal });
    return snapshots[0]!;
  }
}

/**
 * Returns the records of the boxes that run, the newest first.
 *
 * @param options With `all`, also boxes that have ended.
 */
export async function listBoxes(options: Abortable & { all?: boolean } = {}): Promise<schema.Record[]> {
  const words = ["ps", "--json", ...flag("--all", options.all)];
  return (await ask<schema.Ps>(words, { signal: options.signal })).boxes;
}
