/** Runs programs: to their end, or while their output is read. */

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Readable } from "node:stream";

import { ofText, type Decoder, type Output } from "./answer.js";
import { ProgramNotFoundError } from "./failure.js";

/** The directory of the programs, which takes precedence over those of the package and of PATH. */
export const BIN = "BOXBUILD_BIN";
/** How long a program may take to end after a signal before it is killed, in milliseconds. */
const PATIENCE = 15_000;

/** How much of the standard error of a stream is kept. */
const STDERR = 64 << 10;

/** How a program is run. */
export interface How {
  /** The standard input. */
  input?: string | Uint8Array | undefined;
  /** The variables that the program gets in addition to those of this process. */
  env?: Readonly<Record<string, string>> | undefined;
  /** The signal that ends the program if the caller aborts. */
  interrupt?: NodeJS.Signals | undefined;
  /** Returns the command line that takes back what the program has done, if the caller aborts. */
  undo?: ((output: Output) => readonly string[] | undefined) | undefined;
  /** Kills the program when it has printed more than this many bytes. The output has more bytes then. */
  limit?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Runs a program to its end. If the signal is aborted, ends the program, and takes back what it has done. */
export async function run(argv: readonly string[], how: How = {}): Promise<Output> {
  const { input, env, interrupt = "SIGTERM", undo, signal } = how;
  signal?.throwIfAborted();
  const stdin = input === undefined ? "ignore" : "pipe";
  const child = spawn(argv[0]!, argv.slice(1), { stdio: [stdin, "pipe", "pipe"], env: { ...process.env, ...env } });
  const done = await onAbort(signal, () => end(child, interrupt), finish(child, how));
  if (!signal?.aborted) return done;
  const undoing = undo?.(done);
  if (undoing) await run(undoing);
  throw signal.reason;
}

/** Returns the result of `work`. `stop` is called if the signal is aborted meanwhile. */
export async function onAbort<T>(signal: AbortSignal | undefined, stop: () => void, work: Promise<T>): Promise<T> {
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await work;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

/** Sends a signal, and SIGKILL if the program takes too long to end. */
function end(child: ChildProcess, signal: NodeJS.Signals): void {
  child.kill(signal);
  const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE);
  child.once("close", () => clearTimeout(timer));
}

async function finish(child: ChildProcess, { input, limit = Infinity }: How): Promise<Output> {
  const stdout = collected(child.stdout, limit, () => child.kill("SIGKILL"));
  const stderr = collected(child.stderr);
  // A program that ends without reading its input is no error.
  child.stdin?.on("error", () => {}).end(input);
  const status = await ended(child);
  return { status, stdout: stdout(), stderr: stderr() };
}

/** Reads a stream in the background, and calls `full` after more than `limit` bytes. The returned function returns what was read. */
function collected(stream: Readable | null, limit = Infinity, full: () => void = () => {}): () => Buffer {
  const chunks: Buffer[] = [];
  let length = 0;
  const read = (chunk: Buffer) => {
    if (length <= limit) chunks.push(chunk);
    length += chunk.length;
    if (length > limit) full();
  };
  stream?.on("data", read).on("error", () => {});
  return () => Buffer.concat(chunks);
}

/** Waits until a program has been started. */
export async function started(child: ChildProcess): Promise<void> {
  await event(child, "spawn");
}

/** Waits for the end of a program and of its streams, and returns its status. */
export async function ended(child: ChildProcess): Promise<number> {
  const [code, signal] = (await event(child, "close")) as [number | null, NodeJS.Signals | null];
  return code ?? -constants.signals[signal!];
}

async function event(child: ChildProcess, name: string): Promise<unknown[]> {
  try {
    return await once(child, name);
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? error.code : error;
    const named = process.env[BIN];
    const isNamed = named && child.spawnfile === join(named, basename(child.spawnfile));
    const hint = isNamed ? `${BIN} names this directory; it must have boxlaunch and boxbuild` : undefined;
    throw new ProgramNotFoundError(`${child.spawnfile} cannot be started: ${reason}`, { hint });
  }
}

/** Yields what a program prints. The program is killed when the iterator ends, or the signal is aborted. */
export async function* iterate<T>(
  argv: readonly string[],
  decode: Decoder<T>,
  signal?: AbortSignal,
): AsyncGenerator<T, void, undefined> {
  signal?.throwIfAborted();
  const child = spawn(argv[0]!, argv.slice(1), { stdio: ["ignore", "pipe", "pipe"] });
  const stderr = collected(child.stderr, STDERR);
  const kill = () => child.kill("SIGKILL");
  const end = onAbort(signal, kill, ended(child));
  end.catch(() => {});
  try {
    await started(child);
    for await (const chunk of child.stdout) {
      signal?.throwIfAborted();
      yield* decode(chunk as Buffer);
    }
    const status = await end;
    signal?.throwIfAborted();
    if (status !== 0) throw ofText(status, stderr());
  } finally {
    kill();
    await end.catch(() => {});
  }
}

/** Calls a function with a new directory, which exists until its promise settles. */
export async function inDirectory<T>(use: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), "boxbuild-"));
  try {
    return await use(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
