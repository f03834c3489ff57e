#!/usr/bin/env python3
"""weft's packet engine beside the htsim simulators, alternately on one machine: CPU seconds,
memory and flow completion times of the same traffic on the same fat trees.

    HTSIM_ROCE=path/to/htsim_roce HTSIM_UEC=path/to/htsim_uec bench/packet/peers.py [ROW ...]

README.md beside this file says what is compared. Needs Python 3.9 and GNU time.
"""

import argparse
import functools
import json
import math
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Callable, Iterator, Optional

HERE = Path(__file__).resolve().parent
RUN_SECONDS_MAX = 3600
PEER_END_US = 100_000  # far behind every end: the peers stop there without a word


# --- Traffic -------------------------------------------------------------------------------------
# Chains of flows (source, destination): a flow starts when its sender knows the one before it in
# its chain has ended. Node i is host i.

Chain = list[tuple[int, int]]


def mixed(x: int) -> int:
    """A 64-bit hash (the finaliser of SplitMix64), the same in every version of Python."""
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def permutation(nodes: int, seed: int) -> Iterator[Chain]:
    """Every node sends once and receives once: along one random cycle through all of them."""
    cycle = sorted(range(nodes), key=lambda node: mixed((seed << 32) + node))
    after = {node: cycle[(at + 1) % nodes] for at, node in enumerate(cycle)}
    return ([(node, after[node])] for node in range(nodes))


def incast(senders: int) -> Iterator[Chain]:
    return ([(node, 0)] for node in range(1, senders + 1))


def all_to_all(group: int, window: int) -> Iterator[Chain]:
    """Every node sends to all others, the next ones first, `window` at any time."""
    return (
        [(node, (node + step) % group) for step in range(first, group, window)]
        for node in range(group)
        for first in range(1, window + 1)
    )


def ring(group: int) -> Iterator[Chain]:
    """Ring all-reduce: one chain a chunk, which goes round in 2 (group - 1) steps."""
    return (
        [((chunk + step) % group, (chunk + step + 1) % group) for step in range(2 * group - 2)]
        for chunk in range(group)
    )


@dataclass(frozen=True)
class Arrival:
    flow: tuple[int, int]
    start_us: int  # whole ones: one peer reads no others
    size: int


def poisson(nodes: int, flows: int, load: float, seed: int) -> list[Arrival]:
    """Flows at random times, that fill `load` of the hosts' 400 Gb/s; sizes of a Pareto distribution
    with the exponent 1.05 between 4 kB and 4 MB. No two between the same hosts: to weft those are
    messages of one queue pair, to the peer they are connections."""
    def uniform(n: int) -> float:
        return (mixed((seed << 32) + n) + 0.5) / 2**64

    low, high, exponent = 4e3, 4e6, 1.05
    span = 1 - (low / high) ** exponent
    sizes = [int(low * (1 - uniform(2 * i) * span) ** (-1 / exponent)) for i in range(flows)]
    between_us = statistics.fmean(sizes) / (nodes * load * 50e3)
    pairs = sorted(((src, dst) for src in range(nodes) for dst in range(nodes) if src != dst),
                   key=lambda pair: mixed((seed << 48) + pair[0] * nodes + pair[1]))
    out, now_us = [], 0.0
    for i, (pair, size) in enumerate(zip(pairs, sizes)):
        now_us -= math.log(uniform(2 * i + 1)) * between_us
        out.append(Arrival(pair, int(now_us), size))
    return out


def write_arrivals(path: Path, nodes: int, arrivals: list[Arrival]) -> dict[int, int]:
    """Writes a connection matrix; returns the start of each flow in us."""
    with path.open("w", encoding="ascii") as out:
        out.write(f"Nodes {nodes}\nConnections {len(arrivals)}\n")
        for i, it in enumerate(arrivals, 1):
            out.write(f"{it.flow[0]}->{it.flow[1]} id {i} start {it.start_us} size {it.size}\n")
    return {i: it.start_us for i, it in enumerate(arrivals, 1)}


def write_matrix(path: Path, nodes: int, chains: Callable[[], Iterator[Chain]],
                 size: int) -> dict[int, int]:
    """Writes a connection matrix; returns the start of each flow, 0 for chained ones as well. One
    chain in memory at a time."""
    lengths = [len(chain) for chain in chains()]
    flows = sum(lengths)
    triggers = flows - len(lengths)
    flow = trigger = 0
    with path.open("w", encoding="ascii") as out:
        out.write(f"Nodes {nodes}\nConnections {flows}\n")
        if triggers:
            out.write(f"Triggers {triggers}\n")
        for chain in chains():
            for at, (src, dst) in enumerate(chain):
                flow += 1
                begin = f"trigger {trigger}" if at else "start 0"
                line = f"{src}->{dst} id {flow} {begin} size {size}"
                if at + 1 < len(chain):
                    trigger += 1
                    line += f" send_done_trigger {trigger}"
                out.write(line + "\n")
        out.writelines(f"trigger id {i} oneshot\n" for i in range(1, triggers + 1))
    return dict.fromkeys(range(1, flows + 1), 0)


@dataclass(frozen=True)
class LeafSpine:
    """A fabric of two tiers, for the peer that builds trees of three by itself."""
    leaves: int
    hosts: int  # of each leaf
    spines: int

    def write(self, path: Path) -> None:
        nodes = self.leaves * self.hosts
        cables = "Downlink_speed_Gbps 400\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 0\n"
        path.write_text(f"Nodes {nodes}\nTiers 2\nPodsize {nodes}\n\nTier 0\n{cables}"
                        f"Radix_Down {self.hosts}\nRadix_Up {self.spines}\n"
                        f"Oversubscribed {max(1, self.hosts // self.spines)}\n\nTier 1\n{cables}"
                        f"Radix_Down {self.leaves}\n", encoding="ascii")


# --- Rows and programs ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    name: str
    what: str
    fabric: str  # beside this file
    nodes: int
    chains: Callable[[], Iterator[Chain]]
    size: int
    peer: Optional[str]  # a key of PEERS
    arrivals: Optional[Callable[[], list[Arrival]]] = None  # instead of chains
    topology: Optional[LeafSpine] = None
    transport: Optional[str] = None  # instead of the fabric's


ROWS = [
    Row("S1", "permutation, 1,024 hosts, spray", "s1.yaml", 1024,
        lambda: permutation(1024, 1), 2_000_000, "uec"),
    Row("S2", "permutation, 1,024 hosts, ECMP, PFC", "s2.yaml", 1024,
        lambda: permutation(1024, 1), 2_000_000, "roce"),
    Row("S3", "incast of 64, PFC", "s3.yaml", 128, lambda: incast(64), 2_000_000, "roce"),
    Row("S3-256", "incast of 256, PFC", "s3-256.yaml", 1024,
        lambda: incast(256), 2_000_000, "roce"),
    Row("S4", "ring all-reduce, 64 ranks", "s4.yaml", 128, lambda: ring(64), 262_144, "roce"),
    Row("S5", "all-to-all, 64 ranks, window 8, spray", "s5.yaml", 128,
        lambda: all_to_all(64, 8), 262_144, "uec"),
    Row("S5-ecmp", "all-to-all, 64 ranks, window 8, ECMP, PFC", "s5-ecmp.yaml", 128,
        lambda: all_to_all(64, 8), 262_144, "roce"),
    Row("S6", "permutation, 8,192 hosts, spray", "s6.yaml", 8192,
        lambda: permutation(8192, 1), 2_000_000, "uec"),
    Row("N-perm", "permutation, 128 hosts, 2 MB, NSCC", "nscc.yaml", 128,
        lambda: permutation(128, 1), 2_000_000, "uec"),
    Row("N-long", "permutation, 128 hosts, 8 MB, NSCC", "nscc.yaml", 128,
        lambda: permutation(128, 1), 8_000_000, "uec"),
    Row("N-incast", "incast of 64, 1 MB, NSCC", "nscc.yaml", 128, lambda: incast(64), 1_000_000, "uec"),
    Row("N-a2a", "all-to-all, 64 ranks, window 8, NSCC", "nscc.yaml", 128,
        lambda: all_to_all(64, 8), 262_144, "uec"),
    Row("N-poisson", "Poisson arrivals of 4 kB to 4 MB at 60 % load, NSCC", "nscc.yaml", 128,
        lambda: iter(()), 0, "uec", arrivals=lambda: poisson(128, 12_000, 0.6, 1)),
    Row("N-4to1", "permutation of 2 MB, 4:1 oversubscribed, NSCC", "nscc-4to1.yaml", 128,
        lambda: permutation(128, 1), 2_000_000, "uec", topology=LeafSpine(8, 16, 4)),
    Row("N-dead", "permutation of 2 MB, 8 of 16 spines dead, NSCC", "nscc-dead.yaml", 128,
        lambda: permutation(128, 1), 2_000_000, "uec", topology=LeafSpine(8, 16, 8)),
    Row("S6-ring", "ring all-reduce, 1,024 ranks, 2.1 M flows", "s6-ring.yaml", 1024,
        lambda: ring(1024), 16_384, None),
]
# What NSCC carries, by credit from the receiver.
ROWS += [replace(row, name="C" + row.name[1:], what=row.what.replace("NSCC", "credit"),
                 transport="eqds", peer="uec-credit") for row in ROWS if row.name.startswith("N-")]


def write_traffic(row: Row, path: Path) -> dict[int, int]:
    """The connection matrix of a row; returns the starts of its flows in us."""
    if row.arrivals:
        return write_arrivals(path, row.nodes, row.arrivals())
    return write_matrix(path, row.nodes, row.chains, row.size)


def peer_options(row: Row, matrix: Path, log: Path) -> list[str]:
    options = ["-nodes", str(row.nodes), "-linkspeed", "400000", "-mtu", "4096",
               "-end", str(PEER_END_US), "-tm", str(matrix), "-o", str(log)]
    if row.topology:
        tree = matrix.with_suffix(".topo")
        row.topology.write(tree)
        options += ["-topo", str(tree)]
    return options


def roce_options(seed: int) -> list[str]:
    del seed  # this peer seeds itself with the clock
    return ["-q", "10000", "-strat", "ecmp_host", "-paths", "1"]


def uec_options(seed: int, control: str = "-sender_cc_only") -> list[str]:
    return [control, "-load_balancing_algo", "oblivious", "-strat", "ecmp_host",
            "-paths", "128", "-seed", str(seed)]


@dataclass(frozen=True)
class Peer:
    variable: str  # of the environment, names the binary
    options: Callable[[int], list[str]]


PEERS = {"roce": Peer("HTSIM_ROCE", roce_options), "uec": Peer("HTSIM_UEC", uec_options),
         "uec-credit": Peer("HTSIM_UEC", functools.partial(uec_options,
                                                           control="-receiver_cc_only"))}


class Failure(Exception):
    """A run that gave no result; the text says why."""


@dataclass(frozen=True)
class Run:
    cpu_s: float  # user and system, less what it takes to start a program
    memory_mb: float  # 10^6 bytes at the peak
    fct_us: tuple[float, float, float, float]  # min, mean, p99 (nearest rank), max
    again: Optional[int]  # packets sent again, where that is told


def children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def wait_for(command: list[str], folder: Path) -> int:
    """Exit status of `command`; it and what it started are dead afterwards in any case."""
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err,
                                   start_new_session=True)
        try:
            return process.wait(RUN_SECONDS_MAX)
        except BaseException as error:  # an interrupt as well
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise Failure(f"ran for more than {RUN_SECONDS_MAX} s") from None
            raise


def timed(command: list[str], folder: Path) -> tuple[int, float]:
    """Exit status and CPU seconds. GNU time leaves the memory in the file `peak`: of a child of
    this interpreter the kernel would report at least the interpreter's own."""
    begin_s = children_cpu_s()
    status = wait_for(["time", "-f", "%M", "-o", str(folder / "peak"), *command], folder)
    return status, children_cpu_s() - begin_s


@functools.cache
def start_cpu_s() -> float:
    """What it takes to start a program that does nothing, here: some 3 ms, no part of any run."""
    with tempfile.TemporaryDirectory() as folder:
        return statistics.median(timed(["true"], Path(folder))[1] for _ in range(15))


def measured(command: list[str], folder: Path, ends_of: Callable[[Path], dict[int, float]],
             starts_us: dict[int, int]) -> Run:
    """Runs `command` in `folder`."""
    status, cpu_s = timed(command, folder)
    if status != 0:
        said = (folder / "stderr").read_text(errors="replace").strip().splitlines()
        raise Failure(f"exit status {status}" + (f": {said[0]}" if said else ""))
    ends = ends_of(folder / "stdout")
    if ends.keys() != starts_us.keys():
        raise Failure(f"{len(ends)} of {len(starts_us)} flows ended")
    times = sorted(end - starts_us[flow] for flow, end in ends.items())
    peak_kib = int((folder / "peak").read_text().split()[-1])
    return Run(cpu_s=cpu_s - start_cpu_s(), memory_mb=peak_kib * 1024 / 1e6,
               fct_us=(times[0], statistics.fmean(times), times[math.ceil(len(times) * 0.99) - 1],
                       times[-1]), again=sent_again(folder / "stdout"))


def peer_ends(out: Path) -> dict[int, float]:
    """End times in microseconds, out of the lines that both peers print for flows that end."""
    text = out.read_text(errors="replace")
    if "LOSSLESS not working" in text:
        raise Failure("a lossless queue overflowed")
    ends = re.findall(r"^Flow (?:.* flowId (\d+))?.* finished at (\S+)", text, re.MULTILINE)
    # One peer does not print numbers; its flows start together, so that any number serves.
    return {int(flow or at): float(end) for at, (flow, end) in enumerate(ends, 1)}


def sent_again(out: Path) -> Optional[int]:
    """As weft and the peers print it, the last of such counts."""
    told = re.findall(r'(?:\bRtx: |"retransmissions": ?)(\d+)', out.read_text(errors="replace"))
    return int(told[-1]) if told else None


def weft_ends(out: Path) -> dict[int, float]:
    def flow_end(fields: dict) -> object:  # millions of flows need not stay dictionaries
        if "end_s" not in fields:
            return fields
        end_s = fields["end_s"]
        return None if end_s is None else (int(fields["id"]), end_s * 1e6)

    try:
        with out.open(encoding="utf-8") as file:
            ends = json.load(file, object_hook=flow_end)["flows"]
    except (ValueError, KeyError) as error:
        raise Failure(f"its output is not what `weft flows --json` prints: {error}") from None
    return dict(end for end in ends if end is not None)


# --- Rounds and tables ---------------------------------------------------------------------------


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def executable(value: Optional[str]) -> Optional[str]:
    found = shutil.which(value) if value else None
    return str(Path(found).resolve()) if found else None


@dataclass(frozen=True)
class Binaries:
    weft: Optional[str]
    peers: dict[str, Optional[str]]


def find_binaries() -> Binaries:
    """Says what is missing."""
    if shutil.which("time") is None:
        sys.exit("peers.py: GNU time is missing: install the package \"time\"")
    weft_path = os.environ.get("WEFT", str(HERE.parents[1] / "build" / "release" / "weft"))
    out = Binaries(executable(weft_path),
                   {name: executable(os.environ.get(peer.variable))
                    for name, peer in PEERS.items()})
    if out.weft is None:
        say(f"missing: weft at {weft_path} (WEFT names another)")
    for variable in sorted({peer.variable for name, peer in PEERS.items() if not out.peers[name]}):
        say(f"missing: {variable} does not name an executable {variable.lower()}")
    return out


@dataclass
class Result:
    row: str
    peer: Optional[str]
    peer_runs: list[Run] = field(default_factory=list)
    weft_runs: list[Run] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


Side = tuple[str, list[Run], Callable[[int], Run]]  # name, results, a run with a seed


def sides_of(row: Row, binaries: Binaries, folder: Path, result: Result) -> list[Side]:
    """What can be run; writes the traffic if anything can."""
    fabric = HERE / row.fabric
    peer = binaries.peers[row.peer] if row.peer else None
    has_weft = binaries.weft is not None and fabric.exists()
    if binaries.weft and not has_weft:
        say(f"{row.name}: missing {fabric}: weft is left out")
    if not peer and not has_weft:
        say(f"{row.name}: nothing to run")
        return []
    matrix = folder / f"{row.name}.cm"
    starts_us = write_traffic(row, matrix)

    def run_peer(seed: int) -> Run:
        options = peer_options(row, matrix, folder / "log") + PEERS[row.peer].options(seed)
        return measured([peer, *options], folder, peer_ends, starts_us)

    def run_weft(seed: int) -> Run:
        options = ["flows", "--fabric", str(fabric), "--flows", str(matrix), "--engine", "packet",
                   "--json", "--quiet", "--threads", "1", "--seed", str(seed),
                   "--start-unit", "us"]
        if row.transport:
            options += ["--set", f"transport.name={row.transport}"]
        return measured([binaries.weft, *options], folder, weft_ends, starts_us)

    sides = [("peer", result.peer_runs, run_peer)] if peer else []
    return sides + ([("weft", result.weft_runs, run_weft)] if has_weft else [])


def run_row(row: Row, binaries: Binaries, rounds: int, folder: Path) -> Result:
    """Runs the peer and weft in turns. A side that fails once is not run again."""
    result = Result(row.name, row.peer)
    sides = sides_of(row, binaries, folder, result)
    for seed in range(1, rounds + 1):
        for side in list(sides):
            name, runs, run_with = side
            try:
                runs.append(run_with(seed))
                say(f"{row.name}, round {seed}: {name} {runs[-1].cpu_s:.3f} s")
            except Failure as failure:
                result.failures.append(f"{name}: {failure}")
                say(f"{row.name}, round {seed}: {name} failed: {failure}")
                sides.remove(side)
    return result


def cells_of(runs: list[Run]) -> tuple[Optional[float], list[str]]:
    """Median CPU seconds, and the cells CPU, memory, FCT, sent again: medians, but means of the
    last two."""
    if not runs:
        return None, ["-", "-", "-", "-"]
    cpu = statistics.median(run.cpu_s for run in runs)
    fct = [statistics.fmean(run.fct_us[i] for run in runs) for i in range(4)]
    again = [run.again for run in runs if run.again is not None]
    return cpu, [f"{cpu:.3f}", f"{statistics.median(run.memory_mb for run in runs):.0f}",
                 " / ".join(f"{value:.1f}" for value in fct),
                 f"{statistics.fmean(again):.0f}" if again else "-"]


HEAD = ["row", "peer", "peer CPU s", "weft CPU s", "ratio", "peer MB", "weft MB",
        "peer FCT us: min / mean / p99 / max", "weft FCT us: min / mean / p99 / max",
        "peer sent again", "weft sent again"]


def table_line(result: Result) -> list[str]:
    peer_cpu, peer = cells_of(result.peer_runs)
    weft_cpu, weft = cells_of(result.weft_runs)
    ratio = f"{peer_cpu / weft_cpu:.1f}" if peer_cpu and weft_cpu else "-"
    return [result.row, result.peer or "-", peer[0], weft[0], ratio, peer[1], weft[1], peer[2],
            weft[2], peer[3], weft[3]]


def print_table(lines: list[list[str]]) -> None:
    widths = [max(len(line[i]) for line in [HEAD, *lines]) for i in range(len(HEAD))]
    for line in [HEAD, ["-" * width for width in widths], *lines]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |")


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="weft and htsim alternately on the same traffic.",
        epilog="rows: " + "; ".join(f"{row.name} ({row.what})" for row in ROWS))
    parser.add_argument("rows", nargs="*", metavar="ROW", help="all by default")
    parser.add_argument("--rounds", type=positive, default=3, help="runs of each program (3)")
    parser.add_argument("--keep", type=Path, metavar="DIR",
                        help="leave traffic and the last outputs there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="every run, for other programs")
    args = parser.parse_args()
    known = {row.name for row in ROWS}
    for name in args.rows:
        if name not in known:
            parser.error(f"no row {name}; there are {', '.join(row.name for row in ROWS)}")
    return args


def main() -> int:
    args = read_arguments()
    binaries = find_binaries()
    rows = [row for row in ROWS if not args.rows or row.name in args.rows]
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        results = [run_row(row, binaries, args.rounds, folder) for row in rows]
    print_table([table_line(result) for result in results])
    if args.json:
        record = [asdict(result) for result in results]
        args.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    some_ran = any(result.peer_runs or result.weft_runs for result in results)
    return 0 if some_ran and not any(result.failures for result in results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
