"""Runs other projects' test suites directly against PostgreSQL and through freshet, and compares what they saw.

    run.py --freshet FILE [--pg-bin FOLDER] [--mode relay|local|both] [--record] [--keep FOLDER] SUITE...

Each suite is a file of this folder (see `suite.py` for what it defines). Every leg (direct, relay, local) has a cluster
of its own, copied from one template, so that all begin alike. relay: local answers are off, everything a suite observes
must be the same as direct. local: each table is mirrored before it is first read, so that freshet's engine answers what
it can; only what PostgreSQL leaves open may differ. Ends with 1 if anything differs that the suite does not explain.
"""
import argparse
import importlib.util
import json
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import traceback

from sources import Unreachable
from suite import Leg, compare
from throwaway import Ground

HERE = pathlib.Path(__file__).resolve().parent
GROUPS = {
    "core": ["regress", "isolation", "libpq_pipeline"],
}
GROUPS["all"] = GROUPS["core"] + [
    "regress_local", "frames", "psycopg3", "node", "odbc", "pdo", "dbi", "activerecord", "pgbench", "dump", "replication",
    "psycopg2", "asyncpg", "sqlalchemy", "rust_postgres", "pgx", "pgjdbc",
]
RECORDED = HERE / "local_answers.json"
# How far the count of local answers may fall below the recorded one: timing decides some routes (waits, audits).
LOCAL_ANSWERS_TOLERANCE = 0.1


def main():
    arguments = parse()
    # As on Ctrl-C: whatever was started is ended on the way out.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
    names = [name for word in arguments.suites for name in GROUPS.get(word, [word])]
    failed = False
    with tempfile.TemporaryDirectory(prefix="freshet-suites-") as directory:
        directory = pathlib.Path(directory)
        directory.chmod(0o755)
        # A copy: the binary may be built anew while the suites run.
        freshet = shutil.copy2(arguments.freshet, directory / "freshet")
        ground = Ground(arguments.pg_bin, freshet, directory)
        for name in names:
            try:
                failed |= not run_suite(load(name), ground, arguments)
            except Unreachable as error:
                report(name, f"skipped: source not reachable ({error})")
            except Exception:
                # The others are to run all the same.
                traceback.print_exc()
                report(name, "broken off")
                failed = True
            finally:
                if arguments.keep:
                    shutil.copytree(directory, arguments.keep, dirs_exist_ok=True, symlinks=True, ignore_dangling_symlinks=True,
                                    ignore=shutil.ignore_patterns("*-data", "template", "*-socket", "freshet"))
    return 1 if failed else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--freshet", type=pathlib.Path, required=True, help="the binary")
    parser.add_argument("--pg-bin", type=pathlib.Path, default=newest_postgres(), help="folder of initdb and postgres")
    parser.add_argument("--mode", choices=["relay", "local", "both"], default="both")
    parser.add_argument("--record", action="store_true", help="write the counts of local answers to local_answers.json")
    parser.add_argument("--keep", type=pathlib.Path, help="copy results and logs to this folder")
    parser.add_argument("suites", nargs="+", help=f"file names without .py, or {', '.join(GROUPS)}")
    return parser.parse_args()


def newest_postgres():
    found = pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max(found, key=lambda path: int(path.parts[-3])).parent


def load(name):
    specification = importlib.util.spec_from_file_location(f"suite_{name}", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def run_suite(suite, ground, arguments):
    name = pathlib.Path(suite.__file__).stem
    prepared = suite.prepare(ground)
    modes = ["relay", "local"] if arguments.mode == "both" else [arguments.mode]
    modes = [mode for mode in modes if mode in suite.MODES]
    direct = run_leg(suite, prepared, ground, "direct") if modes else None
    good = True
    for mode in modes:
        through = run_leg(suite, prepared, ground, mode)
        differences = compare(suite, mode, direct.results, through.results)
        unexplained = [difference for difference in differences if not difference.cause]
        words = [f"{mode}: {len(through.results)} results, {len(through.results) - len(differences)} same as direct"]
        words += [f"{len(differences) - len(unexplained)} explained", f"{len(unexplained)} not"]
        words += [suite.summary(through.results)] if hasattr(suite, "summary") else []
        answers = through.routes.get("local", 0) + through.routes.get("hit", 0)
        words += [f"{answers} of {sum(through.routes.values())} statements answered locally"] if mode == "local" else []
        report(name, ", ".join(words) + f", {direct.seconds:.0f} s direct, {through.seconds:.0f} s through")
        for difference in differences:
            print(f"  {difference.name}: {difference.cause or 'UNEXPLAINED'}")
            if not difference.cause:
                print("".join(f"    {line}\n" for line in difference.lines), end="")
        good &= not unexplained
        if mode == "local":
            good &= enough_local_answers(name, answers, arguments.record)
    sys.stdout.flush()
    return good


def run_leg(suite, prepared, ground, mode):
    folder = ground.folder(f"{pathlib.Path(suite.__file__).stem}-{mode}")
    port = suite.port(prepared) if hasattr(suite, "port") else None
    with ground.cluster(getattr(suite, "SETTINGS", None), port if mode == "direct" else None) as cluster:
        suite.set_up(cluster)
        if mode == "direct":
            return timed(suite, prepared, Leg(mode, cluster, None, cluster.port, folder))
        options = {"listen": port, "database": suite.DATABASE, "arguments": ["--tables", "none" if mode == "relay" else "auto"]}
        if mode == "local":
            options["environment"] = {"FRESHET_TEST_MIRROR_ALL": "1", "FRESHET_MIRROR_SET_REPLICA_IDENTITY_FULL": "true"}
        with ground.freshet_before(cluster, **options) as freshet:
            leg = timed(suite, prepared, Leg(mode, cluster, freshet, freshet.port, folder))
            leg.routes = freshet.routes()
            (folder / "metrics").write_text("\n".join(f"{name} {value:g}" for name, value in freshet.metrics().items()))
            if mode == "local":
                # Why which shape was relayed, for whoever wants more answered locally.
                (folder / "statements").write_text(freshet.psql(cluster, "SELECT * FROM freshet.statements", suite.DATABASE))
            return leg


def timed(suite, prepared, leg):
    started = time.monotonic()
    leg.results = suite.run(prepared, leg)
    leg.seconds = time.monotonic() - started
    return leg


def enough_local_answers(name, answers, record):
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    if record:
        RECORDED.write_text(json.dumps(recorded | {name: answers}, indent=2, sort_keys=True) + "\n")
        return True
    least = recorded.get(name, 0) * (1 - LOCAL_ANSWERS_TOLERANCE)
    if answers < least:
        report(name, f"only {answers} local answers; {recorded[name]} are recorded in {RECORDED.name}")
    return answers >= least


def report(name, text):
    print(f"{name}: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
