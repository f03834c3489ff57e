#!/usr/bin/env python3
"""permutation.py HOSTS SIZE SEED: flows from every NIC to another one, each to one, as CSV for weft flows."""

import random
import sys

hosts, size, seed = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
to = list(range(hosts))
random.Random(seed).shuffle(to)
print("id,src,dst,bytes")
for host in range(hosts):
    if to[host] != host:
        print(f"{host},nic:{host},nic:{to[host]},{size}")
