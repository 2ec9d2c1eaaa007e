"""Starts boxes in parallel, and runs a program in each.

    python3 parallel.py BOX [NUMBER]
"""

import asyncio
import sys

from boxbuild import aio


async def one(box_name: str, number: int) -> str:
    """Returns what box `number` has computed. The box ends with the block, also if another one has failed."""
    async with aio.Box.start(box_name) as box:
        result = await box.exec(f"echo $(({number} * {number}))", check=True)
        return result.stdout.strip()


async def main() -> None:
    """Prints the results of all boxes, in the order of their numbers."""
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    print(*await asyncio.gather(*(one(sys.argv[1], number) for number in range(count))))


if __name__ == "__main__":
    asyncio.run(main())
