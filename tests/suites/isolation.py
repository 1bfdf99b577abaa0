"""PostgreSQL's src/test/isolation: 115 schedules of several sessions each: locks, deadlocks, serialisation failures.

Not run in mode local: its permutations wait for locks of plain reads (freshet's take none) and its tests are mostly of
writers.
"""
import os

import postgresql

MODES = ["relay"]
DATABASE = "isolation_regression"
summary = postgresql.verdicts


def prepare(ground):
    return postgresql.test_program(ground, "isolation/pg_isolation_regress"), postgresql.source(ground) / "src/test/isolation"


def set_up(cluster):
    pass


def run(prepared, leg):
    program, inputs = prepared
    (leg.folder / "results").mkdir()
    os.chmod(leg.folder / "results", 0o777)
    return postgresql.run_pg_regress(program, leg, leg.folder, inputs, inputs / "isolation_schedule")
