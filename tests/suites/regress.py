"""PostgreSQL's src/test/regress: 217 psql scripts; their result files must be the same byte for byte."""
import os
import shutil

import postgresql

MODES = ["relay"]
DATABASE = "regression"
summary = postgresql.verdicts


def prepare(ground):
    tree = postgresql.source(ground) / "src" / "test" / "regress"
    program = postgresql.test_program(ground, "regress/pg_regress")
    # The server reads the data files: not from the cache, which only its owner may be able to read.
    inputs = ground.folder("regress-inputs") / "inputs"
    shutil.copytree(tree, inputs)
    (inputs / "testtablespace").mkdir(exist_ok=True)
    # The triggers test loads two modules of contrib/spi from there, too.
    for module in ("autoinc.so", "refint.so"):
        shutil.copy(ground.binaries.parent / "lib" / module, inputs)
    postgresql.compile(ground, inputs / "regress.so", [tree / "regress.c"], "-shared", "-fPIC")
    return program, inputs


def set_up(cluster):
    # As pg_regress makes it; made here so that freshet finds the database when it starts.
    cluster.psql('CREATE DATABASE regression TEMPLATE = template0')
    for name in ("lc_messages", "lc_monetary", "lc_numeric", "lc_time"):
        cluster.psql(f"ALTER DATABASE regression SET {name} TO 'C'")
    cluster.psql("ALTER DATABASE regression SET bytea_output TO 'hex'")
    cluster.psql("ALTER DATABASE regression SET timezone_abbreviations TO 'Default'")


def run(prepared, leg):
    return run_with(prepared, leg)


def run_with(prepared, leg, *options):
    program, inputs = prepared
    for name in ("results", "testtablespace"):
        (leg.folder / name).mkdir()
        os.chmod(leg.folder / name, 0o777)
    options = [f"--dlpath={inputs}", "--max-concurrent-tests=20", "--use-existing", *options]
    return postgresql.run_pg_regress(program, leg, leg.folder, inputs, inputs / "parallel_schedule", *options)
