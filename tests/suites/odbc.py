"""psqlODBC (the distribution's driver and driver manager) by pyodbc and a script of our own."""
import os

from scripted import SCRIPTS, run_script, without_oids
from sources import debian_files, debian_version, python_with

MODES = ["relay", "local"]
DATABASE = "cases"
VERSION = "5.5.0"
normalise = without_oids


def prepare(ground):
    # pyodbc's wheel brings its own driver manager; the driver and what it links to come from the distribution.
    folders = [debian_files(package, debian_version(package)) for package in ("odbc-postgresql", "libodbc2", "libodbcinst2", "libltdl7")]
    (driver,) = folders[0].rglob("psqlodbcw.so")
    libraries = {str(file.parent) for folder in folders[1:] for file in folder.rglob("*.so.*")}
    return python_with(f"pyodbc-{VERSION}-python", f"pyodbc=={VERSION}"), driver, ":".join(sorted(libraries))


def set_up(cluster):
    cluster.psql("CREATE DATABASE cases")


def run(prepared, leg):
    python, driver, libraries = prepared
    environment = {"ODBC_HOST": "127.0.0.1", "ODBC_PORT": str(leg.port), "ODBC_DRIVER": str(driver), "LD_LIBRARY_PATH": libraries}
    environment["ODBCSYSINI"] = os.fspath(leg.folder)
    return run_script(leg, python, SCRIPTS / "odbc_cases.py", environment=environment)
