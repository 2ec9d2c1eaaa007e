"""The package agrees with the documents and with itself."""

import inspect
import json
import re
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Dict, Set

import boxbuild
from boxbuild import _errors, aio

from . import recorded

ROOT = Path(__file__).resolve().parents[3]


def surface(kind: type) -> Dict[str, Any]:
    """Returns the public methods of a class, each with the names and defaults of its arguments."""
    methods = {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
    return {
        name: [(it.name, it.default) for it in inspect.signature(method).parameters.values()]
        for name, method in methods.items()
        if callable(method)
    }


class Sources(unittest.TestCase):
    """One source each."""

    def test_generated_files_are_up_to_date(self) -> None:
        done = subprocess.run([sys.executable, str(ROOT / "sdk/generate.py"), "--check"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_the_version_is_that_of_the_programs(self) -> None:
        cargo = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
        project = re.search(r'^version = "(.+)"$', (ROOT / "sdk/python/pyproject.toml").read_text(), re.MULTILINE)
        assert cargo and project
        self.assertEqual({cargo[1], project[1]}, {boxbuild.__version__})

    def test_recorded_objects_fit_the_schema(self) -> None:
        definitions = json.loads((ROOT / "docs/json.schema.json").read_text())["$defs"]
        for name, value in recorded.DEFINITIONS.items():
            definition = definitions[name]
            missing: Set[str] = set(definition["required"]) - set(value)
            other = set(value) - set(definition["properties"])
            self.assertEqual((missing, other), (set(), set()), name)

    def test_both_surfaces_are_one(self) -> None:
        for name in ("Agent", "Box", "Environment", "Files", "Images", "Network", "Sessions", "Skills"):
            self.assertEqual(surface(getattr(boxbuild, name)), surface(getattr(aio, name)), name)
        self.assertEqual(surface(boxbuild.Process), surface(aio.Process))
        # `aio` alone has the type of `box = await Box.start(…)`.
        self.assertEqual(set(boxbuild.__all__) - {"aio"}, set(aio.__all__) - {"Opening"})
        for name in (*_errors.__all__, "BoxConfig", "BoxbuildError", "CommandError", "FileChange", "FileEntry", "Result", "schema"):
            self.assertIs(getattr(boxbuild, name), getattr(aio, name))
        for name in ("build", "create_box", "list_boxes", "run", "run_task"):
            mine, other = getattr(boxbuild, name), getattr(aio, name)
            self.assertEqual(inspect.signature(mine).parameters, inspect.signature(other).parameters)

    def test_everything_is_documented(self) -> None:
        for kind in (boxbuild.Box, boxbuild.Files, boxbuild.Skills, boxbuild.Network, boxbuild.Agent, boxbuild.Sessions, boxbuild.Images, aio.Box):
            self.assertTrue(kind.__doc__)
            for name in surface(kind):
                text = inspect.getdoc(getattr(kind, name)) or ""
                self.assertTrue(text, f"{kind.__name__}.{name}")
        start = inspect.getdoc(boxbuild.Box.start) or ""
        for name in inspect.signature(boxbuild.BoxConfig).parameters:
            self.assertIn(f"{name}: ", start)
        self.assertIn('>>> with Box.start("hello"', start)

    def test_the_page_names_every_method(self) -> None:
        page = (ROOT / "docs/sdk.md").read_text()
        names = {name for kind in (boxbuild.Box, boxbuild.Files, boxbuild.Skills, boxbuild.Network, boxbuild.Sessions) for name in surface(kind)}
        self.assertEqual({name for name in names if not re.search(rf"\b{name}\b", page)}, set())
