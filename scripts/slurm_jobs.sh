#!/usr/bin/env bash
# slurm_jobs.sh WEFT : `weft serve` learns from a real Slurm which job runs where, and what a dead cable of its host costs it.
#
# Needs what slurm_node.sh says, and curl. Exit status: 0 well, 1 not, 77 Slurm is not there or this is not root.
set -euo pipefail

weft=$(readlink -f "$1")
WEFT_SLURM_PORTS=${WEFT_SLURM_PORTS:-17829}
command -v curl >/dev/null || { echo "skipped: no curl"; exit 77; }
# shellcheck source=scripts/slurm_node.sh
. "$(dirname "$(readlink -f "$0")")/slurm_node.sh"

start_slurm dgx-1
echo "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 2, spines: 4}" >zone.yaml
printf 'node,host\ndgx-1,host:5\n' >nodes.csv
cat >serve.yaml <<YAML
jobs:
  from: slurm
  run: [$(command -v squeue), --noheader, --all, --states=RUNNING, "--format=%A|%u|%S|%N|%j"]
  environment: ["SLURM_CONF=$SLURM_CONF"]
  every: 200 ms
  names: nodes.csv
YAML
job=$(sbatch --parsable --job-name='llama|of May' -n 1 -o job.log --wrap "exec sleep 500")
"$weft" serve --fabric zone.yaml --config serve.yaml --listen unix:api.sock >serve.log 2>&1 &
daemons+=($!)
ask() { curl -sS --max-time 5 --unix-socket api.sock "http://localhost$1" 2>/dev/null || true; }
job_is_listed() { ask /v1/jobs | grep -q "\"id\":\"$job\""; }
wait_for "job in /v1/jobs" job_is_listed
ask /v1/jobs
echo
ask /v1/jobs | grep -q '"name":"llama|of May","user":"root","since":"20.*","host_count":1,"hosts":"host5"'
[ "$(ask /metrics | grep '^weft_jobs_running')" = "weft_jobs_running 1" ]

now=$(date -u +%FT%TZ)
"$weft" send --to unix:api.sock --feed records --spool spool <<RECORDS
{"id": "r1", "t": "$now", "received": "$now", "source": "syslog", "kind": "link_down", "entity": "rtsw:2->nic:10"}
{"id": "r2", "t": "$now", "received": "$now", "source": "syslog", "kind": "link_down", "entity": "nic:10->rtsw:2"}
RECORDS
case_of() { ask /v1/cases | sed -n 's/.*"id":"\([^"]*\)".*/\1/p' | head -1; }
case_is_open() { [ -n "$(case_of)" ]; }
wait_for "case" case_is_open
effects() { ask "/v1/cases/$(case_of)/jobs"; }
is_stalled() { effects | grep -q '"stalled":true.*"hosts_at_part":\["host5"\],"spares":\[{"host":"host5","spare":"host4"}\]'; }
wait_for "job that is stalled" is_stalled
effects
echo
"$weft" case "$(case_of)" --from unix:api.sock | tee case.txt
grep -q 'job .* llama|of May .*is stalled.*host5 by host4' case.txt

scancel "$job"
job_is_over() { ask /v1/jobs | grep -q '"items":\[\]'; }
wait_for "end of the job" job_is_over
wait_for "idle node" node_is_idle
echo "a job of Slurm $(slurmctld -V | cut -d' ' -f2) came, was found at a dead cable, and went"
