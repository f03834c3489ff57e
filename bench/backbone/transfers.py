#!/usr/bin/env python3
"""transfers.py LINKS MATRICES DAY COUNT SEED: transfers at random for weft bulk, on standard output.

Between all sites of LINKS (CSV: src, dst, ...); volumes are log-normal (sigma 1.2), together 40 % of
the traffic that MATRICES (gzipped CSV: time, SRC>DST in Mbit/s, ...) have on the day whose times begin
with DAY; releases at random, each with 8 to 48 slots of a quarter of an hour.
"""

import gzip
import random
import sys

links, matrices, day, count, seed = sys.argv[1:6]
count = int(count)
random.seed(int(seed))
with open(links, encoding="utf-8") as file:
    sites = sorted({site for line in file.read().split("\n")[1:] if line for site in line.split(",")[:2]})
with gzip.open(matrices, "rt") as file:
    rows = [line.split(",") for line in file.read().split("\n") if line.startswith(day)]
gbit = sum(sum(float(rate or 0) for rate in row[1:]) for row in rows) / len(rows) * 86400 / 1000 * 0.4
volumes = [random.lognormvariate(0, 1.2) for _ in range(count)]
print("id,src,dst,size,release,deadline")
for i, volume in enumerate(volumes):
    src, dst = random.sample(sites, 2)
    release = random.randrange(0, 88)
    deadline = min(96, release + random.randint(8, 48))
    size = volume * gbit / sum(volumes) / 8
    print(f"t{i},{src},{dst},{size:.6f} GB,{release * 15} min,{deadline * 15} min")
