-- Domains. A statement each; "-- relay: why" above one: upstream answers it.
SELECT id, y, l, e, t, c, a, n, s, d, k, plain FROM people ORDER BY id;
SELECT id, y + 1, l - y, y % 4, -y, abs(y), y / 2.0, y::text, y::bigint, y::float8 FROM people ORDER BY id;
SELECT y, count(*), min(y), max(l), sum(y), avg(y) FROM people GROUP BY y ORDER BY y;
SELECT e, count(*), min(e), max(e), string_agg(e, ',' ORDER BY id) FROM people GROUP BY e ORDER BY e;
SELECT c, count(*), length(c), c || '!' FROM people GROUP BY c ORDER BY c;
SELECT DISTINCT y, e FROM people ORDER BY 1, 2;
SELECT count(DISTINCT y), count(DISTINCT e), count(DISTINCT c), count(DISTINCT k), count(DISTINCT a) FROM people;
SELECT id FROM people WHERE y = 1951 ORDER BY id;
SELECT id FROM people WHERE y IN (1951, 1953) AND e = 'm1@x' ORDER BY id;
SELECT id FROM people WHERE y = plain AND e = word ORDER BY id;
SELECT id FROM people WHERE y = ANY ('{1951,1952}') OR e LIKE 'm3%' ORDER BY id;
SELECT id FROM people WHERE y BETWEEN 1951 AND 1952 AND l > y ORDER BY id;
SELECT id FROM people WHERE c = 'c1' AND c IN ('c1  ', 'x') ORDER BY id;
SELECT id FROM people WHERE a > 10 AND n < 12.5 ORDER BY a DESC;
SELECT id, a * 2, a + n, round(n, 1), a::int, sum(a) OVER (ORDER BY id) FROM people ORDER BY id;
SELECT sum(a), avg(a), sum(n), avg(n), min(a), max(n) FROM people;
SELECT date_trunc('day', s), count(*) FROM people GROUP BY 1 ORDER BY 1;
SELECT id, extract(hour FROM s), s + interval '1 day', s::date FROM people WHERE s >= '2024-01-02' ORDER BY s;
SELECT id, d ->> 'i', d -> 'i' FROM people WHERE d @> '{"i": 1}' ORDER BY id;
SELECT k, count(*) FROM people GROUP BY k ORDER BY k;
SELECT id FROM people WHERE k = 'cfcd2084-95d5-65ef-66e7-dff9f98764da' ORDER BY id;
SELECT t, lower(t), upper(e), length(e), substr(e, 1, 2), e || t FROM people ORDER BY t, id;
SELECT COALESCE(y, 0), COALESCE(e, 'none'), CASE WHEN y > 1951 THEN e ELSE 'old' END, nullif(y, 1952), greatest(y, plain) FROM people ORDER BY id;
SELECT a.id, b.id FROM people a JOIN people b ON a.y = b.y AND a.e = b.e WHERE a.id < b.id ORDER BY 1, 2;
SELECT p.id, q.v FROM people p JOIN keyed q ON q.y = p.y AND q.e = p.e ORDER BY 1, 2;
SELECT p.id, q.v FROM people p LEFT JOIN keyed q USING (y, e) ORDER BY 1, 2;
SELECT e, y, v FROM keyed WHERE e = 'm1@x' AND y = 1953;
SELECT v FROM keyed GROUP BY e, y ORDER BY v;
SELECT id FROM people WHERE y IN (SELECT y FROM keyed WHERE v < 5) ORDER BY id;
SELECT id, (SELECT count(*) FROM keyed k WHERE k.e = people.e) FROM people ORDER BY id;
SELECT plain FROM people UNION SELECT y FROM keyed ORDER BY 1;
SELECT id, row_number() OVER (PARTITION BY y ORDER BY id), lag(y) OVER (ORDER BY id) FROM people ORDER BY id;
SELECT * FROM seen WHERE y = 1952 ORDER BY id;
SELECT to_json(y), to_jsonb(e), json_build_object('y', y, 'a', a, 'd', d) FROM people ORDER BY id;
SELECT json_agg(y ORDER BY id), jsonb_agg(e ORDER BY id) FROM people;
WITH q AS (SELECT y, count(*) AS n FROM people GROUP BY y) SELECT y, n FROM q WHERE y IS NOT NULL ORDER BY n DESC, y;
-- relay: which side's value is taken hangs on which one is of the domain
SELECT y, a.id, b.id FROM people a JOIN (SELECT id, plain AS y FROM people) b USING (y) ORDER BY 1, 2, 3;
-- relay: arrays of a domain are of a type of their own
SELECT array_agg(y ORDER BY id) FROM people;
-- relay: a cast to a domain checks it
SELECT '1999'::year, plain::year FROM people ORDER BY id;
-- relay: below it is a type that is not held
SELECT p FROM people ORDER BY id;
-- relay: arrays are left to upstream
SELECT m FROM people ORDER BY id;
-- relay: the type has a name of its own
SELECT pg_typeof(y) FROM people ORDER BY id;
-- relay: an enum below a domain
SELECT g, count(*) FROM people WHERE g <> 'ok' GROUP BY g ORDER BY g;
-- relay: an enum below a domain
SELECT g, id FROM people ORDER BY id;
-- relay: a cast of a domain's column is not the column
SELECT y, y::int, count(*) FROM people GROUP BY ROLLUP (y, y::int) ORDER BY 1, 2, 3;
-- relay: an error that upstream raises
SELECT y FROM people GROUP BY y::int;
-- relay: an error that upstream raises
SELECT DISTINCT l FROM people ORDER BY l::text;
SELECT y::int, e::varchar(40), l::text || 'x' FROM people ORDER BY id;
-- relay: an array of a domain's values is of the domain, and literals beside it are checked
SELECT id, ARRAY[e] @> '{m1@x}' FROM people ORDER BY id;
-- relay: an array of a domain's values is of the domain, and literals beside it are checked
SELECT array_agg(y ORDER BY id) @> '{1951}' FROM people;
-- relay: an array of a domain's values is of the domain, and literals beside it are checked
SELECT id FROM people WHERE ARRAY(SELECT s.e FROM people s) @> '{m1@x}' ORDER BY id;
-- relay: another row's value is of the domain, and the default is checked
SELECT id, lag(e, 1, 'm@x') OVER (ORDER BY id) FROM people ORDER BY id;
SELECT array_agg(plain ORDER BY id) @> '{1951}', count(*) FROM people;
SELECT e, array_agg(plain ORDER BY id) FROM people GROUP BY e ORDER BY e;
