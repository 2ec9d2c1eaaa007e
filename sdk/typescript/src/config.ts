/** What a box gets when it starts. */

import { basename } from "node:path";

import { flag, operand, option, pairs, seconds } from "./call.js";

/** The variable of `boxlaunch` with the value of a secret. */
const SECRET = "BOXBUILD_SDK_SECRET_";

/** What a box gets from its host: the options of `boxlaunch run`. */
export interface BoxOptions {
  /** The name for other commands. By default, the box's own name with a random suffix. */
  name?: string | undefined;
  /** Variables that the Boxfile declares for launch; `agent/NAME` is for one component. */
  env?: Readonly<Record<string, string>> | undefined;
  /** The values of declared secrets: text, or the path of a file with the value. They are on no command line. */
  secrets?: Readonly<Record<string, string | { file: string }>> | undefined;
  /** Directories, files and sockets of the host: `HOST:GUEST`, `HOST:GUEST:rw`, or `NAME=HOST` for a declared one. */
  shares?: readonly string[] | undefined;
  /**
   * The directories of skills that the Boxfile declares with `mode="mount"`, by name. For a directory of skills:
   * `options: ["--skills", DIR]`.
   */
  skills?: Readonly<Record<string, string>> | undefined;
  /** Volumes as `NAME:/PATH`. */
  volumes?: readonly string[] | undefined;
  /** Ports to publish: a number is the port in the box, which gets a free port of the host; or `HOST:GUEST[/COMPONENT]`. */
  ports?: readonly (number | string)[] | undefined;
  /** `none`, `box` (the rules of the box) or `shared`. */
  network?: "none" | "box" | "shared" | undefined;
  /** Addresses outside of the internet that the box may connect to, such as `127.0.0.1:5432`. */
  networkLocal?: readonly string[] | undefined;
  /** The memory of the VM: `1GiB`, or a number of MiB. */
  memory?: number | string | undefined;
  /** The number of virtual CPUs. */
  cpus?: number | undefined;
  /** The size of the disk of the box, such as `20GiB`. */
  disk?: string | undefined;
  /** Stops the box after this time: seconds, or a text such as `15m`. */
  lifetime?: number | string | undefined;
  /** Stops the box when nobody has used it for this time. */
  idle?: number | string | undefined;
  /** How long the agent may take to be ready, in seconds. */
  startupTimeout?: number | undefined;
  /** A task for the agent: `id`, `type`, `description`, `input`. The agent ends with it, and so does the box. */
  task?: Readonly<Record<string, unknown>> | undefined;
  /** Whether the box outlives the `await using` block and this process. Otherwise it ends with them, and leaves no record. */
  keep?: boolean | undefined;
  /** Whether the box runs without KVM, slowly. Only for `run`. */
  emulated?: boolean | undefined;
  /** Further options of `boxlaunch run`, such as `["--restart", "unhealthy"]`. */
  options?: readonly string[] | undefined;
}

/**
 * A box and what it gets from its host.
 *
 * @example
 * await using box = await createBox({ box: "hello", memory: "1GiB", ports: [8080] });
 * console.log(await box.url(8080));
 */
export interface BoxConfig extends BoxOptions {
  /** A name in the store, `HOST/NAME:TAG` of a registry, a digest, a directory such as `./hello.box`, or a Boxfile, which is built first. */
  box?: string | undefined;
  /** An image such as `python:3.12`, instead of a box. It has no network, and its own program is not started. */
  image?: string | undefined;
}

/**
 * Returns a configuration: one that is given, or that of a box.
 *
 * @throws {TypeError} It has neither a box nor an image, or both, or an option has another type than `BoxOptions` says.
 */
export function configOf(box: string | BoxConfig): BoxConfig {
  const config = typeof box === "object" ? box : { box };
  for (const name of ["box", "image", "name"] as const) check(name, config[name], (it) => typeof it === "string", "a text");
  for (const name of ["shares", "volumes", "ports", "networkLocal", "options"] as const) {
    check(name, config[name], Array.isArray, `a list, such as ${name}: […]`);
  }
  for (const name of ["env", "secrets", "skills", "task"] as const) {
    check(name, config[name], (it) => typeof it === "object" && !Array.isArray(it), `an object, such as ${name}: {…}`);
  }
  const isSecret = (it: unknown) => typeof it === "string" || (typeof it === "object" && it !== null && "file" in it);
  for (const value of Object.values(config.secrets ?? {})) check("secrets", value, isSecret, "texts, or { file: PATH }");
  if (!config.box === !config.image) throw new TypeError("a box or an image has to be named, and only one of them");
  return config;
}

/** Checks an option. The message does not have the value, which may be a secret. */
function check(name: string, value: unknown, holds: (value: unknown) => boolean, what: string): void {
  if (value === undefined || (value !== null && holds(value))) return;
  throw new TypeError(`${name} has to be ${what}, and not a value of the type ${value === null ? "null" : typeof value}`);
}

/** Returns the path of the Boxfile that has to be built, or `undefined` for a box that exists. */
export function boxfileOf({ box }: BoxConfig): string | undefined {
  const name = basename(box ?? "");
  const isNamed = name === "Boxfile" || name.startsWith("Boxfile.") || name.endsWith(".Boxfile");
  return isNamed && !name.endsWith(".lock") ? box : undefined;
}

/** Returns the options of `boxlaunch run`, and the box. */
export function configWords(config: BoxConfig, box: string | undefined): string[] {
  const secrets = Object.entries(config.secrets ?? {}).map(([name, value], at) => `${name}=${source(at, value)}`);
  const ports = (config.ports ?? []).map((it) => (typeof it === "number" ? `0:${it}` : it));
  return [
    ...flag("--rm", !config.keep),
    ...flag("--with-parent", !config.keep && !config.emulated),
    ...flag("--emulated", config.emulated),
    ...option("--image", config.image),
    ...option("--name", config.name),
    ...option("--env", ...pairs(config.env)),
    ...option("--secret", ...secrets),
    ...option("--share", ...(config.shares ?? [])),
    ...option("--skill", ...pairs(config.skills)),
    ...option("--volume", ...(config.volumes ?? [])),
    ...option("--publish", ...ports),
    ...option("--network", config.network),
    ...option("--network-local", ...(config.networkLocal ?? [])),
    ...option("--memory", config.memory),
    ...option("--cpus", config.cpus),
    ...option("--disk", config.disk),
    ...option("--lifetime", seconds(config.lifetime)),
    ...option("--idle", seconds(config.idle)),
    ...option("--startup-timeout", seconds(config.startupTimeout)),
    ...(config.options ?? []),
    ...(box ? [operand(box)] : []),
  ];
}

/** Returns the variables with which `boxlaunch` gets the values of secrets. */
export function configVariables({ secrets = {} }: BoxConfig): Record<string, string> {
  const values = Object.values(secrets).map((value, at) => (typeof value === "string" ? { [`${SECRET}${at}`]: value } : {}));
  return Object.assign({}, ...values);
}

function source(at: number, value: string | { file: string }): string {
  return typeof value === "string" ? `env:${SECRET}${at}` : `file:${value.file}`;
}
