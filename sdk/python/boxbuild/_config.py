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
        skills: The directories of skills that the Boxfile declares with `mode="mount"`, by name. For a directory of skills:
            `options=["--skills", DIR]`.
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
        for name in ("box", "image", "name"):
            _check(name, getattr(self, name), (str, os.PathLike), "a text")
        for name in ("shares", "volumes", "ports", "network_local", "options"):
            _check(name, getattr(self, name), (list, tuple), f"a list, such as {name}=[…]")
        for name in ("env", "secrets", "skills", "task"):
            _check(name, getattr(self, name), Mapping, f"a dict, such as {name}={{…}}")
        for port in self.ports:
            _check("ports", port, (int, str), "numbers or texts")
        for value in (self.secrets or {}).values():
            # The message must not have the value.
            if not isinstance(value, (str, Path)):
                raise TypeError("secrets: the values have to be texts, or a Path of a file")
        if bool(self.box) == bool(self.image):
            raise ValueError("a box or an image has to be named, and only one of them")

    @property
    def boxfile(self) -> Optional[str]:
        """The path of the Boxfile that has to be built, or `None` for a box that exists."""
        name = os.path.basename(self.box)
        is_named = name == "Boxfile" or name.startswith("Boxfile.") or name.endswith(".Boxfile")
        return self.box if is_named and not name.endswith(".lock") else None

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


def config_of(box: Union[str, BoxConfig]) -> BoxConfig:
    """Returns a configuration: one that is given, or that of a box."""
    return box if isinstance(box, BoxConfig) else BoxConfig(box)


def _check(name: str, value: object, kinds: Any, what: str) -> None:
    """Checks an argument of a `BoxConfig`.

    Raises:
        TypeError: It is neither `None` nor of one of these types.
    """
    if value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
        raise TypeError(f"{name} has to be {what}, and not a value of the type {type(value).__name__}")
