-- One statement a line. What PostgreSQL says to each is in described.txt.
-- constants and output names
SELECT 1, 2147483647, 2147483648, -2147483648, -2147483649, 9223372036854775807, 9223372036854775808, -9223372036854775808, 1.5, 1e3, .5
SELECT 'x', NULL, true, false, 'x' AS "Y", date '2020-01-01', '1'::int, CAST('1' AS int8), interval '1 day', timestamp '2020-01-01'
SELECT EACH 1::int2, 1::float8::int4, a::int8, a::int8::text, (a + 1)::int2, lower(t)::text, CASE WHEN b THEN 1 END, CASE WHEN b THEN 1 ELSE a END FROM edge
SELECT EACH CASE WHEN b THEN a ELSE lower(t)::int END, COALESCE(a, 1), NULLIF(a, 1), GREATEST(a, 1), LEAST(a, i8) FROM edge
SELECT CURRENT_DATE, CURRENT_TIMESTAMP, LOCALTIMESTAMP, now(), CURRENT_TIMESTAMP(3), LOCALTIME
SELECT EACH a IS NULL, NOT b, b AND true, a = 1, -a, +a, a IN (1, 2), a BETWEEN 1 AND 2, t LIKE 'x%', b IS TRUE, a IS DISTINCT FROM 1 FROM edge
SELECT EACH extract(year FROM d), date_trunc('month', ts), substring(t FROM 1 FOR 2), trim(t), trim(LEADING 'x' FROM t), position('x' IN t), ts AT TIME ZONE 'UTC' FROM edge
SELECT t COLLATE "C", (t) AS x, edge.t, public.edge.a FROM edge
SELECT EACH count(*), sum(a), avg(a), min(t), max(d) FROM edge
-- columns and stars
SELECT * FROM airlines
SELECT a.*, p.seats FROM airlines a, planes p
SELECT f.year, p.year FROM flights f JOIN planes p ON f.tailnum = p.tailnum
SELECT year FROM flights f JOIN planes p ON f.tailnum = p.tailnum
SELECT * FROM airlines JOIN flights USING (carrier)
SELECT carrier, airlines.carrier, flights.carrier FROM airlines LEFT JOIN flights USING (carrier)
SELECT flights.* FROM airlines LEFT JOIN flights USING (carrier)
SELECT * FROM planes JOIN (SELECT tailnum, count(*) AS n FROM flights GROUP BY tailnum) s USING (tailnum)
SELECT airlines.name FROM airlines a
SELECT a FROM airlines a
SELECT airlines FROM airlines
SELECT ctid FROM airlines
SELECT tableoid FROM airlines
SELECT nosuch FROM airlines
SELECT public.airlines.name FROM airlines
SELECT public.airlines.name FROM airlines airlines
SELECT x, y FROM airlines AS t (x, y)
SELECT x, name FROM airlines AS t (x)
SELECT carrier FROM airlines AS t (x)
SELECT * FROM airlines AS t (x, y, z)
SELECT 1 FROM airlines, airlines
SELECT 1 FROM airlines a JOIN airlines b ON a.carrier = b.carrier
SELECT "Mixed Case", "Mixed Case" + 1 FROM edge
SELECT mixed case FROM edge
SELECT A, B FROM EDGE
SELECT "A" FROM edge
SELECT a.name FROM airlines a LEFT JOIN planes p ON a.name = p.type CROSS JOIN edge
SELECT * FROM (SELECT 'x', NULL AS n, 1) s (k)
SELECT s.k FROM (SELECT carrier AS k, name FROM airlines) s
SELECT s.carrier, s.num FROM (SELECT carrier, distance AS num FROM flights ORDER BY 1 LIMIT 3) s
SELECT distance, distance + 1, distance::numeric, distance::numeric(10, 1), -distance, tailnum, tailnum::text, tailnum::varchar, tailnum::varchar(3), origin, origin::text, origin::char(5), origin::char FROM flights
SELECT EACH num2, num2::numeric(6, -2), ts3, ts3::timestamp, ts3::timestamp(0), ts3 + interval '1 day', tz::timestamp(2), tm::time(2) FROM edge
SELECT CASE WHEN true THEN tailnum ELSE tailnum END, CASE WHEN distance > 5 THEN tailnum END, COALESCE(tailnum, tailnum), COALESCE(tailnum, 'x'), NULLIF(tailnum, 'x'), GREATEST(distance, distance), NULLIF(distance, 1.0), NULLIF(distance, distance) FROM flights
SELECT min(tailnum), max(origin), sum(distance), avg(distance), min(distance), count(distance), max(time_hour), sum(air_time), avg(air_time), sum(dep_delay) FROM flights
SELECT 'a'::varchar(3), 'abcdef'::char(3), '1.234'::numeric(4, 2), 1.5::numeric(4, 2), '2020-01-01'::timestamp(3), varchar 'x', char 'xyz', numeric '1.50', float '1', real '2'
-- operator resolution
SELECT EACH a + i2, a + i8, a + f4, a + f8, a + num, i2 + i2, i2 * i8, f4 + f4, f4 + f8, f4 + num, num + i8, f8 * num FROM edge
SELECT EACH a / 2, a % 2, a / 2.0, i8 / 2, f8 / 2, num / 2, num % 2, a ^ 2, num ^ 2, a / i2 FROM edge
SELECT EACH d + 1, d - 1, d - d, d + interval '1 day', d + '1 day', d - '2020-01-01', '2020-01-01' - d, ts - ts, tz - tz, ts - interval '1 day', tz + interval '1 day', tm + interval '1 hour', tm - tm, d + tm FROM edge
SELECT d - '2020-01-01', ts + '1 day', tz - '1 day'::interval FROM edge
SELECT ts - '2020-01-01' FROM edge
SELECT d + i2 FROM edge
SELECT d + i8 FROM edge
SELECT EACH i * 2, 2 * i, i * 2.5, i / 2, i * a, i * num, i + i, -i, interval '15 minutes' * floor(extract(minute FROM ts) / 15) FROM edge
SELECT EACH t || t, t || 'x', 'x' || 'y', v || t, c || t, t || a, a || t, t || d, v || v, t || num, t || b, 'x' || a, n || t FROM edge
SELECT a || i8 FROM edge
SELECT EACH a = i8, a = num, a = f8, t = v, v = 'x', c = 'x', c = v, c = t, n = 'x', d = ts, d = tz, ts = tz, d > '2020-01-01', ts > '2020-01-01', tz > '2020-01-01', b = 't', u = '00000000-0000-0000-0000-000000000000', a = '5', num = '5', f8 > '1.5' FROM edge
SELECT a = t FROM edge
SELECT b = 1 FROM edge
SELECT a = b FROM edge
SELECT a LIKE 'x' FROM edge
SELECT a || 1 FROM edge
SELECT d = 1 FROM edge
SELECT EACH t ILIKE 'x', v LIKE 'y', c LIKE 'z', t NOT LIKE 'x', v NOT ILIKE 'x', t LIKE 'a' ESCAPE 'b', t ~ 'x', t !~* 'x', n LIKE 'x' FROM edge
SELECT NOT a FROM edge
SELECT a AND b FROM edge
SELECT b AND 't', b OR NULL FROM edge
SELECT b AND 'maybe' FROM edge
SELECT 'x' = 'y', 'a' < 'b', NULL = NULL, 1 = '1', '1' + 1
SELECT '1' + '2'
SELECT -'1'
SELECT 'x' IS NULL, NULL IS NULL, 1 IS DISTINCT FROM NULL
SELECT by = by, by || by, by || '\x00' FROM edge
SELECT EACH a & 3, a | 3, ~a, a << 2, a >> 1, a # 1, @ a, |/ f8 FROM edge
-- functions
SELECT EACH timezone('UTC', '2020-01-01'), date_trunc('day', '2020-01-01'), substring('abc' FROM 2), length('x'), abs('1'), round('1.5'), lower(NULL), extract(year FROM '2020-01-01'::date), coalesce('a', 'b'), concat('a', 'b'), concat(a), concat(c, 'x'), to_date('20200101', 'YYYYMMDD'), substring(t, '1', '2'), substring(t, a), left('abc', '1'), strpos('a', 'b'), round(num, '2'), timezone(i, ts), power('2', '3'), mod(a, i8), mod(i2, 2), min(u), now() - interval '1 day', now()::date, CURRENT_DATE - 7, CURRENT_DATE - interval '1 month', LOCALTIMESTAMP(0) FROM edge
SELECT EACH abs(a), abs(i2), abs(i8), abs(num), abs(f4), abs(f8), abs('1') FROM edge
SELECT EACH round(a), round(num), round(num, 2), round(f8), round(f4), round(i8, 1), round(1.5) FROM edge
SELECT round(f8, 2) FROM edge
SELECT EACH floor(a), floor(num), floor(f8), ceil(i8), ceiling(f4), trunc(num), trunc(num, 1), trunc(f8), trunc(a) FROM edge
SELECT EACH lower(t), upper(v), lower(c), length(t), length(v), length(c), char_length(t), character_length(v), octet_length(t), lower('X'), lower(n) FROM edge
SELECT lower(a) FROM edge
SELECT EACH substr(t, 1), substr(t, 1, 2), substring(t, 1), substring(v, 1, 2), substring(t FROM 2), substring(t FOR 2), substring(t FROM 'x'), left(t, 2), right(v, 2), ltrim(t), rtrim(t, 'x'), btrim(v) FROM edge
SELECT EACH replace(t, 'a', 'b'), split_part(t, ',', 1), strpos(t, 'x'), position('a' IN v), concat(t, a, d, NULL), concat_ws(',', t, b), initcap(t), reverse(t), lpad(t, 3), rpad(t, 3, 'x'), repeat(t, 2) FROM edge
SELECT EACH date_trunc('day', d), date_trunc('day', ts), date_trunc('DAY', tz), date_trunc('hour', i), date_trunc('day', tz, 'UTC') FROM edge
SELECT EACH date_part('year', d), date_part('hour', ts), date_part('epoch', tz), date_part('day', i), extract(epoch FROM tz), extract(dow FROM ts), extract('month' FROM d), extract(hour FROM tm), extract(day FROM i), extract(isodow FROM d) FROM edge
SELECT EACH timezone('UTC', ts), timezone('UTC', tz), ts AT TIME ZONE 'America/New_York', tz AT TIME ZONE 'America/New_York', d AT TIME ZONE 'UTC' FROM edge
SELECT EACH to_timestamp('2004-01-01', 'YYYY-MM-DD'), to_timestamp(a), to_timestamp(f8), to_date('2004-01-01', 'YYYY-MM-DD'), to_char(ts, 'YYYY'), to_char(a, '99') FROM edge
SELECT EACH age(ts, ts), age(tz), make_date(2020, 1, 1), date(ts), date('2020-01-01'), text(a), float8(a), int4(f8), timestamptz(d), "timestamp"(d), "numeric"(a), float8('1'), text(b), varchar(t), "varchar"(t), bpchar(t), name(t), int8(t), bool('t'), interval('1 day') FROM edge
SELECT EACH sqrt(num), sqrt(a), power(a, 2), power(num, 2), exp(f8), ln(num), log(a), sign(num), sign(a), mod(a, 2), mod(num, 2), pi() FROM edge
SELECT pg_catalog.lower(t), pg_catalog.count(*) FROM edge GROUP BY t
SELECT no_such_function(a) FROM edge
SELECT length(a) FROM edge
SELECT EACH coalesce(a, i8), coalesce(a, num), coalesce(i2, f4), coalesce(num, f8), coalesce(t, 'x'), coalesce(v, t), coalesce(c, v), coalesce(NULL, NULL), coalesce(NULL, a), coalesce('1', a), coalesce(d, ts), coalesce(d, tz), coalesce(ts, tz), coalesce(n, t), coalesce(t, n) FROM edge
SELECT coalesce(a, t) FROM edge
SELECT coalesce(a, 'x') FROM edge
SELECT coalesce(d, i) FROM edge
SELECT coalesce(ts, tm) FROM edge
SELECT EACH CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' END, CASE t WHEN 'x' THEN 1 ELSE 2.5 END, CASE WHEN b THEN NULL ELSE NULL END, CASE WHEN a > 1 THEN i2 ELSE i8 END, CASE WHEN b THEN 1 ELSE f8 END, CASE 'x' WHEN 'y' THEN 1 END FROM edge
SELECT CASE WHEN b THEN 1 ELSE 'x' END FROM edge
SELECT CASE WHEN a THEN 1 END FROM edge
SELECT EACH greatest(a, i8, num), least(d, ts), greatest(t, 'x'), greatest('a', 'b'), greatest(1, 2.5), least(f4, f8), greatest(v, v), greatest(c, 'x') FROM edge
SELECT EACH nullif(a, i8), nullif(v, 'x'), nullif('x', 'y'), nullif(a, '1'), nullif(num, 0), nullif(d, ts), nullif(NULL, 1), nullif(c, 'x') FROM edge
SELECT EACH a IN (1, 2, 3), a IN (1, 2.5), a IN ('1', '2'), a IN (i8, 1), t IN ('x', 'y'), v IN ('x', 'y'), c IN ('x', v), a IN (NULL, 1), d IN ('2020-01-01', date '2020-01-02'), a NOT IN (1, 2), i2 IN (1, 3000000000), a IN (1) FROM edge
SELECT a IN ('x', 1) FROM edge
SELECT a IN (1, t) FROM edge
SELECT EACH a BETWEEN 1 AND 2.5, d BETWEEN '2020-01-01' AND '2020-12-31', tz BETWEEN '2024-01-01T00:00:00Z' AND '2024-02-01T00:00:00Z', t NOT BETWEEN 'a' AND 'b', f8 BETWEEN i2 AND num FROM edge
-- casts
SELECT EACH '1'::int2, ' 12 '::int, 't'::bool, 'x'::char(3), '12:00'::time, '2020-01-01 10:00+02'::timestamptz, '1.50'::numeric, 'NaN'::numeric, '1e10'::float8, 'infinity'::float8, 'infinity'::date, '1 year 2 mons'::interval, '{}'::jsonb, 'x'::name, NULL::int, NULL::varchar(3), 'abc'::varchar(2), 5::text, 5::varchar(3), true::int, 1::bool, 1.5::int, '1'::text::int, 'now'::timestamp, 'today'::date, interval '1' day, interval(3) '1.23456 s', timestamp with time zone '2020-01-01', time '10:00', timestamptz '2020-01-01', date 'tomorrow', uuid '00000000-0000-0000-0000-000000000000', bytea '\x41', json '{}', 'a'::int4, int2 '70000', '1'::"char", 1::oid, 'x'::regclass, ARRAY[1], '{1}'::int[], 1::money, '1'::xml, bit '1', ts::timestamptz(0), num::numeric(5), num::numeric(5, 2), v::varchar(10), v::varchar, c::char(3), c::varchar, c::bpchar FROM edge
SELECT EACH a::bool, a::text, a::varchar(3), a::numeric, a::float4, b::int, b::text, f8::int, f8::numeric, num::int8, num::float8, d::timestamp, d::timestamptz, ts::date, ts::time, tz::date, tz::timestamp, tm::interval, i::time, t::int, t::date, t::numeric(5, 1), v::bool, c::text, t::char(3) FROM edge
SELECT a::date FROM edge
SELECT d::int FROM edge
SELECT b::float8 FROM edge
SELECT ts::int FROM edge
SELECT EACH u::text, u::varchar, t::uuid, j::text, n::text, t::name, by::text, num::text, i::text, tz::text FROM edge
SELECT EACH CAST(a AS decimal), CAST(a AS dec(5)), CAST(f8 AS real), CAST(t AS character varying), CAST(t AS character(2)), CAST(a AS bigint), CAST(a AS smallint), CAST(a AS double precision), CAST(a AS float(3)), CAST(a AS boolean), a::int4, a::float8, t::bpchar, t::varchar FROM edge
SELECT a::nosuchtype FROM edge
SELECT a::numeric(0) FROM edge
SELECT a::varchar(0) FROM edge
SELECT '2020-13-01'::date
SELECT 'abc'::int
SELECT '1'::int + '2'
-- grouping
SELECT carrier, count(*) FROM flights GROUP BY carrier
SELECT carrier AS k, count(*) AS n FROM flights GROUP BY k ORDER BY n DESC, k
SELECT carrier, count(*) FROM flights GROUP BY 1 ORDER BY 2 DESC
SELECT carrier || 'x', count(*) FROM flights GROUP BY carrier || 'x'
SELECT carrier || 'x', count(*) FROM flights GROUP BY carrier
SELECT carrier || 'x', count(*) FROM flights GROUP BY carrier || 'y'
SELECT carrier, flight FROM flights GROUP BY carrier
SELECT id, carrier, count(*) FROM flights GROUP BY id
SELECT id + 1, carrier FROM flights GROUP BY id
SELECT p.tailnum, p.seats, sum(f.distance) FROM planes p LEFT JOIN flights f ON f.tailnum = p.tailnum GROUP BY p.tailnum
SELECT p.seats, f.carrier, count(*) FROM planes p JOIN flights f ON f.tailnum = p.tailnum GROUP BY p.tailnum
SELECT t FROM edge GROUP BY a, i8
SELECT t FROM edge GROUP BY a
SELECT s.id, s.carrier FROM (SELECT id, carrier FROM flights) s GROUP BY s.id
SELECT month AS carrier, count(*) FROM flights GROUP BY carrier
SELECT carrier AS month, count(*) FROM flights GROUP BY month
SELECT month AS m, count(*) FROM flights GROUP BY m HAVING count(*) > 1
SELECT month AS m FROM flights HAVING m > 1
SELECT count(*) FROM flights HAVING count(*) > 0
SELECT 1 FROM flights HAVING true
SELECT carrier FROM flights HAVING true
SELECT sum(count(*)) FROM flights
SELECT sum(distance) + count(*) * 2, sum(distance) FROM flights WHERE month = 1
SELECT carrier FROM flights WHERE count(*) > 1
SELECT carrier FROM flights GROUP BY count(*)
SELECT carrier, count(*) AS n FROM flights GROUP BY 2
SELECT count(DISTINCT carrier), count(*) FILTER (WHERE month = 1), sum(DISTINCT month), avg(month) FILTER (WHERE dep_delay > 0) FROM flights
SELECT count(), 1 FROM flights
SELECT count(1), sum(1), sum(1.5), max('x'::text) FROM flights
SELECT sum(carrier) FROM flights
SELECT max(b) FROM edge
SELECT bool_and(b), bool_or(b), every(b) FROM edge
SELECT sum(i2), sum(i8), sum(f4), sum(f8), sum(num), sum(i), avg(i2), avg(i8), avg(f4), avg(f8), avg(num), avg(i) FROM edge
SELECT min(a), min(i2), min(i8), min(f4), min(f8), min(num), min(d), min(tm), min(ts), min(ts3), min(tz), min(i), min(t), min(v), max(n) FROM edge
SELECT min(c) FROM edge
SELECT date_trunc('month', time_hour) AS time_hour, count(*) AS count FROM flights GROUP BY date_trunc('month', time_hour)
SELECT date_trunc('month', time_hour) AS time_hour, count(*) AS count FROM flights GROUP BY time_hour
SELECT date_trunc('month', time_hour), count(*) FROM flights GROUP BY 1 ORDER BY 1
SELECT floor(extract(epoch FROM time_hour) / 3600) * 3600 AS "time", carrier AS metric, avg(dep_delay) FROM flights WHERE time_hour BETWEEN '2013-01-01T00:00:00Z' AND '2013-02-01T00:00:00Z' GROUP BY 1, 2 ORDER BY 1, 2
SELECT CASE WHEN dep_delay > 0 THEN 'late' ELSE 'on time' END AS k, count(*) FROM flights GROUP BY CASE WHEN dep_delay > 0 THEN 'late' ELSE 'on time' END
SELECT CASE WHEN dep_delay > 0 THEN 'late' ELSE 'on time' END AS k, count(*) FROM flights GROUP BY k
SELECT 'x', count(*) FROM flights GROUP BY 1
SELECT 'x', count(*) FROM flights GROUP BY 'x'
SELECT 1 AS one, count(*) FROM flights GROUP BY one
SELECT NULL AS k, count(*) FROM flights GROUP BY k
SELECT carrier, carrier, count(*) FROM flights GROUP BY 1, 2
SELECT f.carrier FROM flights f GROUP BY f.carrier, carrier
-- ordering
SELECT carrier FROM flights ORDER BY month
SELECT carrier FROM flights ORDER BY 2
SELECT carrier FROM flights ORDER BY 0
SELECT carrier FROM flights ORDER BY -1
SELECT carrier FROM flights ORDER BY 1.5
SELECT carrier FROM flights ORDER BY 'x'
SELECT carrier FROM flights ORDER BY NULL
SELECT carrier AS x FROM flights ORDER BY x
SELECT carrier AS x FROM flights ORDER BY x || 'y'
SELECT month AS carrier FROM flights ORDER BY carrier
SELECT month AS x, day AS x FROM flights ORDER BY x
SELECT month AS x, month AS x FROM flights ORDER BY x
SELECT carrier FROM flights ORDER BY month + 1, lower(carrier) DESC NULLS LAST
SELECT DISTINCT carrier FROM flights ORDER BY carrier
SELECT DISTINCT carrier FROM flights ORDER BY month
SELECT DISTINCT carrier, month FROM flights ORDER BY 2, 1
SELECT DISTINCT lower(carrier) FROM flights ORDER BY lower(carrier)
SELECT 'x' AS k, NULL AS n ORDER BY 1, 2
SELECT carrier, count(*) FROM flights GROUP BY carrier ORDER BY sum(distance) DESC LIMIT 5
SELECT carrier FROM flights GROUP BY carrier ORDER BY flight
SELECT carrier FROM flights LIMIT 10 OFFSET 5
SELECT carrier FROM flights LIMIT '10' OFFSET NULL
SELECT carrier FROM flights LIMIT ALL
SELECT carrier FROM flights LIMIT 1 + 1
SELECT carrier FROM flights LIMIT 2.5
SELECT carrier FROM flights LIMIT month
SELECT carrier FROM flights OFFSET 2 ROWS FETCH FIRST 3 ROWS ONLY
SELECT carrier FROM flights FETCH NEXT ROW ONLY
-- parameters
SELECT $1
SELECT $1, $2::int
SELECT carrier FROM flights WHERE month = $1 AND carrier = $2 AND dep_delay > $3
SELECT carrier FROM flights WHERE tailnum = $1 AND origin = $2 AND distance = $3 AND time_hour >= $4
SELECT carrier FROM flights LIMIT $1 OFFSET $2
SELECT $1 + 1, $2 || 'x', $1 * 2
SELECT $1 + $1
SELECT $1 IS NULL
SELECT $2 + 1
SELECT $1 = 1, $1 = 'x'
SELECT $1 = 1, $1::text
SELECT $1::int, $1::text
SELECT carrier FROM flights WHERE time_hour > $1::timestamptz - interval '1 day' AND month IN ($2, $3) AND carrier ILIKE '%' || $4 || '%'
SELECT coalesce($1, 1), coalesce($2, 'x'), CASE WHEN $3 THEN 1 END, date_trunc($4, now()), lower($5)
SELECT month BETWEEN $1 AND $2, $3 BETWEEN 1 AND 2 FROM flights
SELECT carrier FROM flights WHERE $1 = carrier ORDER BY $2
SELECT count(*) FROM flights HAVING count(*) > $1
SELECT abs($1)
SELECT date_trunc('day', $1)
SELECT sum($1) FROM flights
SELECT $1 LIKE 'x', carrier LIKE $2 FROM flights
SELECT extract(year FROM $1)
-- subqueries and WITH
SELECT count(*) AS rowcount FROM (SELECT carrier FROM flights LIMIT 50000) AS rowcount_qry
SELECT avg(n) FROM (SELECT carrier, count(*) AS n FROM flights GROUP BY carrier) AS s
WITH s AS (SELECT carrier, count(*) AS n FROM flights GROUP BY carrier) SELECT a.name, s.n FROM s JOIN airlines a USING (carrier) WHERE s.n > 10 ORDER BY n DESC
WITH s (k) AS (SELECT carrier FROM airlines), r AS (SELECT k FROM s) SELECT r.k FROM r JOIN s ON r.k = s.k
WITH flights AS (SELECT 1 AS one) SELECT * FROM flights
WITH s AS (SELECT 1), s AS (SELECT 2) SELECT * FROM s
WITH r AS (SELECT k FROM s), s AS (SELECT 1 AS k) SELECT * FROM r
SELECT * FROM (SELECT * FROM (SELECT carrier AS c FROM airlines) x) y
SELECT name FROM airlines JOIN (SELECT carrier AS carrier__, sum(distance) AS mme FROM flights GROUP BY carrier ORDER BY mme DESC LIMIT 25) AS series_limit ON carrier = carrier__
SELECT CASE WHEN (NOT series_limit.carrier__ IS NULL) THEN carrier ELSE 'Others' END AS carrier, sum(distance) AS s FROM flights LEFT JOIN (SELECT carrier AS carrier__ FROM airlines LIMIT 2) AS series_limit ON carrier = carrier__ GROUP BY CASE WHEN (NOT series_limit.carrier__ IS NULL) THEN carrier ELSE 'Others' END ORDER BY s DESC LIMIT 10
select "_"."c","_"."a0" from (select "rows"."carrier" as "c", sum("rows"."distance") as "a0" from (select "$Table"."carrier", "$Table"."distance" from "public"."flights" "$Table") "rows" group by "carrier") "_" where not "_"."a0" is null limit 1000001
SELECT "t0"."carrier" AS "carrier", SUM("t0"."distance") AS "sum:distance:ok" FROM "public"."flights" "t0" INNER JOIN "public"."airlines" "t1" ON ("t0"."carrier" = "t1"."carrier") WHERE (("t0"."time_hour" >= (DATE '2013-01-01')) AND ("t0"."time_hour" < (TIMESTAMP '2013-02-01 00:00:00.000'))) GROUP BY 1 HAVING (COUNT(1) > 0)
SELECT CAST(TRUNC(EXTRACT(YEAR FROM built)) AS INTEGER), COALESCE(SUM(CAST((seats) AS DOUBLE PRECISION)), 0) FROM planes GROUP BY 1 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY
SELECT (FLOOR(((dep_delay - 22.5) / 7.5)) * 7.5) + 22.5 AS "dep_delay", COUNT(*) AS "count" FROM flights GROUP BY (FLOOR(((dep_delay - 22.5) / 7.5)) * 7.5) + 22.5 ORDER BY (FLOOR(((dep_delay - 22.5) / 7.5)) * 7.5) + 22.5 ASC
SELECT CAST((NOW() + INTERVAL '-30 day') AS date), DATE_TRUNC('quarter', NOW()), (DATE_TRUNC('week', (time_hour + INTERVAL '1 day')) + INTERVAL '-1 day') FROM flights
SELECT sum(case when month = 1 then 1 else 0.0 end), count(case when month = 1 then 1 end) FROM flights
SELECT a.carrier, b.name FROM airlines a JOIN airlines b ON a.carrier = b.carrier OR a.carrier IS NULL AND b.carrier IS NULL
SELECT j, j = j FROM edge
SELECT j FROM edge
SELECT DISTINCT j FROM edge
SELECT z FROM edge
SELECT * FROM edge
SELECT EACH a BETWEEN SYMMETRIC 1 AND 2.5, t NOT BETWEEN SYMMETRIC 'b' AND 'a', d BETWEEN SYMMETRIC '2020-01-01' AND NULL, b BETWEEN SYMMETRIC 1 AND true FROM edge
SELECT month BETWEEN SYMMETRIC $1 AND $2, $3 BETWEEN SYMMETRIC 1 AND 2, $4 BETWEEN SYMMETRIC month AND 2.5 FROM flights
