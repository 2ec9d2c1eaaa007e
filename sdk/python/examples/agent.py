"""An agent: a model decides, and a box does what it decides.

    MODEL_URL=https://api.example.com/v1 MODEL_KEY=… python3 agent.py BOX PROJECT 'The test of slug.js fails. Make it pass.'

The model is any server of chat completions (the API of OpenAI). BOX is a box with the programs of the project. Only the directory PROJECT
is in the box, writable. The key of the model stays in this program.
"""

import json
import os
import sys
import urllib.request
from typing import Any, Dict, List

from boxbuild import Box

ROUNDS = 20
SHOWN = 8000  # characters of the output of a command that the model gets
ROLE = "You repair the project in the current directory. You have a shell. When you are done, say in one sentence what was wrong."
SHELL = {
    "type": "function",
    "function": {
        "name": "shell",
        "description": "Runs a command in the project, and returns its output and its exit code.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "array", "items": {"type": "string"}}},
            "required": ["command"],
        },
    },
}


def ask(messages: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Returns the next message of the model."""
    body = {"model": os.environ.get("MODEL", "default"), "messages": messages, "tools": [SHELL]}
    request = urllib.request.Request(
        os.environ["MODEL_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["MODEL_KEY"]},
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        message: Dict[str, Any] = json.load(answer)["choices"][0]["message"]
    return message


def shell(box: Box, arguments: str) -> str:
    """Runs the command of a tool call in the box. A mistake of the model is an answer, too."""
    try:
        command = json.loads(arguments)["command"]
        result = box.exec(command, component="agent", cwd="/project", timeout=60)
    except (ValueError, KeyError, TypeError) as error:
        return json.dumps({"output": f"the arguments are wrong: {error}", "metadata": {"exit_code": 2}})
    return json.dumps({"output": (result.stdout + result.stderr)[-SHOWN:], "metadata": {"exit_code": result.status}})


def work(box: Box, task: str) -> str:
    """Talks with the model until it needs no tool, and returns its last words."""
    messages: List[Dict[str, Any]] = [{"role": "system", "content": ROLE}, {"role": "user", "content": task}]
    for _ in range(ROUNDS):
        message = ask(messages)
        messages.append(message)
        calls = message.get("tool_calls") or []
        if not calls:
            return str(message.get("content"))
        for call in calls:
            answer = shell(box, call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": answer})
    return "it took too many rounds"


def main() -> None:
    """Does the task of the command line in a box that ends with this program."""
    name, project, task = sys.argv[1:]
    with Box.start(name, shares=[f"{os.path.abspath(project)}:/project:rw"]) as box:
        print(work(box, task))


if __name__ == "__main__":
    main()
