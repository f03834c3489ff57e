#!/usr/bin/env python3
"""discover_gnmi_test.py WEFT: `weft discover --gnmi` against two targets that speak HTTP/2 and
protobuf by hand: no code and no library of weft's client."""
import json
import os
import subprocess
import sys
import tempfile
import time

WEFT = sys.argv[1]
TARGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'gnmi_target.py')
SYNC = b'\x18\x01'


def field(number, body):
    """A field of bytes, of a message of protobuf."""
    if isinstance(body, str):
        body = body.encode()
    size, out = len(body), b''
    while size >= 128:
        out += bytes([size % 128 + 128])
        size //= 128
    return bytes([number * 8 + 2]) + out + bytes([size]) + body


def path(*elements):
    """gnmi.Path: elem = 3 of name = 1 and key = 2."""
    out = b''
    for element in elements:
        name, keys = (element, {}) if isinstance(element, str) else element
        out += field(3, field(1, name) + b''.join(field(2, field(1, k) + field(2, v)) for k, v in keys.items()))
    return out


def answer(*updates):
    """SubscribeResponse.update = 1 of update = 4 of path = 1 and val = 3, with json_ietf_val = 11."""
    return field(1, b''.join(field(4, field(1, path(*at)) + field(3, field(11, json.dumps(value))))
                             for at, value in updates))


def lldp(name, neighbours):
    return answer((('lldp', 'state', 'system-name'), name), *(
        (('lldp', 'interfaces', ('interface', {'name': port}), 'neighbors', ('neighbor', {'id': '1'}), 'state'),
         {'system-name': device, 'port-id': far, 'port-id-type': 'INTERFACE_NAME'}) for port, device, far in neighbours))


def bgp(addresses, peers):
    protocol = ('protocol', {'identifier': 'BGP', 'name': 'bgp'})
    return answer(*(
        (('interfaces', ('interface', {'name': port}), 'subinterfaces', ('subinterface', {'index': '0'}), 'ipv4', 'addresses',
          ('address', {'ip': ip}), 'state'), {'ip': ip, 'prefix-length': 31}) for port, ip in addresses), *(
        (('network-instances', ('network-instance', {'name': 'default'}), 'protocols', protocol, 'bgp', 'neighbors',
          ('neighbor', {'neighbor-address': peer}), 'state', 'session-state'), 'ESTABLISHED') for peer in peers))


def discover(answers, *words):
    """What weft says of targets with these answers; one more is not there."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'zone.csv'), 'w') as out:
            out.write('a_device,a_port,b_device,b_port\nleaf1,Ethernet1,spine1,Ethernet1\nleaf1,Ethernet2,spine1,Ethernet2\n'
                      'gpu1,eth0,leaf1,Ethernet9\n')
        with open(os.path.join(folder, 'zone.yaml'), 'w') as out:
            out.write('fabric: {file: zone.csv, rate: 400 Gbps}\n')
        rows, targets = 'device,address,security\ngone,127.0.0.1:1,plain\n', []
        try:
            for name, said in answers.items():
                at = os.path.join(folder, name)
                os.mkdir(at)
                for file, message in (('said', said), ('sync', SYNC)):
                    with open(os.path.join(at, file), 'wb') as out:
                        out.write(message)
                targets.append(subprocess.Popen([sys.executable, TARGET, 'said', 'sync'], cwd=at))
                end = time.monotonic() + 20
                port = ''
                while not port and time.monotonic() < end:
                    time.sleep(0.02)
                    if os.path.exists(os.path.join(at, 'port')):
                        with open(os.path.join(at, 'port')) as file:
                            port = file.read()
                rows += f'{name},127.0.0.1:{port},plain\n'
            with open(os.path.join(folder, 'targets.csv'), 'w') as out:
                out.write(rows)
            done = subprocess.run([WEFT, 'discover', '--gnmi', 'targets.csv', '--fabric', 'zone.yaml', '--json',
                                   '--timeout', '3 s', *words], cwd=folder, capture_output=True, text=True, timeout=60)
        finally:
            for target in targets:
                target.kill()
                target.wait()
    assert done.returncode == 1, done  # of the target that is not there
    return json.loads(done.stdout)


def check(answer_of, cables, confirmed, differences):
    devices = {row['device']: row['error'] for row in answer_of['devices']}
    assert devices.pop('gone') and set(devices.values()) == {''}, answer_of
    assert [tuple(row.values()) for row in answer_of['cables']] == cables, answer_of
    assert answer_of['confirmed'] == confirmed, answer_of
    assert [tuple(row.values()) for row in answer_of['differences']] == differences, answer_of


def main():
    crossed = [('elsewhere', 'leaf1/Ethernet1', 'spine1/Ethernet2', 'spine1/Ethernet1'),
               ('elsewhere', 'leaf1/Ethernet2', 'spine1/Ethernet1', 'spine1/Ethernet2'),
               ('elsewhere', 'spine1/Ethernet1', 'leaf1/Ethernet2', 'leaf1/Ethernet1'),
               ('elsewhere', 'spine1/Ethernet2', 'leaf1/Ethernet1', 'leaf1/Ethernet2')]
    cables = [('leaf1', 'Ethernet1', 'spine1', 'Ethernet2'), ('leaf1', 'Ethernet2', 'spine1', 'Ethernet1')]
    check(discover({'leaf1': lldp('leaf1', [('Ethernet1', 'spine1', 'Ethernet2'), ('Ethernet2', 'spine1', 'Ethernet1')]),
                    'spine1': lldp('spine1', [('Ethernet2', 'leaf1', 'Ethernet1')])}), cables, 0, crossed)
    # By BGP: the second session is down, so nobody sees that cable.
    seen = discover({'leaf1': bgp([('Ethernet1', '10.1.0.0'), ('Ethernet2', '10.1.0.2')], ['10.1.0.1', '10.9.9.9']),
                     'spine1': bgp([('Ethernet1', '10.1.0.1'), ('Ethernet2', '10.1.0.3')], ['10.1.0.0'])}, '--by', 'bgp')
    check(seen, [('leaf1', 'Ethernet1', 'spine1', 'Ethernet1')], 1,
          [('missing', 'leaf1/Ethernet2', '', 'spine1/Ethernet2')])
    assert seen['unplaced'] == 1, seen


main()
