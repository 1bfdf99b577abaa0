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
        for _ in range(3):
            connection.execute("SELECT count(*), pg_sleep(0.2) FROM airports")
        named = "statement, relayed, relay_p50_us, relay_p99_us, relayed_us, reply_bytes, hits"
        shapes = connection.execute(f"SELECT {named} FROM freshet.statements").fetchall()
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
    slow = [shape for shape in shapes if "pg_sleep" in shape[0]]
    check("statements: how long upstream took", slow and slow[0][1] == 3 and 200_000 < slow[0][2] <= 524_288 <= 2 * slow[0][3] and slow[0][4] > 600_000, slow)
    polled = [shape for shape in shapes if "group by origin" in shape[0]]
    check("statements: the size of a reply", polled and 40 < polled[0][5] < 1_000 and polled[0][6] >= 100, polled)
    dearest = status["profit"][0]
    check("status: what would profit most", "pg_sleep" in dearest["statement"] and "pg_sleep" in dearest["reason"], status["profit"][:3])
    sizes = {name: int(value) for name, value in re.findall(r"^freshet_(plans|plan_bytes|join_cache_bytes) (\d+)", metrics, re.M)}
    check("metrics: plans and joins", sizes.get("plans", 0) >= 2 and sizes.get("plan_bytes", 0) > 1_000 and "join_cache_bytes" in sizes, sizes)
    page = chromium(addresses.admin + "/", f"{folder}/a", "--virtual-time-budget=4000", "--dump-dom")
    for text in ("public.flights", "mirrored", "answered here", "wrong answers", "group by origin", "what would profit most", "pg_sleep"):
        check(f"page shows {text!r}", text in page.lower(), page[-1500:])
    heads = [re.sub(r"<[^>]+>", " ", head) for head in re.findall(r"<thead>.*?</thead>", page, re.S)]
    check("page: captures are among the calls of a statement", any("capture" in head and "relay" in head for head in heads), heads)
    check("page: words are explained", all(f"<dt>{word}" in page for word in ("lost s", "computed again", "first_run", "wait_budget")))
    check("page: no constant is shown", "jfk" not in page.lower())
    picture = given.screenshot or pathlib.Path(folder) / "page.png"
    chromium(addresses.admin + "/", f"{folder}/b", "--virtual-time-budget=4000", "--window-size=1200,1400", f"--screenshot={picture}")
    check("screenshot", picture.exists() and picture.stat().st_size > 20_000)
for failure in failures:
    print(failure)
print(f"page: {passed} passed, {len(failures)} failed")
sys.exit(1 if failures else 0)
