<?php
// What PDO and the pg_ functions see. Prints a JSON line for each case: its name and everything seen.
error_reporting(E_ALL & ~E_WARNING & ~E_NOTICE);
$setup = "
DROP TABLE IF EXISTS php_item, php_log CASCADE;
CREATE TABLE php_item (id int PRIMARY KEY, name text, price numeric(10,2), ratio float8, at timestamptz, flag bool, doc jsonb, raw bytea, big int8);
INSERT INTO php_item SELECT i, 'name ' || i, i * 1.25, i / 7.0, timestamptz '2020-01-01 UTC' + i * interval '1 hour', i % 2 = 0,
  jsonb_build_object('i', i), decode(md5(i::text), 'hex'), i::int8 * 10000000000 FROM generate_series(1, 200) i;
CREATE TABLE php_log (id serial PRIMARY KEY, what text)";
$reads = [
    ['SELECT * FROM php_item ORDER BY id LIMIT 5', []],
    ['SELECT name, price FROM php_item WHERE id = ?', [42]],
    ['SELECT flag, count(*), sum(price), avg(ratio) FROM php_item GROUP BY flag ORDER BY flag', []],
    ['SELECT a.id, b.name FROM php_item a JOIN php_item b ON b.id = a.id * 2 WHERE a.price > ? ORDER BY a.id', ['100.5']],
    ['SELECT id FROM php_item WHERE name LIKE ? ORDER BY id', ['name 1%']],
    ['SELECT id, flag FROM php_item WHERE id IN (?, ?, ?) ORDER BY id', [3, 1, 2]],
    ['SELECT count(*) FROM php_item', []],
    ['SELECT doc ? \'i\' AS has FROM php_item WHERE id = 1', ['x']],
];

function connect(array $options = []): PDO {
    $dsn = 'pgsql:host=' . getenv('PGHOST') . ';port=' . getenv('PGPORT') . ';dbname=' . getenv('PGDATABASE');
    return new PDO($dsn, getenv('PGUSER'), '', $options + [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
}
function described(PDOStatement $statement): array {
    $columns = [];
    for ($at = 0; $at < $statement->columnCount(); $at++) {
        $meta = $statement->getColumnMeta($at);
        $columns[] = [$meta['name'], $meta['pgsql:oid'], $meta['native_type'], $meta['len'], $meta['precision'], $meta['table'] ?? null];
    }
    $rows = array_map('plain', $statement->fetchAll(PDO::FETCH_NUM));
    return [$columns, $statement->rowCount(), $rows];
}
/** Streams of bytea as hexadecimal text. */
function plain($row) {
    if (!is_array($row)) return $row;
    return array_map(fn ($value) => is_resource($value) ? bin2hex(stream_get_contents($value)) : $value, $row);
}
function attempt(callable $work) {
    try {
        return $work();
    } catch (PDOException $error) {
        return [$error->getCode(), $error->errorInfo];
    }
}
function each_read(PDO $pdo, int $times): array {
    global $reads;
    $seen = [];
    foreach ($reads as [$text, $values]) {
        for ($i = 0; $i < $times; $i++) {
            $seen[] = attempt(function () use ($pdo, $text, $values) {
                $statement = $pdo->prepare($text);
                $statement->execute($values);
                return described($statement);
            });
        }
    }
    return $seen;
}
function pg() {
    return pg_connect('host=' . getenv('PGHOST') . ' port=' . getenv('PGPORT') . ' dbname=' . getenv('PGDATABASE') . ' user=' . getenv('PGUSER'), PGSQL_CONNECT_FORCE_NEW);
}
function result($result) {
    if ($result === false) return false;
    $fields = [];
    for ($at = 0; $at < pg_num_fields($result); $at++) {
        $fields[] = [pg_field_name($result, $at), pg_field_type($result, $at), pg_field_size($result, $at), pg_field_table($result, $at)];
    }
    return [pg_result_status($result, PGSQL_STATUS_STRING), pg_affected_rows($result), $fields, pg_fetch_all($result, PGSQL_NUM), pg_result_error($result)];
}

$cases = [
    'prepared and dropped' => fn () => each_read(connect(), 3),
    'emulated' => fn () => each_read(connect([PDO::ATTR_EMULATE_PREPARES => true]), 3),
    'without names' => fn () => each_read(connect([PDO::PGSQL_ATTR_DISABLE_PREPARES => true]), 3),
    'one statement many times' => function () {
        $pdo = connect();
        $statement = $pdo->prepare('SELECT id, name FROM php_item WHERE id = :id');
        $seen = [];
        for ($i = 0; $i < 30; $i++) {
            $statement->bindValue(':id', $i % 7, PDO::PARAM_INT);
            $statement->execute();
            $seen[] = $statement->fetchAll(PDO::FETCH_ASSOC);
        }
        return $seen;
    },
    'many statements at once' => function () {
        $pdo = connect();
        $kept = $seen = [];
        for ($i = 0; $i < 40; $i++) $kept[] = $pdo->prepare("SELECT $i, count(*) FROM php_item WHERE id > ?");
        for ($round = 0; $round < 2; $round++) foreach ($kept as $at => $statement) {
            $statement->execute([$at]);
            $seen[] = $statement->fetchAll(PDO::FETCH_NUM);
        }
        // Every third is dropped; the others go on.
        foreach (array_keys($kept) as $at) if ($at % 3 === 0) unset($kept[$at]);
        foreach ($kept as $at => $statement) {
            $statement->execute([$at]);
            $seen[] = $statement->fetchAll(PDO::FETCH_NUM);
        }
        return $seen;
    },
    'transactions' => function () {
        $pdo = connect();
        $seen = [];
        foreach (['commit', 'rollBack'] as $end) {
            $pdo->beginTransaction();
            $insert = $pdo->prepare('INSERT INTO php_log (what) VALUES (?) RETURNING what');
            $insert->execute([$end]);
            $seen[] = [$insert->fetchAll(PDO::FETCH_NUM), $pdo->inTransaction()];
            $seen[] = $pdo->query('SELECT what FROM php_log ORDER BY id')->fetchAll(PDO::FETCH_NUM);
            $pdo->$end();
            $seen[] = $pdo->query('SELECT what FROM php_log ORDER BY id')->fetchAll(PDO::FETCH_NUM);
        }
        $pdo->beginTransaction();
        $seen[] = $pdo->query('SELECT count(*) FROM php_item')->fetchAll(PDO::FETCH_NUM);
        $seen[] = attempt(fn () => $pdo->query('SELECT 1/0'));
        $seen[] = attempt(fn () => $pdo->prepare('SELECT count(*) FROM php_item')->execute());
        $pdo->rollBack();
        $seen[] = $pdo->query('SELECT count(*) FROM php_item')->fetchAll(PDO::FETCH_NUM);
        return [$seen, $pdo->lastInsertId() > 0, $pdo->lastInsertId('php_log_id_seq') > 0];
    },
    'errors' => function () {
        $pdo = connect();
        return [
            attempt(fn () => $pdo->query('SELECT nothing FROM php_item')),
            attempt(fn () => $pdo->prepare('SELECT * FROM nowhere')->execute()),
            attempt(fn () => $pdo->prepare('SELECT id FROM php_item WHERE id = ?')->execute(['x'])),
            attempt(fn () => $pdo->exec("INSERT INTO php_item (id) VALUES (1)")),
            $pdo->query('SELECT count(*) FROM php_item')->fetchColumn(),
        ];
    },
    'scrollable cursor' => function () {
        $pdo = connect();
        $pdo->beginTransaction();
        $statement = $pdo->prepare('SELECT id FROM php_item ORDER BY id', [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL]);
        $statement->execute();
        $seen = [
            $statement->fetch(PDO::FETCH_NUM), $statement->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_LAST),
            $statement->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_PRIOR), $statement->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_ABS, 7),
        ];
        $pdo->commit();
        return $seen;
    },
    'bytes and booleans' => function () {
        $pdo = connect();
        $statement = $pdo->prepare('SELECT id FROM php_item WHERE raw = ? AND flag = ?');
        $statement->bindValue(1, md5('4', true), PDO::PARAM_LOB);
        $statement->bindValue(2, true, PDO::PARAM_BOOL);
        $statement->execute();
        $seen = [$statement->fetchAll(PDO::FETCH_NUM)];
        foreach ($pdo->query('SELECT raw, flag, doc FROM php_item WHERE id < 4 ORDER BY id', PDO::FETCH_NUM) as $row) $seen[] = plain($row);
        return $seen;
    },
    'copy and notifications' => function () {
        $pdo = connect();
        $pdo->exec('LISTEN php');
        $pdo->pgsqlCopyFromArray('php_log', ["1001\tone", "1002\ttwo"], "\t");
        $seen = [$pdo->pgsqlCopyToArray('php_item', ',', 'NULL', 'id,name')];
        $pdo->exec("NOTIFY php, 'hello'");
        $note = $pdo->pgsqlGetNotify(PDO::FETCH_ASSOC, 2000);
        $pdo->exec('UNLISTEN *');
        $seen[] = [$note['message'], $note['payload']];
        $seen[] = $pdo->query('SELECT what FROM php_log WHERE id > 1000 ORDER BY id')->fetchAll(PDO::FETCH_NUM);
        return $seen;
    },
    'functions' => function () {
        $connection = pg();
        $seen = [];
        for ($i = 0; $i < 3; $i++) {
            $seen[] = result(pg_query($connection, 'SELECT id, name, price FROM php_item WHERE id < 4 ORDER BY id'));
            $seen[] = result(pg_query_params($connection, 'SELECT name FROM php_item WHERE id = $1', [7]));
        }
        $seen[] = result(pg_prepare($connection, 'mine', 'SELECT count(*) FROM php_item WHERE id > $1'));
        for ($i = 0; $i < 3; $i++) $seen[] = result(pg_execute($connection, 'mine', [$i]));
        $seen[] = result(pg_query($connection, 'DEALLOCATE mine'));
        $seen[] = [@pg_execute($connection, 'mine', [1]), pg_last_error($connection)];
        $seen[] = pg_meta_data($connection, 'php_item');
        $seen[] = pg_select($connection, 'php_item', ['id' => 5]);
        $seen[] = pg_insert($connection, 'php_log', ['what' => 'inserted']) !== false;
        $seen[] = pg_update($connection, 'php_log', ['what' => 'updated'], ['what' => 'inserted']);
        $seen[] = pg_select($connection, 'php_log', ['what' => 'updated']) !== false;
        $seen[] = [pg_parameter_status($connection, 'server_encoding'), pg_transaction_status($connection), pg_client_encoding($connection)];
        return $seen;
    },
    'asynchronous' => function () {
        $connection = pg();
        $seen = [];
        for ($i = 0; $i < 3; $i++) {
            pg_send_query($connection, 'SELECT count(*) FROM php_item; SELECT id FROM php_item WHERE id = 3; SELECT 1/0; SELECT 4');
            while ($one = pg_get_result($connection)) $seen[] = result($one);
            pg_send_query_params($connection, 'SELECT name FROM php_item WHERE id = $1', [9]);
            while ($one = pg_get_result($connection)) $seen[] = result($one);
        }
        pg_send_query($connection, 'SELECT pg_sleep(30)');
        $seen[] = pg_cancel_query($connection);
        $seen[] = result(pg_query($connection, 'SELECT count(*) FROM php_item'));
        return $seen;
    },
];

connect()->exec($setup);
foreach ($cases as $name => $case) echo json_encode([$name, $case()], JSON_INVALID_UTF8_SUBSTITUTE), "\n";
