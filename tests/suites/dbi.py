"""Perl's DBD::Pg (the distribution's) by a script of our own."""
from scripted import SCRIPTS, run_script, without_oids
from sources import run as client

MODES = ["relay", "local"]
DATABASE = "cases"
normalise = without_oids


def prepare(ground):
    client("perl", "-MDBD::Pg", "-MJSON::PP", "-e", "1")


def set_up(cluster):
    cluster.psql("CREATE DATABASE cases")


def run(prepared, leg):
    return run_script(leg, "perl", SCRIPTS / "dbi_cases.pl", environment={"PGDATABASE": "cases"})
