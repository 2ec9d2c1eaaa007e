/** Commands in a box whose streams the caller reads and writes. */

import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { PassThrough, type Readable, type Writable } from "node:stream";
import { buffer } from "node:stream/consumers";

import { ProgramNotFoundError } from "./failure.js";
import { ended, onAbort, run, started } from "./run.js";

/** The signals that `boxlaunch exec` passes on to its command, and the one that kills both. */
const PASSED_ON: readonly string[] = ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"];
/** Prints the shell's process and its terminal on descriptor 3, and becomes the program. */
const IN_TERMINAL = 'stty rows 24 columns 80; echo $$ $(tty) >&3; exec 3>&-; exec "$@"';

/** The terminal of a command: `boxlaunch`, which is not the child then, and the path. */
interface Terminal {
  pid: number;
  path: string;
}

/**
 * A command in a box, with its streams. `await using` kills the command at the end of the block.
 *
 * @example
 * await using cat = await box.popen(["cat"]);
 * cat.stdin.end("hello");
 * for await (const chunk of cat.stdout) console.log(String(chunk));
 */
export class Process {
  /** The standard input. */
  readonly stdin: Writable;
  /** The output. With `pty: true`, the terminal. */
  readonly stdout: Readable;
  /** The standard error. `null` with `pty: true`. */
  readonly stderr: Readable | null;
  readonly #child: ChildProcess;
  readonly #end: Promise<number>;
  #terminal: Terminal | undefined;
  #returncode: number | null = null;
  #aborted: AbortSignal | undefined;

  private constructor(child: ChildProcess, signal: AbortSignal | undefined) {
    this.#child = child;
    this.stdin = child.stdin!;
    // A command may end without reading its input. `wait` returns its status then.
    this.stdin.on("error", () => {});
    // Node.js drops what is unread in the streams of a process that has ended.
    this.stdout = child.stdout!.pipe(new PassThrough());
    this.stderr = child.stderr?.pipe(new PassThrough()) ?? null;
    this.#end = onAbort(signal, () => this.#abort(signal!), ended(child));
    this.#end.then((status) => (this.#returncode = status)).catch(() => {});
  }

  /** Starts a command line of `boxlaunch exec`. `Box.popen` calls it. */
  static async start(argv: readonly string[], pty: boolean, signal?: AbortSignal): Promise<Process> {
    signal?.throwIfAborted();
    const child = pty ? inTerminal(argv) : spawn(argv[0]!, argv.slice(1), { stdio: "pipe" });
    const made = new Process(child, signal);
    await started(child);
    if (pty) made.#terminal = await terminalOf(child.stdio[3] as Readable);
    if (signal?.aborted) await made.close();
    signal?.throwIfAborted();
    if (pty && !made.#terminal) throw new ProgramNotFoundError("`pty: true` needs the program script of util-linux");
    return made;
  }

  #abort(signal: AbortSignal): void {
    this.#aborted = signal;
    this.#drop();
    this.kill();
  }

  /** Drops the output that is unread. Node.js would wait for its reader before the process counts as ended. */
  #drop(): void {
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream?.unpipe().resume();
  }

  /** The exit status. `null` if the command runs. */
  get returncode(): number | null {
    return this.#returncode;
  }

  /** Returns the exit status, or `null` if the command runs. */
  poll(): number | null {
    return this.#returncode;
  }

  /** Waits for the end of the command, and returns its exit status. Read `stdout` first if it is long. */
  async wait(): Promise<number> {
    const status = await this.#end;
    this.#aborted?.throwIfAborted();
    return status;
  }

  /**
   * Writes `input` and its end, reads both streams until the command ends, and returns what it has written to them.
   *
   * @throws {TypeError} The command has a terminal.
   */
  async communicate(input: string | Uint8Array = ""): Promise<{ stdout: Buffer; stderr: Buffer }> {
    if (!this.stderr) throw new TypeError("a command in a terminal has one stream: read `stdout`");
    this.stdin.end(input);
    const [stdout, stderr] = await Promise.all([buffer(this.stdout), buffer(this.stderr), this.wait()]);
    return { stdout, stderr };
  }

  /**
   * Sends the command SIGINT, SIGTERM or SIGHUP. A second signal, and SIGKILL, kill it.
   *
   * @throws {TypeError} It is another signal.
   */
  sendSignal(signal: NodeJS.Signals): void {
    if (!PASSED_ON.includes(signal)) {
      throw new TypeError("a command in a box can be sent SIGINT, SIGTERM, SIGHUP and SIGKILL; use `kill` in the box for others");
    }
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    if (this.#terminal) signalProcess(this.#terminal.pid, signal);
    else this.#child.kill(signal);
  }

  /** Sends SIGTERM. */
  terminate(): void {
    this.sendSignal("SIGTERM");
  }

  /** Kills the command. */
  kill(): void {
    this.sendSignal("SIGKILL");
  }

  /** Sets the size of the terminal of `pty: true`. */
  async resize(rows: number, columns: number): Promise<void> {
    if (!this.#terminal) throw new TypeError("the command has no terminal: start it with pty: true");
    const { path } = this.#terminal;
    await run(["/bin/sh", "-c", 'exec stty rows "$1" columns "$2" <"$3"', "sh", `${rows}`, `${columns}`, path]);
  }

  /** Kills the command, and closes its streams. */
  async close(): Promise<void> {
    this.#drop();
    this.kill();
    await this.#end;
    this.stdin.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Starts a program in a terminal. Node.js can open none, but script(1) can. */
function inTerminal(argv: readonly string[]): ChildProcess {
  const line = `set -- ${argv.map(quoted).join(" ")}; ${IN_TERMINAL}`;
  return spawn("script", ["--quiet", "--return", "--flush", "--command", line, "/dev/null"], {
    stdio: ["pipe", "pipe", "ignore", "pipe"],
    env: { ...process.env, SHELL: "/bin/sh" },
  });
}

/** Reads what the shell prints about its terminal. */
async function terminalOf(names: Readable): Promise<Terminal | undefined> {
  for await (const line of createInterface(names)) {
    const [pid, path] = line.split(" ");
    if (path) return { pid: Number(pid), path };
  }
  return undefined;
}

/** Quotes a word for a shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** Sends a signal to a process that may have ended. */
function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
