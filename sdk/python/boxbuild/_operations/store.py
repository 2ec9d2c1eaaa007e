"""Environments of projects, builds, and the boxes of the store."""

from __future__ import annotations

import os
from typing import List, Optional, Sequence

from .. import _schema as schema
from .._call import Steps, ask, flag, operand, option
from .handle import AnyPath, Handle


def up(
    path: AnyPath = ".",
    *,
    box: Optional[str] = None,
    snapshot: Optional[str] = None,
    accept: bool = False,
    options: Sequence[str] = (),
) -> Steps[schema.Up]:
    """Starts the environment of a project, or does nothing if it runs.

    The environment is a box that has the directory of the project. It outlives this process, with what was installed in it.

    Args:
        path: The directory of the project.
        box: The box, at the first start: a Boxfile, a name in the store, a directory, `HOST/NAME:TAG` or a digest. By default, the
            Boxfile of the project.
        snapshot: The snapshot to begin with.
        accept: Whether to permit what a changed Boxfile asks for.
        options: Further options of `boxlaunch up` for the first start.

    Returns:
        The environment.

    Example:
        >>> page = Environment.up("~/src/page", accept=True)
        >>> page.exec("make test", check=True)
    """
    words = [*option("--box", box), *option("--from", snapshot), *flag("--accept", accept), *options]
    report: schema.Up = yield from ask(["up", "--json", *words, operand(os.path.expanduser(path))])
    return report


def reset(self: Handle) -> Steps[None]:
    """Removes what programs have written to the root of the environment. Volumes and the project stay."""
    yield from ask(["reset", "--json", self.name])


def remove_environment(self: Handle) -> Steps[None]:
    """Removes the environment with its disk and its volumes. The directory of the project stays."""
    yield from ask(["rm", "--force", "--all-data", "--json", self.name])


def create_snapshot(self: Handle, name: Optional[str] = None) -> Steps[schema.Snapshot]:
    """Copies the disk of the environment, which must be stopped.

    Args:
        name: The name of the snapshot. By default, the name of the box with a running number.
    """
    report: schema.Snapshots = yield from ask(["snapshot", "create", "--json", self.name, *([operand(name)] if name else [])])
    return report["snapshots"][0]


def build(
    boxfile: AnyPath = "Boxfile", *, name: Optional[str] = None, output: Optional[AnyPath] = None, options: Sequence[str] = ()
) -> Steps[schema.Build]:
    """Builds the box of a Boxfile.

    Args:
        boxfile: The path of the Boxfile.
        name: The name of the box in the store. By default, the name that the Boxfile gives it.
        output: The directory for the whole box. By default, the box is in the store.
        options: Further options of `boxbuild build`, such as `["--locked"]`.

    Returns:
        The report: `box` is the digest, which `Box.start` takes.

    Raises:
        BoxfileInvalidError: The Boxfile has errors. `problems` has their lines.

    Example:
        >>> boxbuild.build("examples/hello/Boxfile")["box"]
        'sha256:…'
    """
    words = [*option("--file", boxfile), *option("--name", name), *option("--output", output), *options]
    report: schema.Build = yield from ask(["build", "--json", *words], tool="boxbuild")
    return report


def pull(reference: str, *, dry_run: bool = False) -> Steps[schema.Pull]:
    """Pulls a box from a registry into the store.

    Args:
        reference: `HOST/NAME:TAG`, with `@sha256:…` for the box of that digest alone.
        dry_run: Whether to only report how much would be fetched.
    """
    report: schema.Pull = yield from ask(["pull", "--json", *flag("--dry-run", dry_run), operand(reference)])
    return report


def list_images(*, all: bool = False, sizes: bool = False) -> Steps[List[schema.ImagesImage]]:
    """Returns the boxes of the store that have a name.

    Args:
        all: Whether to list also boxes without a name.
        sizes: Whether to compute how much of each box no other box shares.
    """
    report: schema.Images = yield from ask(["images", "--json", *flag("--all", all), *flag("--sizes", sizes)])
    return report["images"]


def remove_images(*boxes: str, force: bool = False) -> Steps[schema.Prune]:
    """Removes boxes from the store: names, references or digests. With `force` also boxes that run, which go on."""
    report: schema.Prune = yield from ask(["rmi", "--json", *flag("--force", force), *(operand(it) for it in boxes)])
    return report


def prune(*, max_size: Optional[str] = None, older_than: Optional[str] = None, dry_run: bool = False) -> Steps[schema.Prune]:
    """Removes the least recently used boxes and files of the store.

    Args:
        max_size: The largest size of the store, such as `50G`.
        older_than: Removes also what was not used for this long, such as `7d`.
        dry_run: Whether to only report what would be removed.
    """
    words = [*option("--max-size", max_size), *option("--older-than", older_than), *flag("--dry-run", dry_run)]
    report: schema.Prune = yield from ask(["prune", "--json", *words])
    return report
