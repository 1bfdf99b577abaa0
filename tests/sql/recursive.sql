-- WITH RECURSIVE; see queries.sql for the form.
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT n FROM t ORDER BY n;
WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 100) SELECT sum(n), count(*) FROM t;
-- Rows come round by round, so that LIMIT takes the first rounds, and ends what has no end.
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n * 2 FROM t) SELECT n FROM t LIMIT 20;
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT n * 10 AS ten FROM t LIMIT 5 OFFSET 3;
WITH RECURSIVE fib(a, b) AS (SELECT 0::bigint, 1::bigint UNION ALL SELECT b, a + b FROM fib WHERE b < 1000000) SELECT a FROM fib ORDER BY 1;
WITH RECURSIVE down AS (SELECT id, boss, name, 1 AS depth FROM staff WHERE boss IS NULL UNION ALL SELECT s.id, s.boss, s.name, d.depth + 1 FROM staff s JOIN down d ON s.boss = d.id) SELECT * FROM down ORDER BY id;
WITH RECURSIVE down(id, path) AS (SELECT id, ARRAY[name] FROM staff WHERE id = 1 UNION ALL SELECT s.id, d.path || s.name FROM down d, staff s WHERE s.boss = d.id) SELECT path, id FROM down ORDER BY id;
WITH RECURSIVE down(id, path) AS (SELECT id, ARRAY[name, 'x'] FROM staff WHERE boss IS NULL UNION SELECT s.id, array_append(d.path, s.name) FROM down d JOIN staff s ON s.boss = d.id WHERE NOT s.name = ANY (d.path)) SELECT array_to_string(path, '>'), cardinality(path), id FROM down ORDER BY id;
WITH RECURSIVE t(n, seen) AS (SELECT 1, '{}'::text[] UNION ALL SELECT n + 1, seen || n::text FROM t WHERE n < 5) SELECT n, seen FROM t ORDER BY n;
WITH RECURSIVE down(id, path) AS (SELECT id, name FROM staff WHERE id = 1 UNION ALL SELECT s.id, d.path || '/' || s.name FROM down d, staff s WHERE s.boss = d.id) SELECT path, id FROM down ORDER BY path;
WITH RECURSIVE up AS (SELECT * FROM staff WHERE id = 6 UNION ALL SELECT s.* FROM staff s JOIN up ON up.boss = s.id) SELECT id, name, title, pay FROM up ORDER BY id;
WITH RECURSIVE up AS (SELECT id, boss FROM staff UNION SELECT up.id, s.boss FROM staff s JOIN up ON up.boss = s.id) SELECT id, boss FROM up ORDER BY id, boss;
-- UNION ends a walk along a cycle.
WITH RECURSIVE reach(at) AS (SELECT 1 UNION SELECT b FROM edges, reach WHERE a = at) SELECT at FROM reach ORDER BY at NULLS FIRST;
WITH RECURSIVE reach(a, b) AS (SELECT a, b FROM edges UNION SELECT r.a, e.b FROM reach r JOIN edges e ON e.a = r.b) SELECT count(*), count(a), sum(b) FROM reach;
WITH RECURSIVE reach AS (SELECT a, b, label FROM edges UNION SELECT r.a, e.b, e.label FROM reach r JOIN edges e ON e.a = r.b) SELECT a, count(DISTINCT b) AS n, min(label) AS l FROM reach GROUP BY a ORDER BY a;
WITH RECURSIVE walk(at, steps, seen) AS (SELECT 1, 0, ARRAY[1] UNION ALL SELECT e.b, w.steps + 1, w.seen || e.b FROM walk w JOIN edges e ON e.a = w.at WHERE e.b <> ALL (w.seen)) SELECT at, steps, seen FROM walk ORDER BY steps, at, seen;
WITH RECURSIVE dist(at, cost) AS (SELECT 1, 0::bigint UNION SELECT e.b, d.cost + e.cost FROM dist d JOIN edges e ON e.a = d.at WHERE d.cost < 40) SELECT at, min(cost) FROM dist GROUP BY at ORDER BY at;
WITH RECURSIVE d AS (SELECT date '2024-02-27' AS day UNION ALL SELECT (day + interval '1 day')::date FROM d WHERE day < '2024-03-02') SELECT day, extract(dow FROM day) FROM d ORDER BY day;
WITH RECURSIVE m AS (SELECT timestamp '2024-01-31' AS at, 0 AS n UNION ALL SELECT at + interval '1 month', n + 1 FROM m WHERE n < 5) SELECT m.at, s.name FROM m LEFT JOIN staff s ON s.id = m.n ORDER BY m.at;
-- An untyped literal is text in the rounds, too.
WITH RECURSIVE s AS (SELECT 'a' AS t, 1 AS n UNION ALL SELECT t || 'b', n + 1 FROM s WHERE n < 4) SELECT t, length(t) FROM s ORDER BY n;
WITH RECURSIVE s(v, n) AS (SELECT NULL, 1 UNION ALL SELECT coalesce(v, '') || n::text, n + 1 FROM s WHERE n < 4) SELECT v, n FROM s ORDER BY n;
WITH RECURSIVE tree AS (SELECT id, up FROM wide WHERE id = 1 UNION ALL SELECT w.id, w.up FROM wide w JOIN tree t ON w.up = t.id) SELECT count(*), max(id), sum(up) FROM tree;
WITH RECURSIVE tree AS (SELECT id, 0 AS depth FROM wide WHERE id = 3 UNION ALL SELECT w.id, depth + 1 FROM tree t JOIN wide w ON w.up = t.id), counted AS (SELECT depth, count(*) AS n FROM tree GROUP BY depth) SELECT c.depth, c.n, t.total FROM counted c, (SELECT count(*) AS total FROM tree) t ORDER BY c.depth;
-- A left join on the kept side, EXISTS and IN over other tables, a join in parentheses.
WITH RECURSIVE t AS (SELECT 1 AS id UNION ALL SELECT t.id + 1 FROM t LEFT JOIN staff s ON s.id = t.id WHERE t.id < 9) SELECT id FROM t ORDER BY id;
WITH RECURSIVE t AS (SELECT 1 AS id UNION ALL SELECT t.id + 1 FROM t WHERE EXISTS (SELECT 1 FROM staff s WHERE s.id = t.id)) SELECT count(*), max(id) FROM t;
WITH RECURSIVE t AS (SELECT 1 AS id UNION ALL SELECT t.id + 1 FROM t WHERE t.id IN (SELECT a FROM edges)) SELECT count(*), max(id) FROM t;
WITH RECURSIVE t AS (SELECT 1 AS id UNION ALL SELECT t.id + 1 FROM t WHERE t.id < (SELECT max(id) FROM staff)) SELECT count(*) FROM t;
WITH RECURSIVE t AS (SELECT 1 AS id UNION ALL SELECT x.id + 1 FROM (SELECT id FROM t WHERE id < 5) x) SELECT id FROM t ORDER BY id;
WITH RECURSIVE t AS (SELECT id, boss FROM staff WHERE id = 1 UNION ALL (SELECT s.id, s.boss FROM staff s JOIN t ON t.id = s.boss)) SELECT id FROM t ORDER BY id;
WITH RECURSIVE t AS (SELECT 1 AS n UNION SELECT (n * 7) % 10 FROM t) SELECT n FROM t ORDER BY n;
WITH RECURSIVE t AS (SELECT id, boss, name FROM nobody WHERE boss IS NULL UNION ALL SELECT n.id, n.boss, n.name FROM nobody n JOIN t ON n.boss = t.id) SELECT * FROM t ORDER BY id;
WITH RECURSIVE t AS (SELECT id, name FROM staff WHERE id < 3 UNION ALL SELECT n.id, n.name FROM nobody n JOIN t ON n.boss = t.id) SELECT * FROM t ORDER BY id;
-- Several recursions, one within another's reach, and queries of the list that are none.
WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a WHERE n < 3), b AS (SELECT n FROM a UNION ALL SELECT n + 10 FROM b WHERE n < 20), c AS (SELECT 7 AS n) SELECT 'a' AS w, n FROM a UNION ALL SELECT 'b', n FROM b UNION ALL SELECT 'c', n FROM c ORDER BY 1, 2;
WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a WHERE n < 3), b AS (SELECT 1 AS m UNION ALL SELECT b.m + a.n FROM b JOIN a ON a.n = b.m) SELECT m FROM b ORDER BY m;
WITH RECURSIVE plain AS (SELECT id FROM staff WHERE id < 3) SELECT id FROM plain ORDER BY id;
WITH RECURSIVE u AS (SELECT 1 AS n UNION SELECT 1 UNION ALL SELECT 2) SELECT n FROM u ORDER BY n;
SELECT s.id, (WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 4) SELECT sum(n) FROM t) AS total FROM staff s WHERE s.id < 3 ORDER BY 1;
SELECT id FROM staff WHERE id IN (WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 2 FROM t WHERE n < 6) SELECT n FROM t) ORDER BY id;
WITH RECURSIVE t AS MATERIALIZED (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT a.n, b.n AS m FROM t a JOIN t b ON b.n = a.n + 1 ORDER BY 1;
WITH RECURSIVE t AS (SELECT 1.50::numeric AS v UNION ALL SELECT v * 2 FROM t WHERE v < 20) SELECT v FROM t ORDER BY v;
WITH RECURSIVE t AS (SELECT x.n, x.n AS root FROM (VALUES (1), (5)) x(n) UNION ALL SELECT t.n + 1, t.root FROM t WHERE t.n % 3 <> 0) SELECT root, array_agg(n ORDER BY n) FROM t GROUP BY root ORDER BY root;
-- What PostgreSQL refuses, or what is not done here.
-- relay: types that change
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1.5 FROM t WHERE n < 5) SELECT n FROM t ORDER BY n;
-- relay: modifiers that change
WITH RECURSIVE t AS (SELECT title FROM staff UNION ALL SELECT title || 'x' FROM t WHERE length(title) < 6) SELECT title FROM t ORDER BY title;
-- relay: modifiers that change
WITH RECURSIVE t AS (SELECT pay FROM staff WHERE id = 1 UNION ALL SELECT pay * 2 FROM t WHERE pay < 500) SELECT pay FROM t ORDER BY pay;
-- relay: an aggregate over the rounds
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT max(n) + 1 FROM t WHERE n < 5) SELECT n FROM t ORDER BY n;
-- relay: twice
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT a.n + b.n FROM t a, t b WHERE a.n < 5) SELECT n FROM t ORDER BY n;
-- relay: on the padded side
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT s.id FROM staff s LEFT JOIN t ON t.n = s.id WHERE s.id < 3) SELECT n FROM t ORDER BY n;
-- relay: in a subquery
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT id FROM staff WHERE id NOT IN (SELECT n FROM t)) SELECT n FROM t ORDER BY n;
-- relay: in EXCEPT
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL (SELECT 2 EXCEPT SELECT n FROM t)) SELECT n FROM t ORDER BY n;
-- relay: no UNION
WITH RECURSIVE t AS (SELECT n + 1 AS n FROM t) SELECT n FROM t ORDER BY n;
-- relay: the first side
WITH RECURSIVE t AS (SELECT n FROM t UNION ALL SELECT 1) SELECT n FROM t ORDER BY n;
-- relay: each other
WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n FROM b), b AS (SELECT 1 AS n UNION ALL SELECT n FROM a) SELECT n FROM a ORDER BY n;
-- relay: a later one
WITH RECURSIVE a AS (SELECT n FROM b), b AS (SELECT 1 AS n) SELECT n FROM a ORDER BY n;
-- relay: ORDER BY within
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 3 ORDER BY 1) SELECT n FROM t ORDER BY n;
-- relay: CYCLE
WITH RECURSIVE t(at) AS (SELECT 1 UNION ALL SELECT b FROM edges, t WHERE a = at) CYCLE at SET is_cycle USING path SELECT at, is_cycle FROM t ORDER BY at, is_cycle;
-- relay: an error in a round
WITH RECURSIVE t(n) AS (SELECT 3 UNION ALL SELECT 12 / (n - 1) FROM t WHERE n > 0) SELECT n FROM t ORDER BY n;
