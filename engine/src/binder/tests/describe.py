#!/usr/bin/env python3
"""Writes described.txt: how a real PostgreSQL describes the statements of statements.sql.

Usage: describe.py HOST PORT USER DATABASE (an empty database; trust authentication). For each statement the types of
its parameters and its columns as in RowDescription, or the SQLSTATE of its error. Run it again when statements.sql changes.
"""
import pathlib
import socket
import struct
import sys

HERE = pathlib.Path(__file__).parent


class Connection:
    def __init__(self, host, port, user, database):
        if host.startswith("/"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(f"{host}/.s.PGSQL.{port}")
        else:
            self.socket = socket.create_connection((host, int(port)))
        parameters = b"".join(word.encode() + b"\0" for word in ("user", user, "database", database))
        body = struct.pack("!i", 196608) + parameters + b"\0"
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
        self.messages()

    def read(self, count):
        data = b""
        while len(data) < count:
            data += self.socket.recv(count - len(data))
        return data

    def messages(self):
        found = []
        while True:
            kind, length = struct.unpack("!ci", self.read(5))
            found.append((kind, self.read(length - 4)))
            if kind == b"Z":
                return found

    @staticmethod
    def message(kind, body):
        return kind + struct.pack("!i", len(body) + 4) + body

    def query(self, sql):
        self.socket.sendall(self.message(b"Q", sql.encode() + b"\0"))
        rows = []
        for kind, body in self.messages():
            if kind == b"E":
                raise RuntimeError(body)
            if kind == b"D":
                rows.append(cells(body))
        return rows

    def describe(self, sql):
        parse = self.message(b"P", b"\0" + sql.encode() + b"\0" + struct.pack("!h", 0))
        self.socket.sendall(parse + self.message(b"D", b"S\0") + self.message(b"S", b""))
        parameters, columns = [], []
        for kind, body in self.messages():
            if kind == b"E":
                fields = dict((part[:1], part[1:].decode()) for part in body.split(b"\0") if part)
                return None, fields[b"C"] + " " + fields[b"M"]
            if kind == b"t":
                parameters = list(struct.unpack(f"!{(len(body) - 2) // 4}I", body[2:]))
            if kind == b"T":
                columns = list(fields_of(body))
        return parameters, columns


def cells(body):
    (count,), at, row = struct.unpack_from("!h", body), 2, []
    for _ in range(count):
        (length,) = struct.unpack_from("!i", body, at)
        at += 4
        row.append(None if length < 0 else body[at : at + length].decode())
        at += max(length, 0)
    return row


def fields_of(body):
    (count,), at = struct.unpack_from("!h", body), 2
    for _ in range(count):
        end = body.index(b"\0", at)
        name = body[at:end].decode()
        table, attnum, type_oid, _, typmod, _ = struct.unpack_from("!IhIhih", body, end + 1)
        at = end + 19
        yield name, table, attnum, type_oid, typmod


def statements():
    """`SELECT EACH a, b FROM t` stands for one statement per expression."""
    for line in (HERE / "statements.sql").read_text().splitlines():
        if line.startswith("SELECT EACH "):
            targets, found, rest = line.removeprefix("SELECT EACH ").partition(" FROM edge")
            for target in top_level(targets):
                yield "SELECT " + target.strip() + found + rest
        elif line and not line.startswith("--"):
            yield line


def top_level(targets):
    depth, start, quoted = 0, 0, False
    for at, character in enumerate(targets + ","):
        quoted ^= character == "'"
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0 and not quoted:
            yield targets[start:at]
            start = at + 1


def main():
    connection = Connection(*sys.argv[1:5])
    connection.query((HERE / "schema.sql").read_text())
    connection.query("SET TimeZone = 'UTC'")
    tables = dict((int(oid), name) for oid, name in connection.query("SELECT oid, relname FROM pg_class WHERE relkind = 'r'"))
    types = dict((int(oid), name) for oid, name in connection.query("SELECT oid, typname FROM pg_type"))
    lines = []
    columns = connection.query(
        "SELECT attrelid::regclass, attname, attnum, typname, atttypmod, attcollation, attnotnull,"
        " coalesce((SELECT array_position(indkey::int2[], attnum) FROM pg_index WHERE indrelid = attrelid AND indisprimary), -1)"
        " FROM pg_attribute JOIN pg_type t ON t.oid = atttypid JOIN pg_class c ON c.oid = attrelid"
        " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 ORDER BY attrelid, attnum"
    )
    lines += ["table|" + "|".join(column) for column in columns]
    for statement in statements():
        lines.append("> " + statement)
        parameters, described = connection.describe(statement)
        if parameters is None:
            lines.append("error|" + described)
            continue
        lines += ["parameter|" + types[oid] for oid in parameters]
        for name, table, attnum, type_oid, typmod in described:
            lines.append(f"column|{name}|{tables.get(table, '')}|{attnum}|{types[type_oid]}|{typmod}")
    (HERE / "described.txt").write_text("\n".join(lines) + "\n")


main()
