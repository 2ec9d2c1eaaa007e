"""Makes the wheel of the Python package, with the programs of a release inside.

    python3 sdk/wheel.py ROOT OUTPUT

ROOT is an installation: bin/boxbuild, bin/boxlaunch, lib/boxbuild/box-init and so on. The wheel is written into the directory
OUTPUT, and its path is printed. The same files give the same bytes. The format is that of
https://packaging.python.org/en/latest/specifications/binary-distribution-format/.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import tomllib
import zipfile
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent / "python"
# The programs are static, so they run with every C library.
PLATFORMS = ["manylinux2014_x86_64", "musllinux_1_1_x86_64"]
PROGRAMS = ["bin/box", "bin/boxbuild", "bin/boxlaunch", "lib/boxbuild/box-init", "lib/boxbuild/lean-kernel"]
# The first time that an archive can have.
TIME = (1980, 1, 1, 0, 0, 0)


def metadata(project: dict) -> str:
    """Returns the file METADATA."""
    fields = [
        ("Metadata-Version", "2.1"),
        ("Name", project["name"]),
        ("Version", project["version"]),
        ("Summary", project["description"]),
        ("License", project["license"]["text"]),
        ("Requires-Python", project["requires-python"]),
        ("Description-Content-Type", "text/markdown"),
    ]
    fields += [("Classifier", it) for it in project["classifiers"]]
    head = "".join(f"{name}: {value}\n" for name, value in fields)
    return f"{head}\n{(PACKAGE / project['readme']).read_text()}"


def wheel_file(tags: list[str]) -> str:
    """Returns the file WHEEL."""
    lines = ["Wheel-Version: 1.0", "Generator: boxbuild", "Root-Is-Purelib: false", *(f"Tag: {it}" for it in tags)]
    return "".join(f"{it}\n" for it in lines)


def content(root: Path, packages: list[str]) -> dict[str, tuple[bytes, int]]:
    """Returns the bytes and the mode of each file of the package, by its path in the wheel."""
    files = {}
    for package in packages:
        directory = PACKAGE / package.replace(".", "/")
        for path in sorted(directory.glob("*.py")) + sorted(directory.glob("py.typed")):
            files[str(path.relative_to(PACKAGE))] = (path.read_bytes(), 0o644)
    for name in PROGRAMS:
        path = root / name
        files[f"boxbuild/{name}"] = (path.read_bytes(), path.stat().st_mode & 0o755)
    return files


def record(files: dict[str, tuple[bytes, int]], own: str) -> bytes:
    """Returns the file RECORD, which has the digest and the size of every other file."""
    lines = []
    for name, (data, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join([*lines, f"{own},,\n"]).encode()


def make(root: Path, output: Path) -> Path:
    """Writes the wheel, and returns its path."""
    settings = tomllib.loads((PACKAGE / "pyproject.toml").read_text())
    project = settings["project"]
    name = f"{project['name']}-{project['version']}"
    info = f"{name}.dist-info"
    files = content(root, settings["tool"]["setuptools"]["packages"])
    files[f"{info}/METADATA"] = (metadata(project).encode(), 0o644)
    files[f"{info}/WHEEL"] = (wheel_file([f"py3-none-{it}" for it in PLATFORMS]).encode(), 0o644)
    own = f"{info}/RECORD"
    files[own] = (record(files, own), 0o644)
    path = output / f"{name}-py3-none-{'.'.join(PLATFORMS)}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, (data, mode) in files.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = (0o100000 | mode) << 16
            entry.create_system = 3  # Unix, so that the mode counts
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return path


if __name__ == "__main__":
    print(make(Path(sys.argv[1]), Path(sys.argv[2])))
