#!/usr/bin/env python3
"""What ECN thresholds and buffers of spines cost: an incast into one rack beside a permutation of
the others, on the zone of ecn-what-if.yaml. Prints a table in Markdown.

    bench/packet/ecn_what_if.py [--seeds 5]      # a minute; WEFT names another weft

Means over hash seeds, but the maxima of all. Percentiles of queues and pauses are upper edges of
powers of two. Needs Python 3.9.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator

HERE = Path(__file__).resolve().parent
RACK = 16  # NICs
NICS = 16 * RACK
SENDERS = 64


def ecn(kmin_kb: int, kmax_kb: int) -> list[str]:
    return [f"transport.ecn={{kmin: {kmin_kb} kB, kmax: {kmax_kb} kB}}"]


SHALLOW = ["transport.buffers.ctsw=64 MB"]
PAPER = ["transport.dcqcn.preset=paper"]
PFC_ONLY = ["transport.cc=none"]
VARIANTS = [
    ("640 MB", "tight: 0.2, 0.8 MB", ecn(200, 800)),
    ("640 MB", "default: 1.6, 6.4 MB", ecn(1600, 6400)),
    ("640 MB", "lax: 6.4, 25.6 MB", ecn(6400, 25600)),
    ("640 MB", "none: PFC only", PFC_ONLY),
    ("640 MB", "default, preset `paper`", ecn(1600, 6400) + PAPER),
    ("64 MB", "tight", ecn(200, 800) + SHALLOW),
    ("64 MB", "default", ecn(1600, 6400) + SHALLOW),
    ("64 MB", "lax", ecn(6400, 25600) + SHALLOW),
    ("64 MB", "none: PFC only", PFC_ONLY + SHALLOW),
]


def flows() -> Iterator[str]:
    """64 NICs of the 15 other racks send 1 MB to each NIC of the first; all other NICs of those
    racks send 16 MB to one that is about a rack further on."""
    yield "id,src,dst,bytes"
    senders = [RACK + i * (NICS - RACK) // SENDERS for i in range(SENDERS)]
    for src in senders:
        for dst in range(RACK):
            yield f"incast-{src}-{dst},{src},{dst},1 MB"
    rest = sorted(set(range(RACK, NICS)) - set(senders))
    for at, src in enumerate(rest):
        yield f"background-{src},{src},{rest[(at + RACK) % len(rest)]},16 MB"


def outcome(weft: str, file: Path, settings: list[str], seed: int) -> dict:
    command = [weft, "flows", "--fabric", str(HERE / "ecn-what-if.yaml"), "--flows", str(file),
               "--seed", str(seed), "--json", "--quiet"]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"ecn_what_if.py: {' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def completion(outcomes: list[dict], kind: str) -> str:
    """Mean / p99 / maximum in us."""
    runs = [sorted(1e6 * (flow["end_s"] - flow["start_s"]) for flow in outcome["flows"]
                   if flow["id"].startswith(kind)) for outcome in outcomes]
    p99 = statistics.fmean(run[-(-99 * len(run) // 100) - 1] for run in runs)
    return f"{statistics.fmean(map(statistics.fmean, runs)):,.0f} / {p99:,.0f} / " \
           f"{max(run[-1] for run in runs):,.0f}"


def pauses(tiers: list[dict]) -> str:
    """Total in us, p99 of one in us."""
    total = statistics.fmean(tier["paused_total_s"] for tier in tiers) * 1e6
    p99 = [tier["pause_s"]["p99"] for tier in tiers if tier["pauses"]]
    return f"{total:,.0f} / {statistics.fmean(p99) * 1e6:.1f}" if p99 else "0"


def queue(tiers: list[dict]) -> str:
    """p99 / maximum in MB."""
    p99 = statistics.fmean(tier["queue_bytes"]["p99"] for tier in tiers) / 1e6
    return f"{p99:.1f} / {max(tier['queue_bytes']['max'] for tier in tiers) / 1e6:.1f}"


HEAD = ["spines", "ECN", "NICs paused, us", "rtsw->ctsw paused, us", "ctsw->rtsw paused, us",
        "ctsw->rtsw queue, MB", "rtsw->nic queue, MB", "CNPs", "incast, us", "background, us"]


def line(spines: str, name: str, outcomes: list[dict]) -> list[str]:
    def tier(key: str) -> list[dict]:
        return [outcome["packet"]["tiers"][key] for outcome in outcomes]

    dropped = sum(outcome["packet"]["drops"] for outcome in outcomes)
    if dropped:
        sys.exit(f"ecn_what_if.py: {dropped} packets were dropped: this fabric is to be lossless")
    cnps = statistics.fmean(outcome["packet"]["cnps"] for outcome in outcomes)
    return [spines, name, pauses(tier("nic->rtsw")), pauses(tier("rtsw->ctsw")),
            pauses(tier("ctsw->rtsw")), queue(tier("ctsw->rtsw")), queue(tier("rtsw->nic")),
            f"{cnps:,.0f}", completion(outcomes, "incast"), completion(outcomes, "background")]


def main() -> int:
    parser = argparse.ArgumentParser(description="What ECN thresholds cost, as a table.")
    parser.add_argument("--seeds", type=int, default=5, help="hash seeds to average over (5)")
    seeds = parser.parse_args().seeds
    if seeds < 1:
        parser.error("--seeds: at least 1")
    weft = os.environ.get("WEFT", str(HERE.parents[1] / "build" / "release" / "weft"))
    if not os.access(weft, os.X_OK):
        sys.exit(f"ecn_what_if.py: no weft at {weft} (WEFT names another)")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "flows.csv"
        file.write_text("\n".join(flows()) + "\n", encoding="ascii")
        print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
        for spines, name, settings in VARIANTS:
            outcomes = [outcome(weft, file, settings, seed) for seed in range(1, seeds + 1)]
            print(f"| {' | '.join(line(spines, name, outcomes))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
