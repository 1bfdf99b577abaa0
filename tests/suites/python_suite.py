"""Runs a Python project's tests by pytest, in an environment of their own."""
import os
import subprocess

import junit

SECONDS_MAX = 1800


def run_pytest(python, tests, leg, *arguments, environment=None):
    """Verdicts by name. `tests` is the folder that pytest runs in."""
    report = leg.folder / "junit.xml"
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "PYTEST"))}
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *arguments]
    with open(leg.folder / "output", "w") as output:
        subprocess.run(
            [str(word) for word in command], cwd=tests, env=variables | (environment or {}), stdout=output, stderr=output,
            timeout=SECONDS_MAX)
    if not report.exists():
        raise RuntimeError(f"pytest ran nothing:\n{(leg.folder / 'output').read_text()[-2000:]}")
    return junit.verdicts([report])
