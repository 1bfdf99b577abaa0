"""psycopg2's own tests: libpq's synchronous, asynchronous and replication sides, COPY, large objects, notifications."""
from python_suite import run_pytest
from sources import pypi_source, python_with
from suite import counted

MODES = ["relay", "local"]
DATABASE = "psycopg2_test"
VERSION = "2.9.13"
summary = counted


def prepare(ground):
    source = pypi_source("psycopg2", VERSION)
    return source, python_with(f"psycopg2-{VERSION}-python", f"psycopg2-binary=={VERSION}", "pytest", "setuptools")


def set_up(cluster):
    cluster.psql("CREATE DATABASE psycopg2_test")
    cluster.psql("CREATE EXTENSION hstore", "psycopg2_test")


def run(prepared, leg):
    source, python = prepared
    project = leg.folder / "project"
    project.mkdir()
    (project / "tests").symlink_to(source / "tests")
    environment = {"PSYCOPG2_TESTDB_HOST": "127.0.0.1", "PSYCOPG2_TESTDB_PORT": str(leg.port)}
    environment |= {"PSYCOPG2_TESTDB_USER": "postgres", "PSYCOPG2_TEST_REPL_DSN": ""}
    return run_pytest(python, project, leg, "tests", environment=environment)
