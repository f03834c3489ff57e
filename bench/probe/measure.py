#!/usr/bin/env python3
"""Measures weft probe and weft respond on loopback, beside fping, in turns.

    measure.py cost  [--weft PATH] [--rounds N]   CPU per probe and rate, against fping
    measure.py error [--weft PATH] [--seconds S] [--load N]
        error of round-trip times (the network's part of loopback is about 0) and false loss, quiet
        and with N busy loops for each processor

Prints one JSON object. CPU is user and system time of the processes themselves.
"""
import argparse
import json
import os
import resource
import signal
import statistics
import subprocess
import tempfile
import time

PORT = 18621


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cpu_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(command):
    """Runs a child; returns its output, CPU seconds and wall seconds."""
    before, start = cpu_of_children(), time.monotonic()
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    return child, cpu_of_children() - before, time.monotonic() - start


class Responder:
    def __init__(self, weft, key):
        command = [weft, "respond", f"127.0.0.1:{PORT}", "--key", key, "-q"]
        self.child = subprocess.Popen(command)  # pylint: disable=consider-using-with
        time.sleep(0.5)

    def cpu(self):
        return cpu_of(self.child.pid)

    def close(self):
        self.child.send_signal(signal.SIGINT)
        self.child.wait()


def probe(weft, key, *options):
    child, cpu, wall = run([weft, "probe", f"127.0.0.1:{PORT}", "--key", key, "--json", *options])
    rows = [json.loads(line) for line in child.stdout.splitlines()]
    # A flow whose losses have a known direction has a row for each leg; count probes once. Of a busy
    # prober's windows nothing is known but how many probes there were.
    sent = sum(row["sent"] + row.get("unknown", 0) for row in rows if row["leg"] != "back")
    return {"sent": sent, "lost": sum(row["lost"] for row in rows),
            "late": sum(row["late"] for row in rows), "cpu": cpu, "wall": wall, "rows": rows,
            "notes": child.stderr.strip()}


def fping(targets):
    child, cpu, wall = run(["fping", "-q", "-i", "0", "-p", "1", "-c", "60", "-f", targets])
    lines = [line for line in child.stderr.splitlines() if "xmt/rcv" in line]
    sent = sum(int(line.split("=", 1)[1].strip().split("/")[0]) for line in lines)
    return cpu, wall, sent


def cost(args, key, folder):
    targets = os.path.join(folder, "targets")
    with open(targets, "w", encoding="ascii") as f:
        f.writelines(f"127.0.{i // 250}.{i % 250 + 1}\n" for i in range(1000))
    rows = []
    responder = Responder(args.weft, key)
    for _ in range(args.rounds):
        cpu, wall, sent = fping(targets)
        row = {"fping_us": 1e6 * cpu / sent, "fping_per_s": sent / wall}
        for name, stamps in (("weft", []), ("weft_all_stamped", ["--stamp-every", "1"])):
            before = responder.cpu()
            mine = probe(args.weft, key, "--rate", "0", "--duration", "2 s", *stamps)
            row[name + "_us"] = 1e6 * mine["cpu"] / mine["sent"]
            row[name + "_per_s"] = mine["sent"] / 2
            row[name + "_lost"] = mine["lost"]
            row[name + "_responder_us"] = 1e6 * (responder.cpu() - before) / mine["sent"]
        row["ratio"] = row["weft_us"] / row["fping_us"]
        rows.append(row)
    responder.close()
    return {name: {"median": statistics.median(row[name] for row in rows),
                   "least": min(row[name] for row in rows),
                   "most": max(row[name] for row in rows)} for name in rows[0]}


def error(args, key, _folder):
    out = {}
    responder = Responder(args.weft, key)
    for name, loops in (("quiet", 0), ("loaded", args.load * os.cpu_count())):
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(loops)]
        time.sleep(1)
        mine = probe(args.weft, key, "--rate", str(args.rate), "--duration", f"{args.seconds} s",
                     "--ports", "40000", "--window", f"{args.seconds + 2} s")
        for child in busy:
            child.kill()
            child.wait()
        rtt = mine["rows"][0].get("rtt_us", {}) if mine["rows"] else {}
        out[name] = {"busy_loops": loops, "rate": args.rate, "sent": mine["sent"],
                     "lost": mine["lost"], "late": mine["late"], "rtt_us": rtt,
                     "latency": mine["rows"][0].get("latency") if mine["rows"] else None,
                     "notes": mine["notes"]}
    responder.close()
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["cost", "error"])
    parser.add_argument("--weft", default="build/release/weft")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--load", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        key = os.path.join(folder, "key")
        with open(key, "w", encoding="ascii") as f:
            f.write(os.urandom(16).hex())
        result = {"cost": cost, "error": error}[args.what](args, key, folder)
    result["load_average"] = os.getloadavg()
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
