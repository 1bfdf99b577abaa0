"""Rails' ActiveRecord (the distribution's) by a script of our own."""
from scripted import SCRIPTS, run_script, without_oids
from sources import run as client

MODES = ["relay", "local"]
DATABASE = "cases"
normalise = without_oids


def prepare(ground):
    client("ruby", "-e", "require 'active_record'; require 'pg'")


def set_up(cluster):
    cluster.psql("CREATE DATABASE cases")


def run(prepared, leg):
    return run_script(leg, "ruby", SCRIPTS / "activerecord_cases.rb", environment={"PGDATABASE": "cases"})
