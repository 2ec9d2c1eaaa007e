/** The listings of `boxlaunch ls --json`, which a box has sent. */

import { constants } from "node:fs";

import { BoxbuildError } from "./failure.js";
import { FileEntry, type FileChange } from "./result.js";
import type * as schema from "./schema.js";

const KINDS: ReadonlyMap<unknown, number> = new Map([
  ["file", constants.S_IFREG],
  ["directory", constants.S_IFDIR],
  ["symlink", constants.S_IFLNK],
  ["char-device", constants.S_IFCHR],
  ["block-device", constants.S_IFBLK],
  ["fifo", constants.S_IFIFO],
  ["socket", constants.S_IFSOCK],
  ["unknown", 0],
]);
/** The longest name of a file, in bytes. */
const NAME = 255;

/** The entries of a directory, by the bytes of their names. */
export type Entries = ReadonlyMap<string, FileEntry>;

/**
 * Returns the entries of a listing.
 *
 * @throws {BoxbuildError} The listing is malformed, or the directory has too many entries.
 */
export function entriesOf(listing: schema.Listing): Entries {
  if (listing.truncated) {
    throw new BoxbuildError("the directory has more than 10000 entries", { hint: "list it with a command, such as `find`" });
  }
  if (!Array.isArray(listing.entries)) throw malformed();
  return new Map(listing.entries.map(entryOf));
}

function malformed(): BoxbuildError {
  return new BoxbuildError("the box has sent a listing that is malformed");
}

function entryOf(listed: schema.ListingEntry): [string, FileEntry] {
  const { name, name_base64: encoded, mode, size, mtime } = listed;
  const kind = KINDS.get(listed.type);
  const isText = typeof name === "string" && typeof mode === "string" && /^[0-7]{1,4}$/.test(mode);
  const isEncoded = encoded === undefined || (typeof encoded === "string" && /^[A-Za-z0-9+/]+={0,2}$/.test(encoded));
  const isNumber = isWhole(size) && size >= 0 && isWhole(mtime);
  if (kind === undefined || !isText || !isEncoded || !isNumber) throw malformed();
  const bytes = encoded === undefined ? Buffer.from(name) : Buffer.from(encoded, "base64");
  // A caller may append the name to a path of this host.
  if (!isName(bytes, NAME) || !isName(Buffer.from(name), 3 * NAME)) throw malformed();
  return [bytes.toString("latin1"), new FileEntry(name, kind | parseInt(mode, 8), size, mtime)];
}

/** Returns whether a number is one of 64 bits. Large ones are not exact. */
function isWhole(number: number): boolean {
  return Number.isInteger(number) && Math.abs(number) < 2 ** 63;
}

/** Returns whether bytes are a name. U+FFFD instead of a byte has three. */
function isName(bytes: Buffer, most: number): boolean {
  const text = bytes.toString("latin1");
  return text !== "" && text.length <= most && text !== "." && text !== ".." && !/[/\0]/.test(text);
}

/** Returns the differences between two listings of a directory. */
export function changes(old: Entries, now: Entries): FileChange[] {
  const deleted = [...old].filter(([key]) => !now.has(key)).map(([, entry]) => change("deleted", entry));
  const others = [...now].flatMap(([key, entry]) => {
    const before = old.get(key);
    if (!before) return [change("created", entry)];
    return isSame(before, entry) ? [] : [change("modified", entry)];
  });
  return [...deleted, ...others].sort(byName);
}

function change(kind: FileChange["kind"], { name }: FileEntry): FileChange {
  return { kind, name };
}

function isSame(one: FileEntry, other: FileEntry): boolean {
  return one.mode === other.mode && one.size === other.size && one.mtime === other.mtime;
}

/** Compares two entries by their names. */
export function byName(one: { name: string }, other: { name: string }): number {
  return one.name < other.name ? -1 : Number(one.name > other.name);
}
