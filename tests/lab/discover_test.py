#!/usr/bin/env python3
"""discover_test.py WEFT: `weft discover` against real daemons.

Two leaves, a spine and a host in network namespaces, each with lldpd; the switches with snmpd, to which lldpd gives its
tables by AgentX, and with FRR, whose bgpd gives its own. Every namespace has a veth to the one in which weft runs. The
cabling differs from the fabric file in what WRONG says, and weft must find just that.
"""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from namespaces import ip, skip

WEFT = sys.argv[1]
NAME = f'weft-discover-{os.getpid()}-'
SWITCHES = ['leaf1', 'leaf2', 'spine1']
DEVICES = SWITCHES + ['gpu1']
# As in the fabric. leaf1 and leaf2 have two cables to the spine each; the host has one to each leaf.
CABLES = [('leaf1', 'Ethernet1', 'spine1', 'Ethernet1'), ('leaf1', 'Ethernet2', 'spine1', 'Ethernet2'),
          ('leaf2', 'Ethernet1', 'spine1', 'Ethernet3'), ('leaf2', 'Ethernet2', 'spine1', 'Ethernet4'),
          ('gpu1', 'eth0', 'leaf1', 'Ethernet9'), ('gpu1', 'eth1', 'leaf2', 'Ethernet9')]
# As laid: two cables change places at the spine, and the host's second was forgotten.
LAID = [CABLES[0], ('leaf1', 'Ethernet2', 'spine1', 'Ethernet3'), ('leaf2', 'Ethernet1', 'spine1', 'Ethernet2'),
        CABLES[3], CABLES[4]]
WRONG = {('elsewhere', 'leaf1/Ethernet2', 'spine1/Ethernet3', 'spine1/Ethernet2'),
         ('elsewhere', 'leaf2/Ethernet1', 'spine1/Ethernet2', 'spine1/Ethernet3'),
         ('elsewhere', 'spine1/Ethernet2', 'leaf2/Ethernet1', 'leaf1/Ethernet2'),
         ('elsewhere', 'spine1/Ethernet3', 'leaf1/Ethernet2', 'leaf2/Ethernet1'),
         ('missing', 'gpu1/eth1', '', 'leaf2/Ethernet9')}
FRR = '/usr/lib/frr/'
MODULE = glob.glob('/usr/lib/*/frr/modules/bgpd_snmp.so')
daemons = []


def start(namespace, *command, **environment):
    daemons.append(subprocess.Popen(['ip', 'netns', 'exec', NAME + namespace, *command], env=os.environ | environment,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                    start_new_session=True))


def lay():
    for name in ['weft', *DEVICES]:
        ip('netns', 'add', NAME + name)
        ip('-n', NAME + name, 'link', 'set', 'lo', 'up')
    for i, name in enumerate(SWITCHES):
        ip('link', 'add', f'm{i}', 'netns', NAME + 'weft', 'type', 'veth', 'peer', 'name', 'mgmt', 'netns', NAME + name)
        for where, link, last in (('weft', f'm{i}', 1), (name, 'mgmt', 2)):
            ip('-n', NAME + where, 'addr', 'add', f'10.255.{i}.{last}/30', 'dev', link)
            ip('-n', NAME + where, 'link', 'set', link, 'up')
    for i, (a, a_port, b, b_port) in enumerate(LAID):
        ip('link', 'add', a_port, 'netns', NAME + a, 'type', 'veth', 'peer', 'name', b_port, 'netns', NAME + b)
        ip('-n', NAME + a, 'link', 'set', a_port, 'up')
        ip('-n', NAME + b, 'link', 'set', b_port, 'up')
        if a != 'gpu1':
            ip('-n', NAME + a, 'addr', 'add', f'10.1.0.{2 * i}/31', 'dev', a_port)
            ip('-n', NAME + b, 'addr', 'add', f'10.1.0.{2 * i + 1}/31', 'dev', b_port)


def serve(folder):
    for name in DEVICES:
        at = os.path.join(folder, name)
        # The host names its ports by MAC address, as lldpd does by default; the spine sends a whole domain name.
        system = 'spine1.dc1.example.net' if name == 'spine1' else name
        with open(at + '.lldpd', 'w') as out:
            out.write(f'configure system hostname {system}\nconfigure lldp tx-interval 1\n'
                      'configure system interface pattern Ethernet*,eth*\n' +
                      ('' if name == 'gpu1' else 'configure lldp portidsubtype ifname\n'))
        agent = []
        if name != 'gpu1':
            with open(at + '.snmpd', 'w') as out:
                out.write(f'rocommunity public\nmaster agentx\nagentXSocket {at}.agentx\nagentXPerms 0777 0777\n')
            start(name, '/usr/sbin/snmpd', '-f', '-C', '-c', at + '.snmpd', '-Lf', at + '.log', '-p', at + '.pid', 'udp:161')
            agent = ['-x', '-X', at + '.agentx']
            for _ in range(100):
                if os.path.exists(at + '.agentx'):
                    break
                time.sleep(0.05)
        start(name, '/usr/sbin/lldpd', '-d', '-u', at + '.ctl', '-O', at + '.lldpd', *agent)


def route(folder):
    """BGP over each cable between switches, and between the loopbacks of leaf1 and the spine, over which no cable is seen."""
    for number, name in enumerate(SWITCHES):
        at = os.path.join(folder, name + '-frr')
        os.mkdir(at)
        os.chmod(at, 0o777)  # FRR drops its rights
        with open(os.path.join(at, 'frr.conf'), 'w') as out:  # of its AgentX library
            out.write(f'agentXSocket {folder}/{name}.agentx\n')
        peers = [(f'10.1.0.{2 * i + (name == a)}', SWITCHES.index(b if name == a else a))
                 for i, (a, _, b, _) in enumerate(LAID) if name in (a, b) and 'gpu1' not in (a, b)]
        lines = [f'hostname {name}', 'agentx', f'router bgp {65000 + number}', f' bgp router-id 10.0.0.{number}',
                 ' no bgp ebgp-requires-policy', f' network 10.0.0.{number}/32', ' timers bgp 1 3']
        lines += [f' neighbor {peer} remote-as {65000 + other}' for peer, other in peers]
        for other in {'leaf1': [2], 'spine1': [0]}.get(name, []):
            lines += [f' neighbor 10.0.0.{other} remote-as {65000 + other}', f' neighbor 10.0.0.{other} ebgp-multihop 4',
                      f' neighbor 10.0.0.{other} update-source lo']
        ip('-n', NAME + name, 'addr', 'add', f'10.0.0.{number}/32', 'dev', 'lo')
        for daemon, text, more in (('zebra', [f'hostname {name}'], []), ('bgpd', lines, ['-M', 'snmp'])):
            with open(f'{at}/{daemon}.conf', 'w') as out:
                out.write('\n'.join(text) + '\n')
            start(name, FRR + daemon, '-P', '0', '-z', at + '/zserv', '--vty_socket', at,
                  '-i', f'{at}/{daemon}.pid', '-f', f'{at}/{daemon}.conf', *more, SNMPCONFPATH=at)


def weft(folder, *words):
    return subprocess.run(['ip', 'netns', 'exec', NAME + 'weft', WEFT, 'discover', '--targets', 'switches.csv', *words],
                          cwd=folder, capture_output=True, text=True, timeout=60)


def cable_list(rows):
    return 'a_device,a_port,b_device,b_port\n' + ''.join(','.join(row) + '\n' for row in rows)


def check(folder):
    with open(os.path.join(folder, 'switches.csv'), 'w') as out:
        out.write('device,address,community\n' + ''.join(f'{name},10.255.{i}.2,public\n' for i, name in enumerate(SWITCHES)))
    with open(os.path.join(folder, 'planned.csv'), 'w') as out:
        out.write(cable_list(CABLES))
    with open(os.path.join(folder, 'zone.yaml'), 'w') as out:
        out.write('fabric: {file: planned.csv, rate: 400 Gbps}\n')
    # Neighbours are heard within seconds.
    end = time.monotonic() + 40
    while True:
        done = weft(folder, '--fabric', 'zone.yaml', '--json', '--out', 'seen.csv')
        answer = json.loads(done.stdout) if done.returncode in (0, 1) else {}
        if len(answer.get('cables', [])) == len(LAID) and not any(row['error'] for row in answer['devices']):
            break
        assert time.monotonic() < end, f'{done.stdout}{done.stderr}'
        time.sleep(0.5)
    assert done.returncode == 1, done
    found = {(row['kind'], row['port'], row['seen'].replace('.dc1.example.net', ''), row['fabric'])
             for row in answer['differences']}
    assert found == WRONG, found
    assert (answer['confirmed'], answer['unverified'], answer['outside']) == (3, 0, 0), answer
    text = weft(folder, '--fabric', 'zone.yaml').stdout
    assert '3 of 3 devices answered; they see 5 cables' in text, text
    assert 'missing    gpu1/eth1 -- leaf2/Ethernet9: neither end sees the other' in text, text
    # The list that it wrote is a fabric, and nothing differs from that.
    with open(os.path.join(folder, 'seen.yaml'), 'w') as out:
        out.write('fabric: {file: seen.csv, rate: 400 Gbps}\n')
    again = weft(folder, '--fabric', 'seen.yaml')
    assert again.returncode == 0 and '5 cables as in the fabric, 0 differences' in again.stdout, again
    # Who does not answer is named, and what it has is not missing.
    with open(os.path.join(folder, 'switches.csv')) as file:
        switches = file.read()
    with open(os.path.join(folder, 'switches.csv'), 'a') as out:
        out.write('leaf3,10.255.0.1,public\n')
    silent = weft(folder, '--timeout', '200 ms')
    assert silent.returncode == 1 and 'silent     leaf3: no answer' in silent.stdout, silent
    with open(os.path.join(folder, 'switches.csv'), 'w') as out:
        out.write(switches)


def check_bgp(folder):
    """The same cables but for the host's, who has no BGP; and what is said of a cable that is out."""
    end = time.monotonic() + 60
    while True:
        done = weft(folder, '--by', 'bgp', '--fabric', 'zone.yaml', '--json')
        answer = json.loads(done.stdout) if done.returncode in (0, 1) else {}
        if len(answer.get('cables', [])) == 4 and answer['unplaced'] == 2:
            break
        assert time.monotonic() < end, f'{done.stdout}{done.stderr}'
        time.sleep(0.5)
    found = {tuple(row.values()) for row in answer['differences']}
    assert found == {row for row in WRONG if 'gpu1' not in row[1]}, found
    assert (answer['confirmed'], answer['unverified'], answer['outside']) == (2, 2, 0), answer
    with open(os.path.join(folder, 'laid.csv'), 'w') as out:
        out.write(cable_list(LAID))
    with open(os.path.join(folder, 'laid.yaml'), 'w') as out:
        out.write('fabric: {file: laid.csv, rate: 400 Gbps}\n')
    good = weft(folder, '--by', 'bgp', '--fabric', 'laid.yaml')
    assert good.returncode == 0 and '4 cables as in the fabric, 0 differences' in good.stdout, good
    assert 'left out   2 neighbours of BGP' in good.stdout, good
    ip('-n', NAME + 'leaf1', 'link', 'set', 'Ethernet1', 'down')
    while '3 cables as in the fabric' not in (cut := weft(folder, '--by', 'bgp', '--fabric', 'laid.yaml')).stdout:
        assert time.monotonic() < end, cut
        time.sleep(0.5)
    assert 'missing    leaf1/Ethernet1 -- spine1/Ethernet1: neither end sees the other' in cut.stdout, cut


def main():
    for program in ('/usr/sbin/snmpd', '/usr/sbin/lldpd', FRR + 'bgpd'):
        if not os.access(program, os.X_OK):
            skip('discover', f'{program} is not installed')
    if not MODULE:
        skip('discover', "FRR's module for SNMP is not installed")
    if os.geteuid() != 0:
        skip('discover', 'needs root, for network namespaces')
    folder = tempfile.mkdtemp(prefix='weft-discover-')
    os.chmod(folder, 0o755)  # lldpd drops its rights
    try:
        try:
            lay()
        except OSError as error:
            skip('discover', f'no network namespaces here: {error}')
        serve(folder)
        route(folder)
        check(folder)
        check_bgp(folder)
    finally:
        for daemon in reversed(daemons):
            try:
                os.killpg(daemon.pid, signal.SIGTERM)
                daemon.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(daemon.pid, signal.SIGKILL)
        for name in ['weft', *DEVICES]:
            subprocess.run(['ip', 'netns', 'del', NAME + name], capture_output=True)
        shutil.rmtree(folder)


main()
