"""pgjdbc's own tests: named and unnamed statements, binary transfer, portals, large objects, batches, autosave."""
import shutil
import subprocess

import junit
from sources import download, kept
from sources import run as client
from suite import counted

MODES = ["relay", "local"]
DATABASE = "test"
VERSION = "42.7.7"
ARCHIVE = f"https://repo1.maven.org/maven2/org/postgresql/postgresql/{VERSION}/postgresql-{VERSION}-jdbc-src.tar.gz"
# The version that the archive names does not fit the JUnit that it names.
SUREFIRE = "-Dmaven-surefire-plugin.version=3.5.2"
PACKAGES = ["jdbc2", "jdbc3", "jdbc4", "jdbc42", "extensions", "core"]
summary = counted


def prepare(ground):
    source = download(ARCHIVE, f"pgjdbc-{VERSION}")

    def build(folder):
        shutil.copytree(source, folder / "project")
        client("mvn", "-q", "-B", "test-compile", cwd=folder / "project")
        # The test runner is fetched when it first runs: with a class that asks no server.
        client("mvn", "-q", "-B", "surefire:test", SUREFIRE, "-Dtest=org.postgresql.core.ParserTest", cwd=folder / "project")

    return kept(f"pgjdbc-{VERSION}-built", build) / "project"


def set_up(cluster):
    cluster.psql("CREATE ROLE test LOGIN PASSWORD 'test'")
    cluster.psql("CREATE DATABASE test OWNER test")
    for extension in ("hstore", "citext", "sslinfo"):
        cluster.psql(f"CREATE EXTENSION {extension}", "test")


def run(project, leg):
    (project / "build.local.properties").write_text(
        f"test.url.PGHOST=127.0.0.1\ntest.url.PGPORT={leg.port}\ntest.url.PGDBNAME=test\nuser=test\npassword=test\n"
        "privilegedUser=postgres\nprivilegedPassword=\n")
    classes = ",".join(f"org.postgresql.test.{package}.*Test" for package in PACKAGES)
    reports = project / "target/surefire-reports"
    shutil.rmtree(reports, ignore_errors=True)
    command = ["mvn", "-B", "-o", "surefire:test", SUREFIRE, f"-Dtest={classes}", "-Dmaven.test.failure.ignore=true"]
    with open(leg.folder / "output", "w") as output:
        subprocess.run(command, cwd=project, stdout=output, stderr=output)
    shutil.copytree(reports, leg.folder / "reports")
    return junit.verdicts(sorted(reports.glob("TEST-*.xml")))
