"""Raw frames as Npgsql and others send them: prefixed DISCARD ALL, batches, named statements, limits, flushes, COPY."""
import sys

from scripted import SCRIPTS, run_script

MODES = ["relay", "local"]
DATABASE = "cases"


def prepare(ground):
    return None


def set_up(cluster):
    cluster.psql("CREATE DATABASE cases")
    cluster.psql(
        "CREATE TABLE item (id int PRIMARY KEY, name text, price numeric(10,2), at timestamptz, flag bool, big int8, raw bytea);"
        "INSERT INTO item SELECT i, 'name ' || i, i * 1.25, timestamptz '2020-01-01 UTC' + i * interval '1 hour', i % 2 = 0,"
        " i::int8 * 10000000000, decode(md5(i::text), 'hex') FROM generate_series(1, 100) i;"
        "CREATE TABLE target (id int PRIMARY KEY, name text)", "cases")


def run(prepared, leg):
    return run_script(leg, sys.executable, SCRIPTS / "frames_cases.py")
