#!/usr/bin/env python3
"""tenants_test.py WEFT SCENARIO: the rules of `weft tenants`, proven by packets.

A host with workloads of three tenants on taps, and a world behind its uplink: everybody opens every port of
everybody else, by TCP and UDP, in both families. What gets through is compared with a list written by hand here,
not with what weft says. Sources are forged, and refusals must be counted and told to NFLOG.
"""
import ctypes
import os
import select
import socket
import struct
import subprocess
import sys
import time

from namespaces import ip, skip

# Workloads: name, party, and its addresses. What is not at a tap is in the world, behind the uplink.
HERE = {'shop1': ('shop', 'tap-shop-1', '10.20.0.11', 'fd00:20::11'), 'shop2': ('shop', 'tap-shop-2', '10.20.0.12', 'fd00:20::12'),
        'media1': ('media', 'tap-media-1', '10.30.0.11', 'fd00:30::11'), 'infer1': ('inference', 'tap-infer-1', '10.40.0.11', None)}
WORLD = {'shop9': ('shop', None, '10.20.0.99', 'fd00:20::99'), 'media9': ('media', None, '10.30.0.99', 'fd00:30::99'),
         'dns': ('dns', None, '10.0.0.53', 'fd00::53'), 'balancer': ('balancer', None, '10.0.0.80', None),
         'management': ('management', None, '192.168.0.9', None), 'user': ('outside', None, '203.0.113.9', '2001:db8::9')}
ALL = {**HERE, **WORLD}
PORTS = [('tcp', 22), ('tcp', 53), ('tcp', 443), ('tcp', 8050), ('tcp', 8443), ('udp', 53), ('udp', 443)]
# By hand from scenarios/tenants.yaml. Media accepts 8000 to 8100 too, which shop does not allow itself.
OPEN = {('shop', 'dns', 'tcp', 53), ('shop', 'dns', 'udp', 53), ('shop', 'media', 'tcp', 443), ('shop', 'outside', 'tcp', 443),
        ('media', 'dns', 'tcp', 53), ('media', 'dns', 'udp', 53), ('inference', 'dns', 'udp', 53),
        ('balancer', 'inference', 'tcp', 8443), ('outside', 'shop', 'tcp', 443), ('outside', 'media', 'tcp', 443),
        ('outside', 'media', 'udp', 443)}
GATEWAY, GATEWAY6, GROUP = '169.254.1.1', 'fe80::1', 5
LIBC = ctypes.CDLL(None, use_errno=True)
NAME = f'weft-tenants-{os.getpid()}-'


def batch(namespace, text):
    done = subprocess.run(['ip', '-n', NAME + namespace, '-batch', '-'], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f'{namespace}: {done.stderr.strip()}')


class Inside:
    """This process's one thread is in that namespace; its sockets stay there."""
    def __init__(self, namespace):
        self.namespace = namespace

    def __enter__(self):
        self.home = os.open('/proc/self/ns/net', os.O_RDONLY)
        there = os.open(f'/run/netns/{NAME}{self.namespace}', os.O_RDONLY)
        if LIBC.setns(there, 0) != 0:
            raise OSError(ctypes.get_errno(), 'setns')
        os.close(there)

    def __exit__(self, *_):
        LIBC.setns(self.home, 0)
        os.close(self.home)


def namespace_of(name):
    return name if name in HERE else 'world'


def build():
    for namespace in ['host', 'world', *HERE]:
        ip('netns', 'add', NAME + namespace)
        with Inside(namespace):
            # The rules alone judge sources: the kernel's own check of them is off.
            for key, value in (('ipv4/ip_forward', 1), ('ipv6/conf/all/forwarding', 1), ('ipv4/icmp_ratelimit', 0), ('ipv6/icmp/ratelimit', 0),
                               ('ipv4/conf/all/rp_filter', 0), ('ipv4/conf/default/rp_filter', 0)):
                if namespace == 'host':
                    with open(f'/proc/sys/net/{key}', 'w') as out:
                        out.write(str(value))
    links = [(name, of[1], [of]) for name, of in HERE.items()] + [('world', 'eth0', list(WORLD.values()))]
    for namespace, tap, parties in links:
        ip('-n', NAME + 'host', 'link', 'add', tap, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', NAME + namespace)
        own = [a for of in parties for a in of[2:] if a]
        batch('host', f'link set {tap} up\naddr add {GATEWAY}/32 dev {tap}\naddr add {GATEWAY6}/64 dev {tap} nodad\n' +
              ''.join(f'route add {a} dev {tap}\n' for a in own))
        batch(namespace, 'link set lo up\nlink set eth0 up\n' +
              ''.join(f'addr add {a}/{128 if ":" in a else 32} dev eth0{" nodad" if ":" in a else ""}\n' for a in own) +
              f'route add {GATEWAY} dev eth0\nroute add default via {GATEWAY}\nroute add default via {GATEWAY6} dev eth0\n')


class Nft:
    def __init__(self):
        try:
            self.lib = ctypes.CDLL('libnftables.so.1')
        except OSError:
            skip('tenants', 'libnftables is not here')
        self.lib.nft_ctx_new.restype = ctypes.c_void_p
        for name in ('nft_ctx_get_output_buffer', 'nft_ctx_get_error_buffer'):
            getattr(self.lib, name).restype = ctypes.c_char_p

    def run(self, text):
        with Inside('host'):
            context = ctypes.c_void_p(self.lib.nft_ctx_new(0))
            self.lib.nft_ctx_buffer_output(context)
            self.lib.nft_ctx_buffer_error(context)
            status = self.lib.nft_run_cmd_from_buffer(context, text.encode())
            if status != 0:
                raise OSError(self.lib.nft_ctx_get_error_buffer(context).decode())
            out = self.lib.nft_ctx_get_output_buffer(context).decode()
            self.lib.nft_ctx_free(context)
            return out


def listen_to_log():
    """NFLOG of a group in the host's namespace (linux/netfilter/nfnetlink_log.h)."""
    with Inside('host'):
        log = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
    log.bind((0, 0))
    for kind, value in ((1, struct.pack('=B', 1)), (2, struct.pack('!IBx', 256, 2))):  # bind; copy packets
        attribute = struct.pack('=HH', 4 + len(value), kind) + value
        attribute += b'\0' * (-len(attribute) % 4)
        log.send(struct.pack('=IHHII', 20 + len(attribute), 4 << 8 | 1, 5, 1, 0) + struct.pack('!BBH', 0, 0, GROUP) + attribute)
        if struct.unpack('=i', log.recv(65536)[16:20])[0] != 0:
            skip('tenants', 'the kernel has no NFLOG')
    log.setblocking(False)
    return log


def logged(log):
    out = set()
    while select.select([log], [], [], 0.2)[0]:
        data = log.recv(65536)
        while len(data) >= 20:
            length = struct.unpack('=I', data[:4])[0]
            at = 20
            while at + 4 <= length:
                size, kind = struct.unpack('=HH', data[at:at + 4])
                if kind == 10:
                    out.add(data[at + 4:at + size].rstrip(b'\0').decode())
                at += (size + 3) & ~3
            data = data[(length + 3) & ~3:]
    return out


def sock(namespace, kind, address, port=0, forged=False):
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    with Inside(namespace):
        out = socket.socket(family, socket.SOCK_STREAM if kind == 'tcp' else socket.SOCK_DGRAM)
    out.setblocking(False)
    out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if forged:
        out.setsockopt(socket.SOL_IP, 19, 1)  # IP_TRANSPARENT
    out.bind((address, port))
    return out


def serve():
    """All listeners: TCP accepts by itself, UDP must be answered."""
    tcp, udp = [], []
    for name, of in ALL.items():
        for address in filter(None, of[2:]):
            for kind, port in PORTS:
                out = sock(namespace_of(name), kind, address, port)
                if kind == 'tcp':
                    out.listen(64)
                (tcp if kind == 'tcp' else udp).append(out)
    return tcp, udp


def answer(udp, heard, timeout):
    for one in select.select(udp, [], [], timeout)[0]:
        try:
            while True:
                data, sender = one.recvfrom(64)
                heard.add((sender[0], one.getsockname()[0]))
                one.sendto(data, sender)
        except OSError:
            pass


def attempts():
    for source, of in ALL.items():
        for target, to in ALL.items():
            if namespace_of(source) == namespace_of(target):
                continue  # does not cross the host
            for here, there in zip(of[2:], to[2:]):
                if here and there:
                    for kind, port in PORTS:
                        yield source, target, here, there, kind, port


def expected(source, target, kind, port):
    a, b = ALL[source][0], ALL[target][0]
    if ALL[source][1] is None and ALL[target][1] is None:
        return True
    return (a == b and a in ('shop', 'media', 'inference')) or (a, b, kind, port) in OPEN


def try_all():
    tcp, udp = serve()
    heard, tries = set(), []
    for source, target, here, there, kind, port in attempts():
        out = sock(namespace_of(source), kind, here)
        try:
            out.connect((there, port))
        except BlockingIOError:
            pass
        except OSError:
            pass
        tries.append((out, (source, target, here, kind, port)))
    datagrams = [(out, of) for out, of in tries if of[3] == 'udp']
    through, end = set(), time.monotonic() + 2.5  # a SYN is sent again after a second
    for out, _ in datagrams:
        try:
            out.send(b'?')
        except OSError:
            pass
    while time.monotonic() < end:
        answer(udp, heard, 0.05)
    for out, of in tries:
        try:
            if of[3] == 'udp':
                out.recv(64)
            else:
                out.getpeername()
            through.add(of)
        except OSError:
            pass
    for one, _ in tries:
        one.close()
    for one in tcp + udp:
        one.close()
    return [of for _, of in tries], through, heard


def forge(heard):
    """Shop's workload sends as media's; the DNS, which answers both, must not hear it."""
    listener = sock('world', 'udp', WORLD['dns'][2], 53)
    for address in ('10.30.0.77', '10.99.0.1'):
        with sock('shop1', 'udp', address, forged=True) as out:
            for _ in range(5):
                out.sendto(b'forged', (WORLD['dns'][2], 53))
    end = time.monotonic() + 1
    while time.monotonic() < end:
        answer([listener], heard, 0.05)
    listener.close()


def main():
    weft, scenario = sys.argv[1:3]
    if os.geteuid() != 0:
        skip('tenants', 'it needs root for network namespaces')
    nft, failures = Nft(), []
    try:
        build()
    except OSError as error:
        skip('tenants', str(error))
    text = open(scenario).read() + f'log: {{nflog: {GROUP}}}\n'
    rules = subprocess.run([weft, 'tenants', '/dev/stdin', '--to', 'nftables'], input=text, capture_output=True, text=True)
    if rules.returncode != 0:
        raise SystemExit(rules.stderr)
    _, before, heard = try_all()
    forge(heard)
    if not {'10.30.0.77', '10.99.0.1'} <= {pair[0] for pair in heard}:
        failures.append('without rules no forged source is heard')
    log = listen_to_log()
    nft.run(rules.stdout)
    nft.run(rules.stdout)  # again: it replaces itself
    tries, through, heard = try_all()
    failures += [f'without rules {of} does not get through' for of in tries if of not in before]
    for of in tries:
        if (of in through) != expected(of[0], of[1], of[3], of[4]):
            failures.append(f'{of} {"got through" if of in through else "was refused"}')
    heard.clear()
    forge(heard)
    failures += [f'a forged source was heard: {pair}' for pair in heard if pair[0] in ('10.30.0.77', '10.99.0.1')]
    said = logged(log)
    for prefix in ('weft refused shop: ', 'weft refused media: ', 'weft refused inference: ', 'weft spoofed shop: '):
        if prefix not in said:
            failures.append(f'not logged: {prefix!r}, only {sorted(said)}')
    counters = nft.run('list counters table inet weft_tenants')
    if 'counter spoofed_shop {\n\t\tpackets 10 ' not in counters:
        failures.append('10 forged packets, and the counters say\n' + counters)
    refused = len(tries) - len(through)
    print(f'{len(tries)} attempts across the host, {len(through)} got through, {refused} refused; {len(failures)} wrong')
    for failure in failures[:20]:
        print('FAILED:', failure)
    return 1 if failures else 0


if __name__ == '__main__':
    try:
        status = main()
    finally:
        for namespace in ['host', 'world', *HERE]:
            subprocess.run(['ip', 'netns', 'del', NAME + namespace], capture_output=True)
    sys.exit(status)
