"""What a box gets when it starts."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, Union

from ._call import flag, operand, option, pairs, seconds

#: The variable of `boxlaunch` with the value of a secret.
_SECRET = "BOXBUILD_SDK_SECRET_"


@dataclass(frozen=True)
class BoxConfig:
    """A box and what it gets from its host: the options of `boxlaunch run`.

    Args:
        box: A name in the store, `HOST/NAME:TAG` of a registry, a digest, a directory such as `./hello.box`, or a Boxfile, which is
            built first.
        image: An image such as `python:3.12`, instead of a box. It has no network, and its own program is not started.
        name: The name for other commands. By default, the box's own name with a random suffix.
        env: Variables that the Boxfile declares for launch; `agent/NAME` is for one component.
        secrets: The values of declared secrets: text, or a `Path` of a file. They are on no command line.
        shares: Directories, files and sockets of the host: `HOST:GUEST`, `HOST:GUEST:rw`, or `NAME=HOST` for a declared one.
        skills: The directories of skills that the Boxfile declares with `mode="mount"`, by name.
        volumes: Volumes as `NAME:/PATH`.
        ports: Ports to publish: a number is the port in the box, which gets a free port of the host; or `HOST:GUEST[/COMPONENT]`.
        network: `none`, `box` (the rules of the box) or `shared`.
        network_local: Addresses outside of the internet that the box may connect to, such as `127.0.0.1:5432`.
        memory: The memory of the VM: `1GiB`, or a number of MiB.
        cpus: The number of virtual CPUs.
        disk: The size of the disk of the box, such as `20GiB`.
        lifetime: Stops the box after this time: seconds, or a text such as `15m`.
        idle: Stops the box when nobody has used it for this time.
        startup_timeout: How long the agent may take to be ready, in seconds.
        task: A task for the agent: `id`, `type`, `description`, `input`. The agent ends with it, and so does the box.
        keep: Whether the box outlives the `with` block and this process. Otherwise it ends with them, and leaves no record.
        emulated: Whether the box runs without KVM, slowly. Only for `run`.
        options: Further options of `boxlaunch run`, such as `["--restart", "unhealthy"]`.

    Example:
        >>> config = BoxConfig("hello", memory="1GiB", ports=[8080])
        >>> with create_box(config) as box:
        ...     print(box.url(8080))
    """

    box: str = ""
    image: Optional[str] = None
    name: Optional[str] = None
    env: Optional[Mapping[str, str]] = None
    secrets: Optional[Mapping[str, Union[str, Path]]] = field(default=None, repr=False)
    shares: Sequence[str] = ()
    skills: Optional[Mapping[str, Union[str, os.PathLike[str]]]] = None
    volumes: Sequence[str] = ()
    ports: Sequence[Union[int, str]] = ()
    network: Optional[Literal["none", "box", "shared"]] = None
    network_local: Sequence[str] = ()
    memory: Union[None, int, str] = None
    cpus: Optional[int] = None
    disk: Optional[str] = None
    lifetime: Union[None, float, str] = None
    idle: Union[None, float, str] = None
    startup_timeout: Optional[float] = None
    task: Optional[Mapping[str, Any]] = None
    keep: bool = False
    emulated: bool = False
    options: Sequence[str] = ()

    def __post_init__(self) -> None:
        if bool(self.box) == bool(self.image):
            raise ValueError("a box or an image has to be named, and only one of them")

    @property
    def boxfile(self) -> Optional[str]:
        """The path of the Boxfile that has to be built, or `None` for a box that exists."""
        name = os.path.basename(self.box)
        return self.box if name == "Boxfile" or name.startswith("Boxfile.") or name.endswith(".Boxfile") else None

    def words(self, box: str) -> List[str]:
        """Returns the options of `boxlaunch run`, and the box."""
        secrets = [f"{name}={self._source(at, it)}" for at, (name, it) in enumerate((self.secrets or {}).items())]
        return [
            *flag("--rm", not self.keep),
            *flag("--with-parent", not self.keep and not self.emulated),
            *flag("--emulated", self.emulated),
            *option("--image", self.image),
            *option("--name", self.name),
            *option("--env", *pairs(self.env)),
            *option("--secret", *secrets),
            *option("--share", *self.shares),
            *option("--skill", *pairs(self.skills)),
            *option("--volume", *self.volumes),
            *option("--publish", *(f"0:{it}" if isinstance(it, int) else it for it in self.ports)),
            *option("--network", self.network),
            *option("--network-local", *self.network_local),
            *option("--memory", self.memory),
            *option("--cpus", self.cpus),
            *option("--disk", self.disk),
            *option("--lifetime", seconds(self.lifetime)),
            *option("--idle", seconds(self.idle)),
            *option("--startup-timeout", seconds(self.startup_timeout)),
            *self.options,
            *([operand(box)] if box else []),
        ]

    def variables(self) -> Dict[str, str]:
        """Returns the variables with which `boxlaunch` gets the values of secrets."""
        values = enumerate((self.secrets or {}).values())
        return {f"{_SECRET}{at}": it for at, it in values if isinstance(it, str)}

    @staticmethod
    def _source(at: int, value: Union[str, Path]) -> str:
        return f"env:{_SECRET}{at}" if isinstance(value, str) else f"file:{value}"
