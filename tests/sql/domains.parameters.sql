-- Statement => parameters, as text, separated by |.
SELECT id, y, e FROM people WHERE y = $1 ORDER BY id => 1951
SELECT id FROM people WHERE e = $1 AND y > $2 ORDER BY id => m1@x | 1950
SELECT id FROM people WHERE y IN ($1, $2) ORDER BY id => 1951 | 1953
SELECT id FROM people WHERE y = ANY ($1) ORDER BY id => {1951,1952}
SELECT v FROM keyed WHERE e = $1 AND y = $2 => m1@x | 1953
SELECT id, y + $1 FROM people ORDER BY id => 5
-- relay: where the parameter is NULL, PostgreSQL gives the column its length
SELECT id, coalesce(e, $1) FROM people ORDER BY id => x
SELECT id FROM people WHERE c = $1 ORDER BY id => c1
SELECT id FROM people WHERE s > $1 ORDER BY id => 2024-01-02 00:00+00
SELECT id FROM people WHERE k = $1 ORDER BY id => cfcd2084-95d5-65ef-66e7-dff9f98764da
