"""PostgreSQL's src/test/modules/libpq_pipeline: pipelines with errors, aborts, prepared statements, by wire traces."""
import re
import subprocess

import postgresql

MODES = ["relay"]
DATABASE = "postgres"
ROWS = 700


def prepare(ground):
    tree = postgresql.source(ground) / "src/test/modules/libpq_pipeline"
    libraries = postgresql.headers(ground) / "lib" / "postgresql" / str(postgresql.major(ground)) / "lib"
    target = ground.folder("libpq_pipeline") / "libpq_pipeline"
    return postgresql.compile(
        ground, target, [tree / "libpq_pipeline.c"], "-lpq", f"-L{libraries}", "-lpgcommon", "-lpgport", "-lm")


def set_up(cluster):
    pass


def run(program, leg):
    results = {}
    for test in subprocess.run([program, "tests"], check=True, capture_output=True, text=True).stdout.split():
        trace = leg.folder / f"{test}.trace"
        connection = f"host=127.0.0.1 port={leg.port} user=postgres dbname=postgres"
        ran = subprocess.run([program, "-r", str(ROWS), "-t", trace, test, connection], capture_output=True, text=True)
        results[f"{test}: exit"] = f"{ran.returncode} {ran.stdout}"
        results[f"{test}: trace"] = trace.read_text() if trace.exists() else "none"
    return results


def normalise(name, text):
    if name == "uniqviol: trace":
        # It sends until the error comes back: how often depends on how much the sockets and the proxy between hold.
        # What remains is which messages were seen, in the order in which each kind first was.
        return "\n".join(dict.fromkeys(re.sub(r"\d+", "n", text).splitlines()))
    if name == "pipelined_insert: trace":
        # It reads whenever something is there while it goes on sending: each direction has its order, not both together.
        return "\n".join(sorted(text.splitlines(), key=lambda line: line.split("\t", 1)[0]))
    return text


def summary(results):
    passed = [text.startswith("0 ") for name, text in results.items() if name.endswith(": exit")]
    return f"{sum(passed)} of {len(passed)} tests pass"
