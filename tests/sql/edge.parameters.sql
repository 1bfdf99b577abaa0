-- A statement and its parameters as text, a line each: statement => parameter | parameter ... "-- relay: why" as in edge.sql.
SELECT id FROM numbers WHERE i = $1 ORDER BY id => 7
SELECT id FROM numbers WHERE n2 > $1 AND n2 < $2 ORDER BY id => 0.01 | 2.5
SELECT id FROM numbers WHERE d > $1 ORDER BY id => 1e1
SELECT id, i + $1 FROM numbers WHERE id < 4 ORDER BY id => 5
SELECT id FROM texts WHERE t = $1 ORDER BY id => alpha
SELECT id FROM texts WHERE t LIKE $1 ORDER BY id => %a%
SELECT id, t || $1 FROM texts WHERE id < 3 ORDER BY id => -suffix
SELECT id FROM times WHERE ts >= $1 ORDER BY id => 2024-01-01 00:00:00
SELECT id FROM times WHERE tz >= $1::timestamptz ORDER BY id => 2024-03-31 02:59:59+02
SELECT id FROM times WHERE d = $1::date => 2024-02-29
SELECT id FROM other ORDER BY id LIMIT $1 OFFSET $2 => 2 | 1
SELECT a, b, n FROM keys WHERE a = $1 AND b = $2 => 4 | k4
SELECT a, count(*) FROM keys WHERE a IN ($1, $2) GROUP BY a ORDER BY a => 1 | 2
SELECT $1::int + 1 AS next FROM other WHERE id = 1 => 41
SELECT coalesce(a, $1) FROM other ORDER BY id => -1
-- relay: a custom plan folds it, and no row is needed for the error
SELECT 10 / $1 FROM numbers WHERE false => 0
-- relay: likewise in a branch that no row takes
SELECT CASE WHEN id > 1000 THEN 10 / $1::int ELSE id END FROM numbers ORDER BY id => 0
-- relay: likewise under a condition that keeps nothing
SELECT id FROM numbers WHERE id > 1000 AND i > sqrt($1::float8) => -1
-- relay: likewise in a subquery that nothing asks
SELECT id FROM other WHERE id < 0 AND EXISTS (SELECT FROM numbers WHERE i = 5 % $1::int) => 0
SELECT 10 / $1::int FROM numbers WHERE false => 3
SELECT CASE WHEN $1 = 0 THEN 0 ELSE 10 / $1 END FROM other WHERE id = 1 => 0
SELECT CASE WHEN id > 1000 THEN 10 / $1::int ELSE id END FROM numbers ORDER BY id => 2
SELECT id, c = $1 COLLATE "C" FROM texts ORDER BY id => abc
SELECT id FROM texts WHERE v = $1 COLLATE "C" AND c >= $2 COLLATE "C" ORDER BY id => alpha | abc    
SELECT generate_series(1, 3) + $1::int ORDER BY 1 => 5
-- relay: NULL beside it takes the function and its rows away
SELECT generate_series(1, 3) + $1::int ORDER BY 1 => \N
SELECT id, lpad(unnest(ARRAY['a', 'b']), $1::int, '-') FROM other ORDER BY 1, 2 => 3
-- relay: likewise within calls
SELECT id, upper(lpad(unnest(ARRAY['a', 'b']), $1::int + 1, '-')) || 'x' FROM other ORDER BY 1, 2 => \N
-- relay: likewise below a group
SELECT generate_series(1, 3) = $1::int AS g, count(*) FROM other GROUP BY 1 ORDER BY 1 => \N
-- relay: likewise in a subquery
SELECT count(*) FROM (SELECT generate_series(1, 3) + $1::int FROM other) q => \N
SELECT count(*) FROM (SELECT id, generate_series(1, 3) + $1::int FROM other) q => 1
SELECT count(*) FROM (SELECT id + $1::int, generate_series(1, 3) FROM other) q => \N
SELECT unnest($1::int[]) + 1 ORDER BY 1 => \N
-- relay: by a literal
SELECT id, generate_series(1, 3) + NULL FROM other WHERE id > $1 ORDER BY 1, 2 => 1
