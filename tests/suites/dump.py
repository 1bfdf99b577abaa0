"""pg_dump in three formats, pg_restore, psql and pg_dumpall: dumps the same byte for byte, and again after a restore."""
import hashlib
import subprocess

from scripted import SCRIPTS

MODES = ["relay"]
DATABASE = "source"


def prepare(ground):
    return ground.binaries


def set_up(cluster):
    cluster.psql("CREATE DATABASE source")
    command = [cluster.binaries / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(cluster.port), "-U", "postgres"]
    subprocess.run([*command, "-f", SCRIPTS / "dump.sql", "source"], check=True, capture_output=True)


def run(binaries, leg):
    results = {}

    def call(case, program, *arguments, output=None):
        command = [binaries / program, "-h", "127.0.0.1", "-p", str(leg.port), "-U", "postgres", *arguments]
        ran = subprocess.run(command, capture_output=True, text=True)
        if output:
            (leg.folder / output).write_text(ran.stdout)
        results[case] = f"{ran.returncode}\n{ran.stderr}\n{stable(ran.stdout)}"

    call("plain", "pg_dump", "source", output="plain.sql")
    call("inserts", "pg_dump", "--inserts", "--rows-per-insert=100", "-t", "plain", "source")
    call("custom", "pg_dump", "-Fc", "-f", leg.folder / "custom", "source")
    call("directory, two jobs", "pg_dump", "-Fd", "-j", "2", "-f", leg.folder / "directory", "source")
    call("serializable", "pg_dump", "--serializable-deferrable", "source")
    call("all", "pg_dumpall", "--no-role-passwords")
    for case, arguments in {"custom": ["custom"], "directory": ["-j", "2", "directory"]}.items():
        database = f"from_{case}"
        leg.cluster.psql(f"CREATE DATABASE {database}")
        call(f"restore {case}", "pg_restore", "-d", database, *arguments[:-1], leg.folder / arguments[-1])
        call(f"restored {case}", "pg_dump", database)
        results[f"restored {case} is the source"] = str(stable(results["plain"]) == stable(results[f"restored {case}"]))
    leg.cluster.psql("CREATE DATABASE from_plain")
    call("restore plain", "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", "from_plain", "-f", leg.folder / "plain.sql")
    call("restored plain", "pg_dump", "from_plain")
    results["digests"] = "\n".join(f"{case} {hashlib.sha256(text.encode()).hexdigest()}" for case, text in results.items())
    return results


def stable(text):
    # Each dump is guarded by a random word of its own.
    return "\n".join(line for line in text.splitlines() if not line.startswith(("\\restrict", "\\unrestrict")))
