/** Builds, and the boxes of the store. */

import { answer } from "./answer.js";
import { ask, flag, operand, operands, option, program, type Abortable } from "./call.js";
import { run } from "./run.js";
import type * as schema from "./schema.js";

/** How a box is built. */
export interface BuildOptions extends Abortable {
  /** The name of the box in the store. By default, the name that the Boxfile gives it. */
  name?: string | undefined;
  /** The directory for the whole box. By default, the box is in the store. */
  output?: string | undefined;
  /** Further options of `boxbuild build`, such as `["--locked"]`. */
  options?: readonly string[] | undefined;
}

/**
 * Builds the box of a Boxfile.
 *
 * @param boxfile The path of the Boxfile.
 * @returns The report: `box` is the digest, which `Box.start` takes.
 * @throws {BoxfileInvalidError} The Boxfile has errors. `problems` has their lines.
 * @example
 * (await build("examples/hello/Boxfile")).box  // "sha256:…"
 */
export async function build(boxfile = "Boxfile", options: BuildOptions = {}): Promise<schema.Build> {
  const { name, output, signal } = options;
  const words = [...option("--file", boxfile), ...option("--name", name), ...option("--output", output)];
  const line = [program("boxbuild"), "build", "--json", ...words, ...(options.options ?? [])];
  return answer(await run(line, { signal })) as schema.Build;
}

/** What `Images.prune` removes. */
export interface PruneOptions extends Abortable {
  /** The largest size of the store, such as `50G`. */
  maxSize?: string | undefined;
  /** Removes also what was not used for this long, such as `7d`. */
  olderThan?: string | undefined;
  /** Whether to only report what would be removed. */
  dryRun?: boolean | undefined;
}

/** The boxes of the store: `images`. */
export class Images {
  /**
   * Pulls a box from a registry into the store.
   *
   * @param reference `HOST/NAME:TAG`, with `@sha256:…` for the box of that digest alone.
   * @param options With `dryRun`, only reports how much would be fetched.
   */
  async pull(reference: string, options: Abortable & { dryRun?: boolean } = {}): Promise<schema.Pull> {
    return ask(["pull", "--json", ...flag("--dry-run", options.dryRun), operand(reference)], { signal: options.signal });
  }

  /**
   * Returns the boxes of the store that have a name.
   *
   * @param options With `all`, also boxes without a name. With `sizes`, how much of each box no other box shares.
   */
  async list(options: Abortable & { all?: boolean; sizes?: boolean } = {}): Promise<schema.ImagesImage[]> {
    const words = [...flag("--all", options.all), ...flag("--sizes", options.sizes)];
    return (await ask<schema.Images>(["images", "--json", ...words], { signal: options.signal })).images;
  }

  /** Removes boxes from the store: names, references or digests. With `force` also boxes that run, which go on. */
  async remove(boxes: string | readonly string[], options: Abortable & { force?: boolean } = {}): Promise<schema.Prune> {
    return ask(["rmi", "--json", ...flag("--force", options.force), ...operands(boxes)], { signal: options.signal });
  }

  /** Removes the least recently used boxes and files of the store. */
  async prune(options: PruneOptions = {}): Promise<schema.Prune> {
    const { maxSize, olderThan, dryRun, signal } = options;
    const words = [...option("--max-size", maxSize), ...option("--older-than", olderThan), ...flag("--dry-run", dryRun)];
    return ask(["prune", "--json", ...words], { signal });
  }
}

/** The boxes of the store. */
export const images = new Images();
