"""SQLAlchemy's own tests of its PostgreSQL dialects, by psycopg2, psycopg 3 and asyncpg: reflection, types, returning."""
from python_suite import run_pytest
from sources import pypi_source, python_with
from suite import counted

MODES = ["relay", "local"]
DATABASE = "test"
VERSION = "2.1.9"
DRIVERS = ["psycopg2", "psycopg", "asyncpg"]
TESTS = ["test/dialect/postgresql", "test/dialect/test_suite.py", "test/sql/test_query.py", "test/sql/test_resultset.py"]
# 2,000 combinations of two ranges each: five minutes of statements that differ in a literal.
SKIPPED = "not RangeRoundTrip"
summary = counted


def prepare(ground):
    packages = [f"SQLAlchemy=={VERSION}", "greenlet", "pytest", "psycopg2-binary==2.9.13", "psycopg[binary]==3.3.9"]
    python = python_with(f"sqlalchemy-{VERSION}-python", *packages, "asyncpg==0.32.0")
    return pypi_source("sqlalchemy", VERSION), python


def set_up(cluster):
    cluster.psql("CREATE ROLE scott LOGIN SUPERUSER PASSWORD 'tiger'")
    cluster.psql("CREATE DATABASE test OWNER scott")
    for statement in ("CREATE SCHEMA test_schema", "CREATE SCHEMA test_schema_2", "CREATE EXTENSION hstore",
                      "CREATE EXTENSION citext", "ALTER DATABASE test SET default_text_search_config = 'pg_catalog.english'"):
        cluster.psql(statement, "test")


def run(prepared, leg):
    source, python = prepared
    results = {}
    for driver in DRIVERS:
        url = f"postgresql+{driver}://scott:tiger@127.0.0.1:{leg.port}/test"
        of_driver = run_pytest(python, source, leg, *TESTS, "-k", SKIPPED, "--dburi", url, "-p", "no:warnings", "--tb=short")
        (leg.folder / "output").rename(leg.folder / f"output-{driver}")
        (leg.folder / "junit.xml").rename(leg.folder / f"junit-{driver}.xml")
        results |= {f"{driver} {name.replace('127.0.0.1', '')}": verdict for name, verdict in of_driver.items()}
    return results
