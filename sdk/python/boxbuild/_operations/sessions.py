"""The sessions of a box's agent: conversations in which it remembers earlier prompts."""

from __future__ import annotations

from typing import List, Optional, Sequence

from .. import _schema as schema
from .._call import Steps, Stream, ask, boxlaunch, flag, json_lines, operand, option, seconds
from .handle import Handle


def create(self: Handle, session: Optional[str] = None) -> Steps[str]:
    """Makes a session, which lasts until it is closed or the agent ends.

    Args:
        session: The ID of the new session. By default, the agent chooses one.

    Returns:
        The ID.

    Example:
        >>> session = box.agent.sessions.create()
        >>> box.agent.sessions.send(session, "Explain main.rs")["text"]
        'It prints a greeting.'
    """
    report: schema.AgentSession = yield from _ask(self, "create", *option("--session", session))
    return report["session"]


def list_sessions(self: Handle) -> Steps[List[schema.AgentSessionsSession]]:
    """Returns the sessions that the agent has, also those of other clients."""
    report: schema.AgentSessions = yield from ask(["agent", "session", "list", "--json", self.name])
    return report["sessions"]


def send(self: Handle, session: str, prompt: str, *, timeout: Optional[float] = None) -> Steps[schema.AgentGenerate]:
    """Sends a prompt in a session, and returns the whole answer, as `box.generate` does.

    Args:
        session: The ID of the session.
        prompt: The prompt.
        timeout: How long the agent may take, in seconds. 600 by default.
    """
    words = ["agent", "session", "send", "--json", *option("--timeout", seconds(timeout)), self.name, operand(session), "-"]
    report: schema.AgentGenerate = yield from ask(words, input=prompt.encode())
    return report


def events(self: Handle, session: Optional[str] = None, *, timeout: Optional[float] = None) -> Stream[schema.AgentEvent]:
    """Yields what happens in a session, or in all of them.

    Args:
        session: The ID of the session.
        timeout: Ends after this many seconds. By default, the events end with the agent.

    Example:
        >>> for event in box.agent.sessions.events(session):
        ...     if event["event"] == "confirmation-required":
        ...         print(event["message"], event["data"])
    """
    words = ["agent", "session", "events", "--json", *option("--timeout", seconds(timeout)), self.name]
    return Stream(boxlaunch(*words, *([] if session is None else [operand(session)])), json_lines)


def confirm(self: Handle, session: str, tool: str, *, deny: bool = False, reason: Optional[str] = None) -> Steps[None]:
    """Allows or denies a tool that the agent wants to run.

    Args:
        session: The ID of the session.
        tool: The ID of the tool's call, which the event `confirmation-required` has.
        deny: Whether to deny it.
        reason: The reason, which the agent gets.
    """
    yield from _ask(self, "confirm", *flag("--deny", deny), *option("--reason", reason), ids=(session, tool))


def cancel(self: Handle, session: str, *, operation: Optional[str] = None) -> Steps[None]:
    """Ends what runs in a session, or only the operation with an ID. The session stays."""
    yield from _ask(self, "cancel", *option("--operation", operation), ids=(session,))


def close_session(self: Handle, session: str) -> Steps[None]:
    """Closes a session. The agent forgets what was said in it."""
    yield from _ask(self, "close", ids=(session,))


def _ask(self: Handle, command: str, *options: str, ids: Sequence[str] = ()) -> Steps[schema.AgentSession]:
    report: schema.AgentSession = yield from ask(["agent", "session", command, "--json", *options, self.name, *map(operand, ids)])
    return report
