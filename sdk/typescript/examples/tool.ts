/**
 * A tool for a framework of agents: a name, a description, a JSON Schema and a function, as the AI SDK, LangChain.js and MCP take it.
 *
 *     await using box = await Box.start("sandbox");
 *     const { description, parameters, execute } = pythonTool(box);
 *     const tools = { runPython: tool({ description, inputSchema: jsonSchema(parameters), execute }) };
 */

import { BoxbuildError, type Box } from "boxbuild";

/** Returns the tool `run_python`, which works in this box. */
export function pythonTool(box: Box) {
  return {
    name: "run_python",
    description:
      "Runs a Python program in a sandbox, and returns what it prints. Files that it writes are there for the next call.",
    parameters: {
      type: "object",
      properties: { code: { type: "string", description: "The whole program. It prints its result." } },
      required: ["code"],
    },
    async execute({ code }: { code: string }): Promise<string> {
      try {
        const result = await box.runPython(code, { timeout: 30 });
        return result.ok ? result.stdout : `exit status ${result.status}\n${result.stdout}${result.stderr}`;
      } catch (error) {
        if (error instanceof BoxbuildError) return `The sandbox has failed: ${error.message}`;
        throw error;
      }
    },
  };
}
