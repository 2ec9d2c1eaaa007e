"""Checks messages of the Model Context Protocol with the types of the official package.

Usage: PROGRAM FOLDER REQUESTS ANSWERS
"""

import importlib.util
import json
import sys

folder, requests, answers = sys.argv[1:]
# The package itself imports a web server. Its module of types does not.
spec = importlib.util.spec_from_file_location("mcp_types", f"{folder}/mcp/types.py")
types = sys.modules["mcp_types"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(types)

RESULTS = {
    "initialize": types.InitializeResult,
    "ping": types.EmptyResult,
    "tools/list": types.ListToolsResult,
    "tools/call": types.CallToolResult,
}
methods = {}
with open(requests) as lines:
    for line in lines:
        message = json.loads(line)
        if "id" in message:
            methods[message["id"]] = message["method"]
            types.ClientRequest.model_validate({key: message[key] for key in ("method", "params") if key in message})
        else:
            types.ClientNotification.model_validate({key: message[key] for key in ("method", "params") if key in message})
count = 0
with open(answers) as lines:
    for line in lines:
        message = types.JSONRPCMessage.model_validate_json(line).root
        if isinstance(message, types.JSONRPCResponse):
            RESULTS[methods[message.id]].model_validate(message.result)
        else:
            assert isinstance(message, types.JSONRPCError), line
        count += 1
assert count > 0, "there is no answer"
