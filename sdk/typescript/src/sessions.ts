/** The sessions of a box's agent: conversations in which it remembers earlier prompts. */

import { jsonLines } from "./answer.js";
import { ask, boxlaunch, flag, operand, operands, option, seconds, type Abortable } from "./call.js";
import { Handle } from "./handle.js";
import { iterate } from "./run.js";
import type * as schema from "./schema.js";

/** The sessions of an agent: `box.agent.sessions`. */
export class Sessions extends Handle {
  /**
   * Makes a session, which lasts until it is closed or the agent ends, and returns its ID.
   *
   * @param session The ID of the new session. By default, the agent chooses one.
   */
  async create(session?: string, { signal }: Abortable = {}): Promise<string> {
    return (await this.#ask("create", option("--session", session), [], signal)).session;
  }

  /** Returns the sessions that the agent has, also those of other clients. */
  async list({ signal }: Abortable = {}): Promise<schema.AgentSessionsSession[]> {
    return (await ask<schema.AgentSessions>(["agent", "session", "list", "--json", this.name], { signal })).sessions;
  }

  /**
   * Sends a prompt in a session, and returns the whole answer, as `box.generate` does.
   *
   * @param options With `timeout`, how long the agent may take, in seconds: 600 by default.
   */
  async send(session: string, prompt: string, options: Abortable & { timeout?: number } = {}): Promise<schema.AgentGenerate> {
    const words = [...option("--timeout", seconds(options.timeout)), this.name, operand(session), "-"];
    return ask(["agent", "session", "send", "--json", ...words], { input: prompt, signal: options.signal });
  }

  /**
   * Yields what happens in a session, or in all of them.
   *
   * @param options With `timeout`, ends after this many seconds. By default, the events end with the agent.
   */
  events(
    session?: string,
    options: Abortable & { timeout?: number } = {},
  ): AsyncGenerator<schema.AgentEvent, void, undefined> {
    const words = [...option("--timeout", seconds(options.timeout)), this.name, ...(session === undefined ? [] : [operand(session)])];
    return iterate(boxlaunch("agent", "session", "events", "--json", ...words), jsonLines<schema.AgentEvent>(), options.signal);
  }

  /**
   * Allows a tool that the agent wants to run, or with `deny` denies it.
   *
   * @param tool The ID of the tool's call, which the event `confirmation-required` has.
   * @param options With `reason`, the reason, which the agent gets.
   */
  async confirm(session: string, tool: string, options: Abortable & { deny?: boolean; reason?: string } = {}): Promise<void> {
    const words = [...flag("--deny", options.deny), ...option("--reason", options.reason)];
    await this.#ask("confirm", words, [session, tool], options.signal);
  }

  /** Ends what runs in a session, or only the operation with an ID. The session stays. */
  async cancel(session: string, options: Abortable & { operation?: string } = {}): Promise<void> {
    await this.#ask("cancel", option("--operation", options.operation), [session], options.signal);
  }

  /** Closes a session. The agent forgets what was said in it. */
  async close(session: string, { signal }: Abortable = {}): Promise<void> {
    await this.#ask("close", [], [session], signal);
  }

  async #ask(
    command: string,
    options: readonly string[],
    ids: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<schema.AgentSession> {
    return ask(["agent", "session", command, "--json", ...options, this.name, ...operands(ids)], { signal });
  }
}
