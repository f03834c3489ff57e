#!/usr/bin/env python3
"""Runs every row of peers.py three times on one thread and three times on two, and compares the
digests: one digest a row, or the exit status is 1.

    bench/packet/digests.py [ROW ...]        WEFT names another weft than build/release/weft
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from peers import HERE, ROWS, write_traffic


def main() -> int:
    weft = os.environ.get("WEFT", str(HERE.parent.parent / "build/release/weft"))
    wanted = sys.argv[1:] or [row.name for row in ROWS]
    unequal = 0
    with tempfile.TemporaryDirectory() as folder:
        for row in ROWS:
            if row.name not in wanted:
                continue
            matrix = Path(folder) / "matrix.cm"
            write_traffic(row, matrix)
            digests = []
            for threads in (1, 2) * 3:
                run = subprocess.run(
                    [weft, "flows", "--fabric", str(HERE / row.fabric), "--flows", str(matrix),
                     "--engine", "packet", "--json", "--quiet", "--start-unit", "us",
                     "--threads", str(threads)],
                    check=True, stdout=subprocess.PIPE)
                digests.append(json.loads(run.stdout)["digest"])
            same = len(set(digests)) == 1
            unequal += not same
            print(f"{row.name:8} {'equal' if same else 'DIFFERENT':9} {' '.join(sorted(set(digests)))}")
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
