/** The skills, the network and the agent of a box. */

import { ask, operands, option, seconds, type Abortable } from "./call.js";
import { Handle } from "./handle.js";
import { Sessions } from "./sessions.js";
import type * as schema from "./schema.js";

/** The skills of a box: `box.skills`. */
export class Skills extends Handle {
  /** Returns the skills of the box: the baked, the mounted and the loaded ones. */
  async list(options: Abortable = {}): Promise<schema.SkillsSkill[]> {
    return this.#skills([], options);
  }

  /**
   * Copies skills of this host into the box, where all components see them at once.
   *
   * @param directories One directory, or several. Each has a `SKILL.md`, and the name of its skill.
   * @returns The skills that were loaded.
   * @throws {SkillInvalidError} A `SKILL.md` has an error.
   * @throws {SkillFixedError} The box has a baked or a mounted skill of that name.
   */
  async load(directories: string | readonly string[], options: Abortable = {}): Promise<schema.SkillsSkill[]> {
    return this.#skills(["load", ...operands(directories)], options);
  }

  /**
   * Removes skills that were loaded, and returns them.
   *
   * @throws {SkillNotFoundError} No such skill was loaded.
   */
  async unload(names: string | readonly string[], options: Abortable = {}): Promise<schema.SkillsSkill[]> {
    return this.#skills(["unload", ...operands(names)], options);
  }

  async #skills(words: readonly string[], { signal }: Abortable): Promise<schema.SkillsSkill[]> {
    return (await ask<schema.Skills>(["skills", "--json", this.name, ...words], { signal })).skills;
  }
}

/** The network of a box: `box.network`. */
export class Network extends Handle {
  /** Returns the current rules of the network, the published ports, and the denied and failed connections. */
  async show(options: Abortable = {}): Promise<schema.Network> {
    return this.#network([], options);
  }

  /**
   * Allows the box to connect to hosts, until it ends. A host that is also denied stays denied.
   *
   * @param peers Domains, `*.example.com`, addresses or networks: one or several. With `:PORT` for one port, else for 80 and 443.
   * @example
   * await box.network.allow(["pypi.org", "files.pythonhosted.org"]);
   */
  async allow(peers: string | readonly string[], options: Abortable = {}): Promise<schema.Network> {
    return this.#network(["allow", ...operands(peers)], options);
  }

  /** Denies the box hosts, even if they are allowed. Their connections are closed. */
  async deny(peers: string | readonly string[], options: Abortable = {}): Promise<schema.Network> {
    return this.#network(["deny", ...operands(peers)], options);
  }

  /** Returns the targets to which connections were denied, each with the line of a Boxfile that would allow it. */
  async denied(options: Abortable = {}): Promise<schema.NetworkDeniedItem[]> {
    return (await this.#network([], options)).denied;
  }

  async #network(words: readonly string[], { signal }: Abortable): Promise<schema.Network> {
    return ask(["network", "--json", this.name, ...words], { signal });
  }
}

/** A prompt for an agent. */
export interface GenerateOptions extends Abortable {
  /** A session of the agent. By default, the prompt is a conversation of one message. */
  session?: string | undefined;
  /** How long the agent may take, in seconds. 600 by default. */
  timeout?: number | undefined;
}

/** The agent of a box, if it serves the interface of docs/agents.md: `box.agent`. */
export class Agent extends Handle {
  /** The methods for its sessions. */
  readonly sessions: Sessions;

  constructor(name: string) {
    super(name);
    this.sessions = new Sessions(name);
  }

  /**
   * Sends a prompt to the agent, and returns its whole answer.
   *
   * @returns The answer: `text`, `tool_calls`, and `failed`, whether the agent reports a failure.
   * @throws {AgentCallFailedError} The agent does not serve the interface, or has refused the call.
   */
  async generate(prompt: string, options: GenerateOptions = {}): Promise<schema.AgentGenerate> {
    const { session, timeout, signal } = options;
    const words = [...option("--session", session), ...option("--timeout", seconds(timeout)), this.name, "-"];
    return ask(["agent", "generate", "--json", ...words], { input: prompt, signal });
  }

  /** Returns the health that the agent reports: `status`, `message` and `details`. */
  async health(options: Abortable & { timeout?: number } = {}): Promise<schema.AgentHealth> {
    const words = [...option("--timeout", seconds(options.timeout)), this.name];
    return ask(["agent", "health", "--json", ...words], { signal: options.signal });
  }

  /** Returns what the agent reports about itself: its name and version, its features, tools and models. */
  async capabilities({ signal }: Abortable = {}): Promise<schema.AgentCapabilities> {
    return ask(["agent", "capabilities", "--json", this.name], { signal });
  }

  /** Returns the skills that the agent reports, or those of one of its sessions. */
  async skills(options: Abortable & { session?: string } = {}): Promise<schema.AgentSkillsSkill[]> {
    const words = [...option("--session", options.session), this.name];
    return (await ask<schema.AgentSkills>(["agent", "skills", "--json", ...words], { signal: options.signal })).skills;
  }
}
