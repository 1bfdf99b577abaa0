"""node-postgres (`pg`, `pg-cursor`, `pg-query-stream`, `pg-copy-streams`) and postgres.js by a script of our own."""
from scripted import SCRIPTS, run_script, without_oids
from sources import kept
from sources import run as client

MODES = ["relay", "local"]
DATABASE = "cases"
PACKAGES = ["pg@8.23.1", "pg-cursor@2.22.0", "postgres@3.4.9"]
normalise = without_oids


def prepare(ground):
    def install(folder):
        client("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder, *PACKAGES)

    name = "node-" + "-".join(package.replace("@", "-") for package in PACKAGES)
    return kept(name, install)


def set_up(cluster):
    cluster.psql("CREATE DATABASE cases")


def run(modules, leg):
    # A module finds packages beside itself only.
    script = modules / "node_cases.mjs"
    script.write_text((SCRIPTS / "node_cases.mjs").read_text())
    return run_script(leg, "node", script, environment={"PGDATABASE": "cases"})
