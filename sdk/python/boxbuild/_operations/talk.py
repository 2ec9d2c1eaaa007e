"""The skills, the network, the approvals and the agent of a box."""

from __future__ import annotations

from typing import List, Optional

from .. import _schema as schema
from .._call import Steps, Stream, ask, boxlaunch, flag, json_lines, operand, option, seconds
from .handle import AnyPath, Handle


def list_skills(self: Handle) -> Steps[List[schema.SkillsSkill]]:
    """Returns the skills of the box: the baked, the mounted and the loaded ones."""
    return _skills(self)


def load_skills(self: Handle, *directories: AnyPath) -> Steps[List[schema.SkillsSkill]]:
    """Copies skills of this host into the box, where all components see them at once.

    Args:
        directories: The directories. Each has a `SKILL.md`, and the name of its skill.

    Returns:
        The skills that were loaded.

    Raises:
        SkillInvalidError: A `SKILL.md` has an error.
        SkillFixedError: The box has a baked or a mounted skill of that name.
    """
    return _skills(self, "load", *(operand(it) for it in directories))


def unload_skills(self: Handle, *names: str) -> Steps[List[schema.SkillsSkill]]:
    """Removes skills that were loaded, and returns them.

    Raises:
        SkillNotFoundError: No such skill was loaded.
    """
    return _skills(self, "unload", *(operand(it) for it in names))


def _skills(self: Handle, *words: str) -> Steps[List[schema.SkillsSkill]]:
    report: schema.Skills = yield from ask(["skills", "--json", self.name, *words])
    return report["skills"]


def show_network(self: Handle) -> Steps[schema.Network]:
    """Returns the current rules of the network, the published ports, and the denied and failed connections."""
    return _network(self)


def allow(self: Handle, *peers: str) -> Steps[schema.Network]:
    """Allows the box to connect to hosts, until it ends. A host that is also denied stays denied.

    Args:
        peers: Domains, `*.example.com`, addresses or networks. With `:PORT` for one port, else for 80 and 443.

    Example:
        >>> box.network.allow("pypi.org", "files.pythonhosted.org")
    """
    return _network(self, "allow", *(operand(it) for it in peers))


def deny(self: Handle, *peers: str) -> Steps[schema.Network]:
    """Denies the box hosts, even if they are allowed. Their connections are closed."""
    return _network(self, "deny", *(operand(it) for it in peers))


def denied(self: Handle) -> Steps[List[schema.NetworkDeniedItem]]:
    """Returns the targets to which connections were denied, each with the line of a Boxfile that would allow it."""
    return (yield from _network(self))["denied"]


def _network(self: Handle, *words: str) -> Steps[schema.Network]:
    report: schema.Network = yield from ask(["network", "--json", self.name, *words])
    return report


def approvals(self: Handle) -> Steps[List[schema.Question]]:
    """Returns the commands that wait for approval, because the policy of the Boxfile (`sandbox`) asks about them."""
    report: schema.Approvals = yield from ask(["approvals", "--json", self.name])
    return report["questions"]


def follow_approvals(self: Handle) -> Stream[schema.Approvals]:
    """Yields the commands that wait for approval, at once and after each change, until the box ends.

    Example:
        >>> for report in box.follow_approvals():
        ...     for question in report["questions"]:
        ...         box.deny(question["question"])
    """
    return Stream(boxlaunch("approvals", "--follow", "--json", self.name), json_lines)


def approve(self: Handle, question: int, *, always: bool = False) -> Steps[schema.Approval]:
    """Runs a command that waits for approval.

    Args:
        question: The number of the command in `approvals`.
        always: Whether exactly this command also runs without a question until the box ends.

    Raises:
        RefusedError: No command waits with this number.
    """
    report: schema.Approval = yield from ask(["approve", "--json", *flag("--always", always), self.name, str(int(question))])
    return report


def deny_command(self: Handle, question: int) -> Steps[schema.Approval]:
    """Refuses a command that waits for approval. Its exit status is 126.

    Args:
        question: The number of the command in `approvals`.

    Raises:
        RefusedError: No command waits with this number.
    """
    report: schema.Approval = yield from ask(["deny", "--json", self.name, str(int(question))])
    return report


def generate(
    self: Handle, prompt: str, *, session: Optional[str] = None, timeout: Optional[float] = None
) -> Steps[schema.AgentGenerate]:
    """Sends a prompt to an agent that serves the interface of docs/agents.md, and returns its whole answer.

    Args:
        prompt: The prompt.
        session: A session of the agent. By default, the prompt is a conversation of one message.
        timeout: How long the agent may take, in seconds. 600 by default.

    Returns:
        The answer: `text`, `tool_calls`, and `failed`, whether the agent reports a failure.

    Raises:
        AgentCallFailedError: The agent does not serve the interface, or has refused the call.

    Example:
        >>> box.generate("Say it again")["text"]
        'Say it again'
    """
    words = ["agent", "generate", "--json", *option("--session", session), *option("--timeout", seconds(timeout))]
    report: schema.AgentGenerate = yield from ask([*words, self.name, "-"], input=prompt.encode())
    return report


def agent_health(self: Handle, *, timeout: Optional[float] = None) -> Steps[schema.AgentHealth]:
    """Returns the health that the agent reports: `status`, `message` and `details`."""
    report: schema.AgentHealth = yield from ask(["agent", "health", "--json", *option("--timeout", seconds(timeout)), self.name])
    return report


def agent_capabilities(self: Handle) -> Steps[schema.AgentCapabilities]:
    """Returns what the agent reports about itself: its name and version, its features, tools and models."""
    report: schema.AgentCapabilities = yield from ask(["agent", "capabilities", "--json", self.name])
    return report


def agent_skills(self: Handle, *, session: Optional[str] = None) -> Steps[List[schema.AgentSkillsSkill]]:
    """Returns the skills that the agent reports, or those of one of its sessions."""
    report: schema.AgentSkills = yield from ask(["agent", "skills", "--json", *option("--session", session), self.name])
    return report["skills"]


def task(self: Handle) -> Steps[schema.Task]:
    """Returns the task with which the box was started, and its status.

    Raises:
        BoxbuildError: The box has no task, or has ended and left no record.
    """
    found: schema.Task = yield from ask(["task", "--json", self.name])
    return found
