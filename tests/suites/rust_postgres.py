"""The tests of the crates tokio-postgres and postgres: prepared statements, portals, COPY, cancel, notifications, types."""
import os
import re
import shutil
import subprocess

from sources import CACHE, crate
from sources import run as client
from suite import counted
from throwaway import free_port

MODES = ["relay", "local"]
DATABASE = "postgres"
CRATES = {"tokio-postgres": "0.7.18", "postgres": "0.19.14"}
FEATURES = "with-chrono-0_4,with-serde_json-1,with-uuid-1"
summary = counted
TERMINATED = "fails direct as well now and then: it expects the end of a terminated session to have arrived when it looks"
EXPLAINED = {mode: {"postgres test::is_closed": TERMINATED} for mode in MODES}
PASSWORDS = {"pass_user": "password", "md5_user": "md5", "scram_user": "scram-sha-256"}


def prepare(ground):
    port = free_port()
    folders = []
    environment = os.environ | {"CARGO_TARGET_DIR": str(CACHE / "rust-postgres-target")}
    for name, version in CRATES.items():
        folder = ground.folder(name) / name
        shutil.copytree(crate(name, version), folder)
        # The tests are for a server at port 5433; every leg of this run has one at another.
        for file in folder.rglob("*.rs"):
            file.write_text(file.read_text().replace("5433", str(port)))
        client("cargo", "test", "--no-run", "-q", "--features", FEATURES, cwd=folder, env=environment, seconds_max=3600)
        folders.append(folder)
    return port, folders, environment


def port(prepared):
    return prepared[0]


def set_up(cluster):
    rules = [f"host all {user} 127.0.0.1/32 {method}" for user, method in PASSWORDS.items()]
    file = cluster.directory / "pg_hba.conf"
    file.write_text("\n".join(rules) + "\n" + file.read_text())
    for user, method in PASSWORDS.items():
        encryption = "md5" if method == "md5" else "scram-sha-256"
        cluster.psql(f"SET password_encryption TO '{encryption}'; CREATE ROLE {user} PASSWORD 'password' LOGIN")
    cluster.psql("CREATE EXTENSION hstore; CREATE EXTENSION citext; CREATE EXTENSION ltree; SELECT pg_reload_conf()")


def run(prepared, leg):
    _, folders, environment = prepared
    results = {}
    for folder in folders:
        command = ["cargo", "test", "-q", "--no-fail-fast", "--features", FEATURES, "--", "--format=pretty"]
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        (leg.folder / folder.name).write_text(ran.stdout + ran.stderr)
        for name, verdict in re.findall(r"^test (\S.*?) \.\.\. (ok|FAILED|ignored)", ran.stdout, flags=re.M):
            results[f"{folder.name} {re.sub(r' .line .*', '', name)}"] = {"ok": "passed", "FAILED": "failed"}.get(verdict, verdict)
    return results
