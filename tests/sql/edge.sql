-- A statement each, ended by a semicolon at the end of a line. "-- relay: why" above one: upstream answers it.
SELECT * FROM numbers ORDER BY id;
SELECT * FROM texts ORDER BY id;
SELECT * FROM times ORDER BY id;
SELECT * FROM nothing;
SELECT count(*), count(a), sum(a), avg(a), min(a), max(b) FROM nothing;
SELECT a, count(*) FROM nothing GROUP BY a;
SELECT count(*), count(s), count(DISTINCT s), sum(s), sum(i), sum(b), avg(s), avg(i), avg(b) FROM numbers;
SELECT sum(n2), avg(n2), min(n2), max(n2), sum(n0), avg(n0) FROM numbers;
SELECT sum(n), min(n), max(n) FROM numbers WHERE id NOT IN (7, 8, 9);
SELECT avg(n) FROM numbers WHERE id IN (1, 2, 10, 14, 15);
SELECT sum(n), avg(n), max(n), min(n) FROM numbers;
SELECT sum(d), avg(d), sum(r), avg(r) FROM numbers WHERE id IN (1, 2, 3, 11, 14, 15);
SELECT min(d), max(d), min(r), max(r) FROM numbers;
-- relay: equal numerics that print differently
SELECT n, count(*) FROM numbers GROUP BY n HAVING count(*) > 0 ORDER BY n NULLS FIRST;
SELECT n2, count(*) AS c FROM numbers GROUP BY n2 ORDER BY c DESC, n2;
-- relay: 0 and -0 are equal
SELECT d, count(*) FROM numbers GROUP BY d ORDER BY d;
SELECT id, i + 1, i - 1, b / 3, b % 3, s * 2 FROM numbers WHERE id NOT IN (5, 6) ORDER BY id;
SELECT id, n + 1, n - 0.5, n * 2, n / 3 FROM numbers WHERE n IS NOT NULL AND id NOT IN (5) ORDER BY id;
SELECT id, n2 + n0, n2 * n2, n2 / 3, n2 % 0.4 FROM numbers ORDER BY id;
SELECT id, d + 1, d * 2, d / 2, d - r FROM numbers WHERE id NOT IN (5, 6) ORDER BY id;
SELECT id, -i, -n, -d, abs(i), abs(n), abs(d) FROM numbers WHERE id NOT IN (6) ORDER BY id;
SELECT id, round(n), round(n, 1), floor(n), ceil(n), round(n2, 1), round(n2) FROM numbers ORDER BY id;
SELECT id, round(d), floor(d), ceil(d), floor(n2) FROM numbers WHERE id <> 5 ORDER BY id;
SELECT i::bigint, i::numeric, i::double precision, i::text, n2::int, n2::text, d::text FROM numbers WHERE id IN (1, 2, 3, 11, 14, 15) ORDER BY id;
SELECT n2::numeric(12,4), n2::numeric(8,1), d::numeric, d::int, r::double precision FROM numbers WHERE id IN (1, 2, 3, 11, 14, 15) ORDER BY id;
SELECT '12'::int, '1.50'::numeric, '1e3'::double precision, 'abc'::varchar(2), 'x'::char(3), true::text, 'yes'::boolean FROM numbers WHERE id = 1;
SELECT id FROM numbers WHERE n > 1 ORDER BY id;
SELECT id FROM numbers WHERE d >= 1.5 ORDER BY id;
SELECT id FROM numbers WHERE d = 'NaN' OR r = '-0' ORDER BY id;
SELECT id FROM numbers WHERE n2 BETWEEN 0 AND 1.5 ORDER BY id DESC;
SELECT id FROM numbers WHERE i IN (7, 8, 9, NULL) ORDER BY id;
SELECT id FROM numbers WHERE i NOT IN (7, 8, NULL) ORDER BY id;
SELECT id FROM numbers WHERE NOT (i > 5 AND s < 5) ORDER BY id;
SELECT id, i > 5 AND s < 5, i > 5 OR s IS NULL, NOT i > 5 FROM numbers ORDER BY id;
SELECT id FROM numbers WHERE i IS NULL;
SELECT id FROM numbers WHERE (i > 0) IS TRUE ORDER BY id;
SELECT id FROM numbers WHERE (i > 0) IS NOT FALSE ORDER BY id;
SELECT id FROM numbers WHERE (i > 0) IS UNKNOWN;
SELECT id FROM numbers WHERE i IS DISTINCT FROM 7 ORDER BY id;
SELECT id, CASE WHEN i > 0 THEN 'pos' WHEN i < 0 THEN 'neg' WHEN i = 0 THEN 'zero' END FROM numbers ORDER BY id;
SELECT id, CASE i WHEN 7 THEN 1 WHEN 8 THEN 2.5 ELSE 0 END FROM numbers ORDER BY id;
SELECT id, CASE WHEN i = 0 THEN NULL ELSE 100 / i END FROM numbers WHERE id < 5 ORDER BY id;
SELECT id, coalesce(i, -1), nullif(i, 7), coalesce(n, 0), greatest(i, s, 5), least(n, 1) FROM numbers ORDER BY id;
SELECT s, i FROM numbers ORDER BY s NULLS FIRST, i DESC NULLS LAST, id;
SELECT id, d FROM numbers ORDER BY d DESC, id;
SELECT id, n FROM numbers ORDER BY n DESC NULLS LAST, id LIMIT 5;
SELECT id FROM numbers ORDER BY id LIMIT 3 OFFSET 2;
SELECT id FROM numbers ORDER BY id OFFSET 12;
SELECT id FROM numbers ORDER BY id FETCH FIRST 4 ROWS ONLY;
SELECT id FROM numbers ORDER BY id LIMIT 0;
SELECT DISTINCT s / 2 FROM numbers ORDER BY 1;
SELECT DISTINCT i, s FROM numbers WHERE i = 7;
-- relay: 0 and -0 are equal
SELECT DISTINCT d FROM numbers WHERE d = 0;
SELECT t, count(*) FROM texts GROUP BY t ORDER BY t;
SELECT v, c, count(*) FROM texts GROUP BY v, c ORDER BY v, c;
SELECT o, count(*), bool_and(o), bool_or(o) FROM texts GROUP BY o ORDER BY o NULLS FIRST;
SELECT count(DISTINCT c), count(DISTINCT t), min(t), max(t), min(v), max(c) FROM texts;
SELECT id FROM texts WHERE t = 'alpha' ORDER BY id;
SELECT id FROM texts WHERE c = 'abc' ORDER BY id;
SELECT id FROM texts WHERE v > 'b' ORDER BY id;
SELECT id FROM texts WHERE t LIKE 'al%' ORDER BY id;
SELECT id FROM texts WHERE t LIKE '%\_' ORDER BY id;
SELECT id FROM texts WHERE t LIKE '%!%%' ESCAPE '!' ORDER BY id;
SELECT id FROM texts WHERE t LIKE '_e_a' ORDER BY id;
SELECT id FROM texts WHERE t NOT LIKE '%a%' ORDER BY id;
SELECT id FROM texts WHERE v ILIKE 'AL%' AND id <> 6 ORDER BY id;
SELECT id, upper(t), lower(t), length(t), char_length(c), octet_length(t) FROM texts WHERE id <> 6 ORDER BY id;
SELECT id, t || '-' || v, t || id, c || '|' FROM texts ORDER BY id;
SELECT id, substring(t, 2, 3), substring(t FROM 2), substr(t, 0, 3), left(t, 2), right(t, 2) FROM texts ORDER BY id;
SELECT id, trim(v), btrim(t, 'a'), ltrim(t, 'ab'), rtrim(t, 'ae'), replace(t, 'a', 'AA'), position('a' in t) FROM texts ORDER BY id;
SELECT id, concat(t, '/', v), split_part(t, 'a', 1), strpos(t, 'l') FROM texts ORDER BY id;
SELECT id, x, length(x), u, o FROM texts WHERE x IS NOT NULL ORDER BY id;
SELECT id FROM texts WHERE u = '12345678-1234-1234-1234-123456789abc';
SELECT id FROM texts WHERE x = '\x00ff' ORDER BY id;
SELECT u FROM texts ORDER BY u NULLS LAST, id;
SELECT id, j, k FROM texts ORDER BY id;
SELECT id, o::int, NOT o, o AND id > 2, o IS TRUE FROM texts ORDER BY id;
SELECT id FROM texts WHERE o ORDER BY id;
SELECT id, t::varchar(3), v::text, c::text, t::char(7) FROM texts ORDER BY id;
SELECT id FROM times WHERE d >= '2024-01-01' ORDER BY id;
SELECT id FROM times WHERE ts < '2024-02-29 12:34:57' ORDER BY id;
SELECT id FROM times WHERE tz BETWEEN '2024-03-31 00:00+00' AND '2024-10-27 02:00:00+02' ORDER BY id;
SELECT id FROM times WHERE d < ts ORDER BY id;
SELECT id, date_trunc('month', ts), date_trunc('week', ts), date_trunc('quarter', ts), date_trunc('hour', ts) FROM times ORDER BY id;
SELECT id, date_trunc('day', tz), date_trunc('MONTH', tz), date_trunc('hour', tz) FROM times WHERE id <> 7 ORDER BY id;
SELECT date_trunc('month', d) FROM times WHERE id IN (1, 2, 3, 8) ORDER BY id;
SELECT id, extract(year FROM ts), extract(month FROM ts), extract(day FROM ts), extract(dow FROM ts), extract(isodow FROM ts) FROM times WHERE id < 4 ORDER BY id;
SELECT id, extract(hour FROM ts), extract(minute FROM ts), extract(second FROM ts), extract(epoch FROM ts), extract(quarter FROM ts) FROM times WHERE id < 4 ORDER BY id;
SELECT id, extract(week FROM d), extract(doy FROM d), extract(isoyear FROM d), extract(epoch FROM tz) FROM times WHERE id IN (1, 2, 3, 8) ORDER BY id;
SELECT id, date_part('year', ts), date_part('epoch', i), extract(day FROM i), extract(hour FROM t) FROM times WHERE id < 4 ORDER BY id;
SELECT id, ts + i, ts - i, d + 7, d - 1, d + i FROM times WHERE id IN (1, 2, 3, 8, 9) ORDER BY id;
SELECT id, tz + i, tz - interval '1 day', tz + interval '1 hour' FROM times WHERE id IN (1, 2, 3, 8, 9) ORDER BY id;
SELECT id, ts - timestamp '2024-01-01', d - date '2024-01-01', tz - timestamptz '2024-01-01 00:00+00' FROM times WHERE id IN (1, 2, 3, 8) ORDER BY id;
SELECT id, i + interval '1 hour', i * 2, -i, i / 2 FROM times WHERE i IS NOT NULL AND id <> 7 ORDER BY id;
SELECT id, i FROM times ORDER BY i NULLS FIRST, id;
-- relay: equal intervals that print differently
SELECT i, count(*) FROM times GROUP BY i ORDER BY i;
SELECT min(d), max(d), min(ts), max(tz), min(t), max(i) FROM times;
SELECT id, d::text, ts::text, tz::text, t::text, i::text FROM times ORDER BY id;
SELECT id, ts::date, tz::date, d::timestamp, ts::time FROM times WHERE id IN (1, 2, 3, 8, 9) ORDER BY id;
SELECT id, d::timestamptz, tz::timestamp, ts::timestamptz FROM times WHERE id IN (1, 2, 3, 8, 9) ORDER BY id;
SELECT id, ts AT TIME ZONE 'America/New_York', tz AT TIME ZONE 'Europe/Berlin' FROM times WHERE id IN (1, 2, 3, 8, 9) ORDER BY id;
SELECT interval '90' day, interval '3' month, interval '14' MONTH, interval '1' year, interval '90' minute, interval '30' hour, interval '75' second, interval '2' day * 2 FROM times WHERE id = 1;
SELECT id, d - interval '90' day, date '1998-12-01' - interval '90' day, d + interval '1' year, ts < date '1994-01-01' + interval '3' month FROM times ORDER BY id;
-- relay: fields of an interval
SELECT interval '1 2' day to hour, interval '1.5' day FROM times WHERE id = 1;
SELECT '2024-05-06'::date, timestamp '2024-05-06 07:08:09', interval '1 day 2 hours', time '07:08' FROM times WHERE id = 1;
SELECT a, count(*), sum(n), min(b) FROM keys GROUP BY a ORDER BY a;
SELECT a, b, n FROM keys WHERE a = 3 AND b = 'k3';
SELECT b FROM keys WHERE a = 3 ORDER BY b;
SELECT k.a, k.b, o.note FROM keys k JOIN other o ON o.a = k.a ORDER BY k.a, k.b, o.id;
SELECT k.a, o.note, count(*) FROM keys k LEFT JOIN other o ON o.a = k.a GROUP BY k.a, o.note ORDER BY 1, 2 NULLS FIRST;
SELECT o.id, k.b FROM other o LEFT JOIN keys k ON k.a = o.a AND k.n > 45 ORDER BY o.id, k.b;
SELECT o.id, o2.note FROM other o JOIN other o2 ON o2.a = o.a AND o2.id > o.id ORDER BY 1, 2;
SELECT count(*) FROM keys, other WHERE keys.a = other.a;
SELECT count(*) FROM keys CROSS JOIN other;
SELECT * FROM other o JOIN numbers n USING (id) ORDER BY id;
SELECT o.*, n.i AS "Mixed Case" FROM other o JOIN numbers n ON n.id = o.id ORDER BY o.id;
SELECT x.a, x.total FROM (SELECT a, sum(n) AS total FROM keys GROUP BY a) x WHERE x.total > 100 ORDER BY x.total DESC;
SELECT avg(c) FROM (SELECT count(*) AS c FROM keys GROUP BY a) q;
SELECT q.m, count(*) FROM (SELECT a % 2 AS m, b FROM keys) AS q GROUP BY q.m ORDER BY q.m;
WITH t AS (SELECT a, max(n) AS top FROM keys GROUP BY a) SELECT t.a, t.top, o.note FROM t LEFT JOIN other o ON o.a = t.a ORDER BY t.a, o.id;
SELECT a + 1 AS a1, count(*) FROM keys GROUP BY a1 ORDER BY a1;
SELECT a AS grp, count(*) AS n FROM keys GROUP BY 1 HAVING count(*) > 7 ORDER BY 2, 1;
SELECT CASE WHEN a < 3 THEN 'low' ELSE 'high' END AS half, count(*), sum(n) FROM keys GROUP BY CASE WHEN a < 3 THEN 'low' ELSE 'high' END ORDER BY half;
SELECT sum(CASE WHEN n > 25 THEN 1 ELSE 0 END), sum(n) FILTER (WHERE a = 1), count(*) FILTER (WHERE n IS NULL) FROM keys;
SELECT sum(n) / count(*), sum(n) * 100.0 / count(*), round(avg(n), 2) FROM keys;
SELECT count(*) AS rowcount FROM (SELECT a, b FROM keys LIMIT 20) AS q;
SELECT 1 AS one, 'x' AS text, NULL AS nothing, 1.50 AS n FROM other WHERE id = 1;
SELECT id AS "select", a "AS" FROM other ORDER BY "select";
SELECT id FROM other WHERE note = 'it''s' OR note = E'one' ORDER BY id;
SELECT upper(note) || '!' AS shout FROM other WHERE length(note) > 3 ORDER BY shout;
-- relay: raises an error
SELECT 1 / (i - i) FROM numbers WHERE id = 1;
-- relay: raises an error
SELECT i + 2147483647 FROM numbers WHERE id = 1;
-- relay: no such column
SELECT missing FROM numbers;
-- relay: no such table
SELECT * FROM missing;
-- relay: volatile
SELECT id, random() < 2 FROM other ORDER BY id;
SELECT count(*) FROM times WHERE ts < now();
-- relay: two clocks in one statement
SELECT count(*) FROM times WHERE ts < now() AND ts < statement_timestamp();
-- relay: a system column
SELECT ctid IS NOT NULL FROM other;
-- relay: a system column, which is nearer than the outer query's column
SELECT b.xmax, (SELECT count(*) FROM other WHERE xmax = 0) FROM (SELECT 5 AS xmax) b;
-- relay: an ambiguous name
SELECT count(*) FROM (SELECT 5 AS xmax) b, other WHERE xmax = 5;
SELECT b.xmin, (SELECT count(*) FROM (SELECT id FROM other) o WHERE o.id = xmin) AS n FROM (SELECT 5 AS xmin) b;
-- relay: locks
SELECT id FROM other ORDER BY id FOR SHARE;
-- relay: an error
SELECT to_char(3000000000::bigint, 'RN');
-- relay: a pattern without a digit
SELECT to_char(-1, '.PR'), to_char(0, '.PR');
SELECT 'x1F'::text::pg_catalog.bit::int;
-- relay: the row description has the length, or not
SELECT id, "varchar"(v, 12, false) FROM texts ORDER BY id;
SELECT to_number('1.5th3', '9.9TH9'), to_number('15th3', '99TH9'), to_number(t, '') FROM texts WHERE id = 1;
-- relay: only no pattern at all makes NULL, two quotes an error
SELECT to_number(t, '""') FROM texts WHERE id < 3;
SELECT * FROM wides ORDER BY id;
SELECT id FROM wides ORDER BY n DESC, m, id;
SELECT n, count(*), sum(m), max(k) FROM wides GROUP BY n ORDER BY n;
SELECT sum(n), avg(n), min(n), max(n), sum(m), avg(m), min(k), max(k), sum(k) FROM wides WHERE id NOT IN (4, 8);
SELECT id, n + 1, n * 2, n - m, m / 3, k % 7, round(n, 3), n::float8, m::text, -k FROM wides ORDER BY id;
SELECT id FROM wides WHERE n > 1e49 AND m <> 0 OR k = 1e38 ORDER BY id;
SELECT id FROM wides WHERE n IN (1e50, 0.5) ORDER BY id;
SELECT a.id, b.id FROM wides a JOIN wides b ON a.n = b.n WHERE a.id < b.id ORDER BY 1, 2;
SELECT count(DISTINCT n), count(DISTINCT m), sum(DISTINCT m) FROM wides;
SELECT id, array[n, m], to_json(n), n::text || '!' FROM wides ORDER BY id;
