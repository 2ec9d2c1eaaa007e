"""How a box is doing, and its logs."""

from __future__ import annotations

from typing import List, Literal, Optional, Union

from .. import _schema as schema
from .._call import Steps, Stream, ask, boxlaunch, flag, json_lines, option
from .._errors import NameNotFoundError
from .handle import Handle, Owner


def inspect(self: Handle) -> Steps[schema.Record]:
    """Returns the record of the box: its state, its components, and what it has of the host.

    Raises:
        NameNotFoundError: The box has ended, and left no record.
    """
    # `boxlaunch inspect` would show a box of the store that has the same name.
    report: schema.Ps = yield from ask(["ps", "--all", "--json", *option("--filter", f"name={self.name}")])
    for record in report["boxes"]:
        if record["name"] == self.name:
            return record
    raise NameNotFoundError(f"no started box has the name {self.name}", hint="`boxlaunch ps -a` lists the started boxes")


def status(self: Owner) -> Steps[Literal["starting", "running", "ended"]]:
    """Returns the state of the box: `starting`, `running` or `ended`.

    Raises:
        NameNotFoundError: No box of `Box.of` has that name. A box that was started here has ended if it has no record.
    """
    try:
        return (yield from inspect(self))["state"]
    except NameNotFoundError:
        if self.report is None:
            raise
        return "ended"


def stats(self: Handle) -> Steps[schema.StatsBox]:
    """Returns the memory, the CPU time, the processes and the disk space that the box uses."""
    report: schema.Stats = yield from ask(["stats", "--json", self.name])
    return report["boxes"][0]


def health(self: Handle, *, component: schema.Component = "agent") -> Steps[schema.Health]:
    """Runs the health check that the Boxfile declares for a component: `healthy`, and the `reason` if it is not."""
    report: schema.Health = yield from ask(["health", "--json", *option("--component", component), self.name])
    return report


def ports(self: Handle) -> Steps[schema.Port]:
    """Returns the published ports, and the Unix socket that leads to the port of the agent."""
    report: schema.Port = yield from ask(["port", "--json", self.name])
    return report


def url(self: Handle, port: int, *, scheme: str = "http") -> Steps[str]:
    """Returns the URL at which this host reaches a published port of the box.

    Args:
        port: The port in the box.
        scheme: The scheme of the URL.

    Raises:
        LookupError: The port is not published.

    Example:
        >>> Box.start("shop", ports=[8080]).url(8080)
        'http://127.0.0.1:40123'
    """
    for published in (yield from ports(self))["published"]:
        if published["guest"] == port:
            return f"{scheme}://{published['host']}"
    raise LookupError(f"the port {port} of {self.name} is not published: start the box with ports=[{port}]")


def logs(
    self: Handle,
    *,
    follow: bool = False,
    since: Union[None, int, str] = None,
    tail: Optional[int] = None,
    component: schema.Component = "agent",
) -> Stream[schema.Logs]:
    """Yields the output of a component's main program, piece by piece.

    Args:
        follow: Whether to wait for more output until the box ends.
        since: Begins with the output since then: `10m`, or seconds since 1970.
        tail: Begins with the last lines, this many.
        component: The component.

    Example:
        >>> for piece in box.logs(follow=True):
        ...     print(piece["stream"], piece["text"], end="")
    """
    words = [*flag("--follow", follow), *option("--since", since), *option("--tail", tail), *option("--component", component)]
    return Stream(boxlaunch("logs", "--json", *words, self.name), json_lines)


def events(self: Handle, *, follow: bool = False) -> Stream[schema.RunLog]:
    """Yields everything that is kept of the run, in the order of time: output, commands, connections, trajectories.

    Args:
        follow: Whether to wait for more until the box ends.
    """
    return Stream(boxlaunch("logs", "--all", *flag("--follow", follow), self.name), json_lines)


def list_boxes(*, all: bool = False) -> Steps[List[schema.Record]]:
    """Returns the records of the boxes that run, the newest first.

    Args:
        all: Whether to list also boxes that have ended.
    """
    report: schema.Ps = yield from ask(["ps", "--json", *flag("--all", all)])
    return report["boxes"]
