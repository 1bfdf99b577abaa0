"""PostgreSQL's src/test/regress again, with what freshet mirrors and answers: under ISO dates and one test at a time.

pg_regress asks for the output styles of old, which are always upstream's; a launcher sets what everybody uses instead,
in both legs.
"""
import regress

MODES = ["local"]
DATABASE = regress.DATABASE
prepare = regress.prepare
set_up = regress.set_up
EXPLAINED = {"local": {
    "publication.out": "lists every publication of the database, hence freshet's own, too",
    "create_index.out": "now and then another plan: a table's first copy holds a snapshot while VACUUM marks pages all-visible",
    "stats.out": "counts scans of tables and indexes: what is answered locally scans nothing upstream",
}}
LAUNCHER = "env PGDATESTYLE=ISO,MDY PGTZ=UTC PGOPTIONS=-cintervalstyle=postgres"


def run(prepared, leg):
    # A table is mirrored when nobody else holds it and the catalog stands still for a moment.
    seen = regress.run_with(prepared, leg, f"--launcher={LAUNCHER}", "--max-connections=1")
    # Not the verdicts: rows without ORDER BY may come in another order than expected.
    return {name: text for name, text in seen.items() if not name.endswith(": verdict")}
