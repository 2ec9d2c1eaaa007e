/** Files in a box. */

import { chmod, writeFile } from "node:fs/promises";
import { basename, join, posix } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { ofText } from "./answer.js";
import { OVERHEAD, firstEntry, malformed, type ArchivedFile } from "./archive.js";
import { ask, boxlaunch, option } from "./call.js";
import type { InComponent } from "./commands.js";
import { IoError } from "./errors.js";
import { BoxbuildError, printable } from "./failure.js";
import { Handle } from "./handle.js";
import { byName, changes, entriesOf, type Entries } from "./listing.js";
import type { FileChange, FileEntry } from "./result.js";
import { inDirectory, run } from "./run.js";
import type * as schema from "./schema.js";

/** How many links are followed to a file. */
const LINKS = 8;
/** The default of `maxSize`. */
const MAX_SIZE = 64 << 20;

/** The user who reads or writes files. */
export interface FileOptions extends InComponent {
  /** The user who reads the files, or writes and owns them: `USER[:GROUP]`. */
  user?: string | undefined;
}

/** How a file is read. */
export interface ReadOptions extends FileOptions {
  /** The largest size in bytes: 64 MiB by default. A larger file is an error, and is not read to its end. */
  maxSize?: number | undefined;
}

/** The files of a box: `box.files`. */
export class Files extends Handle {
  /**
   * Returns the content of a file.
   *
   * @param path The path in the box. A relative one begins in the working directory of the component.
   * @throws {BoxbuildError} There is no such file, the user may not read it, it is a directory, or it is too large.
   */
  async read(path: string, options: ReadOptions = {}): Promise<Buffer> {
    const { maxSize = MAX_SIZE } = options;
    let found: ArchivedFile | string | undefined = path;
    for (let links = 0; links < LINKS && typeof found === "string"; links += 1) {
      // The box resolves `..`, because a part of the path may be a link, too.
      if (links > 0) path = found.startsWith("/") ? found : `${posix.dirname(path)}/${found}`;
      found = await this.#firstEntry(path, options, maxSize + OVERHEAD);
    }
    if (found === undefined) throw new IoError(`${printable(path)} is a directory`);
    if (typeof found === "string") throw new IoError(`${printable(path)}: too many links`);
    if (found.size > maxSize) {
      const hint = "a larger `maxSize` reads it, and `copyOut` copies it to a file";
      throw new BoxbuildError(`${printable(path)} has ${found.size} bytes, and at most ${maxSize} are read`, { hint });
    }
    if (found.content.length < found.size) throw malformed();
    return found.content;
  }

  /** Copies at most `limit` bytes of an archive of the path, and returns its first entry. */
  async #firstEntry(path: string, options: FileOptions, limit: number): Promise<ArchivedFile | string | undefined> {
    const { component, user, signal } = options;
    const words = [...option("--component", component), ...option("--user", user)];
    const output = await run(boxlaunch("cp", ...words, this.#ofBox(path), "-"), { limit, signal });
    if (output.status !== 0 && output.stdout.length <= limit) {
      // An archive on standard output leaves no room for `--json`. An error of the box, and not of the file, has its code here.
      await ask(["ls", "--json", ...words, this.#ofBox("/")], { signal });
      throw ofText(output.status, output.stderr, IoError);
    }
    return firstEntry(output.stdout);
  }

  /** Returns the content of a file in UTF-8 as text. */
  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await this.read(path, options));
  }

  /**
   * Writes a file, and replaces an existing one.
   *
   * @param path The path in the box, whose directory exists.
   * @param options With `mode`, the permissions: 0o644 by default.
   * @throws {BoxbuildError} The directory does not exist, or the user may not write to it.
   * @example
   * await box.files.write("/tmp/run.sh", "echo hello", { mode: 0o755 });
   */
  async write(path: string, data: string | Uint8Array, options: FileOptions & { mode?: number } = {}): Promise<void> {
    await inDirectory(async (directory) => {
      const copy = join(directory, basename(path) || "content");
      await writeFile(copy, data);
      await chmod(copy, options.mode ?? 0o644);
      await this.copyIn(copy, path, options);
    });
  }

  /**
   * Copies a file or a directory of this host into the box.
   *
   * @param source The path of this host. With `/.` at its end, the content of the directory is copied.
   * @param destination The path in the box. Into a directory, the copy gets the name of the source.
   * @returns The report; `note` says which entries were left out.
   */
  async copyIn(source: string, destination: string, options: FileOptions = {}): Promise<schema.Cp> {
    return copy(ofHost(source), this.#ofBox(destination), options);
  }

  /**
   * Copies a file or a directory of the box to this host.
   *
   * @param source The path in the box. With `/.` at its end, the content of the directory is copied.
   * @param destination The path of this host. Into a directory, the copy gets the name of the source.
   * @returns The report; `note` says which entries were left out, such as links that lead out of the copy.
   */
  async copyOut(source: string, destination: string, options: FileOptions = {}): Promise<schema.Cp> {
    return copy(this.#ofBox(source), ofHost(destination), options);
  }

  #ofBox(path: string): string {
    if (!path) throw new TypeError("the path in the box is empty");
    return `${this.name}:${path}`;
  }

  /**
   * Returns the entries of a directory, sorted by name.
   *
   * @throws {BoxbuildError} There is no such directory, or it has more than 10000 entries.
   */
  async list(path: string, options: InComponent = {}): Promise<FileEntry[]> {
    return [...(await this.#listed(path, options)).values()].sort(byName);
  }

  async #listed(path: string, { component, signal }: InComponent): Promise<Entries> {
    const words = ["ls", "--json", ...option("--component", component), this.#ofBox(path)];
    return entriesOf(await ask<schema.Listing>(words, { signal }));
  }

  /**
   * Yields the changes of a directory, until the box ends, which is an error.
   *
   * The directory is listed again and again, without its subdirectories. Two changes within an interval, or of the same size within
   * a second, are seen as one or not at all.
   *
   * @param options With `interval`, the pause between two listings in seconds: 1 by default.
   * @example
   * for await (const change of box.files.watch("/work")) console.log(change.kind, change.name);
   */
  async *watch(path: string, options: InComponent & { interval?: number } = {}): AsyncGenerator<FileChange, void, undefined> {
    const { interval = 1, signal } = options;
    let old = await this.#listed(path, options);
    for (;;) {
      await pause(interval, signal);
      const now = await this.#listed(path, options);
      yield* changes(old, now);
      old = now;
    }
  }
}

/** Waits for some seconds, or until the signal is aborted. */
async function pause(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  await sleep(seconds * 1000, undefined, { signal }).catch(() => {});
  signal?.throwIfAborted();
}

function copy(source: string, destination: string, { component, user, signal }: FileOptions): Promise<schema.Cp> {
  const words = [...option("--component", component), ...option("--user", user), source, destination];
  return ask(["cp", "--json", ...words], { signal });
}

/** Returns an absolute path, which has no name of a box before its first colon. It keeps a slash or `/.` at its end. */
function ofHost(path: string): string {
  return path.startsWith("/") ? path : `${process.cwd().replace(/\/$/, "")}/${path}`;
}
