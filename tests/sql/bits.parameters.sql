-- Statement => parameters, as text, separated by |.
SELECT id FROM flags WHERE b = $1 ORDER BY id => 10110001
SELECT id FROM flags WHERE v > $1 ORDER BY id => 1
SELECT id, v || $1 FROM flags ORDER BY id => 01
SELECT $1::bit(6), $2::varbit => x1F | 101
SELECT id FROM flags WHERE v IN ($1, $2) ORDER BY id => 101 | 10
-- relay: where the parameter is NULL, PostgreSQL gives the column its length
SELECT id, coalesce(b, $1) FROM flags ORDER BY id => 11110000
