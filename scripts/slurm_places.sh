#!/usr/bin/env bash
# slurm_places.sh WEFT LIST [STARTS] : zones that Slurm's topology/tree plugin and `weft place` use for the
# same list of jobs (start,JOB,HOSTS and stop,JOB; may be gzipped), side by side, on 8 pods of 192 racks of
# 2 hosts.
#
# A slurmctld of its own runs in a temporary directory, on ports of its own, without slurmd: its nodes are
# cloud nodes that never finish booting, so that jobs get nodes and keep them until they are cancelled. It is the
# only process that is ended here. Needs Debian's slurmctld and slurm-client.
# Exit status: 0 weft uses at most 0.87 of Slurm's zones, 1 more, 77 there is no slurmctld or no list.
set -euo pipefail
PATH=$PATH:/usr/sbin

weft=$1 list=$2 starts=${3:-300}
ports=${WEFT_SLURM_PORTS:-17817}
zone_hosts=384
[ -r "$list" ] || { echo "skipped: no list of jobs $list"; exit 77; }
for program in slurmctld sbatch scancel squeue; do
  command -v "$program" >/dev/null || { echo "skipped: no $program; install slurmctld and slurm-client"; exit 77; }
done

work=$(mktemp -d)
controller=
finish() {
  [ -z "$controller" ] || { kill "$controller" 2>/dev/null || true; wait "$controller" 2>/dev/null || true; }
  rm -rf "$work"
}
trap finish EXIT

mkdir "$work/state"
echo 'fabric: {generator: three_tier, pods: 8, racks: 192, gpus_per_host: 1}' >"$work/fabric.yaml"
"$weft" export "$work/fabric.yaml" --to slurm -o "$work/topology.conf"
{ if [[ $list == *.gz ]]; then gunzip -c "$list"; else cat "$list"; fi; } | tr -d '\r' |
  awk -F, -v most="$starts" '$1 == "start" { ++n } n <= most { print }' >"$work/jobs.csv"
cat >"$work/slurm.conf" <<CONF
ClusterName=side
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=$ports
SlurmdPort=$((ports + 1))
AuthType=auth/none
CredType=cred/none
SlurmUser=$(id -un)
StateSaveLocation=$work/state
SlurmctldPidFile=$work/slurmctld.pid
ProctrackType=proctrack/pgid
MpiDefault=none
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0
SelectType=select/linear
TopologyPlugin=topology/tree
SlurmdTimeout=0
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=86400
ResumeTimeout=65000
NodeName=host[0-3071] NodeAddr=127.0.0.1 CPUs=1 State=CLOUD
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE
CONF
export SLURM_CONF=$work/slurm.conf
slurmctld -D -f "$SLURM_CONF" >"$work/log" 2>&1 &
controller=$!
for ((i = 0; i < 300; ++i)); do # 30 s
  timeout 5 squeue >/dev/null 2>&1 && break
  kill -0 "$controller" 2>/dev/null || { echo "slurmctld ended:"; tail -5 "$work/log"; exit 1; }
  sleep 0.1
done
timeout 5 squeue >/dev/null

submit() { timeout 20 sbatch --parsable -N "$1" -o /dev/null --wrap true; }
# The nodes of a job, once it has them.
nodes_of() {
  local nodes i
  for ((i = 0; i < 200; ++i)); do
    nodes=$(timeout 20 squeue -h -j "$1" -o %N)
    [ -z "$nodes" ] || { echo "$nodes"; return; }
    sleep 0.05
  done
  echo "job $1 got no nodes" >&2
  return 1
}
# Nodes that have booted once are preferred to others: let all begin to boot first.
job=$(submit 3072)
nodes_of "$job" >/dev/null
scancel "$job"
while [ -n "$(timeout 20 squeue -h)" ]; do sleep 0.2; done
sleep 2

declare -A slurm_job
zones=0 wide=0
while IFS=, read -r kind name hosts; do
  if [ "$kind" = stop ]; then
    scancel "${slurm_job[$name]}"
    while [ -n "$(timeout 20 squeue -h -j "${slurm_job[$name]}" 2>/dev/null)" ]; do sleep 0.02; done
    continue
  fi
  slurm_job[$name]=$(submit "$hosts")
  nodes=$(nodes_of "${slurm_job[$name]}")
  [ "$hosts" -gt 1 ] || continue
  used=$(timeout 20 scontrol show hostnames "$nodes" |
    awk -v size=$zone_hosts '{ sub("host", ""); z[int($1 / size)] = 1 } END { print length(z) }')
  zones=$((zones + used)) wide=$((wide + 1))
done <"$work/jobs.csv"

ours=$("$weft" place --fabric "$work/fabric.yaml" --jobs "$work/jobs.csv" | awk '$1 == "zones" { print $2 + 0 }')
echo "$starts starts, $wide jobs of several hosts: Slurm $(slurmctld -V | awk '{ print $2 }') uses $zones zones, weft $ours"
awk -v a="$ours" -v b="$zones" 'BEGIN { printf "weft / Slurm: %.3f\n", a / b; exit a > 0.87 * b }'
