"""psycopg 3 by a script of our own (its source distribution has no tests)."""
from scripted import SCRIPTS, run_script, without_oids
from sources import python_with

MODES = ["relay", "local"]
DATABASE = "cases"
VERSION = "3.3.9"
normalise = without_oids


def prepare(ground):
    return python_with(f"psycopg-{VERSION}-python", f"psycopg[binary]=={VERSION}")


def set_up(cluster):
    cluster.psql("CREATE DATABASE cases")


def run(python, leg):
    return run_script(leg, python, SCRIPTS / "psycopg3_cases.py")
