"""Runs a script of our own by a real driver: a JSON line per case, with everything the driver saw."""
import json
import os
import pathlib
import re
import subprocess

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
SECONDS_MAX = 600


def without_oids(name, text):
    """What is made while freshet runs gets other OIDs: its publication takes some."""
    return re.sub(r"\b16[3-9]\d\d\b", "OID", text)


def run_script(leg, *command, environment=None):
    """Name of each case to what was seen. A script that breaks off is an error, whichever leg it is."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    variables |= {"PGHOST": "127.0.0.1", "PGPORT": str(leg.port), "PGUSER": "postgres"} | (environment or {})
    ran = subprocess.run([str(word) for word in command], env=variables, capture_output=True, text=True, timeout=SECONDS_MAX)
    (leg.folder / "output").write_text(ran.stdout + ran.stderr)
    if ran.returncode:
        raise RuntimeError(f"{command} in {leg.mode}:\n{ran.stderr[-3000:]}")
    cases = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("[")]
    return {name: json.dumps(seen, indent=1) for name, seen in cases}
