#!/usr/bin/env bash
# slurm_sweep.sh WEFT : a sweep as an array of Slurm jobs, one shard each, then `weft merge`; the result must be
# that of one process, byte for byte.
#
# A slurmctld and a slurmd of its own run in a temporary directory, on ports of their own; they are the only
# processes that are ended here. Needs root and Debian's slurmctld, slurmd and slurm-client.
# Exit status: 0 the same bytes, 1 not, 77 Slurm is not there or this is not root.
set -euo pipefail
PATH=$PATH:/usr/sbin

weft=$(readlink -f "$1")
ports=${WEFT_SLURM_PORTS:-17827}
[ "$(id -u)" = 0 ] || { echo "skipped: slurmd runs as root only"; exit 77; }
for program in slurmctld slurmd sbatch squeue; do
  command -v "$program" >/dev/null || { echo "skipped: no $program; install slurmctld, slurmd and slurm-client"; exit 77; }
done

work=$(mktemp -d)
daemons=()
finish() {
  for daemon in "${daemons[@]}"; do kill "$daemon" 2>/dev/null || true; wait "$daemon" 2>/dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT
cd "$work"
mkdir state spool

cat >sweep.yaml <<'YAML'
fabric: {generator: ai_zone, racks: 8}
jobs:
  - {name: reduce, collective: all_reduce, gpus: 64, bytes: 64 MiB}
  - {name: exchange, collective: all_to_all, gpus: 64, bytes: 1 MiB, start: 1 s}
compare: {ecmp: {}, spray: {routing: {scheme: spray}}}
sweep: {fabric.spines: [4, 8, 16, 18, 19], seed: [1, 2, 3]}
YAML
cat >slurm.conf <<CONF
ClusterName=sweep
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$ports
SlurmdPort=$((ports + 1))
AuthType=auth/none
CredType=cred/none
SlurmUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SchedulerParameters=batch_sched_delay=0
NodeName=here NodeAddr=127.0.0.1 NodeHostname=localhost CPUs=2 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES MaxTime=10 State=UP
CONF
export SLURM_CONF=$work/slurm.conf
slurmctld -D -f "$SLURM_CONF" >slurmctld.log 2>&1 &
daemons+=($!)
slurmd -D -N here -f "$SLURM_CONF" >slurmd.log 2>&1 &
daemons+=($!)
wait_for() { # WHAT COMMAND... : 60 s
  local i
  for ((i = 0; i < 600; ++i)); do
    "${@:2}" && return
    for daemon in "${daemons[@]}"; do
      kill -0 "$daemon" 2>/dev/null || { echo "a daemon of Slurm ended:"; tail -5 slurmctld.log slurmd.log; exit 1; }
    done
    sleep 0.1
  done
  echo "no $1 after 60 s:"
  tail -5 slurmctld.log slurmd.log
  exit 1
}
node_is_idle() { [ "$(timeout 5 sinfo -h -o %t 2>/dev/null)" = idle ]; }
queue_is_empty() { [ -z "$(timeout 5 squeue -h 2>/dev/null || echo unknown)" ]; }
wait_for "idle node" node_is_idle

sbatch --parsable --array=1-4 -n 1 -o "shard-%a.log" \
  --wrap "$weft sweep sweep.yaml --out parts --resume --threads 1 --shard \$SLURM_ARRAY_TASK_ID/4" >/dev/null
wait_for "end of the array" queue_is_empty
ls parts
"$weft" merge parts
"$weft" sweep sweep.yaml --out whole --quiet >/dev/null
for file in rows.csv sweep.json sweep.html; do cmp "parts/$file" "whole/$file"; done
echo "4 shards by Slurm $(slurmctld -V | cut -d' ' -f2): the same rows.csv, sweep.json and sweep.html as of one process"
