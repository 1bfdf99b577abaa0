"""What psqlODBC sees by pyodbc: DECLARE/FETCH cursors, prepared statements, catalog functions, transactions, errors.

Prints a JSON line for each case. Run with the address in ODBC_HOST, ODBC_PORT and the driver's file in ODBC_DRIVER.
"""
import json
import os

import pyodbc

OPTIONS = {
    "plain": "",
    "declare_fetch": "UseDeclareFetch=1;Fetch=10;",
    "server_prepare_off": "UseServerSidePrepare=0;",
    "declare_fetch_prepared": "UseDeclareFetch=1;Fetch=7;UseServerSidePrepare=1;",
    "protocol_statement_rollback": "Protocol=7.4-2;",
}
SETUP = [
    "DROP TABLE IF EXISTS odbc_item",
    "CREATE TABLE odbc_item (id int PRIMARY KEY, name varchar(40), price numeric(10,2), at timestamp, ratio float8, flag bool, raw bytea)",
    "INSERT INTO odbc_item SELECT i, 'name ' || i, i * 1.25, timestamp '2020-01-01' + i * interval '1 hour', i / 7.0, i % 2 = 0, "
    "decode(md5(i::text), 'hex') FROM generate_series(1, 100) i",
]
READS = [
    ("SELECT * FROM odbc_item ORDER BY id", ()),
    ("SELECT name, price FROM odbc_item WHERE id = ?", (42,)),
    ("SELECT count(*), sum(price), avg(ratio), min(name), max(at) FROM odbc_item", ()),
    ("SELECT flag, count(*) FROM odbc_item GROUP BY flag ORDER BY flag", ()),
    ("SELECT a.id, b.name FROM odbc_item a JOIN odbc_item b ON b.id = a.id * 2 WHERE a.price > ? ORDER BY a.id", (30.5,)),
    ("SELECT id FROM odbc_item WHERE name LIKE ? ORDER BY id", ("name 1%",)),
    ("SELECT id FROM odbc_item WHERE id < 0", ()),
]


def connect(options, autocommit=True):
    server = f"Servername={os.environ['ODBC_HOST']};Port={os.environ['ODBC_PORT']};Database=cases;UID=postgres;"
    return pyodbc.connect(f"Driver={os.environ['ODBC_DRIVER']};{server}{options}", autocommit=autocommit)


def shown(rows):
    return [[repr(value) for value in row] for row in rows]


def described(cursor):
    return [[str(part) for part in column] for column in cursor.description or ()]


def error(function):
    try:
        return function()
    except pyodbc.Error as raised:
        return [str(part) for part in raised.args]


def reads(options, autocommit):
    connection = connect(options, autocommit)
    seen = []
    for text, parameters in READS:
        for _ in range(3):
            cursor = connection.cursor().execute(text, *parameters)
            seen.append([described(cursor), shown(cursor.fetchall())])
            cursor.close()
        cursor = connection.cursor().execute(text, *parameters)
        seen.append(shown(cursor.fetchmany(15)))
        cursor.close()
        if not autocommit:
            connection.commit()
    connection.close()
    return seen


def writes(options, autocommit):
    connection = connect(options, autocommit)
    cursor = connection.cursor()
    seen = []
    cursor.execute("DELETE FROM odbc_item WHERE id > 1000")
    cursor.executemany("INSERT INTO odbc_item (id, name) VALUES (?, ?)", [(i, f"new {i}") for i in range(1001, 1011)])
    seen.append(shown(cursor.execute("SELECT count(*), max(name) FROM odbc_item WHERE id > 1000").fetchall()))
    for i in range(10):
        cursor.execute("UPDATE odbc_item SET name = ? WHERE id = 1001", f"changed {i}")
        seen.append([cursor.rowcount, shown(cursor.execute("SELECT name FROM odbc_item WHERE id = 1001").fetchall())])
    if not autocommit:
        connection.rollback()
    seen.append(shown(cursor.execute("SELECT count(*) FROM odbc_item WHERE id > 1000").fetchall()))
    seen.append(error(lambda: cursor.execute("INSERT INTO odbc_item (id) VALUES (1)")))
    if not autocommit:
        seen.append(error(lambda: shown(cursor.execute("SELECT 1").fetchall())))
        connection.rollback()
    seen.append(error(lambda: shown(cursor.execute("SELECT 1 / 0").fetchall())))
    connection.rollback()
    seen.append(error(lambda: shown(cursor.execute("SELECT nothing FROM odbc_item").fetchall())))
    connection.rollback()
    cursor.execute("DELETE FROM odbc_item WHERE id > 1000")
    connection.commit()
    connection.close()
    return seen


def catalog(options, autocommit):
    connection = connect(options, autocommit)
    cursor = connection.cursor()
    seen = [shown(cursor.tables(table="odbc_item").fetchall()), shown(cursor.columns(table="odbc_item").fetchall())]
    seen += [shown(cursor.primaryKeys("odbc_item").fetchall()), shown(cursor.statistics("odbc_item").fetchall())]
    seen += [[row.type_name for row in cursor.getTypeInfo().fetchall()]]
    connection.close()
    return seen


first = connect("")
for statement in SETUP:
    first.cursor().execute(statement)
first.close()
for name, options in OPTIONS.items():
    for autocommit in (True, False):
        for function in (reads, writes, catalog):
            label = f"{name}, {'autocommit' if autocommit else 'transactions'}, {function.__name__}"
            print(json.dumps([label, function(options, autocommit)]), flush=True)
