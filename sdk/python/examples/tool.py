"""A tool for a framework of agents: a function with types and a docstring, as LangGraph, the OpenAI Agents SDK and others take it.

    from langgraph.prebuilt import create_react_agent
    with Box.start("sandbox") as box:
        agent = create_react_agent(model, [python_tool(box)])
"""

from typing import Callable

from boxbuild import Box, BoxbuildError


def python_tool(box: Box) -> Callable[[str], str]:
    """Returns the tool `run_python`, which works in this box."""

    def run_python(code: str) -> str:
        """Runs a Python program in a sandbox, and returns what it prints. Files that it writes are there for the next call.

        Args:
            code: The whole program. It prints its result.
        """
        try:
            result = box.run_python(code, timeout=30)
        except BoxbuildError as error:
            return f"The sandbox has failed: {error}"
        return result.stdout if result.ok else f"exit status {result.status}\n{result.stdout}{result.stderr}"

    return run_python
