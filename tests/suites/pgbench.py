"""pgbench's own scripts and a pipelined one in every protocol mode; the tables' sums afterwards."""
import re
import subprocess

MODES = ["relay", "local"]
DATABASE = "bench"
PROTOCOLS = ["simple", "extended", "prepared"]
SCRIPTS = ["tpcb-like", "simple-update", "select-only"]
PIPELINED = """\\set aid random(1, 100000)
\\startpipeline
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, 1, 'epoch');
\\endpipeline
"""
SUMS = """SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(bbalance) FROM pgbench_branches),
(SELECT sum(tbalance) FROM pgbench_tellers), (SELECT count(*) || ' ' || sum(delta) FROM pgbench_history)"""


def prepare(ground):
    return ground.binaries


def set_up(cluster):
    cluster.psql("CREATE DATABASE bench")


def run(binaries, leg):
    def pgbench(*arguments):
        command = [binaries / "pgbench", "-h", "127.0.0.1", "-p", str(leg.port), "-U", "postgres", *arguments, "bench"]
        return subprocess.run(command, capture_output=True, text=True)

    made = pgbench("-i", "-I", "dtGvpf", "-q")
    results = {"initialise": f"{made.returncode}"}
    pipelined = leg.folder / "pipelined.sql"
    pipelined.write_text(PIPELINED)
    for protocol in PROTOCOLS:
        for script in SCRIPTS + (["pipelined"] if protocol != "simple" else []):
            chosen = ["-f", pipelined] if script == "pipelined" else ["-b", script]
            ran = pgbench("-n", "-M", protocol, *chosen, "-c", "4", "-j", "2", "-t", "250", "--random-seed=7")
            counts = re.findall(r"^number of (?:transactions actually processed|failed transactions).*", ran.stdout, flags=re.M)
            # Four clients with seeds of their own: the sums do not depend on their order.
            results[f"{protocol} {script}"] = "\n".join([str(ran.returncode), *counts, leg.cluster.psql(SUMS, "bench")])
            (leg.folder / f"{protocol}-{script}").write_text(ran.stdout + ran.stderr)
    return results
