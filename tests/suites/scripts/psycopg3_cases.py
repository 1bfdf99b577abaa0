"""What psycopg 3 sees: every way of executing, cursors, pipelines, COPY, notifications, cancel, two phases, errors.

Prints a JSON line for each case: its name and everything seen. Run with the address in PGHOST, PGPORT.
"""
import asyncio
import json
import threading
import time
from decimal import Decimal

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

CASES = []
SETUP = """
DROP TABLE IF EXISTS item, kept, audit_log CASCADE; DROP TYPE IF EXISTS mood;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE item (id int PRIMARY KEY, small int2, big int8, price numeric(10,2), free numeric, ratio float8, single float4,
  name text, code varchar(8), fixed char(4), flag bool, day date, at timestamp, seen timestamptz, span interval, clock time,
  raw bytea, doc jsonb, plain json, tags text[], grid int[], feeling mood, ident uuid, net inet, r int4range);
INSERT INTO item SELECT i, i % 7, i::int8 * 10000000000, i * 1.25, i / 3.0, i / 7.0, i / 9.0::float4, 'name ' || i,
  'c' || i % 10, 'f' || i % 3, i % 2 = 0, date '2020-01-01' + i, timestamp '2020-01-01' + i * interval '1 hour',
  timestamptz '2020-01-01 UTC' + i * interval '1 minute', i * interval '1 day 2 seconds', time '00:00' + i * interval '1 second',
  decode(md5(i::text), 'hex'), jsonb_build_object('i', i), json_build_object('i', i), array['a', i::text], array[i, NULL],
  (array['sad','ok','happy'])[i % 3 + 1]::mood, md5(i::text)::uuid, ('10.0.0.' || i % 200)::inet, int4range(i, i + 5)
  FROM generate_series(1, 100) i;
INSERT INTO item (id) VALUES (0);
CREATE TABLE kept (id int PRIMARY KEY, v text);
CREATE TABLE audit_log (id serial PRIMARY KEY, what text);
"""
READS = [
    ("SELECT * FROM item ORDER BY id LIMIT 5", ()),
    ("SELECT * FROM item WHERE id = %s", (42,)),
    ("SELECT id, price * 2 AS twice FROM item WHERE price > %s AND flag ORDER BY id", (Decimal("100.5"),)),
    ("SELECT small, count(*), sum(big), avg(price), min(name), max(at) FROM item GROUP BY small ORDER BY small NULLS FIRST", ()),
    ("SELECT a.id, b.name FROM item a JOIN item b ON b.id = a.id + 1 WHERE a.id < %s ORDER BY 1", (10,)),
    ("SELECT name FROM item WHERE name LIKE %s ORDER BY name", ("name 1%",)),
    ("SELECT id FROM item WHERE id = ANY(%s) ORDER BY id DESC", ([3, 1, 2],)),
    ("SELECT id FROM item WHERE day BETWEEN %s AND %s ORDER BY id", ("2020-01-05", "2020-01-09")),
    ("SELECT count(*) FROM item WHERE feeling = 'happy'", ()),
    ("SELECT NULL, 1, 'text', 1.5, true, date '2020-02-02'", ()),
    ("SELECT DISTINCT code FROM item ORDER BY code NULLS LAST", ()),
    ("SELECT id, CASE WHEN flag THEN 'yes' ELSE 'no' END FROM item ORDER BY id OFFSET 95", ()),
]


def case(function):
    CASES.append(function)
    return function


def shown(value):
    if isinstance(value, (list, tuple)):
        return [shown(part) for part in value]
    return value if isinstance(value, (int, str, bool, type(None))) else f"{type(value).__name__} {value!r}"


def described(cursor):
    return [[c.name, c.type_code, c.internal_size, c.precision, c.scale] for c in cursor.description or ()]


def fetched(cursor):
    return {"columns": described(cursor), "rows": shown(cursor.fetchall()), "status": cursor.statusmessage, "count": cursor.rowcount}


def error(function):
    try:
        return shown(function())
    except psycopg.Error as raised:
        d = raised.diag
        return [type(raised).__name__, d.sqlstate, d.message_primary, d.message_detail, d.message_hint, d.statement_position]


def connect(**options):
    return psycopg.connect("user=postgres dbname=cases", **{"autocommit": True, **options})


def every_read(cursor_of, **options):
    with connect(**options) as connection:
        seen = []
        for text, parameters in READS:
            # Three times: relayed and audited, then answered locally where that is on.
            for _ in range(3):
                with cursor_of(connection) as cursor:
                    seen.append(fetched(cursor.execute(text, parameters or None)))
        return seen


@case
def extended_text():
    return every_read(lambda connection: connection.cursor())


@case
def extended_binary():
    return every_read(lambda connection: connection.cursor(binary=True))


@case
def simple_protocol():
    return every_read(psycopg.ClientCursor)


@case
def raw_query_prepared():
    return every_read(lambda connection: connection.cursor(), prepare_threshold=0)


@case
def in_transactions():
    return every_read(lambda connection: connection.cursor(), autocommit=False)


@case
def repeatable_read_only():
    with connect(autocommit=False) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        seen = [fetched(connection.execute(text, parameters or None)) for text, parameters in READS[:4]]
        return seen + [error(lambda: connection.execute("INSERT INTO kept VALUES (0, 'x')"))]


@case
def server_cursors():
    seen = []
    with connect(autocommit=False) as connection:
        for options in ({}, {"scrollable": True}, {"withhold": True}):
            with connection.cursor("named", **options) as cursor:
                cursor.execute("SELECT id, name FROM item WHERE id > %s ORDER BY id", (90,))
                seen += [described(cursor), shown(cursor.fetchmany(3))]
                if options.get("scrollable"):
                    cursor.scroll(-2)
                    seen.append(shown(cursor.fetchone()))
                if options.get("withhold"):
                    connection.commit()
                seen.append(shown(cursor.fetchall()))
        with connection.cursor("current") as cursor:
            cursor.execute("SELECT id FROM item ORDER BY id FOR UPDATE")
            cursor.fetchone()
            seen.append(connection.execute("UPDATE item SET name = 'current' WHERE CURRENT OF current").rowcount)
        connection.rollback()
    return seen


@case
def pipelines():
    seen = []
    with connect() as connection:
        with connection.pipeline():
            cursors = [connection.execute("SELECT id, name FROM item WHERE id = %s", (i,)) for i in range(20)]
            seen.append([shown(cursor.fetchone()) for cursor in cursors])
        with connection.pipeline() as pipeline:
            connection.execute("INSERT INTO kept VALUES (1, 'one')")
            first = connection.execute("SELECT v FROM kept WHERE id = 1")
            pipeline.sync()
            seen.append(shown(first.fetchall()))

        def failing():
            with connection.pipeline() as pipeline:
                connection.execute("INSERT INTO kept VALUES (2, 'two')")
                connection.execute("SELECT 1 / 0")
                connection.execute("INSERT INTO kept VALUES (3, 'three')")
                pipeline.sync()

        seen.append(error(failing))
        seen.append(fetched(connection.execute("SELECT * FROM kept ORDER BY id")))
        with connection.pipeline(), connection.transaction():
            for i in range(10, 15):
                connection.execute("INSERT INTO kept VALUES (%s, 'p')", (i,))
        return seen + [fetched(connection.execute("SELECT * FROM kept ORDER BY id"))]


@case
def executemany():
    with connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO kept VALUES (%s, %s) RETURNING id", [(i, f"v{i}") for i in range(100, 110)], returning=True)
        seen = [shown(cursor.fetchall())]
        while cursor.nextset():
            seen.append(shown(cursor.fetchall()))
        cursor.executemany("UPDATE kept SET v = %s WHERE id = %s", [("w", i) for i in range(100, 110)])
        return seen + [cursor.rowcount, fetched(connection.execute("SELECT v, count(*) FROM kept GROUP BY v ORDER BY v"))]


@case
def copy():
    seen = []
    with connect() as connection, connection.cursor() as cursor:
        for form in ("TEXT", "CSV", "BINARY"):
            with cursor.copy(f"COPY (SELECT id, name, raw, tags FROM item ORDER BY id) TO STDOUT ({form})".replace("(TEXT)", "")
                             .replace(f"({form})", f"(FORMAT {form})")) as copied:
                seen.append(b"".join(copied).hex())
        with cursor.copy("COPY kept FROM STDIN") as copied:
            for i in range(1000, 1050):
                copied.write_row((i, f"copied {i}" if i % 5 else None))
        seen.append(cursor.statusmessage)

        def broken():
            with cursor.copy("COPY kept FROM STDIN") as copied:
                copied.write("not a number\tx\n")

        seen.append(error(broken))

        def given_up():
            with cursor.copy("COPY kept FROM STDIN") as copied:
                copied.write_row((2000, "x"))
                raise ValueError("the client's own")

        try:
            given_up()
        except ValueError as raised:
            seen.append(str(raised))
        return seen + [fetched(connection.execute("SELECT count(*), sum(id), count(v) FROM kept"))]


@case
def notifications():
    with connect() as listener, connect() as sender:
        notices = []
        listener.add_notice_handler(lambda diag: notices.append([diag.severity, diag.sqlstate, diag.message_primary]))
        listener.execute("LISTEN channel")
        for i in range(3):
            sender.execute("SELECT pg_notify('channel', %s)", (f"payload {i}",))
        got = [[n.channel, n.payload] for n in listener.notifies(timeout=10, stop_after=3)]
        # Between local answers, too.
        rows = []
        for i in range(5):
            sender.execute(f"NOTIFY channel, 'late {i}'")
            rows.append(shown(listener.execute("SELECT name FROM item WHERE id = %s", (i,)).fetchone()))
        got += [[n.channel, n.payload] for n in listener.notifies(timeout=10, stop_after=5)]
        listener.execute("DO $$ BEGIN RAISE NOTICE 'said %', 1; RAISE WARNING 'warned'; END $$")
        listener.execute("CREATE TABLE IF NOT EXISTS item ()")
        return [got, rows, notices]


@case
def transactions():
    seen = []
    with connect(autocommit=False) as connection:
        def status():
            return TransactionStatus(connection.info.transaction_status).name

        with connection.transaction():
            connection.execute("INSERT INTO audit_log (what) VALUES ('outer')")
            seen.append([status(), error(lambda: nested(connection))])
            seen.append(fetched(connection.execute("SELECT what FROM audit_log ORDER BY id")))
        seen.append(status())
        connection.execute("INSERT INTO audit_log (what) VALUES ('lost')")
        seen.append(error(lambda: connection.execute("SELECT * FROM missing")))
        seen.append(status())
        seen.append(error(lambda: connection.execute("SELECT 1")))
        connection.rollback()
        seen.append([status(), fetched(connection.execute("SELECT what FROM audit_log ORDER BY id"))])
        connection.rollback()
        xid = connection.xid(1, "global", "branch")
        connection.tpc_begin(xid)
        connection.execute("INSERT INTO audit_log (what) VALUES ('prepared')")
        connection.tpc_prepare()
        with connect() as other:
            seen.append(shown(other.execute("SELECT count(*) FROM audit_log").fetchone()))
        connection.tpc_commit()
        seen.append(fetched(connection.execute("SELECT what FROM audit_log ORDER BY what")))
    return seen


def nested(connection):
    with connection.transaction("inner"):
        connection.execute("INSERT INTO audit_log (what) VALUES ('inner')")
        connection.execute("SELECT 1 / 0")


@case
def own_writes_are_seen():
    """Between two sessions and after rollback: every read sees what was committed before it began."""
    seen = []
    with connect() as writer, connect() as reader, connect(autocommit=False) as third:
        for i in range(30):
            writer.execute("INSERT INTO kept VALUES (5000, %s) ON CONFLICT (id) DO UPDATE SET v = excluded.v", (f"v{i}",))
            seen.append(shown(reader.execute("SELECT v FROM kept WHERE id = 5000").fetchall()))
            third.execute("UPDATE kept SET v = 'uncommitted' WHERE id = 5000")
            seen.append(shown(third.execute("SELECT v FROM kept WHERE id = 5000").fetchall()))
            third.rollback()
            seen.append(shown(third.execute("SELECT v FROM kept WHERE id = 5000").fetchall()))
            third.rollback()
    return seen


@case
def settings():
    seen = []
    with connect() as connection:
        text = "SELECT at, seen, span, ratio, raw FROM item WHERE id = 33"
        for setting in ("TimeZone TO 'Asia/Tokyo'", "DateStyle TO 'German'", "IntervalStyle TO 'iso_8601'",
                        "extra_float_digits TO 0", "bytea_output TO 'escape'", "search_path TO pg_catalog"):
            connection.execute(f"SET {setting}")
            for _ in range(2):
                with psycopg.ClientCursor(connection) as cursor:
                    cursor.adapters.register_loader("timestamptz", psycopg.types.string.TextLoader)
                    cursor.adapters.register_loader("timestamp", psycopg.types.string.TextLoader)
                    cursor.adapters.register_loader("interval", psycopg.types.string.TextLoader)
                    seen.append(error(lambda: cursor.execute(text).fetchall()))
        with connection.transaction(force_rollback=True):
            connection.execute("SET LOCAL search_path TO public")
            seen.append(shown(connection.execute("SELECT id FROM item WHERE id = 3").fetchall()))
        seen.append(error(lambda: connection.execute("SELECT id FROM item WHERE id = 3").fetchall()))
        connection.execute("RESET ALL")
        connection.execute("DISCARD ALL", prepare=False)
        return seen + [shown(connection.execute(text.replace(", raw", "")).fetchall()), connection.info.timezone.key,
                       connection.info.encoding, connection.info.parameter_status("DateStyle")]


@case
def errors():
    with connect() as connection:
        return [error(lambda: connection.execute(text, parameters)) for text, parameters in (
            ("SELECT 1 / 0", None), ("SELECT * FROM nowhere", None), ("SELEC 1", None), ("SELECT id + 'x' FROM item", None),
            ("SELECT id / (id - 5) FROM item", None), ("SELECT %s::int", ("abc",)), ("SELECT big * big * big FROM item", None),
            ("SELECT name::int FROM item", None), ("INSERT INTO item (id) VALUES (1)", None),
            ("SELECT id FROM item WHERE id = %s", ("not a number",)), ("SELECT (SELECT id FROM item)", None))]


@case
def cancel():
    seen = []
    with connect() as connection:
        threading.Timer(0.5, connection.cancel).start()
        started = time.monotonic()
        seen.append(error(lambda: connection.execute("SELECT pg_sleep(30)")))
        seen.append(time.monotonic() - started < 10)
        seen.append(shown(connection.execute("SELECT 1").fetchone()))
    return seen


@case
def various():
    with connect(row_factory=dict_row) as connection:
        seen = [connection.execute("SELECT id, name FROM item WHERE id = 7").fetchall()]
        cursor = connection.cursor()
        seen.append([row["id"] for row in cursor.stream("SELECT id FROM item ORDER BY id LIMIT 10")])
        cursor.execute("SELECT 1 AS a; SELECT 2 AS b; UPDATE kept SET v = v WHERE false; SELECT id FROM item WHERE id < 3 ORDER BY id")
        seen.append(cursor.fetchall())
        while cursor.nextset():
            seen.append(cursor.fetchall() if cursor.description else cursor.statusmessage)
        query = sql.SQL("SELECT {} FROM {} WHERE id = {}").format(sql.Identifier("name"), sql.Identifier("item"), sql.Literal(5))
        seen.append(connection.execute(query).fetchall())
        large = "x" * 3_000_000
        return seen + [len(connection.execute("SELECT %s AS v", (large,)).fetchone()["v"])]


@case
def asynchronous():
    async def read(i):
        async with await psycopg.AsyncConnection.connect("user=postgres dbname=cases", autocommit=True) as connection:
            cursor = await connection.execute("SELECT count(*), sum(id) FROM item WHERE id <= %s", (i,))
            return shown(await cursor.fetchall())

    async def all_of_them():
        return await asyncio.gather(*(read(i) for i in range(10)))

    return asyncio.run(all_of_them())


with connect() as first:
    first.execute(SETUP)
for function in CASES:
    print(json.dumps([function.__name__, error(function) if function.__name__ == "cancel" else function()], default=str), flush=True)
