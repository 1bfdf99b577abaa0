"""The admin address by HTTP, and the live page in headless Chromium."""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import psycopg

from fixture import demo

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"]
failures = []
passed = 0


def check(name, holds, detail=""):
    global passed
    if holds:
        passed += 1
    else:
        failures.append(f"{name}: {detail}")


def get(url):
    with urllib.request.urlopen(url, timeout=10) as response:
        return response.status, response.read().decode()


def chromium(url, profile, *arguments):
    command = [shutil.which("chromium") or "chromium", *FLAGS, f"--user-data-dir={profile}", *arguments, url]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


arguments = argparse.ArgumentParser()
arguments.add_argument("--freshet", required=True)
arguments.add_argument("--screenshot", type=pathlib.Path, help="keeps the picture here")
given = arguments.parse_args()
with demo(given.freshet) as addresses, tempfile.TemporaryDirectory() as folder:
    with psycopg.connect(addresses.through, autocommit=True) as connection:
        for n in range(300):
            connection.execute("SELECT origin, count(*) FROM flights GROUP BY origin")
            connection.execute(f"SELECT name FROM airports WHERE faa = 'JFK' AND alt < {1000 + n}")
        connection.execute("SELECT random()")
    for path in ("/healthz", "/readyz"):
        check(path, get(addresses.admin + path)[0] == 200)
    metrics = get(addresses.admin + "/metrics")[1]
    hits = re.search(r'^freshet_statements_total\{[^}]*route="hit"[^}]*\} (\d+)', metrics, re.M)
    check("metrics: hits", hits and int(hits[1]) >= 100, metrics[:2000])
    wrong = re.search(r"^freshet_wrong_answers_total (\d+)", metrics, re.M)
    check("metrics: no wrong answer", wrong and int(wrong[1]) == 0, metrics[:2000])
    counted = lambda name: int(re.search(rf"^freshet_{name} (\d+)", metrics, re.M)[1])
    check("metrics: waits", counted("barrier_wait_seconds_count") >= 100, metrics[:2000])
    # Nothing is written upstream meanwhile: the moment alone is asked.
    check("metrics: barriers", 2 * counted("full_barriers_total") < counted("barriers_total"), metrics[:2000])
    check("metrics: help", "# HELP freshet_" in metrics and metrics.rstrip().endswith("# EOF"))
    status = json.loads(get(addresses.admin + "/status.json")[1])
    states = {table["name"]: table["state"] for table in status["tables"]}
    check("status: tables", states.get("public.flights") == "mirrored", states)
    page = chromium(addresses.admin + "/", f"{folder}/a", "--virtual-time-budget=4000", "--dump-dom")
    for text in ("public.flights", "mirrored", "answered here", "wrong answers", "group by origin"):
        check(f"page shows {text!r}", text in page.lower(), page[-1500:])
    picture = given.screenshot or pathlib.Path(folder) / "page.png"
    chromium(addresses.admin + "/", f"{folder}/b", "--virtual-time-budget=4000", "--window-size=1200,1400", f"--screenshot={picture}")
    check("screenshot", picture.exists() and picture.stat().st_size > 20_000)
for failure in failures:
    print(failure)
print(f"page: {passed} passed, {len(failures)} failed")
sys.exit(1 if failures else 0)
