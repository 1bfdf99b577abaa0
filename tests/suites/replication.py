"""Replication connections: pg_basebackup with its log, pg_receivewal, pg_recvlogical, and a subscriber that stays in step."""
import contextlib
import json
import re
import signal
import subprocess
import time

MODES = ["relay"]
DATABASE = "source"
SECONDS_MAX = 60


def prepare(ground):
    return ground


def set_up(cluster):
    cluster.psql("CREATE DATABASE source")
    cluster.psql("CREATE TABLE item (id int PRIMARY KEY, name text); INSERT INTO item SELECT i, 'name ' || i FROM generate_series(1, 5000) i;"
                 "CREATE PUBLICATION of_item FOR TABLE item", "source")


def run(ground, leg):
    return {
        "base backup": base_backup(ground, leg),
        "base backup as tar": tar_backup(ground, leg),
        "log received": received_log(ground, leg),
        "logical decoding": logical(ground, leg),
        "subscriber": subscriber(ground, leg),
        "commands": commands(ground, leg),
    }


def call(ground, leg, program, *arguments, **options):
    command = [ground.binaries / program, "-h", "127.0.0.1", "-p", str(leg.port), "-U", "postgres", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, **options)


def base_backup(ground, leg):
    target = leg.folder / "backup"
    ran = call(ground, leg, "pg_basebackup", "-D", target, "-X", "stream", "-c", "fast", "--manifest-checksums=SHA256")
    verified = subprocess.run([ground.binaries / "pg_verifybackup", target], capture_output=True, text=True)
    return f"{ran.returncode} {ran.stderr} {verified.returncode} {verified.stdout} {verified.stderr}"


def tar_backup(ground, leg):
    target = leg.folder / "tar"
    ran = call(ground, leg, "pg_basebackup", "-D", target, "-Ft", "-z", "-X", "fetch", "-c", "fast")
    return f"{ran.returncode} {ran.stderr} {sorted(file.name for file in target.iterdir())}"


@contextlib.contextmanager
def started(ground, leg, program, *arguments):
    command = [ground.binaries / program, "-h", "127.0.0.1", "-p", str(leg.port), "-U", "postgres", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=SECONDS_MAX)


def until(happened):
    limit = time.monotonic() + SECONDS_MAX
    while not happened():
        if time.monotonic() > limit:
            return False
        time.sleep(0.05)
    return True


def received_log(ground, leg):
    target = leg.folder / "wal"
    target.mkdir()
    call(ground, leg, "pg_receivewal", "--create-slot", "--slot", "of_receivewal")
    with started(ground, leg, "pg_receivewal", "-D", target, "--slot", "of_receivewal", "--synchronous"):
        streams = until(lambda: leg.cluster.psql("SELECT count(*) FROM pg_stat_replication WHERE application_name = 'pg_receivewal'") == "1")
        leg.cluster.psql("INSERT INTO item SELECT i, 'wal' FROM generate_series(10001, 12000) i", "source")
        name = leg.cluster.psql("SELECT pg_walfile_name(pg_switch_wal())")
        received = until(lambda: (target / name).exists())
    same = (target / name).exists() and (target / name).read_bytes() == (leg.cluster.directory / "pg_wal" / name).read_bytes()
    dropped = call(ground, leg, "pg_receivewal", "--drop-slot", "--slot", "of_receivewal")
    return f"{streams} {received} {same} {dropped.returncode}"


def logical(ground, leg):
    file = leg.folder / "decoded"
    made = call(ground, leg, "pg_recvlogical", "-d", "source", "--create-slot", "--slot", "decoded", "-P", "test_decoding")
    with started(ground, leg, "pg_recvlogical", "-d", "source", "--start", "--slot", "decoded", "-f", file, "-F", "1", "-o", "include-xids=0"):
        leg.cluster.psql("INSERT INTO item VALUES (20001, 'decoded'); UPDATE item SET name = 'changed' WHERE id = 1;"
                         "DELETE FROM item WHERE id = 2; BEGIN; INSERT INTO item VALUES (20002, 'together'); COMMIT;"
                         "INSERT INTO item VALUES (20003, 'last')", "source")
        arrived = until(lambda: file.exists() and "'last'" in file.read_text() and file.read_text().rstrip().endswith("COMMIT"))
    dropped = call(ground, leg, "pg_recvlogical", "-d", "source", "--drop-slot", "--slot", "decoded")
    return f"{made.returncode} {arrived} {dropped.returncode}\n{file.read_text()}"


def subscriber(ground, leg):
    digest = "SELECT count(*) || ' ' || md5(string_agg(item::text, ',' ORDER BY id)) FROM item"
    with ground.cluster() as other:
        other.psql("CREATE TABLE item (id int PRIMARY KEY, name text)")
        other.psql(f"CREATE SUBSCRIPTION of_item CONNECTION 'host=127.0.0.1 port={leg.port} user=postgres dbname=source' PUBLICATION of_item")
        copied = until(lambda: other.psql(digest) == leg.cluster.psql(digest, "source"))
        for i in range(20):
            leg.cluster.psql(f"UPDATE item SET name = 'round {i}' WHERE id % 20 = {i}", "source")
        followed = until(lambda: other.psql(digest) == leg.cluster.psql(digest, "source"))
        other.psql("DROP SUBSCRIPTION of_item")
    left = leg.cluster.psql("SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'logical' AND NOT temporary")
    return f"{copied} {followed} {left}"


def commands(ground, leg):
    """Plain SQL and replication commands on one connection."""
    seen = []
    for kind in ("database", "true"):
        for command in ("IDENTIFY_SYSTEM", "SHOW wal_level", "SELECT 1 AS one", "SELECT count(*) FROM item", "TIMELINE_HISTORY 1", "NONSENSE"):
            connection = f"host=127.0.0.1 port={leg.port} user=postgres dbname=source replication={kind}"
            ran = subprocess.run([ground.binaries / "psql", "-XAtc", command, connection], capture_output=True, text=True)
            # The system's identifier is the template's, the position is not.
            seen.append([kind, command, ran.returncode, re.sub(r"[0-9A-F]+/[0-9A-F]+", "POSITION", ran.stdout), ran.stderr])
    return json.dumps(seen, indent=1)
