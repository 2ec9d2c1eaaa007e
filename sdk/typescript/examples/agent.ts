/**
 * An agent: a model decides, and a box does what it decides.
 *
 *     MODEL_URL=https://api.example.com/v1 MODEL_KEY=… node agent.js BOX PROJECT 'The test of slug.js fails. Make it pass.'
 *
 * The model is any server of chat completions (the API of OpenAI). BOX is a box with the programs of the project. Only the directory
 * PROJECT is in the box, writable. The key of the model stays in this program.
 */

import { resolve } from "node:path";

import { Box } from "boxbuild";

const ROUNDS = 20;
/** The characters of the output of a command that the model gets. */
const SHOWN = 8000;
const ROLE =
  "You repair the project in the current directory. You have a shell. When you are done, say in one sentence what was wrong.";
const SHELL = {
  type: "function",
  function: {
    name: "shell",
    description: "Runs a command in the project, and returns its output and its exit code.",
    parameters: {
      type: "object",
      properties: { command: { type: "array", items: { type: "string" } } },
      required: ["command"],
    },
  },
};

interface Message {
  role: string;
  content: string | null;
  tool_calls?: { id: string; function: { arguments: string } }[];
  tool_call_id?: string;
}

/** Returns the next message of the model. */
async function ask(messages: readonly Message[]): Promise<Message> {
  const { MODEL = "default", MODEL_URL, MODEL_KEY } = process.env;
  const answer = await fetch(`${MODEL_URL}/chat/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${MODEL_KEY}` },
    body: JSON.stringify({ model: MODEL, messages, tools: [SHELL] }),
    signal: AbortSignal.timeout(120_000),
  });
  if (!answer.ok) throw new Error(`the model answers with ${answer.status}: ${await answer.text()}`);
  const { choices } = (await answer.json()) as { choices: { message: Message }[] };
  return choices[0]!.message;
}

/** Returns the command of a tool call, or `undefined` if the model has made a mistake. */
function commandOf(text: string): string[] | undefined {
  try {
    const { command } = JSON.parse(text) as { command: unknown };
    return Array.isArray(command) && command.length > 0 ? command.map(String) : undefined;
  } catch {
    return undefined;
  }
}

/** Runs the command of a tool call in the box. */
async function shell(box: Box, text: string): Promise<string> {
  const command = commandOf(text);
  if (!command) return JSON.stringify({ output: "the arguments are wrong", metadata: { exit_code: 2 } });
  const result = await box.exec(command, { component: "agent", cwd: "/project", timeout: 60 });
  return JSON.stringify({ output: (result.stdout + result.stderr).slice(-SHOWN), metadata: { exit_code: result.status } });
}

/** Talks with the model until it needs no tool, and returns its last words. */
async function work(box: Box, task: string): Promise<string> {
  const messages: Message[] = [
    { role: "system", content: ROLE },
    { role: "user", content: task },
  ];
  for (let round = 0; round < ROUNDS; round += 1) {
    const message = await ask(messages);
    messages.push(message);
    if (!message.tool_calls?.length) return String(message.content);
    for (const call of message.tool_calls) {
      messages.push({ role: "tool", tool_call_id: call.id, content: await shell(box, call.function.arguments) });
    }
  }
  return "it took too many rounds";
}

const [name = "", project = "", task = ""] = process.argv.slice(2);
await using box = await Box.start(name, { shares: [`${resolve(project)}:/project:rw`] });
console.log(await work(box, task));
