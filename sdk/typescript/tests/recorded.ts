/** What the programs print, recorded. The compiler compares these objects with the types of docs/json.schema.json. */

import type { schema } from "boxbuild";

const DIGEST = `sha256:${"0".repeat(64)}`;

export const EXEC: schema.Exec = {
  component: "business",
  argv: ["sh", "-c", "cat; exit 3"],
  status: 3,
  oom_killed: false,
  disk_full: false,
  timed_out: false,
  duration_ms: 12.5,
  stdout: "caf\ufffd",
  stdout_base64: "Y2Fm6Q==",
  stderr: "no\nluck\n",
  truncated: false,
};
export const SANDBOX: schema.CommandSandbox = {
  state: "not-started",
  preset: "default",
  writable: ["/tmp", "/work"],
  deny_read: [],
  deny_write: ["/work/deploy"],
  network: true,
  max_output_bytes: 10000000,
  denied: [{ kind: "process", subject: "git push", rule: "git-write", reason: "person: it transfers commits" }],
};
export const WARNING: schema.Warning = { severity: "warning", message: "an old kernel", help: null, labels: [] };
export const ERROR: schema.Error = {
  severity: "error",
  code: "name-not-found",
  help: "`boxlaunch ps -a` lists the started boxes",
  labels: [],
  message: "no started box has the name x",
};
export const FAILURE: schema.Failure = { errors: [WARNING, ERROR] };
export const NAMED: schema.Named = { names: ["a"], errors: [ERROR] };
export const HEALTH: schema.Health = { component: "agent", healthy: false, reason: "port 80: no answer", duration_ms: 1000.2 };
export const PORT: schema.Port = {
  agent_port: null,
  agent_socket: null,
  published: [{ component: "agent", guest: 8000, host: "127.0.0.1:40123" }],
};
export const UP: schema.Up = { name: "page-4a05", project: "/src/page", box: DIGEST, result: "started", published: [] };
export const LOGS: schema.Logs = { time_ms: 1, component: "agent", stream: "stdout", text: "hello\n" };
export const CP: schema.Cp = { from: "/a", to: "x:/b", note: null };
export const IMAGES: schema.Images = {
  images: [{ name: "hello", reference: null, box: DIGEST, boxfile: null, since_ms: 1, bytes: null }],
};
export const LISTING: schema.Listing = {
  path: "/",
  entries: [
    { name: "caf\ufffd", name_base64: "Y2Fm6Q==", type: "file", size: 5, mode: "0644", mtime: 7 },
    { name: "d", type: "directory", size: 4096, mode: "0755", mtime: 7 },
  ],
  truncated: false,
};

/** Returns the listing of a directory with these files. */
export function listing(names: readonly string[]): schema.Listing {
  const entries = names.map((name) => ({ name, type: "file" as const, size: 1, mode: "0644", mtime: 5 }));
  return { path: "/work", entries, truncated: false };
}
