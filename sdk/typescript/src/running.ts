/** What can be done with a box that runs. */

import { jsonLines } from "./answer.js";
import { ask, boxlaunch, flag, option, seconds, type Abortable } from "./call.js";
import { argv, commandWords, type CodeOptions, type Command, type ExecOptions, type PopenOptions } from "./commands.js";
import { BoxEndedError, NameNotFoundError, NotRunningError } from "./errors.js";
import { execIn } from "./exec.js";
import { Files } from "./files.js";
import { Handle } from "./handle.js";
import { Process } from "./process.js";
import type { Result } from "./result.js";
import { iterate } from "./run.js";
import type * as schema from "./schema.js";
import { Agent, Network, Skills, type GenerateOptions } from "./talk.js";

/** The longest program text on a command line. Linux allows one word 128 KiB. */
const WORD = 100_000;
/** How long programs may take to end when a block ends, in seconds. */
const GRACE = 2;

/** A component, by default the agent. */
export interface OfComponent extends Abortable {
  /** The component: `agent` by default. */
  component?: schema.Component | undefined;
}

/** Which part of the output `logs` begins with. */
export interface LogOptions extends OfComponent {
  /** Whether to wait for more output until the box ends. */
  follow?: boolean | undefined;
  /** Begins with the output since then: `10m`, or seconds since 1970. */
  since?: number | string | undefined;
  /** Begins with the last lines, this many. */
  tail?: number | undefined;
}

/** The methods of `Box` and of `Environment`. */
export abstract class Running extends Handle {
  /** The report of the start, with the time of each phase. `undefined` for a box that was running already. */
  readonly report: schema.Run | undefined;
  readonly files: Files;
  readonly skills: Skills;
  readonly network: Network;
  readonly agent: Agent;
  /** Whether the end of the block stops the box. `close` does that once. */
  #endsWithBlock: boolean;

  protected constructor(name: string, report?: schema.Run, keep = true) {
    super(name);
    this.report = report;
    this.#endsWithBlock = !keep;
    this.files = new Files(name);
    this.skills = new Skills(name);
    this.network = new Network(name);
    this.agent = new Agent(name);
  }

  /**
   * Runs a command in the box, and returns when it has ended. It is killed if the signal is aborted.
   *
   * @param command The program and its arguments, or a line for `sh`.
   * @throws {BoxbuildError} The box does not run, or has no such component.
   * @throws {CommandError} The command has failed, with `check: true`.
   * @example
   * (await box.exec(["sort"], { input: "b\na\n" })).stdout  // "a\nb\n"
   */
  async exec(command: Command, options: ExecOptions = {}): Promise<Result> {
    return execIn(this.name, command, options);
  }

  /** Runs a program in Python. The component needs a `python3`. */
  async runPython(code: string, options: CodeOptions = {}): Promise<Result> {
    return this.#runCode("python3", "-c", code, options);
  }

  /** Runs a program in JavaScript. The component needs a `node`. */
  async runNode(code: string, options: CodeOptions = {}): Promise<Result> {
    return this.#runCode("node", "-e", code, options);
  }

  async #runCode(program: string, option: string, code: string, options: CodeOptions): Promise<Result> {
    if (Buffer.byteLength(code) < WORD) return execIn(this.name, [program, option, code], options);
    return execIn(this.name, [program, "-"], { ...options, input: code });
  }

  /**
   * Starts a command in the box, and returns at once. The caller reads and writes its streams.
   *
   * @param command The program and its arguments, or a line for `sh`.
   */
  async popen(command: Command, options: PopenOptions = {}): Promise<Process> {
    const { pty = false, signal, ...others } = options;
    const words = [...flag("--tty", pty), ...flag("--raw", !pty), ...commandWords({ ...others, input: "" })];
    return Process.start(boxlaunch("exec", ...words, this.name, "--", ...argv(command)), pty, signal);
  }

  /** Sends a prompt to an agent that serves the interface of docs/agents.md, and returns its whole answer. */
  async generate(prompt: string, options: GenerateOptions = {}): Promise<schema.AgentGenerate> {
    return this.agent.generate(prompt, options);
  }

  /**
   * Returns the task with which the box was started, and its status.
   *
   * @throws {BoxbuildError} The box has no task, or has ended and left no record.
   */
  async task({ signal }: Abortable = {}): Promise<schema.Task> {
    return ask(["task", "--json", this.name], { signal });
  }

  /**
   * Yields the output of a component's main program, piece by piece.
   *
   * @example
   * for await (const piece of box.logs({ follow: true })) console.log(piece.stream, piece.text);
   */
  logs(options: LogOptions = {}): AsyncGenerator<schema.Logs, void, undefined> {
    const { follow, since, tail, component = "agent", signal } = options;
    const words = [...flag("--follow", follow), ...option("--since", since), ...option("--tail", tail)];
    const line = boxlaunch("logs", "--json", ...words, ...option("--component", component), this.name);
    return iterate(line, jsonLines<schema.Logs>(), signal);
  }

  /**
   * Yields everything that is kept of the run, in the order of time: output, commands, connections, trajectories. Without `logs` in
   * the Boxfile, only output is kept.
   *
   * @param options With `follow`, waits for more until the box ends.
   */
  events(options: Abortable & { follow?: boolean } = {}): AsyncGenerator<schema.RunLog, void, undefined> {
    const line = boxlaunch("logs", "--all", ...flag("--follow", options.follow), this.name);
    return iterate(line, jsonLines<schema.RunLog>(), options.signal);
  }

  /**
   * Returns the record of the box: its state, its components, and what it has of the host.
   *
   * @throws {NameNotFoundError} The box has ended, and left no record.
   */
  async inspect({ signal }: Abortable = {}): Promise<schema.Record> {
    // `boxlaunch inspect` would show a box of the store that has the same name.
    const words = ["ps", "--all", "--json", ...option("--filter", `name=${this.name}`)];
    const { boxes } = await ask<schema.Ps>(words, { signal });
    const record = boxes.find((it) => it.name === this.name);
    if (!record) throw new NameNotFoundError(`no started box has the name ${this.name}`, { hint: "`boxlaunch ps -a` lists the started boxes" });
    return record;
  }

  /**
   * Returns the state of the box.
   *
   * @throws {NameNotFoundError} No box of `Box.of` has that name. A box that was started here has ended if it has no record.
   */
  async status(options: Abortable = {}): Promise<schema.Record["state"]> {
    try {
      return (await this.inspect(options)).state;
    } catch (error) {
      if (this.report && error instanceof NameNotFoundError) return "ended";
      throw error;
    }
  }

  /** Returns the memory, the CPU time, the processes and the disk space that the box uses. */
  async stats({ signal }: Abortable = {}): Promise<schema.StatsBox> {
    const { boxes } = await ask<schema.Stats>(["stats", "--json", this.name], { signal });
    return boxes[0]!;
  }

  /** Runs the health check that the Boxfile declares for a component: `healthy`, and the `reason` if it is not. */
  async health({ component = "agent", signal }: OfComponent = {}): Promise<schema.Health> {
    return ask(["health", "--json", ...option("--component", component), this.name], { signal });
  }

  /** Returns the commands that wait for approval, because the policy of the Boxfile (`sandbox`) asks about them. */
  async approvals({ signal }: Abortable = {}): Promise<schema.Question[]> {
    return (await ask<schema.Approvals>(["approvals", "--json", this.name], { signal })).questions;
  }

  /**
   * Yields the commands that wait for approval, at once and after each change, until the box ends.
   *
   * @example
   * for await (const { questions } of box.followApprovals()) for (const it of questions) await box.deny(it.question);
   */
  followApprovals({ signal }: Abortable = {}): AsyncGenerator<schema.Approvals, void, undefined> {
    return iterate(boxlaunch("approvals", "--follow", "--json", this.name), jsonLines<schema.Approvals>(), signal);
  }

  /**
   * Runs a command that waits for approval.
   *
   * @param question The number of the command in `approvals`.
   * @param options With `always`, exactly this command also runs without a question until the box ends.
   * @throws {RefusedError} No command waits with this number.
   */
  async approve(question: number, options: Abortable & { always?: boolean } = {}): Promise<schema.Approval> {
    const words = [...flag("--always", options.always), this.name, String(question)];
    return ask(["approve", "--json", ...words], { signal: options.signal });
  }

  /**
   * Refuses a command that waits for approval. Its exit status is 126.
   *
   * @param question The number of the command in `approvals`.
   * @throws {RefusedError} No command waits with this number.
   */
  async deny(question: number, { signal }: Abortable = {}): Promise<schema.Approval> {
    return ask(["deny", "--json", this.name, String(question)], { signal });
  }

  /** Returns the published ports, and the Unix socket that leads to the port of the agent. */
  async ports({ signal }: Abortable = {}): Promise<schema.Port> {
    return ask(["port", "--json", this.name], { signal });
  }

  /**
   * Returns the URL at which this host reaches a published port of the box.
   *
   * @param port The port in the box.
   * @throws {RangeError} The port is not published.
   */
  async url(port: number, options: Abortable & { scheme?: string } = {}): Promise<string> {
    const published = (await this.ports(options)).published.find((it) => it.guest === port);
    if (published) return `${options.scheme ?? "http"}://${published.host}`;
    throw new RangeError(`the port ${port} of ${this.name} is not published: start the box with ports: [${port}]`);
  }

  /**
   * Waits until the box has ended.
   *
   * @returns The exit status of the agent; `null` if the box has ended without one.
   */
  async wait({ signal }: Abortable = {}): Promise<number | null> {
    const { boxes } = await ask<schema.Ps>(["wait", "--json", this.name], { signal });
    return boxes[0]!.status;
  }

  /**
   * Asks the programs of the box to end, and powers it off.
   *
   * @param options With `grace`, how long programs may take to end before they are killed, in seconds, which are rounded up: 10 by default.
   */
  async stop({ grace, signal }: Abortable & { grace?: number } = {}): Promise<void> {
    await ask(["stop", "--json", ...option("--grace", seconds(grace)), this.name], { signal });
  }

  /** Sends a signal, such as `HUP`, to the main program of the agent. The box ends with that program. */
  async kill(name = "KILL", { signal }: Abortable = {}): Promise<void> {
    await ask(["kill", "--json", ...option("--signal", name), this.name], { signal });
  }

  /** Removes the box with its logs and its disk. A box that runs is killed. */
  async remove({ signal }: Abortable = {}): Promise<void> {
    await ask(["rm", "--force", "--json", this.name], { signal });
  }

  /** Stops the box and removes it, as the end of the block does. A box of `keep: true` and one of `Box.of` stay. */
  async close(): Promise<void> {
    if (!this.#endsWithBlock) return;
    this.#endsWithBlock = false;
    try {
      // The record is removed with the end, because the box was started with `--rm`.
      await this.stop({ grace: GRACE });
    } catch (error) {
      const isOver = [BoxEndedError, NameNotFoundError, NotRunningError].some((kind) => error instanceof kind);
      if (!isOver) throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
