-- What PostgreSQL refuses, or describes in another way than it looks: found by asking the engine without an audit.
let glued = 1year2mons ;; 1min30sec ;; 1day2hours ;; 1week1day ;; 1 day1 hour ;; 2 hours30 minutes ;; 1 day-2:00 ;; 1 day+1 hour ;; 1w0 ;; 1s2 ;; 1 day/2 ;; 1.5 hour.5
let ago = 2147483648 days ago ;; 2147483648 mon ago ;; 1 mon 2147483648 days ago ;; 5 ago ;; -5 ago ;; 1ago ;; @ 5 ago ;; 1 day 2 ago ;; ago ;; 1m2 ago ;; 1h 5 ago ;; @ ago
SELECT id FROM times WHERE i = '{glued}' ORDER BY id;
SELECT id FROM times WHERE i = '{ago}' ORDER BY id;
SELECT interval '{glued}';
SELECT interval '{ago}';
let fine = 1h30m ;; 1d2h ;; 1y2m ;; 1mon2d ;; 1-2 ago ;; 1:00 ago ;; 2 1:00 ago ;; 1 day ago ;; @ 1 day 2 hours ago ;; 1mon2
SELECT id, i + interval '{fine}' FROM times WHERE id < 4 ORDER BY id;
SELECT id, CASE WHEN i = NULL THEN n ELSE n2 END AS x FROM numbers WHERE id < 9 ORDER BY id;
SELECT id, CASE WHEN i = NULL THEN n2 ELSE n END AS x FROM numbers WHERE id < 9 ORDER BY id;
SELECT id, CASE WHEN i IN (NULL) THEN n WHEN s > 0 THEN n2 ELSE n2 END AS x FROM numbers WHERE id < 9 ORDER BY id;
SELECT id, CASE WHEN i BETWEEN NULL AND NULL THEN n ELSE n2 END AS x FROM numbers WHERE id < 9 ORDER BY id;
SELECT id, CASE WHEN t LIKE NULL THEN t ELSE v END AS x FROM texts ORDER BY id;
SELECT id, CASE i WHEN NULL THEN n ELSE n2 END AS x FROM numbers WHERE id < 9 ORDER BY id;
SELECT id, coalesce(CASE WHEN i = NULL THEN n END, n2) AS x FROM numbers WHERE id < 9 ORDER BY id;
SELECT id, coalesce(n + NULL, n2) AS x FROM numbers WHERE id < 9 ORDER BY id;
let extreme = least ;; greatest
SELECT id, {extreme}(coalesce(NULL, n2), n2) AS x FROM numbers WHERE id < 9 ORDER BY id;
SELECT id, {extreme}(CASE WHEN false THEN n ELSE n2 END, n2) AS x FROM numbers WHERE id < 9 ORDER BY id;
SELECT id, {extreme}(CASE WHEN i = NULL THEN n WHEN true THEN n2 END, n2) AS x FROM numbers WHERE id < 9 ORDER BY id;
SELECT id, ARRAY[CASE WHEN i = NULL THEN n ELSE n2 END, n2] AS x FROM numbers WHERE id < 5 ORDER BY id;
let nothing = = ANY('{}'::int[]) ;; <> ALL('{}'::int[]) ;; > ANY('{}'::int[]) ;; <= ALL('{}'::int[])
SELECT id, i + 1 {nothing} AS x FROM numbers ORDER BY id;
SELECT id, i {nothing} AS x FROM numbers ORDER BY id;
SELECT id, 1 / (id - 5) {nothing} AS x FROM numbers ORDER BY id;
SELECT id FROM numbers WHERE 1 / (id - 5) {nothing} ORDER BY id;
SELECT id, id > ANY(ARRAY[0, 1 / (id - 5)]) AS x FROM numbers ORDER BY id;
SELECT id, id = ANY(ARRAY[id, 1 / (id - 5)]) AS x FROM numbers ORDER BY id;
let inner = count(*) ;; max(a) ;; sum(n)
SELECT x.id, (SELECT {inner} FROM keys WHERE a = 99 AND 1 / (x.id - 5) > 0) FROM numbers x ORDER BY x.id;
SELECT x.id, (SELECT {inner} FROM keys WHERE a > 90 AND n > 0 AND 1 / (x.id - 5) > 0) FROM numbers x ORDER BY x.id;
SELECT x.id, (SELECT id FROM other WHERE id = x.id + 1000 AND 1 / (x.id - 7) > -5) FROM numbers x ORDER BY x.id;
SELECT x.id FROM numbers x WHERE (SELECT count(*) FROM keys WHERE a = 99 AND 1 / (x.id - 5) > 0) = 0 ORDER BY x.id;
SELECT x.id, (SELECT count(*) FROM keys k JOIN other o ON k.a = o.a AND 1 / (x.id - 5) > 0 WHERE k.a = 99) FROM numbers x ORDER BY x.id;
SELECT x.id, (SELECT count(*) FROM keys WHERE a = x.id) FROM numbers x WHERE 1 / x.id >= 0 ORDER BY x.id;
SELECT "interval"(i, id) FROM times ORDER BY id;
SELECT "interval"(i, 2) FROM times ORDER BY id;
SELECT id, date_trunc('hour', ('294276-12-31 23:59:59.9999'::timestamp(3))) FROM times ORDER BY id;
let constant = true ;; false ;; (true) ;; NULL ;; 'a' ;; 1.5 ;; a, true ;; B'1'
SELECT a FROM keys ORDER BY {constant};
SELECT count(*) FROM keys GROUP BY {constant};
SELECT DISTINCT ON ({constant}) a FROM keys ORDER BY a;
SELECT count(*) FROM keys GROUP BY GROUPING SETS ((true));
let of_unknown = json_agg('x') ;; jsonb_agg(NULL) ;; array_agg('x') ;; mode() WITHIN GROUP (ORDER BY 'x') ;; percentile_disc(0.5) WITHIN GROUP (ORDER BY '2') ;; percentile_disc(ARRAY[0.5]) WITHIN GROUP (ORDER BY NULL) ;; min('x') ;; max(NULL) ;; string_agg('x', ',')
SELECT {of_unknown} FROM keys;
-- Names, places and types.
let wrong = nope ;; k.nope ;; keys.a ;; a.a ;; public.keys.a ;; sum(sum(n)) ;; sum(n) OVER (ORDER BY sum(b)) ;; count(a, b) ;; length(a) ;; lower(n) ;; a + b ;; b || NULL::int[] ;; a::date ;; n::uuid ;; b::int[] ;; NOT a ;; a AND true ;; -b ;; a LIKE 'x' ;; a ~ 'x' ;; round(b) ;; date_trunc('day', b) ;; extract(year FROM a) ;; a IS TRUE ;; CASE WHEN a THEN 1 END ;; CASE a WHEN 'x' THEN 1 END ;; coalesce(a, 'x') ;; nullif(a, b) ;; greatest(a, b) ;; a = b ;; a IN (b) ;; a IN ('x') ;; a BETWEEN 'x' AND 'y' ;; (a, b) = (1, 2) ;; (a, n) = (1) ;; ROW(a) = ROW(1, 2) ;; a[1] ;; b->'x' ;; substring(a FROM 1) ;; trim(a) ;; position(a IN b) ;; rank() ;; row_number() ;; lag(n) ;; ntile(0) OVER () ;; nth_value(n, 0) OVER (ORDER BY a, b) ;; count(*) FILTER (WHERE n) ;; sum(n) FILTER (WHERE sum(n) > 0) ;; grouping(a) ;; percentile_cont(2) WITHIN GROUP (ORDER BY n) ;; percentile_cont(0.5) WITHIN GROUP (ORDER BY b) ;; string_agg(b) ;; bool_and(a) ;; generate_series(1, 2) + sum(n) ;; max(DISTINCT) ;; nosuch(a) ;; count(DISTINCT *) ;; avg(b) ;; (SELECT a, b FROM keys LIMIT 1) ;; (SELECT a FROM keys)
SELECT {wrong} FROM keys k ORDER BY 1;
SELECT count(*) FROM keys k WHERE {wrong};
SELECT a FROM keys k GROUP BY a HAVING {wrong} ORDER BY a;
SELECT a, count(*) FROM keys k GROUP BY a ORDER BY {wrong}, a;
let clause = SELECT b FROM keys GROUP BY a ;; SELECT a, sum(n) FROM keys ;; SELECT * FROM keys GROUP BY a ;; SELECT a FROM keys GROUP BY 2 ;; SELECT a FROM keys ORDER BY 2 ;; SELECT a FROM keys ORDER BY 0 ;; SELECT a FROM keys ORDER BY -1 ;; SELECT DISTINCT a FROM keys ORDER BY b ;; SELECT DISTINCT ON (a) b FROM keys ORDER BY b ;; SELECT a FROM keys WHERE sum(n) > 1 ;; SELECT a FROM keys WHERE row_number() OVER () > 1 ;; SELECT a FROM keys GROUP BY sum(n) ;; SELECT a FROM keys LIMIT -1 ;; SELECT a FROM keys OFFSET -1 ;; SELECT a FROM keys LIMIT 'x' ;; SELECT a FROM keys FETCH FIRST 1 ROWS WITH TIES ;; SELECT a FROM keys k JOIN other k ON true ;; SELECT a FROM keys JOIN other ON keys.a = other.a ;; SELECT id FROM keys JOIN other USING (b) ;; SELECT id FROM keys NATURAL JOIN texts WHERE v = 1 ;; SELECT a FROM keys UNION SELECT b FROM keys ;; SELECT a FROM keys UNION SELECT a, n FROM keys ;; SELECT a FROM keys UNION SELECT a FROM other ORDER BY a + 1 ;; SELECT a FROM keys INTERSECT SELECT 'x' ;; SELECT x FROM (SELECT a AS x, b AS x FROM keys) q ;; SELECT a FROM (VALUES (1, 2), (3)) v (a) ;; SELECT a FROM (VALUES (1), ('x')) v (a) ;; WITH c (x, y) AS (SELECT a FROM keys) SELECT x FROM c ;; WITH c AS (SELECT 1), c AS (SELECT 2) SELECT 1 ;; WITH RECURSIVE c AS (SELECT 1 UNION ALL SELECT 'x' FROM c) SELECT * FROM c ;; SELECT count(*) FROM keys, LATERAL (SELECT a FROM nope) q ;; SELECT q.a FROM keys, (SELECT keys.a) q ;; SELECT sum(n) OVER w FROM keys ;; SELECT sum(n) OVER (w ORDER BY a) FROM keys WINDOW w AS (ORDER BY b) ;; SELECT sum(n) OVER (ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM keys ;; SELECT sum(n) OVER (ORDER BY b RANGE 1 PRECEDING) FROM keys ;; SELECT sum(n) OVER (ORDER BY a, b RANGE 1 PRECEDING) FROM keys ;; SELECT sum(n) OVER (ORDER BY a, b ROWS -1 PRECEDING) FROM keys ;; SELECT sum(n) OVER (GROUPS 1 PRECEDING) FROM keys ;; SELECT a, b FROM keys GROUP BY ROLLUP (a) ;; SELECT grouping(n) FROM keys GROUP BY a ;; SELECT a, count(*) FILTER (WHERE max(n) > 1) OVER () FROM keys GROUP BY a ;; SELECT a, sum(max(n)) FILTER (WHERE grouping(a) = 0) OVER (ORDER BY a) FROM keys GROUP BY a ;; SELECT a FROM keys FOR UPDATE OF other ;; SELECT 1 FROM keys HAVING a > 1 ;; SELECT count(*) FROM nope ;; SELECT count(*) FROM public.nope ;; SELECT count(*) FROM nope.keys ;; SELECT nope.* FROM keys ;; SELECT a b c FROM keys ;; SELECT a, FROM keys ;; SELECT a FROM keys WHERE ;; SELECT (a FROM keys ;; SELECT 'x FROM keys
{clause};
-- Values, some of them in few rows.
let raises = 1 / (a - a) ;; 100 / n ;; b::int ;; b::date ;; b::numeric ;; b::boolean ;; b::interval ;; b::uuid ;; b::json ;; (n * 1000000000)::int ;; n::smallint * 30000 ;; sqrt(-n) ;; ln(n - n) ;; power(0, -n) ;; chr(n - n) ;; repeat(b, 1000000000) ;; to_date(b, 'YYYY-MM-DD') ;; to_timestamp(b, 'HH24') ;; to_number(b, '999') ;; make_date(n, 13, 1) ;; make_time(25, n, 0) ;; date '2024-01-01' + n * 1000000000 ;; interval '1 year' * 1e10 * n ;; substring(b, 1, -n) ;; lpad(b, n, b)::int ;; left(b, n)::int ;; split_part(b, 'x', 0) ;; width_bucket(n, 1, 1, 0) ;; mod(n, 0) ;; n % 0 ;; div(n, 0.0) ;; exp(n * 100000) ;; factorial(-n) ;; 'x'::int + n ;; '2024-13-01'::date + n ;; '25:00'::time ;; n << -1 ;; decode(b, 'hex') ;; date_part('nope', date '2024-01-01' + n) ;; date_trunc('nope', timestamp '2024-01-01') ;; timestamp '2024-01-01' AT TIME ZONE b ;; array_length(string_to_array(b, ','), 1)::text::date
SELECT a, b, {raises} AS x FROM keys ORDER BY a, b;
SELECT count(*) FROM keys WHERE {raises} IS NOT NULL;
SELECT max(CASE WHEN a > 0 THEN ({raises})::text END) FROM keys;
-- In which order conditions of one table are computed: by their costs, equalities behind others of theirs.
let raised = 10 / (id - 5) > 1 ;; 10 / (5 - id) <> 7 ;; 10 / (id - 5) BETWEEN 2 AND 9
SELECT id FROM numbers WHERE id % 2 = 0 AND {raised} ORDER BY id;
SELECT id FROM numbers WHERE abs(id) = 8 AND {raised} ORDER BY id;
SELECT id FROM numbers WHERE 0 = id % 2 AND {raised} ORDER BY id;
SELECT count(*) FROM numbers WHERE id + 1 IN (9) AND {raised};
SELECT id FROM numbers WHERE id % 2 <> 1 AND {raised} ORDER BY id;
SELECT id FROM numbers WHERE id > 5 AND {raised} ORDER BY id;
SELECT id FROM numbers WHERE id::text LIKE '8%' AND {raised} ORDER BY id;
SELECT id FROM numbers WHERE {raised} AND id = ANY (ARRAY[id, 8]) ORDER BY id;
SELECT id FROM numbers WHERE ({raised}) = true AND id + 1 > 8 ORDER BY id;
SELECT id FROM numbers WHERE id IN (6, 7, 8, 9, 10, 11) AND {raised} ORDER BY id;
SELECT id FROM numbers WHERE (id = 6 OR id = 7 OR id = 8) AND {raised} ORDER BY id;
SELECT id FROM times WHERE 10 / (id - 2) > 1 AND ts > now() - interval '1 day' ORDER BY id;
SELECT id FROM numbers WHERE 100 / (id - 5) IN (11, 12, 13, 14, 15, 16, 17, 18, 19, 20) AND abs(id) + 0 * id + 1 > 8 ORDER BY id;
SELECT id FROM numbers WHERE greatest(10 / (id - 5), 1, 0) > 0 AND id + 1 + 1 > 9 ORDER BY id;
-- Constants are computed wherever they stand, also where a subquery has brought them.
let constant = (1 / 0) IS NULL ;; (1 / 0) IS NOT NULL ;; NOT (1 / 0 = 1) ;; 1 / 0 = 1 OR true ;; 1 / 0 BETWEEN 1 AND 2 ;; 1 / 0 IN (1, 2) ;; 1 / 0 IS DISTINCT FROM 2 ;; greatest(1 / 0, 1) > 0 ;; (1 / 0 > 1) IS TRUE ;; (1 / 0, 1) = (1, 1)
SELECT id FROM numbers WHERE id = 999 AND {constant} ORDER BY id;
SELECT {constant} FROM numbers WHERE id < 0;
SELECT 10 / z FROM (SELECT id, 0 AS z FROM numbers) s WHERE id = 999;
SELECT id FROM (SELECT id, 0 AS z FROM numbers) s WHERE id = 999 AND 10 / z > 1;
WITH s AS (SELECT id, 0 AS z FROM numbers) SELECT id, 10 / z FROM s WHERE id = 999;
SELECT 10 / z FROM (SELECT id, 0 AS z FROM numbers WHERE id < 0) s;
let read = real ;; float8 ;; bytea ;; smallint ;; numeric ;; boolean ;; uuid ;; jsonb ;; inet ;; date ;; timestamptz ;; interval
SELECT '\x'::text::{read} FROM numbers WHERE id < 0;
SELECT id FROM numbers WHERE id < 0 AND 'x'::text::{read} IS NULL;
SELECT id FROM numbers WHERE id < 0 AND (SELECT max(t) FROM texts WHERE id = 1)::{read} IS NULL;
SELECT x.id FROM numbers x JOIN times y ON x.id = y.id AND 'x'::text::{read} IS NOT NULL WHERE x.id < 0;
SELECT x.id FROM numbers x LEFT JOIN times y ON 'x'::text::{read} IS NOT NULL WHERE x.id < 0;
SELECT id FROM numbers WHERE id < 0 AND (id < -5 OR 'x'::text::{read} IS NULL);
SELECT id FROM numbers WHERE id < 0 GROUP BY id HAVING 'x'::text::{read} IS NULL;
SELECT id FROM numbers WHERE id < 0 AND n::text < ('x'::text::{read})::text;
SELECT CAST(CASE WHEN false THEN '1' WHEN NULL THEN '2' ELSE '\x'::text END AS {read}) FROM numbers WHERE false;
SELECT max(x.t::{read}::text) FROM (SELECT '\x'::text AS t FROM numbers WHERE id < 0) x CROSS JOIN (SELECT id FROM times) y;
SELECT x.t::{read} FROM (VALUES ('\x'::text)) x (t) JOIN numbers ON id < 0;
SELECT x.t::{read} FROM times y LEFT JOIN (SELECT id, '\x'::text AS t FROM numbers) x ON x.id = y.id AND false WHERE y.id < 0;
SELECT x.t::{read} FROM (SELECT '\x'::text AS t FROM numbers WHERE false GROUP BY 1) x;
SELECT t::{read} FROM (SELECT '\x'::text AS t FROM numbers WHERE id < 0) x GROUP BY t;
SELECT x.t::{read}, row_number() OVER () FROM (SELECT '\x'::text AS t FROM numbers WHERE id < 0) x;
SELECT x.t::{read} FROM (SELECT '\x'::text AS t FROM numbers WHERE id < 0 LIMIT 5) x;
SELECT x.t::{read} FROM (SELECT '\x'::text AS t FROM numbers WHERE id < 0 UNION ALL SELECT '1' FROM numbers WHERE id < 0) x;
SELECT 1 FROM (SELECT '\x'::text AS t FROM numbers WHERE id < 0 UNION ALL SELECT '1' FROM numbers WHERE id < 0) x WHERE t::{read} IS NULL;
SELECT EXISTS (SELECT 1 FROM times WHERE x.t::{read} IS NULL) FROM (SELECT '\x'::text AS t FROM numbers WHERE id < 0) x;
WITH x AS MATERIALIZED (SELECT '\x'::text AS t FROM numbers WHERE id < 0) SELECT t::{read} FROM x;
-- Estimates look at what columns are compared with, and read regular expressions, whether there are rows or not.
let looked = t.id < 0 AND t.ts >= p.d ;; t.id < 0 AND NOT t.ts >= p.d ;; t.id < 0 AND (t.ts >= p.d OR t.id = 3) ;; t.id < 0 AND p.d IS NULL
SELECT t.id FROM times t, (SELECT 'x'::text::timestamp AS d) p WHERE {looked};
WITH p AS (SELECT to_timestamp('x', 'YYYY')::timestamp AS d) SELECT t.id FROM times t JOIN p ON {looked};
SELECT t.id FROM times t, (SELECT (SELECT count(*) FROM numbers WHERE id < -5) AS n) p WHERE t.id < 0 AND 10 / p.n > 1;
let regular = t ~ '(' ;; t !~* '(' ;; t SIMILAR TO 'a(' ;; (t ~ '(') IS TRUE ;; (t ~ '(') = true ;; NOT t ~ '(' ;; t ~ '(' OR id = 3 ;; t ~ ('(' || current_date::text) ;; CASE WHEN id > 0 THEN t ~ '(' END ;; coalesce(t ~ '(', true) ;; t ~ 'fine' ;; t = substring('a' from '(') ;; length(substring(t from '(')) > 1 ;; t ~ substring(t from '(')
SELECT id FROM texts WHERE id < 0 AND {regular};
SELECT count(*) FILTER (WHERE {regular}) FROM texts WHERE id < 0;
SELECT a.id FROM texts a LEFT JOIN (SELECT id, t FROM texts) b USING (id) WHERE a.id < 0 AND a.t ~ '(';
SELECT 1 FROM texts WHERE id < 0 HAVING max(t) ~ '(';
-- What PostgreSQL calls immutable is folded in any place.
let folded = 0::numeric ^ (-1)::numeric ;; power(0::numeric, -1) ;; (1.5::float8::text)::int ;; (1.5::real::text)::int ;; ('\x6162'::bytea::text)::int ;; (time '1:00')::text::int ;; (interval '1 day')::text::int ;; now()::text::int ;; current_date::text::int
SELECT {folded} FROM numbers WHERE id < 0;
SELECT max({folded}) FROM numbers WHERE id < 0 GROUP BY id;
SELECT id FROM numbers WHERE id < 0 ORDER BY {folded}, id;
SELECT x.c::int FROM (SELECT 1.5::float8::text AS c FROM numbers WHERE id < 0) x;
SELECT coalesce(coalesce(1.5::numeric(5,2), n::numeric(5,2)), n) AS x, coalesce(CASE WHEN true THEN 1.5::numeric(5,2) ELSE n::numeric(5,2) END, n) AS y FROM numbers ORDER BY id;
-- Intervals by designators have no plus signs.
let plus = P+1D ;; P1Y+2M ;; PT+1.5H ;; PT1H+30M
SELECT interval '{plus}' FROM times ORDER BY id;
-- Behind a constant that is not NULL the planner drops what a COALESCE has; the modifier is that of the arguments left.
let left = 1.5::numeric(5,2), max(id) ;; NULL, 1.5::numeric(5,2), max(id) ;; max(id)::numeric(5,2), 1.5::numeric(5,2), 1 ;; max(id)::numeric(5,2), 1.5, 1::numeric(5,2) ;; substring('a' from 'b')::varchar(4), max(id)::varchar(5) ;; substring('a' from 'b'), max(id)::varchar(5) ;; NULL::varchar(4), NULL::varchar(4) ;; 'x'::name::char(4), max(id)::char(4) ;; 1::numeric, max(id)::numeric(5,2)
SELECT coalesce({left}) FROM numbers;
SELECT greatest(coalesce({left}), NULL) FROM numbers;
let stamped = 2024-01-10T08:00:00.000Z ;; 2024-01-10T08:00:00 ;; 2024-03-09t10:00+5 ;; 03/09/2024T9:5:3+0530BC ;; Mar 10 2024 08:00 ;; March 9, 2024 10:00:00.1234567+0530 ;; 2024-03-09T24:00:00
SELECT time '{stamped}';
SELECT '{stamped}'::text::time(3);
let spaced_time = 2024-03-09 10:00:00 ;; 2024-03-09 10:00:00.5+01 ;; 10:00:00 ;; 24:00 ;; 10:00:00-05:30
SELECT time '{spaced_time}', '{spaced_time}'::text::time(3);
-- Constant by a collation: PostgreSQL folds them while it plans, also where no row gets there.
let dead = upper('q' COLLATE "und-x-icu")::int ;; 10 / length(lower('' COLLATE "und-x-icu")) ;; 10 / ('b' COLLATE "und-x-icu" > 'c')::int ;; 10 / ('a' COLLATE "und-x-icu" ILIKE 'B')::int ;; 10 / length(least('' COLLATE "und-x-icu", 'b')) ;; 10 / ('b' COLLATE "und-x-icu" BETWEEN 'c' AND 'd')::int ;; upper('7' COLLATE "und-x-icu")::int
SELECT {dead} AS x FROM numbers WHERE id = -1;
SELECT id, CASE WHEN i = 99 THEN {dead} ELSE id END AS x FROM numbers ORDER BY id;
SELECT id, coalesce(id, {dead}) AS x FROM numbers ORDER BY id;
SELECT sum({dead}) AS x FROM numbers WHERE id = -1;
SELECT id, (SELECT {dead} FROM texts t WHERE t.id = -1) AS x FROM numbers ORDER BY id;
