"""gnmi_target.py MESSAGE...: a gNMI target, HTTP/2 in the clear, that answers Subscribe with the
SubscribeResponses in the files, and Capabilities with none. Writes its port to the file `port`."""
import socket
import struct
import sys


def frame(kind, flags, stream, body=b''):
    return struct.pack('>I', len(body))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + body


def read(connection, count):
    out = b''
    while len(out) < count:
        more = connection.recv(count - len(out))
        if not more:
            sys.exit()
        out += more
    return out


server = socket.create_server(('127.0.0.1', 0))
open('port', 'w').write(str(server.getsockname()[1]))
connection, _ = server.accept()
connection.settimeout(20)
read(connection, 24)  # the preface
connection.sendall(frame(4, 0, 0))
SETTINGS, HEADERS, PING, DATA = 4, 1, 6, 0
while True:
    head = read(connection, 9)
    body = read(connection, int.from_bytes(head[:3], 'big'))
    kind, flags, stream = head[3], head[4], int.from_bytes(head[5:9], 'big')
    if kind == SETTINGS and not flags & 1:
        connection.sendall(frame(SETTINGS, 1, 0))
    elif kind == PING and not flags & 1:
        connection.sendall(frame(PING, 1, 0, body))
    elif kind == DATA and body:
        # :status 200 of the static table; content-type and grpc-status as they are.
        out = frame(HEADERS, 4, stream, b'\x88\x0f\x10\x10application/grpc')
        is_capabilities = body[1:5] == bytes(4)  # the one request that is empty
        for message in [b''] if is_capabilities else [open(name, 'rb').read() for name in sys.argv[1:]]:
            out += frame(DATA, 0, stream, b'\0' + struct.pack('>I', len(message)) + message)
        connection.sendall(out + frame(HEADERS, 5, stream, b'\0\x0bgrpc-status\x010'))
