/** The first entry of an archive of `boxlaunch cp NAME:PATH -`, which a box has sent. */

import { BoxbuildError } from "./failure.js";

const BLOCK = 512;
/** How many bytes of an archive are no content of its file: headers, a long name, and the end. */
export const OVERHEAD = 64 << 10;

/** A file. `content` ends early if the archive was cut off. */
export interface ArchivedFile {
  size: number;
  content: Buffer;
}

/** Returns the error for an archive that is none. */
export function malformed(): BoxbuildError {
  return new BoxbuildError("the box has sent an archive that is malformed");
}

/**
 * Returns the file of an archive, the target of a symbolic link, or `undefined` for a directory.
 *
 * @throws {BoxbuildError} The archive is malformed.
 */
export function firstEntry(archive: Buffer): ArchivedFile | string | undefined {
  let target: Buffer | undefined;
  for (let at = 0; ; ) {
    const header = archive.subarray(at, at + BLOCK);
    at += BLOCK;
    if (header.length < BLOCK || header.every((byte) => byte === 0)) throw malformed();
    const size = number(header.subarray(124, 136));
    const content = archive.subarray(at, at + size);
    const kind = header.toString("latin1", 156, 157);
    if (kind === "0" || kind === "\0") return { size, content };
    if (kind === "2") return text(target ?? header.subarray(157, 257));
    if (kind === "5") return undefined;
    if (kind !== "L" && kind !== "K") throw malformed();
    if (kind === "K") target = content;
    at += Math.ceil(size / BLOCK) * BLOCK;
  }
}

/** Returns a number of a header: octal digits, or if it is large, binary ones. */
function number(field: Buffer): number {
  if (field[0]! & 0x80) return field.reduce((sum, byte, at) => sum * 256 + (at === 0 ? byte & 0x7f : byte), 0);
  const digits = field.toString("latin1").replace(/^[\0 ]+|[\0 ]+$/g, "");
  if (!/^[0-7]*$/.test(digits)) throw malformed();
  return parseInt(digits || "0", 8);
}

function text(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end < 0 ? undefined : end);
}
