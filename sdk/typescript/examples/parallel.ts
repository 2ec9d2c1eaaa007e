/**
 * Starts boxes in parallel, and runs a program in each.
 *
 *     node parallel.js BOX [NUMBER]
 */

import { fileURLToPath } from "node:url";

import { Box } from "boxbuild";

/** Returns what box `number` has computed. The box ends with the block. */
async function one(boxName: string, number: number, signal: AbortSignal): Promise<number> {
  await using box = await Box.start(boxName, { signal });
  const result = await box.exec(`echo $((${number} * ${number}))`, { check: true, signal });
  return Number(result.stdout);
}

/** Returns the results of all boxes, in the order of their numbers. If one fails, the others end. */
export async function squares(boxName: string, count: number): Promise<number[]> {
  const others = new AbortController();
  const all = Array.from({ length: count }, (_, number) => one(boxName, number, others.signal));
  try {
    return await Promise.all(all);
  } catch (error) {
    others.abort(error);
    await Promise.allSettled(all);
    throw error;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [boxName = "", count = "10"] = process.argv.slice(2);
  console.log((await squares(boxName, Number(count))).join(" "));
}
