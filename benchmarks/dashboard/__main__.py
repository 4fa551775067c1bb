"""Both benchmarks of the dashboard, one after the other."""

import asyncio
import sys

from benchmarks.dashboard import map as drawing
from benchmarks.dashboard import viewers

if __name__ == "__main__":
    asyncio.run(drawing.main(10_000))
    sys.exit(asyncio.run(viewers.main(viewers=50, nodes=1000, seconds=30.0, every=1.0)))
