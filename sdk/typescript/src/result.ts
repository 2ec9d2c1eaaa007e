/** The results that are more than an object of `--json`. */

import { constants } from "node:fs";

import { CommandError } from "./failure.js";
import type * as schema from "./schema.js";

/** The result of a command in a box. */
export class Result {
  /** The command. */
  readonly argv: readonly string[];
  /** The component in which it ran. */
  readonly component: schema.Component;
  /** The exit status. 128 + N if signal N has ended the command, and 124 after its time limit. */
  readonly status: number;
  /** The output as text. Bytes that are not UTF-8 are U+FFFD here. */
  readonly stdout: string;
  /** The same of the standard error. */
  readonly stderr: string;
  /** How long the command took, in seconds. */
  readonly duration: number;
  /**
   * Whether it has written more than `stdout` and `stderr` have: of more than the limit, these have the start and the end, with a line such
   * as `[… 4096 bytes left out …]` between them.
   */
  readonly truncated: boolean;
  /** Whether it was killed after its time limit. */
  readonly timedOut: boolean;
  /** Whether the kernel has killed a process for lack of memory. */
  readonly oomKilled: boolean;
  /** Whether the command has failed, and the disk of the component is full. */
  readonly diskFull: boolean;
  /** The output with all its bytes. */
  readonly stdoutBytes: Buffer;
  /** The same of the standard error. */
  readonly stderrBytes: Buffer;
  /**
   * How the policy of the box (`sandbox` in its Boxfile) applied to the command: its `state`, the policy, and what was `denied`.
   * `undefined` if no policy applies to the command.
   */
  readonly sandbox: schema.CommandSandbox | undefined;

  /** Makes the result of the object that `boxlaunch exec --json` prints. */
  constructor(report: schema.Exec) {
    this.argv = report.argv;
    this.component = report.component;
    this.status = report.status;
    this.stdout = report.stdout;
    this.stderr = report.stderr;
    this.duration = report.duration_ms / 1000;
    this.truncated = report.truncated;
    this.timedOut = report.timed_out;
    this.oomKilled = report.oom_killed;
    this.diskFull = report.disk_full;
    this.stdoutBytes = bytes(report.stdout, report.stdout_base64);
    this.stderrBytes = bytes(report.stderr, report.stderr_base64);
    this.sandbox = report.sandbox;
  }

  /** Whether the status is 0. */
  get ok(): boolean {
    return this.status === 0;
  }

  /**
   * Returns the result itself.
   *
   * @throws {CommandError} The status is not 0.
   */
  check(): this {
    if (!this.ok) throw new CommandError(this);
    return this;
  }
}

function bytes(text: string, encoded: string | undefined): Buffer {
  return encoded === undefined ? Buffer.from(text) : Buffer.from(encoded, "base64");
}

/** An entry of a directory in a box. */
export class FileEntry {
  constructor(
    /** The name in the directory. Bytes that are not UTF-8 are U+FFFD. */
    readonly name: string,
    /** The type and the permissions, as in the `mode` of `fs.Stats`. */
    readonly mode: number,
    /** The size in bytes. */
    readonly size: number,
    /** When the content was changed last, in seconds since 1970. */
    readonly mtime: number,
  ) {}

  /** Whether the entry is a directory. */
  get isDir(): boolean {
    return (this.mode & constants.S_IFMT) === constants.S_IFDIR;
  }

  /** Whether the entry is a regular file. */
  get isFile(): boolean {
    return (this.mode & constants.S_IFMT) === constants.S_IFREG;
  }
}

/** A change of a directory in a box. */
export interface FileChange {
  kind: "created" | "modified" | "deleted";
  /** The name of the entry. */
  name: string;
}
