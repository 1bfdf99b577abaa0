"""Real clients, the same statements against PostgreSQL and through freshet: equal values, answered by freshet.

Clients: psql, psycopg (simple, extended, extended with binary results), asyncpg, pgx. Each statement runs until freshet
has verified its shape; then it must be answered by the engine or from the cache, inside and outside transactions.
"""
import argparse
import asyncio
import math
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

import asyncpg
import psycopg

from fixture import demo

# (statement with $n, parameters)
STATEMENTS = [
    ("SELECT carrier, count(*) AS n, avg(dep_delay) AS delay FROM flights GROUP BY carrier ORDER BY carrier", ()),
    ("SELECT name, lat, lon, alt FROM airports WHERE faa = $1", ("JFK",)),
    ("SELECT count(*) FROM flights WHERE distance > $1 AND origin = $2", (1000, "EWR")),
    ("SELECT date_trunc('month', time_hour) AS month, sum(distance) AS miles FROM flights GROUP BY 1 ORDER BY 1", ()),
    ("SELECT tailnum, year, seats FROM planes WHERE manufacturer LIKE $1 ORDER BY tailnum LIMIT 5", ("AIR%",)),
    ("SELECT a.name, max(f.air_time) FROM flights f JOIN airlines a ON a.carrier = f.carrier GROUP BY a.name ORDER BY 2 DESC, 1", ()),
    ("SELECT origin, avg(temp), max(wind_gust), min(precip) FROM weather WHERE month = $1 GROUP BY origin ORDER BY origin", (7,)),
]
ATTEMPTS = 100
failures = []
passed = 0


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-9) or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


def check(client, sql, direct, through, route):
    global passed
    equal = len(direct) == len(through) and all(
        len(a) == len(b) and all(same(x, y) for x, y in zip(a, b)) for a, b in zip(direct, through))
    if not equal:
        failures.append(f"{client}: rows differ: {sql}")
    elif route not in ("hit", "local"):
        failures.append(f"{client}: answered by {route}: {sql}")
    else:
        passed += 1


def placeholders(sql, parameters):
    for n in range(len(parameters), 0, -1):
        sql = sql.replace(f"${n}", "%s")
    return sql if parameters else sql


def test_psycopg(addresses, name, binary=False, cursor_factory=None, autocommit=True):
    connect = {"autocommit": autocommit}
    if cursor_factory:
        connect["cursor_factory"] = cursor_factory
    with psycopg.connect(addresses.direct, **connect) as direct, psycopg.connect(addresses.through, **connect) as through:
        for sql, parameters in STATEMENTS:
            text = placeholders(sql, parameters)
            text = text.replace("LIKE %s", "LIKE %s").replace("%'", "%%'") if parameters else text

            def rows(connection):
                with connection.cursor(binary=binary) if not cursor_factory else connection.cursor() as cursor:
                    return cursor.execute(text, parameters or None).fetchall()

            expected = rows(direct)
            for _ in range(ATTEMPTS):
                got = rows(through)
                last = through.execute("SHOW freshet.last").fetchone()
                if not autocommit:
                    through.rollback()
                if last[0] in ("hit", "local"):
                    break
                time.sleep(0.02)
            check(name, sql, expected, got, f"{last[0]} ({last[1]})" if last[0] == "relay" else last[0])


def answered_here(connection):
    rows = connection.execute("SELECT hits, local FROM freshet.statements").fetchall()
    return sum(int(hits) + int(local) for hits, local in rows)


async def test_asyncpg(addresses):
    """asyncpg prepares with Flush, which goes upstream, SHOW freshet.last too; so another session watches the counters."""
    direct, through = await asyncpg.connect(addresses.direct), await asyncpg.connect(addresses.through)
    with psycopg.connect(addresses.through, autocommit=True) as watcher:
        for sql, parameters in STATEMENTS:
            expected = [tuple(row) for row in await direct.fetch(sql, *parameters)]
            for _ in range(ATTEMPTS):
                before = answered_here(watcher)
                got = [tuple(row) for row in await through.fetch(sql, *parameters)]
                route = "local" if answered_here(watcher) > before else "relay"
                if route == "local":
                    break
                await asyncio.sleep(0.02)
            check("asyncpg", sql, expected, got, route)
    await direct.close()
    await through.close()


def test_psql(addresses):
    for sql, parameters in STATEMENTS:
        for n in range(len(parameters), 0, -1):
            value = parameters[n - 1]
            sql = sql.replace(f"${n}", str(value) if isinstance(value, int) else f"'{value}'")

        def ask(url, *texts):
            command = ["psql", "-X", "-A", "-t", url]
            for text in texts:
                command += ["-c", text]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

        expected = ask(addresses.direct, sql)
        for _ in range(ATTEMPTS):
            *got, last = ask(addresses.through, sql, "SHOW freshet.last")
            if last.split("|")[0] in ("hit", "local"):
                break
            time.sleep(0.02)
        typed = lambda lines: [tuple(float(f) if "." in f and f.replace(".", "").replace("-", "").isdigit() else f
                                     for f in line.split("|")) for line in lines]
        check("psql", sql, typed(expected), typed(got), last.split("|")[0])


def test_pgx(addresses):
    global passed
    folder = pathlib.Path(__file__).parent / "pgx"
    environment = os.environ | {"DIRECT": addresses.direct, "THROUGH": addresses.through, "GOFLAGS": "-mod=mod"}
    result = subprocess.run(["go", "run", "."], cwd=folder, env=environment, capture_output=True, text=True)
    for line in result.stdout.splitlines():
        if line == "ok":
            passed += 1
        else:
            failures.append(f"pgx: {line}")
    if result.returncode:
        failures.append(f"pgx: {result.stderr.strip()}")


def test_writes(addresses):
    """What a client writes through freshet, or past it, its very next read through freshet shows."""
    global passed
    with psycopg.connect(addresses.direct, autocommit=True) as direct, psycopg.connect(addresses.through) as through:
        through.autocommit = True
        sql = "SELECT seats FROM planes WHERE tailnum = 'N10156'"
        for seats in range(200, 260):
            writer = through if seats % 2 else direct
            writer.execute(f"UPDATE planes SET seats = {seats} WHERE tailnum = 'N10156'")
            got = through.execute(sql).fetchone()[0]
            if got != seats:
                failures.append(f"stale read: {got} after {seats}")
                return
        passed += 1
        through.autocommit = False
        through.execute("UPDATE planes SET seats = 999 WHERE tailnum = 'N10156'")
        inside = through.execute(sql).fetchone()[0]
        through.rollback()
        after = through.execute(sql).fetchone()[0]
        through.rollback()
        if (inside, after) != (999, 259):
            failures.append(f"own write in a transaction: {inside}, after rollback: {after}")
        else:
            passed += 1


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def test_killed(addresses, freshet):
    """A freshet that is killed without a chance to tidy up leaves no replication slot."""
    global passed
    listen, admin = free_port(), free_port()
    command = [freshet, "serve", "--upstream", addresses.direct, "--listen", f"127.0.0.1:{listen}", "--admin", f"127.0.0.1:{admin}"]
    log = tempfile.TemporaryFile("w+")
    process = subprocess.Popen(command, stdout=log, stderr=log)
    with log, psycopg.connect(addresses.direct, autocommit=True) as direct:
        def slots():
            return direct.execute("SELECT count(*) FROM pg_replication_slots").fetchone()[0]

        def reaches(count):
            limit = time.monotonic() + 20
            while slots() != count and time.monotonic() < limit:
                time.sleep(0.05)
            return slots() == count

        # One is the demo's own.
        started = reaches(2)
        process.kill()
        process.wait()
        if started and reaches(1):
            passed += 1
        else:
            log.seek(0)
            busy = "SELECT pid, backend_type, state, backend_xid, xact_start, left(query, 80) FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
            busy = direct.execute(busy).fetchall()
            failures.append(f"killed: started {started}, {slots()} slots afterwards; writing: {busy}; its log:\n{log.read()}")


arguments = argparse.ArgumentParser()
arguments.add_argument("--freshet", required=True)
freshet = arguments.parse_args().freshet
with demo(freshet) as addresses:
    test_psql(addresses)
    test_psycopg(addresses, "psycopg extended")
    test_psycopg(addresses, "psycopg binary", binary=True)
    test_psycopg(addresses, "psycopg simple", cursor_factory=psycopg.ClientCursor)
    test_psycopg(addresses, "psycopg in transactions", autocommit=False)
    asyncio.run(test_asyncpg(addresses))
    test_pgx(addresses)
    test_writes(addresses)
    test_killed(addresses, freshet)
for failure in failures:
    print(failure)
print(f"clients: {passed} passed, {len(failures)} failed")
sys.exit(1 if failures else 0)
