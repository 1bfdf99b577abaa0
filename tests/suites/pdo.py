"""PHP's PDO and its own functions (the distribution's php) by a script of our own."""
from scripted import SCRIPTS, run_script, without_oids
from sources import Unreachable, run as client

MODES = ["relay", "local"]
DATABASE = "cases"
normalise = without_oids


def prepare(ground):
    if "pdo_pgsql" not in client("php", "-m").split():
        raise Unreachable("php has no pdo_pgsql")


def set_up(cluster):
    cluster.psql("CREATE DATABASE cases")


def run(prepared, leg):
    return run_script(leg, "php", SCRIPTS / "pdo_cases.php", environment={"PGDATABASE": "cases"})
