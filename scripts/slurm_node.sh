# Sourced by slurm_sweep.sh and slurm_jobs.sh, which set `weft`: a slurmctld and a slurmd of their own, in a
# temporary directory, on ports of their own; they are the only processes that are ended here. Needs root and
# Debian's slurmctld, slurmd and slurm-client; ends with 77 where these are not there.
PATH=$PATH:/usr/sbin
ports=${WEFT_SLURM_PORTS:-17827}
[ "$(id -u)" = 0 ] || { echo "skipped: slurmd runs as root only"; exit 77; }
for program in slurmctld slurmd sbatch squeue; do
  command -v "$program" >/dev/null || { echo "skipped: no $program; install slurmctld, slurmd and slurm-client"; exit 77; }
done

work=$(mktemp -d)
daemons=()
finish() {
  local status=$? i
  [ "$status" = 0 ] || tail -n 20 ./*.log
  for ((i = ${#daemons[@]} - 1; i >= 0; --i)); do # a slurmd needs its slurmctld to end
    kill "${daemons[i]}" 2>/dev/null || true
    wait "${daemons[i]}" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap finish EXIT
cd "$work"
mkdir state spool

wait_for() { # WHAT COMMAND... : 60 s
  local i
  for ((i = 0; i < 600; ++i)); do
    "${@:2}" && return
    for daemon in "${daemons[@]}"; do
      kill -0 "$daemon" 2>/dev/null || { echo "a daemon ended:"; tail -n 5 ./*.log; exit 1; }
    done
    sleep 0.1
  done
  echo "no $1 after 60 s:"
  tail -n 5 ./*.log
  exit 1
}
node_is_idle() { [ "$(timeout 5 sinfo -h -o %t 2>/dev/null)" = idle ]; }

start_slurm() { # NODE : one of that name, idle
  cat >slurm.conf <<CONF
ClusterName=weft
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
NodeName=$1 NodeAddr=127.0.0.1 NodeHostname=localhost CPUs=2 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES MaxTime=10 State=UP
CONF
  export SLURM_CONF=$work/slurm.conf
  slurmctld -D -f "$SLURM_CONF" >slurmctld.log 2>&1 &
  daemons+=($!)
  slurmd -D -N "$1" -f "$SLURM_CONF" >slurmd.log 2>&1 &
  daemons+=($!)
  wait_for "idle node" node_is_idle
}
