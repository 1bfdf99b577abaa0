"""Sends frames as drivers do that are not to be had here, and prints every frame that comes back, a JSON line per case."""
import json
import os
import socket
import struct

READ = "SELECT id, name, price, at, flag, big, raw FROM item WHERE id = $1"
ALL = "SELECT id, name FROM item WHERE flag ORDER BY id"


def frame(tag, body=b""):
    return tag + struct.pack("!i", len(body) + 4) + body


def text(*words):
    return b"".join(word.encode() + b"\0" for word in words)


def query(sql):
    return frame(b"Q", text(sql))


def parse(sql, name="", types=()):
    return frame(b"P", text(name, sql) + struct.pack(f"!h{len(types)}I", len(types), *types))


def bind(values=(), statement="", portal="", binary=False, parameter_formats=(0,)):
    cells = b"".join(struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values)
    formats = struct.pack(f"!h{len(parameter_formats)}h", len(parameter_formats), *parameter_formats)
    results = struct.pack("!hh", 1, 1) if binary else struct.pack("!h", 0)
    return frame(b"B", text(portal, statement) + formats + struct.pack("!h", len(values)) + cells + results)


def describe(kind, name=""):
    return frame(b"D", kind + text(name))


def execute(portal="", rows=0):
    return frame(b"E", text(portal) + struct.pack("!i", rows))


def close(kind, name):
    return frame(b"C", kind + text(name))


SYNC, FLUSH = frame(b"S"), frame(b"H")


class Session:
    def __init__(self, database="cases", **parameters):
        self.socket = socket.create_connection((os.environ["PGHOST"], int(os.environ["PGPORT"])), timeout=30)
        options = {"user": "postgres", "database": database, "client_encoding": "UTF8", **parameters}
        packet = struct.pack("!i", 196608) + b"".join(text(k, v) for k, v in options.items()) + b"\0"
        self.socket.sendall(struct.pack("!i", len(packet) + 4) + packet)
        self.greeting = self.until_ready(1)

    def until_ready(self, count, until=b"Z"):
        """Frames up to the count-th of a kind, or to the end of the line."""
        seen = []
        while count:
            head = self.exactly(5)
            if head is None:
                return seen + [["end of line", ""]]
            tag, length = head[:1], struct.unpack("!i", head[1:])[0]
            body = self.exactly(length - 4)
            seen.append([tag.decode(), "" if tag == b"K" else readable(body)])
            count -= tag in until
        return seen

    def exactly(self, size):
        got = b""
        while len(got) < size:
            try:
                part = self.socket.recv(size - len(got))
            except ConnectionResetError:
                return None
            if not part:
                return None
            got += part
        return got

    def ask(self, *frames, ready=1, until=b"Z"):
        self.socket.sendall(b"".join(frames))
        return self.until_ready(ready, until)

    def split(self, *frames, ready=1):
        """Each byte in a packet of its own, as far as the system goes along."""
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"".join(frames):
            self.socket.sendall(bytes([byte]))
        return self.until_ready(ready)


def readable(body):
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\{b:02x}" for b in body)


def npgsql_open_and_read(session):
    seen = []
    for number in range(4):
        # A pooled connection is reset by what is put before its first command: two ReadyForQuery come back.
        seen.append(session.ask(
            query("DISCARD ALL"), parse(READ, types=[23]), bind([struct.pack("!i", 7)], binary=True, parameter_formats=(1,)),
            describe(b"P"), execute(), SYNC, ready=2))
        seen.append(session.ask(parse(ALL), bind(binary=True), describe(b"P"), execute(), SYNC))
    return seen


def npgsql_batch(session):
    unit = [parse(READ, types=[23]), bind([b"5"]), describe(b"P"), execute(), parse(ALL), bind(), describe(b"P"), execute()]
    writing = [parse("UPDATE target SET name = name"), bind(), describe(b"P"), execute()]
    return [session.ask(*unit, SYNC), session.ask(*unit, *writing, SYNC), session.ask(*unit, SYNC)]


def batch_with_error(session):
    failing = [parse("SELECT 1 / $1::int"), bind([b"0"]), describe(b"P"), execute()]
    after = [parse(READ), bind([b"6"]), describe(b"P"), execute()]
    seen = [session.ask(*after, *failing, *after, SYNC) for _ in range(3)]
    return seen + [session.ask(*after, SYNC, *failing, SYNC, *after, SYNC, ready=3)]


def prepared(session):
    seen = [session.ask(parse(READ, "one", [23]), describe(b"S", "one"), SYNC)]
    for number in range(6):
        seen.append(session.ask(bind([str(number).encode()], "one"), execute(), SYNC))
        seen.append(session.ask(bind([struct.pack("!i", number)], "one", binary=True, parameter_formats=(1,)), describe(b"P"), execute(), SYNC))
    seen.append(session.ask(parse("SELECT 1", "one"), SYNC))
    seen.append(session.ask(close(b"S", "one"), parse("SELECT 1 AS other", "one"), bind(statement="one"), execute(), SYNC))
    seen.append(session.ask(query("DEALLOCATE ALL"), bind(statement="one"), execute(), SYNC, ready=2))
    return seen + [session.ask(query("SELECT 1 AS fine"))]


def limited(session):
    seen = [session.ask(parse(ALL), bind(portal="p"), describe(b"P", "p"), execute("p", 7), execute("p", 7), execute("p", 0), SYNC)]
    seen.append(session.ask(parse(ALL), bind(), execute("", 3), FLUSH, until=b"s"))
    seen.append(session.ask(execute("", 5), FLUSH, until=b"s"))
    seen.append(session.ask(SYNC))
    seen.append(session.ask(execute("", 5), SYNC))
    seen.append(session.ask(query("BEGIN"), parse(ALL), bind(portal="kept"), execute("kept", 2), SYNC, ready=2))
    seen.append(session.ask(query(ALL)))
    seen.append(session.ask(execute("kept", 2), SYNC, query("FETCH 1 FROM kept"), query("COMMIT"), ready=3))
    return seen + [session.ask(execute("kept", 2), SYNC)]


def flushed_halves(session):
    seen = []
    for number in range(5):
        # asyncpg: describe with Flush, then bind.
        seen.append(session.ask(parse(READ, f"s{number}"), describe(b"S", f"s{number}"), FLUSH, until=b"T"))
        seen.append(session.ask(bind([b"9"], f"s{number}"), execute(), SYNC))
        seen.append(session.ask(parse(READ), describe(b"S"), SYNC))
        seen.append(session.ask(bind([b"11"]), execute(), SYNC))
    return seen


def simple_and_extended_mixed(session):
    seen = []
    for _ in range(4):
        seen.append(session.ask(query(ALL), parse(ALL), bind(), execute(), SYNC, query("SELECT count(*) FROM item"), ready=3))
        seen.append(session.ask(query("SELECT 1; SELECT id FROM item WHERE id < 3 ORDER BY id; SELECT 'x'")))
    # The unnamed statement is gone after a simple query.
    seen.append(session.ask(parse(ALL), SYNC, query(ALL), bind(), execute(), SYNC, ready=3))
    return seen + [session.ask(query("")), session.ask(parse(""), bind(), describe(b"P"), execute(), SYNC)]


def copies(session):
    rows = b"".join(f"{i}\tname {i}\n".encode() for i in range(200))
    seen = [session.ask(query("COPY target FROM STDIN"), frame(b"d", rows), frame(b"c"))]
    seen.append(session.ask(query("COPY target FROM STDIN"), frame(b"d", b"1000\tx\n"), frame(b"f", text("given up"))))
    # Sync and Flush within COPY are ignored.
    seen.append(session.ask(query("COPY target FROM STDIN"), FLUSH, SYNC, frame(b"d", b"1001\ty\n"), frame(b"c")))
    seen.append(session.ask(parse("COPY target FROM STDIN"), bind(), execute(), frame(b"d", b"1002\tz\n"), frame(b"c"), SYNC))
    seen.append(session.ask(query("COPY target FROM STDIN"), frame(b"d", b"bad\n"), frame(b"c"), query("SELECT 1"), ready=2))
    seen.append(session.ask(query("COPY (SELECT * FROM target ORDER BY id) TO STDOUT")))
    return seen + [session.ask(query("SELECT count(*) FROM target"))]


def function_call(session):
    # int4pl(20, 22), then one that fails.
    call = struct.pack("!Ihhhi4si4sh", 177, 1, 1, 2, 4, struct.pack("!i", 20), 4, struct.pack("!i", 22), 1)
    bad = struct.pack("!Ihhh", 4_000_000, 0, 0, 0)
    return [session.ask(frame(b"F", call)), session.ask(frame(b"F", bad)), session.ask(query("SELECT count(*) FROM item"))]


def byte_by_byte(session):
    return [session.split(parse(READ), bind([b"3"]), describe(b"P"), execute(), SYNC, query(ALL), ready=2) for _ in range(3)]


def odd(session):
    seen = [session.ask(bind(statement="missing"), SYNC), session.ask(execute("missing"), SYNC), session.ask(SYNC)]
    seen.append(session.ask(describe(b"X", "missing"), SYNC))
    seen.append(session.ask(bind([b"1", b"2"]), SYNC))
    seen.append(session.ask(parse("SELECT $1 AS v"), bind([b"bad utf8 \xff"]), execute(), SYNC))
    seen.append(session.ask(query("SELECT '\ufffd' AS v, E'a\\\\b' AS w")))
    return seen + [session.ask(frame(b"?", b"unknown"), ready=1)]


def broken_length(session):
    return session.ask(b"Q" + struct.pack("!i", 2), ready=1)


def refused_logins():
    seen = []
    for parameters in ({"database": "missing"}, {"options": "-c nonsense"}, {"DateStyle": "nonsense"}, {"_pq_.future": "1"}):
        seen.append(Session(**parameters).greeting)
    return seen


CASES = [npgsql_open_and_read, npgsql_batch, batch_with_error, prepared, limited, flushed_halves, simple_and_extended_mixed,
         copies, function_call, byte_by_byte, odd, broken_length]
for case in CASES:
    session = Session(application_name="frames")
    print(json.dumps([case.__name__, [session.greeting, case(session)]]), flush=True)
print(json.dumps(["refused_logins", refused_logins()]))
