/**
 * Runs a program that nobody has read, such as one that a model has written.
 *
 *     node untrustedCode.js BOX program.py
 *
 * BOX is a box with Python and without a network: `boxbuild init python:3.12` begins one.
 */

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { Box } from "boxbuild";

/** Runs the program in a box of its own, and returns a report of its end. */
export async function run(boxName: string, code: string): Promise<string> {
  await using box = await Box.start(boxName, { network: "none", lifetime: "2m" });
  const result = await box.runPython(code, { timeout: 20 });
  if (result.timedOut) return "it took longer than 20 seconds";
  if (result.oomKilled) return "it needs more memory";
  return `status ${result.status}\n${printable(result.stdout)}${printable(result.stderr)}`;
}

/** Returns the text without control characters, with which a stranger could change what the terminal shows. */
function printable(text: string): string {
  return text.replace(/(?![ \n\t])[\p{C}\p{Z}]/gu, "\ufffd");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [boxName = "", path = ""] = process.argv.slice(2);
  process.stdout.write(await run(boxName, await readFile(path, "utf8")));
}
