#!/usr/bin/env bash
# slurm_sweep.sh WEFT : a sweep as an array of Slurm jobs, one shard each, then `weft merge`; the result must be
# that of one process, byte for byte.
#
# Needs what slurm_node.sh says. Exit status: 0 the same bytes, 1 not, 77 Slurm is not there or this is not root.
set -euo pipefail

weft=$(readlink -f "$1")
# shellcheck source=scripts/slurm_node.sh
. "$(dirname "$(readlink -f "$0")")/slurm_node.sh"

cat >sweep.yaml <<'YAML'
fabric: {generator: ai_zone, racks: 8}
jobs:
  - {name: reduce, collective: all_reduce, gpus: 64, bytes: 64 MiB}
  - {name: exchange, collective: all_to_all, gpus: 64, bytes: 1 MiB, start: 1 s}
compare: {ecmp: {}, spray: {routing: {scheme: spray}}}
sweep: {fabric.spines: [4, 8, 16, 18, 19], seed: [1, 2, 3]}
YAML
start_slurm here
queue_is_empty() { [ -z "$(timeout 5 squeue -h 2>/dev/null || echo unknown)" ]; }

sbatch --parsable --array=1-4 -n 1 -o "shard-%a.log" \
  --wrap "$weft sweep sweep.yaml --out parts --resume --threads 1 --shard \$SLURM_ARRAY_TASK_ID/4" >/dev/null
wait_for "end of the array" queue_is_empty
ls parts
"$weft" merge parts
"$weft" sweep sweep.yaml --out whole --quiet >/dev/null
for file in rows.csv sweep.json sweep.html; do cmp "parts/$file" "whole/$file"; done
echo "4 shards by Slurm $(slurmctld -V | cut -d' ' -f2): the same rows.csv, sweep.json and sweep.html as of one process"
