"""Runs a program that nobody has read, such as one that a model has written.

    python3 untrusted_code.py BOX program.py

BOX is a box with Python and without a network: `boxbuild init python:3.12` begins one.
"""

import sys
from pathlib import Path

from boxbuild import Box


def run(box_name: str, code: str) -> str:
    """Runs the program in a box of its own, and returns a report of its end."""
    with Box.start(box_name, network="none", lifetime="2m") as box:
        result = box.run_python(code, timeout=20)
    if result.timed_out:
        return "it took longer than 20 seconds"
    if result.oom_killed:
        return "it needs more memory"
    return f"status {result.status}\n{printable(result.stdout)}{printable(result.stderr)}"


def printable(text: str) -> str:
    """Returns the text without control characters, with which a stranger could change what the terminal shows."""
    return "".join(it if it.isprintable() or it in "\n\t" else "\ufffd" for it in text)


if __name__ == "__main__":
    print(run(sys.argv[1], Path(sys.argv[2]).read_text(encoding="utf-8")), end="")
