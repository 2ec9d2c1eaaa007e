/**
 * Boxes for programs: microVMs for code that nobody has read yet, and for agents.
 *
 * A box is built by `boxbuild` from a Boxfile, and started by `boxlaunch`. This package starts these programs, and reads their JSON.
 * They are those of the directory `BOXBUILD_BIN`, else those of the package, else the first ones in PATH.
 *
 * @example
 * import { Box } from "boxbuild";
 * await using box = await Box.start("hello");
 * console.log((await box.exec(["hostname"])).stdout);
 *
 * @packageDocumentation
 */

export { Box, Environment, createBox, listBoxes, type EnvironmentOptions } from "./box.js";
export type { Abortable } from "./call.js";
export type { CodeOptions, Command, ExecOptions, InComponent, PopenOptions } from "./commands.js";
export type { BoxConfig, BoxOptions } from "./config.js";
export * from "./errors.js";
export { BoxbuildError, CommandError, ProgramNotFoundError } from "./failure.js";
export type { FileOptions, Files, ReadOptions } from "./files.js";
export { run, runTask } from "./lifecycle.js";
export type { Process } from "./process.js";
export { FileEntry, Result, type FileChange } from "./result.js";
export type { LogOptions, OfComponent } from "./running.js";
export type * as schema from "./schema.js";
export type { Sessions } from "./sessions.js";
export { build, images, type BuildOptions, type Images, type PruneOptions } from "./store.js";
export type { Agent, GenerateOptions, Network, Skills } from "./talk.js";
