"""pgx's own tests (Go): pipelines, COPY, LISTEN, cancel, the matrix of types in every query mode."""
import json
import os
import pathlib
import shutil
import subprocess

from sources import run as client
from suite import counted

MODES = ["relay", "local"]
DATABASE = "pgx_test"
VERSION = "v5.7.5"
summary = counted


def prepare(ground):
    # The module's archive holds its tests; the module cache is read-only, the tests write beside themselves.
    module = json.loads(client("go", "mod", "download", "-json", f"github.com/jackc/pgx/v5@{VERSION}"))
    folder = ground.folder("pgx") / "pgx"
    shutil.copytree(module["Dir"], folder)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    client("go", "mod", "download", cwd=folder)
    client("go", "test", "-run", "^$", "./...", cwd=folder)
    return folder


def set_up(cluster):
    cluster.psql("CREATE DATABASE pgx_test")
    for statement in ("CREATE EXTENSION hstore", "CREATE EXTENSION ltree", "CREATE DOMAIN uint64 AS numeric(20,0)"):
        cluster.psql(statement, "pgx_test")
    # A name that a test of aclitem's format mentions.
    cluster.psql("""CREATE USER " tricky, ' } "" \\ test user " SUPERUSER PASSWORD 'secret'""")


def run(folder, leg):
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    variables["PGX_TEST_DATABASE"] = f"host=127.0.0.1 port={leg.port} user=postgres database=pgx_test"
    # One package at a time: some count sessions or prepared transactions of the whole server.
    command = ["go", "test", "-json", "-count=1", "-p=1", "./..."]
    ran = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, errors="replace")
    pathlib.Path(leg.folder / "output").write_text(ran.stdout + ran.stderr)
    events = (json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{"))
    words = {"pass": "passed", "fail": "failed", "skip": "skipped"}
    return {f"{event['Package']}.{event['Test']}": words[event["Action"]]
            for event in events if event["Action"] in words and "Test" in event}
