"""A fixture of pytest: each test gets a box, and all tests of a module share it if they ask for `module_box`.

    def test_the_hostname(box):
        assert box.exec(["hostname"]).ok
"""

import os
from typing import Iterator

import pytest

from boxbuild import Box

BOX = os.environ.get("TEST_BOX", "hello")


@pytest.fixture
def box() -> Iterator[Box]:
    """A new box for each test."""
    with Box.start(BOX) as started:
        yield started


@pytest.fixture(scope="module")
def module_box() -> Iterator[Box]:
    """One box for all tests of a module."""
    with Box.start(BOX) as started:
        yield started
