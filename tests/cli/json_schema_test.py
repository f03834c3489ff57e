#!/usr/bin/env python3
"""json_schema_test.py WEFT SOURCE [--draft COMMAND]: outputs of --json against their schemas.

Every output must be valid by the schema that `weft help COMMAND --schema` prints, no object may
have a key that its schema does not declare, and every key that a schema declares must appear in
some output, unless the schema marks it "x-rare". Every command that reads --json has a schema, or a
reason here why it is not run. With --draft the schema that the outputs suggest is printed.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    jsonschema = None

ZONE = 'fabric: {generator: ai_zone, racks: 6, hosts_per_rack: 2, gpus_per_host: 8, spines: 2}\n'
SMALL = 'fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 2, spines: 2}\n'
FILES = {
    'fluid.yaml': ZONE + '''jobs:
  - {name: llama, model: llama3-8b, parallel: {tp: 8, dp: 8}, batch_tokens: 1 Mi}
  - {name: ring, collective: all_reduce, gpus: 16, bytes: 64 MiB}
compare:
  healthy: {}
  cut: {routing: {convergence: {}}, faults: [{kind: switch_down, switch: "ctsw:0", at: 1 ms}, {kind: switch_down, switch: "ctsw:1", at: 1 ms}]}
''',
    'packet.yaml': SMALL + 'engine: packet\njobs: [{name: ring, collective: all_reduce, gpus: 32, bytes: 1 MiB}]\n',
    'small.yaml': SMALL + 'jobs: [{name: x, collective: all_to_all, gpus: 32, bytes: 1 MiB, place: random}]\n',
    # ask.py SOCKET PATH [-]: GET, or POST of standard input.
    'ask.py': '''import http.client, socket, sys
connection = http.client.HTTPConnection("weft")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect(sys.argv[1])
connection.request(*(("POST", sys.argv[2], sys.stdin.buffer.read()) if sys.argv[3:] else ("GET", sys.argv[2])))
answer = connection.getresponse()
print(answer.read().decode())
sys.exit(answer.status != 200)
''',
    'step.yaml': SMALL + 'jobs: [{name: t, model: llama3-8b, parallel: {tp: 8, dp: 4}, batch: 4}]\n',
    'late.yaml': SMALL + 'faults: [{kind: link_down, link: "rtsw:0--ctsw:0", at: 1 ms, until: 2 ms}]\n'
                 'jobs: [{name: x, collective: all_to_all, gpus: 32, bytes: 1 MiB}]\n',
    'sweep.yaml': SMALL + 'jobs: [{name: x, collective: all_to_all, gpus: 32, bytes: 1 MiB}]\n'
                  'sweep: {fabric.spines: [1, 2]}\n',
    'zone.yaml': 'fabric: {generator: ai_zone, racks: 4, spines: 4}\n',
    'flows.csv': 'id,src,dst,bytes,start\n0,nic:0,nic:20,1 MiB,0 s\n1,nic:1,nic:20,1 MiB,0 s\n',
    'jobs.csv': 'start,a,2\nstart,b,1\nstop,a\nstart,c,9\n',
    'counters.jsonl': '{"t":0,"link":"rtsw:0->ctsw:1","class":"0","packets":1000,"marks":0,"drops":0,"errors":0}\n',
    'site.yaml': 'fabric: site-zone.yaml\nservice: {listen: "unix:api.sock"}\noperate:\n'
                 '  jobs: {from: slurm, run: [/bin/echo, "7|ann|2026-03-01T00:00:00|n[0-1],other|llama"], names: nodes.csv}\n'
                 'feeds:\n  - agent: {device: "host:0", logs: [log]}\n',
    'health-zone.yaml': 'fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 1, spines: 8}\nrouting: {scheme: e_ecmp, qps: 4}\n'
                        'jobs: [{name: llama, collective: all_reduce, gpus: 32, bytes: 1 GiB}]\n',
    'nodes.csv': 'node,host\nn0,host:0\nn1,host:1\n',
    'site-zone.yaml': 'fabric: {generator: ai_zone, racks: 4, gpus_per_host: 1, spines: 4}\n',
    'exporter.prom': 'node_hwmon_temp_celsius{chip="asic",sensor="temp1"} 120\n',
    'odd.log': ('<189>1 2026-03-01T00:00:00Z rtsw-0 bgpd - - - odd news of peer 7\n'
                '<189>1 2026-03-01T00:00:01Z rtsw-0 kernel - - - %OPTIC-3-ALARM: link down on optic 7 of lane 2\n') * 30,
    'quick.yaml': 'timing: {together: 1 s, lesser: 1 s}\n',
    'loud.yaml': 'rules: {port_down: {below: 2}}\n',
    'names.csv': 'address,device\n127.0.0.1,rtsw:0\n',
    'senders.csv': 'community\npublic\n',
    'vendor.key': 'k' * 40,
    'served.yaml': 'fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 1, spines: 4}\n'
                   'faults: [{kind: link_down, link: "rtsw:0--ctsw:1", at: 10 s, until: 20 s}]\n',
    'log': '<189>1 2026-03-01T00:00:00Z rtsw1 bgpd - - - odd news of peer 7\n' * 30,
}
PROBED = [
    'cat zone.yaml > lossy.yaml; echo \'faults: [{kind: link_lossy, link: "rtsw:0--ctsw:1", loss: 0.02}, '
    '{kind: link_down, link: "rtsw:1--ctsw:2", at: 5 s}]\' >> lossy.yaml',
    'weft probe plan --fabric zone.yaml --crossings 1000 --json > plan.jsonl',
    'weft probe --twin --fabric lossy.yaml --plan plan.jsonl --duration "40 s" --truth truth.jsonl --json > evidence.jsonl',
]
STORM = ['weft storm --fabric zone.yaml --faults 40 --lines 8000 --hours 3 --out storm']

# A site that runs: a service, told of jobs and of a cable of a host that is down, and an agent.
SITE = ['''(weft up site.yaml >up.out 2>up.err &)
get() { python3 ask.py api.sock "/v1/$1" "${@:2}"; }
for i in $(seq 300); do weft up site.yaml --status --json 2>/dev/null | grep -q '"ready":true' && break; sleep 0.1; done
now() { date -u +%FT%T.%NZ; }
for at in 'nic:0->rtsw:0' 'rtsw:0->nic:0'; do
  echo '{"id": "'$at'", "t": "'$(now)'", "until": "'$(now)'", "received": "'$(now)'", "source": "snmp", "entity": "'$at'", "kind": "link_down", "attrs": {"message": "down"}}'
done | get records - >/dev/null
for i in $(seq 300); do get repairs | grep -q '"stage":' && break; sleep 0.1; done
weft up site.yaml --status --json > up.json
id=$(get cases | sed 's/.*"items":\\[{"id":"\\([^"]*\\).*/\\1/')
weft case "$id" --from unix:api.sock --do own > own.txt
weft case "$id" --from unix:api.sock --json > case.json
weft case --from unix:api.sock --json > cases.json
echo 'zones: [{name: z1, urls: ["unix:api.sock"]}, {name: z2, urls: ["unix:none.sock"]}]' > zones.yaml
weft zones zones.yaml --json > zones.json
weft case "$id" --from unix:api.sock --do hold --reason look --json > held.json
weft drains --from unix:api.sock --freeze 2096-01-01T00:00:00Z --reason look --json > frozen.json
weft drains --from unix:api.sock --json > drains.json
weft up site.yaml --down >/dev/null''']
# Switches that are never reached.
SWITCHES = ['''printf 'device,dialect,address\\nrtsw:1,sonic,10.0.0.1\\nctsw:0,frr,10.0.0.2\\nctsw:1,frr,10.0.0.3\\n' > switches.csv
printf 'actuator: {switches: switches.csv}\\n' > switches.yaml''']
# A table of path health, by a service that was told of a slow NIC.
HEALTH = ['''(weft serve --fabric health-zone.yaml --store health.db --listen unix:health.sock --health service.health >/dev/null 2>&1 & echo $! > pid)
for i in $(seq 300); do python3 ask.py health.sock /readyz >/dev/null 2>&1 && break; sleep 0.1; done
echo '{"id": "r1", "t": "'$(date -u +%FT%T.%NZ)'", "source": "agent", "kind": "info", "entity": "nic:7", "attrs": {"rate_share": "0.5"}}' | python3 ask.py health.sock /v1/records - >/dev/null
for i in $(seq 600); do weft agent --show-health service.health --json 2>/dev/null | grep -q '"operation"' && break; sleep 0.1; done
kill $(cat pid)''']
# A service that places flows, whose switches have no agents.
TE = ['''printf 'src,dst\\nnic:0,nic:4\\n' > te-flows.csv; echo 'te: {flows: te-flows.csv}' > te-serve.yaml
(weft serve --fabric zone.yaml --config te-serve.yaml --store te.db --listen unix:te.sock >/dev/null 2>&1 & echo $! > te.pid)
for i in $(seq 300); do python3 ask.py te.sock /readyz >/dev/null 2>&1 && break; sleep 0.1; done
weft te --from unix:te.sock --json > te.json
kill $(cat te.pid)''']
# As weft serve collects one, with something in it of each kind.
SNAPSHOT = ['''python3 - <<'END'
import hashlib, io, json, tarfile
text = b'up\\n'
manifest = {"format": "weft snapshot", "version": 1, "case": "c", "cause": {"kind": "optic", "entity": "rtsw:0--ctsw:1"},
            "trigger": "repair", "taken": "2026-03-01T00:00:00Z", "devices_left_out": 1, "devices": [
                {"name": "rtsw:0", "standing": "suspect", "ms": 9, "pieces": [
                    {"name": "links", "file": "rtsw-0/links.txt", "bytes": len(text),
                     "sha256": hashlib.sha256(text).hexdigest(), "ms": 4, "cut": True}, {"name": "log", "error": "timed out"}]},
                {"name": "ctsw:1", "standing": "neighbour", "ms": 5, "error": "refused", "pieces": []}],
            "redacted": {"password": 2}}
with tarfile.open("shot.tar.gz", "w:gz") as tar:
    for name, body in (("manifest.json", json.dumps(manifest).encode()), ("rtsw-0/links.txt", text)):
        info = tarfile.TarInfo(name)
        info.size = len(body)
        tar.addfile(info, io.BytesIO(body))
END''']
# A store that was used, with a snapshot that is there and one that is not.
STORE = SNAPSHOT + ['weft serve --world served.yaml --for "30 s" --store s.db --listen unix:s.sock >/dev/null 2>&1',
                    """python3 -c 'import sqlite3
with sqlite3.connect("s.db") as db:
    for name in ("shot.tar.gz", "gone.tar.gz"):
        db.execute("INSERT INTO documents VALUES (?, ?, 1, CAST(? AS BLOB))", ("snapshot", name, "{\\"path\\": \\"%s\\"}" % name))'"""]
# Something that a command asks, run beside it: it writes its port to FILE.port.
BESIDE = 'beside() { (timeout --foreground 60 "$@" >/dev/null 2>&1 &); for i in $(seq 200); do [ -s port ] && break; sleep 0.05; done; }; rm -f port; '
GNMI = BESIDE + 'beside python3 $S/tests/cli/gnmi_target.py $S/tests/fuzz/corpus/adapt_gnmi_answer/{update,sync}; ' \
    'printf "device,address,security\nrtsw:0,127.0.0.1:$(cat port),plain\n" > gnmi.csv; ' \
    'weft gnmi --targets gnmi.csv --encoding proto --mode once --json'
# An SNMPv2c trap, coldStart, until it was heard.
TRAP = '''python3 - <<'END'
import socket, subprocess
def ber(tag, *parts):
    body = b"".join(parts)
    return bytes([tag, len(body)]) + body
number, up_time, trap = ber(2, b"\\1"), "2b06010201010300", "2b060106030101040100"
bindings = ber(48, ber(48, ber(6, bytes.fromhex(up_time)), ber(67, b"\\1")),
               ber(48, ber(6, bytes.fromhex(trap)), ber(6, bytes.fromhex("2b0601060301010501"))))
packet = ber(48, number, ber(4, b"public"), ber(167, number, ber(2, b"\\0"), ber(2, b"\\0"), bindings))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
weft = subprocess.Popen(["weft", "traps", "--fabric", "zone.yaml", "--listen", f"127.0.0.1:{port}", "--senders", "senders.csv",
                         "--addresses", "names.csv", "--count", "1", "--json"])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
    for _ in range(100):
        out.sendto(packet, ("127.0.0.1", port))
        try:
            weft.wait(0.1)
            break
        except subprocess.TimeoutExpired:
            pass
weft.kill()
END'''
# What runs until it is stopped ends by SIGTERM, with what was printed so far.
# Without --foreground `timeout` sends SIGCONT after SIGTERM. That cancels the SIGSTOP by which LeakSanitizer
# attaches to a process that exits, and the process hangs.
FOR = 'timeout --foreground -s TERM 1.5 '

# By command: its forms, each a name, a list of commands whose outputs it describes, and what is
# run before.
CASES = {
    'run': [('', ['weft run fluid.yaml --json', 'weft run packet.yaml --set engine.estimate=0.5 --json', 'weft run company.yaml --json'],
             ['@docs/scenario.md'])],
    'why': [('', ['weft why small.yaml --json', 'weft why step.yaml --json', 'weft why packet.yaml --set engine.estimate=0.5 --json'], [])],
    'sweep': [('', ['weft sweep sweep.yaml --json', 'weft sweep sweep.yaml --set engine=packet --set engine.estimate=0.5 --json', 'weft sweep sweep.yaml --json --prices $S/scenarios/prices-example.yaml'], [])],
    'failures': [('', ['weft failures small.yaml --pairs --samples 2 --json', 'weft failures packet.yaml --samples 1 --set engine.estimate=0.5 --json'], [])],
    'flows': [('', ['weft flows --fabric zone.yaml --flows flows.csv --json',
                    'weft flows --fabric zone.yaml --flows flows.csv --engine packet --json',
                    'weft flows --fabric zone.yaml --flows flows.csv --engine packet --set transport.pfc=true --pauses --ports --json',
                    'weft flows --fabric zone.yaml --flows flows.csv --engine packet --set "transport.classes={weights: [8320 B, 4160 B]}" --ports --json',
                    'weft flows --fabric zone.yaml --flows flows.csv --compare --json'], [])],
    'perf': [('', ['weft perf all_reduce -b 1M -e 64M -f 4 --system p5 --json',
                   'weft perf all_reduce -b 1M -e 64M -f 4 --system p5 --compare $S/tests/docs/inputs/measured.txt --json'], [])],
    'explain': [('facts', ['weft explain small.yaml --json', 'weft explain late.yaml --json'], []),
                ('bill', ['weft explain small.yaml --prices $S/scenarios/prices-example.yaml --json'], []),
                ('plans', ['weft explain --plan "1024 x 400G, radix 64" --json',
                           'weft explain --plan "1024 x 400G, radix 64" --prices $S/scenarios/prices-example.yaml --json'], [])],
    'place': [('job', ['weft place --fabric zone.yaml --gpus 32 --json',
                       'weft place --fabric zone.yaml --gpus 64 --model llama3-8b --order tp=8,pp=2,dp=4 --batch 64 --json'], []),
              ('list', ['weft place --fabric zone.yaml --jobs jobs.csv --json'], [])],
    'advise': [('', ['weft advise $S/scenarios/advise.yaml --moves 3 --json'], [])],
    'spares': [('', ['weft spares $S/scenarios/spares.yaml --years 20 --json'], [])],
    'life': [('', ['weft life $S/scenarios/life-llama3.yaml --set life.runs=20 --json'], [])],
    'edge': [('', ['weft edge $S/scenarios/edge.yaml --json', 'weft edge $S/scenarios/edge.yaml --down madrid --json',
                   'weft edge tight.yaml --json'], [
        "sed 's/uplink: [0-9]* Gbps/uplink: 2 Gbps/' $S/scenarios/edge.yaml > tight.yaml"])],
    'regions': [('', ['weft regions $S/scenarios/regions.yaml --json', 'weft regions $S/scenarios/backbone/life-cycle.yaml --json'], [])],
    'infer': [('service', ['weft infer service.yaml --json', 'weft infer beside.yaml --json'], ['@docs/commands/infer.md']),
              ('size', ['weft infer size.yaml --size --json'], ['@docs/commands/infer.md'])],
    'te': [('backbone', ['weft te $S/scenarios/backbone/abilene.csv --demands $S/scenarios/backbone/demands.csv --objective mlu --json',
                        'weft te $S/scenarios/backbone/abilene.csv --demands $S/scenarios/backbone/demands.csv --objective mlu --failures --json'], []),
           ('contracts', ['weft te $S/scenarios/backbone/abilene.csv --contracts $S/scenarios/backbone/contracts.csv --json'], []),
           ('counters', ['weft te $S/scenarios/backbone/abilene.csv --demands $S/scenarios/backbone/demands.csv --counters $S/scenarios/backbone/counters.csv --json'], []),
           ('growth', ['weft te $S/scenarios/backbone/abilene.csv --demands now.csv --before $S/scenarios/backbone/demands.csv --json'], [
               'weft regions $S/scenarios/backbone/life-cycle.yaml --write-demands now.csv']),
           ('zone', ['weft te fluid.yaml --fail ctsw:1 --split --json'], []),
           ('state of a service, as GET /v1/te', ['cat te.json'], TE)],
    'bulk': [('', ['weft bulk $S/scenarios/backbone/abilene.csv --transfers $S/scenarios/backbone/transfers.csv '
                   '--background $S/scenarios/backbone/day.csv --slots 24 --slot "1 h" --json'], [])],
    'forecast': [('', ['weft forecast $S/scenarios/forecast-requests.csv --json'], [])],
    'scale': [('', ['weft scale $S/scenarios/forecast-requests.csv --capacity 40 --start-up "1 h" --json'], [])],
    'colltrace': [('dumps', ['mkdir -p job && tar xzf $S/tests/docs/inputs/colltrace-stuck.tar.gz -C job && weft colltrace job --json',
                        'mkdir -p sizes && tar xzf $S/tests/docs/inputs/colltrace-size.tar.gz -C sizes && weft colltrace sizes --json',
                        # NCCL's RAS: rank 3 has begun one operation less.
                        'for r in 0 1 2 3; do echo "{\\"rank\\": $r, \\"host\\": \\"h$((r / 2))\\", \\"pid\\": $r, \\"cuda_dev\\": $r,'
                        ' \\"collective_counts\\": {\\"AllReduce\\": $((42 - r / 3))}}"; done | paste -sd, |'
                        ' sed \'s/.*/{"nccl_version": "2.29.1", "communicators": [{"hash": "0x1", "size": 4, "ranks": [&], "missing_ranks": []}]}/\''
                        ' > ras.json; weft colltrace ras.json --json'], []),
                  ('hashes', ['weft colltrace --hashes hashes.csv --json'], ['@docs/commands/colltrace.md'])],
    'straggler': [('', ['weft straggler $S/tests/docs/inputs/straggler-stage.json.gz --json'], [])],
    'validate': [('plan', ['weft validate plan --fabric zone.yaml --json'], []),
                 ('judge', ['weft validate judge --fabric zone.yaml --plan pairs.csv rates.csv --json'],
                  ['weft validate plan --fabric zone.yaml --out pairs.csv',
                   'awk -F, \'NR == 1 {print "flow,gbps"; next} {print $1 "," ($7 ~ /rtsw:2->ctsw:1/ ? 262 : 391 + $1 % 3)}\' pairs.csv > rates.csv'])],
    'faults': [('', ['weft faults --json', 'weft faults link_lossy --json'], [])],
    'examples': [('', ['weft examples --json'], [])],
    'probe': [('plan', ['cat plan.jsonl'], PROBED), ('evidence', ['cat evidence.jsonl'], [])],
    'localise': [('', ['weft localise evidence.jsonl --fabric zone.yaml --json',
                       'weft localise evidence.jsonl --fabric zone.yaml --counters counters.jsonl --truth truth.jsonl --json'], PROBED)],
    'sli': [('', ['weft sli evidence.jsonl --fabric zone.yaml --episodes truth.jsonl --json'], PROBED)],
    'storm': [('storm', ['weft storm --fabric zone.yaml --faults 40 --lines 8000 --hours 3 --out storm --json'], []),
              ('score', ['weft triage storm/records.jsonl --fabric zone.yaml --json > cases.jsonl; '
                         'weft storm score cases.jsonl --storm storm --json'], [])],
    'triage': [('cases', ['weft triage storm/records.jsonl --fabric zone.yaml --json'], STORM),
               ('diff', ['weft triage storm/records.jsonl --fabric zone.yaml --diff quick.yaml --json'], []),
               ('propose', ['weft triage odd.log --format syslog --propose --fabric zone.yaml --json'], []),
               ('score', ['weft triage storm/records.jsonl --fabric zone.yaml --truth storm --json'], [])],
    'rehearse': [('one', ['weft rehearse zone.yaml --days 2 --json'], []),
                 ('seeds', ['weft rehearse zone.yaml --days 1 --seeds 2 --policy policy.yaml --baseline-policy default --json'],
                  ['echo "{}" > policy.yaml'])],
    'agent': [('records', [FOR + 'weft agent --fabric zone.yaml --device host:0 --log log --interval "200 ms" --json || true'], []),
              ('path health', ['weft agent --show-health service.health --json'], HEALTH)],
    'poll': [('', [BESIDE + 'beside python3 -c \'import http.server; s = http.server.HTTPServer(("127.0.0.1", 0), '
                   'http.server.SimpleHTTPRequestHandler); open("port", "w").write(str(s.server_port)); s.handle_request()\'; '
                   'weft poll prometheus --fabric zone.yaml --targets rtsw:0=http://127.0.0.1:$(cat port)/exporter.prom '
                   'rtsw:1=http://127.0.0.1:1/gone --count 1 --json',
                   'cat storm/records.jsonl'], STORM)],  # as files have them
    'traps': [('', [TRAP], [])],
    'discover': [('', ['printf "device,address,port,community\\nrtsw:0,127.0.0.1,1,x\\n" > snmp.csv; '
                       'weft discover --targets snmp.csv --timeout "100 ms" --json; '
                       'weft discover --targets snmp.csv --timeout "100 ms" --fabric zone.yaml --json; true'], [])],
    'gnmi': [('samples', [GNMI], []), ('records', [GNMI + ' --fabric zone.yaml --rules loud.yaml'], [])],
    'case': [('a case', ['cat case.json'], SITE), ('all that are open, a line a page', ['cat cases.json'], []),
             ('--do', ['cat held.json'], [])],
    'drains': [('what is out', ['cat drains.json'], SITE), ('a command', ['cat frozen.json'], []),
               ('--plan', ['weft drains --plan rtsw:1--ctsw:0 --fabric zone.yaml --config switches.yaml --json',
                           'weft drains --plan ctsw:1 --undrain --fabric zone.yaml --config switches.yaml --json'], SWITCHES)],
    'zones': [('', ['cat zones.json'], SITE)],
    'up': [('check', ['weft up site.yaml --check --json'], []), ('running', ['cat up.json'], SITE),
           ('not running', ['weft up site.yaml --status --json'], SITE)],
    'snapshot': [('show', ['weft snapshot show shot.tar.gz --json'], SNAPSHOT), ('verify', ['weft snapshot verify shot.tar.gz --json'], []),
                 ('link', ['weft snapshot link x --key vendor.key --service https://weft.example --json'], [])],
    'serve': [('', ['weft serve --world served.yaml --for "2 min" --store w.db --listen unix:w.sock --json'], [])],
    'store': [('backup, restore, and info of a backup', [
        'weft store backup s.tar --store s.db --json', 'weft store info s.tar --json',
        'weft store restore s.tar --store r.db --snapshots shots --json'], STORE), ('info --store', ['weft store info --store s.db --json'], []),
              ('accept', ['weft store accept served.yaml --store s.db --json'], [])],
    'tenants': [('pairs', ['weft tenants $S/scenarios/tenants.yaml --json'], []),
                ('flow', ['weft tenants $S/scenarios/tenants.yaml --flow 10.20.0.5,10.30.0.9,443/tcp --json'], [])],
    'autoscale': [('', ['weft autoscale $S/scenarios/autoscale.yaml --once --json'], [])],
    'lab': [('doctor', ['weft lab doctor --json'], []),
            ('down', ['weft lab down --name nosuch --json'], [])],
    # Last: the page writes another zone.yaml.
    'replay': [('', ['weft replay zone.yaml --records day.jsonl --states --json'], ['@docs/commands/replay.md'])],
}
NOT_RUN = {'trace': 'prints what run does'}
# One unit for each quantity (docs/json.md): words in the name of a number that are units, those that
# everybody uses, and keys that have another one, with the reason.
UNITS = {'s', 'seconds', 'sec', 'ms', 'us', 'ns', 'ps', 'minutes', 'minute', 'h', 'hours', 'hour', 'days', 'day',
         'weeks', 'month', 'months', 'year', 'years', 'bytes', 'byte', 'b', 'kb', 'mb', 'gb', 'tb', 'kib', 'mib', 'gib',
         'bit', 'bits', 'gbit', 'mbit', 'bps', 'kbps', 'mbps', 'gbps', 'tbps', 'Bps', 'KBps', 'MBps', 'GBps', 'percent',
         'pct', 'permille', 'watts', 'w', 'kw', 'mw', 'm', 'metres', 'km', 'million', 'thousand', 'hz', 'mhz', 'ghz', 'tflops'}
USUAL = {'s', 'seconds', 'bytes', 'bps', 'watts', 'm', 'metres'}
OTHER_UNITS = {
    **{key: 'bandwidth of a collective, as nccl-tests print it' for key in (
        'algbw_GBps', 'busbw_GBps', 'avg_busbw_GBps', 'roofline_busbw_GBps', 'measured_busbw_GBps', 'model_busbw_GBps')},
    **{key: 'FLOPs of a GPU, as published' for key in ('tflops_per_gpu',)},
    **{key: 'a count of minutes that an objective judges' for key in (
        'minutes', 'bad_minutes', 'allowed_minutes', 'planned_minutes', 'long_minutes', 'rack_minutes')},
    **{key: 'a count of days with some' for key in ('days_seen', 'days_suspicious')},
    **{key: 'the time of a resource, as it is billed' for key in ('gain_gpu_hours', 'replica_hours', 'drained_cable_hours')},
    **{key: 'a frequency of what is rare' for key in ('per_year', 'shortages_per_year')},
    **{key: 'a duration in a stored repair, of which the service adds up many' for key in (
        'detect_ns', 'triage_ns', 'drain_ns', 'repair_ns', 'verify_ns', 'rma_ns')},
    'cpu_pressure_percent': 'as the kernel has it',
    **{key: 'rows of evidence have round trips in microseconds' for key in ('p90_us', 'p999_us')},
    'ms': 'in the manifest of a snapshot, a format of its own',
    'years': 'what --years asked for',
    'cost_per_million_output_tokens': 'a price, as it is quoted',
}
# Objects whose keys are names of things, not of the format.
BY_NAME = {'variants', 'jobs', 'tiers', 'roles', 'exposed_s', 'settings', 'steps'}


def type_of(value):
    if value is None:
        return 'null'
    for kind, name in ((bool, 'boolean'), (int, 'integer'), (float, 'number'), (str, 'string'),
                       (list, 'array'), (dict, 'object')):
        if isinstance(value, kind):
            return name
    raise TypeError(value)


class Draft:
    """The schema that values suggest."""

    def __init__(self, name=''):
        self.name, self.types, self.seen = name, set(), 0
        self.keys, self.counts, self.items = {}, {}, None

    def add(self, value):
        self.types.add(type_of(value))
        if isinstance(value, list):
            for item in value:
                self.items = self.items or Draft()
                self.items.add(item)
        elif isinstance(value, dict):
            self.seen += 1
            for key, inner in value.items():
                at = '*' if self.name in BY_NAME else key
                self.counts[at] = self.counts.get(at, 0) + 1
                self.keys.setdefault(at, Draft('' if at == '*' else key)).add(inner)

    def schema(self):
        types = sorted(self.types)
        if 'number' in types and 'integer' in types:
            types.remove('integer')
        out = {'type': types[0] if len(types) == 1 else types}
        if self.items:
            out['items'] = self.items.schema()
        if 'object' in types:
            if '*' in self.keys:
                out['additionalProperties'] = self.keys['*'].schema()
            else:
                out['properties'] = {key: draft.schema() for key, draft in self.keys.items()}
                out['required'] = [key for key in self.keys if self.counts[key] == self.seen]
                out['additionalProperties'] = False
        return out


def fits(value, schema):
    types = schema['type'] if isinstance(schema['type'], list) else [schema['type']]
    return type_of(value) in types or (type_of(value) == 'integer' and 'number' in types)


def check(value, schema, path, seen, errors):
    """Marks the keys that appear, as paths; appends what is wrong."""
    forms = schema.get('anyOf', [schema])
    if isinstance(value, dict):
        forms = [form for form in forms if all(key in value for key in form.get('required', []))] or forms
    schema = forms[0]
    if not fits(value, schema):
        errors.append(f'{path}: {type_of(value)}, not {schema["type"]}')
    elif isinstance(value, list):
        for item in value:
            check(item, schema.get('items', {}), path + '[]', seen, errors) if 'items' in schema else \
                errors.append(f'{path}: items are not declared')
    elif isinstance(value, dict):
        properties = schema.get('properties', {})
        errors += [f'{path}.{key}: missing' for key in schema.get('required', []) if key not in value]
        for key, inner in value.items():
            named = properties.get(key, schema.get('additionalProperties'))
            if not named:
                errors.append(f'{path}.{key}: not declared')
                continue
            at = f'{path}.{key if key in properties else "*"}'
            seen.add(at)
            check(inner, named, at, seen, errors)


def declared(schema, path):
    """Paths of all keys, without those marked x-rare; of several forms those of the first."""
    schema = schema.get('anyOf', [schema])[0]
    if 'items' in schema and not schema['items'].get('x-rare'):
        yield from declared(schema['items'], path + '[]')
    for key, inner in schema.get('properties', {}).items():
        if not inner.get('x-rare'):
            yield f'{path}.{key}'
            yield from declared(inner, f'{path}.{key}')
    if isinstance(schema.get('additionalProperties'), dict):
        yield from declared(schema['additionalProperties'], path + '.*')


def documents_of(text):
    """A document, or one a line."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


class Shell:
    def __init__(self, weft, source):
        self.folder = tempfile.TemporaryDirectory()
        self.env = dict(os.environ, S=source, PATH=os.path.dirname(weft) + ':' + os.environ['PATH'])
        self.source, self.done = source, set()
        for name, text in FILES.items():
            open(os.path.join(self.folder.name, name), 'w', opener=lambda path, flags: os.open(path, flags, 0o600)).write(text)

    def prepare(self, commands):
        for command in commands:
            if command in self.done:
                continue
            self.done.add(command)
            if command.startswith('@'):
                self.write_files_of(command[1:])
            else:
                self.run(command)

    def write_files_of(self, page):
        text = open(os.path.join(self.source, page)).read()
        for name, body in re.findall(r'<!-- docs: file (\S+) -->\n```\w+\n(.*?)```', text, re.S):
            open(os.path.join(self.folder.name, name), 'w').write(body)

    def run(self, command):
        ran = subprocess.run(['bash', '-c', command], cwd=self.folder.name, env=self.env, text=True,
                             capture_output=True, timeout=300)
        if ran.returncode not in (0, 1):  # 1: an answer that is bad news
            sys.exit(f'{command}: exit status {ran.returncode}: {ran.stderr[:2000]}')
        return ran.stdout


def outputs_of(shell, command):
    for form, commands, setup in CASES[command]:
        shell.prepare(setup)
        yield form, [d for c in commands for d in documents_of(shell.run(c))]


def draft(shell, command):
    forms = []
    for form, documents in outputs_of(shell, command):
        suggested = Draft()
        for document in documents:
            suggested.add(document)
        forms.append({**({'title': form} if form else {}), **suggested.schema()})
    return {'$schema': 'https://json-schema.org/draft/2020-12/schema', 'title': f'weft {command} --json',
            **(forms[0] if len(forms) == 1 else {'oneOf': forms})}


def check_command(shell, command, seen):
    """What is wrong; what appears is added to `seen`, by schema: commands may share one."""
    schema = json.loads(shell.run(f'weft help {command} --schema'))
    if jsonschema:
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
    errors = []
    forms = {form.get('title', ''): form for form in schema.get('oneOf', [])} or {'': schema}
    for form, documents in outputs_of(shell, command):
        if form not in forms:
            errors.append(f'the schema has no form {form!r}')
            continue
        for document in documents:
            check(document, forms[form], '', seen.setdefault(text_of(forms[form]), set()), errors)
        for document in documents[::len(documents) // 200 + 1] if jsonschema else []:  # it takes 10 ms for each
            errors += [e.message[:200] for e in validator.iter_errors(document)]
    return sorted(set(errors))


def text_of(form):
    return json.dumps({key: value for key, value in form.items() if key not in ('$schema', 'title')}, sort_keys=True)


def unseen(shell, command, seen):
    schema = json.loads(shell.run(f'weft help {command} --schema'))
    return [f'{form.get("title", "")}{path}: declared, and in no output' for form in schema.get('oneOf', [schema])
            if not form.get('x-rare')
            for path in declared(form, '') if path not in seen.get(text_of(form), set())]


def commands_with_json(source):
    """By the source: who reads the option."""
    folder = os.path.join(source, 'src', 'cli')
    for name in sorted(os.listdir(folder)):
        text = open(os.path.join(folder, name)).read() if name.startswith('cmd_') else ''
        if re.search(r'\bcommon_?\.json', text):
            yield name[4:-4].split('_')[0]


def numbers(schema, key=''):
    """Names of all keys that hold numbers, also in lists and in objects whose keys are names."""
    types = schema.get('type', [])
    if {'number', 'integer'} & set([types] if isinstance(types, str) else types):
        yield key
    for name, inner in schema.get('properties', {}).items():
        yield from numbers(inner, name)
    for inner in (schema.get('items'), schema.get('additionalProperties')):
        if isinstance(inner, dict):
            yield from numbers(inner, key)
    for form in schema.get('oneOf', []):
        yield from numbers(form)


def check_units(weft):
    """Every unit in a name is a usual one, at its end or behind "per"; or the key is listed above."""
    wrong, seen = [], set()
    names = subprocess.run([weft, 'help', '--schema'], text=True, capture_output=True, check=True).stdout.split()
    for command in names:
        schema = json.loads(subprocess.run([weft, 'help', command, '--schema'], text=True, capture_output=True, check=True).stdout)
        for key in sorted(set(numbers(schema))):
            words = key.split('_')
            units = [w for w in words if w in UNITS - USUAL]
            if any(a in ('s', 'bps') and b != 'per' and (i == 0 or words[i - 1] != 'per')
                   for i, (a, b) in enumerate(zip(words, words[1:]))):
                units.append('a unit before the end')
            if units and key in OTHER_UNITS:
                seen.add(key)
            elif units:
                wrong.append(f'{command}: {key}: {units[0]} is no unit of docs/json.md')
    return wrong + [f'{key}: listed, but in no schema' for key in sorted(OTHER_UNITS.keys() - seen)]


def main():
    weft, source = (os.path.abspath(path) for path in sys.argv[1:3])
    shell = Shell(weft, source)
    if sys.argv[3:4] == ['--draft']:
        print(json.dumps(draft(shell, sys.argv[4]), indent=1))
        return
    wrong = [f'{c}: has --json and neither a case nor a reason' for c in sorted(set(commands_with_json(source)))
             if c not in CASES and c not in NOT_RUN]
    wrong += check_units(weft)
    seen = {}
    for command in CASES:
        wrong += [f'{command}: {error}' for error in check_command(shell, command, seen)]
    for command in CASES:
        wrong += [f'{command}: {error}' for error in unseen(shell, command, seen)]
    if wrong:
        sys.exit('\n'.join(wrong[:60]))
    print(f'{len(CASES)} commands' + ('' if jsonschema else '; jsonschema is not installed, not asked'))


main()
