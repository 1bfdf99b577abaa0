-- Structure: joins, subqueries, sets, grouping, windows.
let join = JOIN ;; LEFT JOIN ;; RIGHT JOIN ;; FULL JOIN
let on = a.a = b.a ;; a.id = b.id AND b.note > 'o' ;; a.a IS NOT DISTINCT FROM b.a
SELECT a.id, b.id, b.note FROM other a {join} other b ON {on} ORDER BY 1 NULLS LAST, 2 NULLS LAST;
SELECT n.id, o.id, o.note FROM numbers n {join} other o ON n.s = o.a ORDER BY 1, 2;
SELECT k.a, k.b, o.note FROM keys k {join} other o USING (a) ORDER BY 1, 2, 3;
SELECT count(*), count(k.n), count(o.id) FROM keys k {join} other o ON k.a = o.a AND k.n > 5;
let set = UNION ;; UNION ALL ;; INTERSECT ;; INTERSECT ALL ;; EXCEPT ;; EXCEPT ALL
SELECT a FROM keys {set} SELECT a FROM other ORDER BY 1 NULLS FIRST;
SELECT id, note FROM other {set} SELECT id, t FROM texts ORDER BY 1, 2;
SELECT 1 AS x, 2.5 AS y {set} SELECT i, n2 FROM numbers WHERE id < 5 ORDER BY 1, 2;
let agg = count(*) ;; count(n) ;; sum(n) ;; avg(n) ;; min(b) ;; max(n) ;; count(DISTINCT n) ;; bool_or(n > 30) ;; string_agg(b, ',' ORDER BY b) ;; array_agg(n ORDER BY n) ;; stddev(n) ;; sum(n) FILTER (WHERE n % 2 = 0)
SELECT a, {agg} FROM keys GROUP BY a ORDER BY a;
SELECT {agg} FROM keys;
SELECT {agg} FROM keys WHERE a = 99;
SELECT a, {agg} FROM keys GROUP BY a HAVING {agg} IS NOT NULL ORDER BY a;
let sets = ROLLUP (a, n % 3) ;; CUBE (a, n % 3) ;; GROUPING SETS ((a), (n % 3), ())
SELECT a, n % 3 AS m, {agg}, grouping(a, n % 3) FROM keys GROUP BY {sets} ORDER BY 1, 2, 4;
let fn = row_number() ;; rank() ;; dense_rank() ;; percent_rank() ;; cume_dist() ;; ntile(3) ;; lag(n) ;; lead(n, 2, -1) ;; first_value(n) ;; last_value(n) ;; nth_value(n, 2) ;; sum(n) ;; count(*) ;; avg(n) ;; min(n) ;; max(b)
let over = ORDER BY b ;; PARTITION BY a ORDER BY b DESC ;; PARTITION BY a ORDER BY b ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING ;; ORDER BY b ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING ;; PARTITION BY a ORDER BY b ROWS 2 PRECEDING EXCLUDE CURRENT ROW ;; ORDER BY b GROUPS BETWEEN CURRENT ROW AND 2 FOLLOWING
SELECT a, b, {fn} OVER ({over}) FROM keys ORDER BY a, b;
let by = n ;; a
let range = 3 PRECEDING ;; BETWEEN 1 PRECEDING AND 5 FOLLOWING ;; BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING ;; BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE GROUP
SELECT a, b, count(*) OVER (ORDER BY {by} RANGE {range}), sum(n) OVER (PARTITION BY a % 2 ORDER BY {by} DESC RANGE {range}) FROM keys ORDER BY a, b;
let sub = (SELECT max(n) FROM keys k WHERE k.a = o.a) ;; (SELECT count(*) FROM keys k WHERE k.a = o.a AND k.n > o.id) ;; EXISTS (SELECT 1 FROM keys k WHERE k.a = o.a) ;; o.a IN (SELECT a FROM keys WHERE n > 20) ;; o.a NOT IN (SELECT a FROM keys) ;; (SELECT note FROM other p WHERE p.id = o.id - 1) ;; (SELECT sum(n) FROM keys) ;; NOT EXISTS (SELECT FROM keys k WHERE k.a = o.id)
SELECT o.id, {sub} FROM other o ORDER BY o.id;
let where = o.a IN (SELECT a FROM keys) ;; o.a NOT IN (SELECT a FROM keys WHERE n IS NOT NULL) ;; EXISTS (SELECT 1 FROM keys k WHERE k.a = o.a AND k.n > 10) ;; o.id = (SELECT min(id) FROM other) ;; o.a = ANY (SELECT a FROM keys) ;; (o.id, o.a) IN (SELECT a, a FROM keys)
SELECT o.id FROM other o WHERE {where} ORDER BY 1;
let from = (SELECT a, sum(n) AS s FROM keys GROUP BY a) q ;; (VALUES (1, 2), (3, NULL)) q (a, s) ;; generate_series(1, 3) q (a) CROSS JOIN (SELECT 7 AS s) r ;; (SELECT DISTINCT a, a AS s FROM keys) q
SELECT a, s FROM {from} ORDER BY 1, 2;
SELECT count(*), sum(a), max(s) FROM {from};
WITH q AS (SELECT a, count(*) AS c FROM keys GROUP BY a), r AS (SELECT a FROM q WHERE c > 6) SELECT q.a, c, r.a FROM q LEFT JOIN r USING (a) ORDER BY 1;
let limit = LIMIT 3 ;; OFFSET 2 ;; LIMIT 2 OFFSET 48 ;; LIMIT 0 ;; FETCH FIRST 2 ROWS ONLY ;; LIMIT NULL ;; FETCH FIRST 3 ROWS WITH TIES ;; OFFSET 3 FETCH NEXT (1) ROW WITH TIES
SELECT a, b FROM keys ORDER BY a, b {limit};
SELECT DISTINCT ON (a) a, b, n FROM keys ORDER BY a, n DESC NULLS LAST, b {limit};
let key = s ;; i ;; b ;; n ;; n2 ;; r ;; d ;; s % 2
let place = NULLS FIRST ;; DESC ;; DESC NULLS LAST
let ties = FETCH FIRST ROW WITH TIES ;; FETCH FIRST 7 ROWS WITH TIES
SELECT * FROM (SELECT id, s, n2 FROM numbers ORDER BY {key} {place} {ties}) q ORDER BY id;
SELECT * FROM (SELECT id, s, n2 FROM numbers ORDER BY n2 > 1 DESC, s % 2 {place} {ties}) q ORDER BY id;
let moment = d ;; t ;; ts ;; tz ;; i
SELECT * FROM (SELECT id FROM times ORDER BY {moment} {place} {ties}) q ORDER BY id;
SELECT string_agg(v::text, ' ' ORDER BY v::text) FROM (SELECT v FROM (VALUES (1.0), (1.00), (2), (NULL), (1), ('NaN')) u (v) ORDER BY v {place} {ties}) q;
SELECT string_agg(v::text, ' ' ORDER BY v::text) FROM (SELECT v::float8 FROM (VALUES (0), ('-0'), ('NaN'), (NULL), ('NaN'::float8)) u (v) ORDER BY v {place} {ties}) q;
SELECT count(*) FROM (SELECT c FROM (VALUES ('a'::char(3)), ('a '), ('b'), (NULL)) u (c) ORDER BY c {place} {ties}) q;
SELECT {key} FROM numbers ORDER BY 1 {place} OFFSET 4 FETCH FIRST 2 ROWS WITH TIES;
let cols = a ;; a, a > 3 ;; n
SELECT DISTINCT {cols} FROM keys ORDER BY {cols};
let order = a, b ;; a DESC, b ;; n NULLS FIRST, b ;; n DESC NULLS LAST, b DESC ;; 2, 1 ;; a % 2, b
SELECT a, b, n FROM keys ORDER BY {order};
SELECT * FROM (SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b) AS r FROM keys) q WHERE r <= 2 ORDER BY a, r;
let p = t ;; v ;; c
let q = t ;; v ;; c
SELECT o.id, l.c FROM other o CROSS JOIN LATERAL (SELECT count(*) AS c FROM keys k WHERE k.a = o.a) l ORDER BY 1;
SELECT a.id, b.id FROM texts a JOIN texts b ON a.{p} = b.{q} ORDER BY 1, 2;
let all = UNION ;; UNION ALL
let step = p || 'x'::text ;; array_append(p, 'y') ;; p || ARRAY['z', NULL] ;; p || n::text
WITH RECURSIVE r (n, p) AS (SELECT 1, ARRAY['a'] {all} SELECT n + 1, {step} FROM r WHERE n < 4) SELECT n, p, cardinality(p), p[2] FROM r ORDER BY n;
SELECT ARRAY['b'] {all} SELECT tags FROM posts WHERE id < 3 ORDER BY 1;
-- Functions that return rows, in the select list.
SELECT id, unnest(tags) FROM posts ORDER BY id;
SELECT unnest(tags) AS tag, count(*) FROM posts GROUP BY 1 ORDER BY 2 DESC, 1;
SELECT unnest(tags), count(*), max(id) FROM posts GROUP BY unnest(tags) HAVING count(*) > 1 ORDER BY unnest(tags) NULLS FIRST;
SELECT DISTINCT unnest(nums) FROM posts ORDER BY 1;
SELECT upper(unnest(tags)) || '!', id FROM posts WHERE id < 5 ORDER BY id, 1;
SELECT unnest(tags)::varchar(1), unnest(tags) IS NULL FROM posts ORDER BY 1;
SELECT generate_series(1, 5), generate_series(1, 3);
SELECT generate_series(1, 5);
SELECT generate_series(1, id) AS n, id FROM posts WHERE id < 4 ORDER BY id, n DESC LIMIT 4 OFFSET 1;
SELECT id, generate_series(1, 3) FROM posts ORDER BY author, id;
SELECT generate_series(1, 3), title FROM posts ORDER BY author DESC, title COLLATE "C", id LIMIT 7;
SELECT id FROM posts WHERE id IN (SELECT unnest('{1,3,99}'::int[])) ORDER BY id;
SELECT generate_series('2024-01-30'::timestamp, '2024-02-02', '1 day')::date AS d, '2024-01-30'::date;
SELECT x.d, count(p.id) FROM (SELECT generate_series(date '2024-01-01', '2024-01-04', '1 day')::date AS d) x LEFT JOIN posts p ON p.id = extract(day FROM x.d) GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM (SELECT unnest(tags), * FROM posts) x;
SELECT *, unnest(nums) FROM posts ORDER BY id;
SELECT p.id, unnest(p.nums) AS n FROM posts p LEFT JOIN posts q ON q.id = p.id + 1 ORDER BY p.id, n;
SELECT id, row_number() OVER (ORDER BY id), unnest(tags) FROM posts ORDER BY id;
SELECT DISTINCT ON (id) id, unnest(tags) FROM posts ORDER BY id;
SELECT CASE WHEN id > 1 THEN unnest(tags) END FROM posts;
SELECT count(unnest(tags)) FROM posts;
SELECT author, unnest(array_agg(id ORDER BY id)) FROM posts GROUP BY author ORDER BY 1, 2;
SELECT generate_series(1, 2), count(*) FROM posts;
SELECT unnest(tags) FROM posts UNION SELECT 'z' ORDER BY 1;
SELECT (SELECT unnest(tags) LIMIT 1) FROM posts ORDER BY id;
SELECT jsonb_array_elements(j -> 'tags') ->> 0, id FROM docs WHERE jsonb_typeof(j -> 'tags') = 'array' ORDER BY id;
SELECT id, jsonb_object_keys(j) FROM docs WHERE jsonb_typeof(j) = 'object' ORDER BY 1, 2;
SELECT string_to_table('a,b,c', ',') AS part, id FROM posts WHERE id = 1;
-- An aggregate belongs to the query whose columns it names, in its subqueries too.
let whose = sum((SELECT k.n FROM keys k WHERE k.a = o.a ORDER BY k.b LIMIT 1)) ;; sum((SELECT o.id)) ;; count(*) FILTER (WHERE o.id > 2) ;; count(*) FILTER (WHERE EXISTS (SELECT FROM keys k WHERE k.a = o.a)) ;; bool_or(o.a IN (SELECT a FROM keys)) ;; max((SELECT (SELECT o.id) FROM keys k WHERE k.n > 20 LIMIT 1))
SELECT (SELECT {whose}) FROM other o;
SELECT (SELECT {whose} FROM other q WHERE q.id < 3) FROM other o;
SELECT a, (SELECT {whose}) FROM other o GROUP BY a ORDER BY a;
let ours = sum((SELECT o.id + q.id)) ;; max((SELECT max(k.n) FROM keys k WHERE k.a = q.a)) ;; string_agg(q.note, ',' ORDER BY (SELECT o.id), q.id) ;; count(*) FILTER (WHERE q.id > o.id) ;; bool_or(q.a IN (SELECT k.a FROM keys k WHERE k.n > o.id)) ;; max((SELECT (SELECT q.id + o.id) FROM keys k WHERE k.n > 20 LIMIT 1))
SELECT o.id, (SELECT {ours} FROM other q WHERE q.id < 3) FROM other o ORDER BY o.id;
-- Conditions that stay above groupings and fences.
let t = (VALUES (1, 0, 1), (6, 2, 1)) t (a, b, k)
let n = (VALUES (1, 1.0), (2, 1.00), (3, 2.50)) n (id, n)
let fence = LIMIT ALL ;; LIMIT NULL ;; OFFSET NULL ;; OFFSET 0 ;; LIMIT 5
SELECT q FROM (SELECT a, 10 / b AS q FROM {t} {fence}) s WHERE a > 5;
SELECT n, count(*) FROM (SELECT n, count(*) AS c FROM {n} GROUP BY n {fence}) s WHERE n::text = '1.0' GROUP BY n;
SELECT a, k, sum(10 / b) FROM {t} GROUP BY GROUPING SETS ((a, k), (a)) HAVING a > 5;
let sets = ROLLUP (n) ;; CUBE (n) ;; n ;; GROUPING SETS ((n), ())
SELECT n, count(*) FROM {n} GROUP BY {sets} HAVING n::text = '1.0' ORDER BY 1, 2;
SELECT * FROM (SELECT n, count(*) AS c FROM {n} GROUP BY {sets}) s WHERE n = 2.5 ORDER BY 1, 2;
SELECT a, sum(10 / b) FROM {t} GROUP BY a HAVING EXISTS (SELECT 1 FROM (VALUES (1), (6)) u (u) WHERE a > 5);
SELECT a, sum(a) FROM {t} GROUP BY a HAVING EXISTS (SELECT 1 FROM (VALUES (1), (6)) u (u) WHERE a > 5 AND u = a) ORDER BY 1;
SELECT n, count(*) FROM {n} GROUP BY n HAVING EXISTS (SELECT 1 FROM {t} WHERE n::text = '2.50');
let by = '1.00' ;; '2.50' ;; '1.0'
SELECT id, n FROM (SELECT DISTINCT ON (n) n, id FROM {n} ORDER BY n, id) s WHERE n::text = {by};
SELECT id, a FROM (SELECT DISTINCT ON (k) k, a, b AS id FROM {t} ORDER BY k, a DESC) s WHERE k = 1 AND id > 1;
SELECT x FROM (SELECT a FROM {t} UNION SELECT n FROM {n}) s (x) WHERE x::text = {by};
SELECT o.id, (WITH x AS MATERIALIZED (SELECT a, 10 / b AS q FROM {t} WHERE t.k = o.id) SELECT max(q) FROM x WHERE a > 5) FROM (VALUES (1)) o (id);
SELECT o.id, (WITH x AS (SELECT a, 10 / b AS q FROM {t} WHERE t.k = o.id) SELECT max(q) FROM x WHERE a > 5) FROM (VALUES (1)) o (id);
-- A name stays one.
let long = xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
SELECT mode() WITHIN GROUP (ORDER BY t::name) = '{long}', length(coalesce(mode() WITHIN GROUP (ORDER BY t::name) FILTER (WHERE false), '{long}')::text) FROM texts;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY t::name) = '{long}' FROM texts;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY s), percentile_cont(0.5) WITHIN GROUP (ORDER BY b) FROM numbers;
