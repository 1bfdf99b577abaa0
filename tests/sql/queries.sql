-- The structure of queries. A statement each, ended by a semicolon at the end of a line; "-- relay: why" above one: upstream
-- answers it.
SELECT id FROM people WHERE team IN (SELECT id FROM teams WHERE budget > 1000) ORDER BY id;
SELECT id FROM people WHERE team NOT IN (SELECT id FROM teams WHERE budget > 1000) ORDER BY id;
SELECT id FROM people WHERE NOT team IN (SELECT id FROM teams) ORDER BY id;
SELECT id FROM people WHERE team NOT IN (SELECT v FROM holes) ORDER BY id;
SELECT id FROM people WHERE team NOT IN (SELECT v FROM holes WHERE v IS NOT NULL) ORDER BY id;
SELECT id FROM people WHERE team NOT IN (SELECT v FROM nothing) ORDER BY id;
SELECT id FROM people WHERE team IN (SELECT v FROM nothing) ORDER BY id;
SELECT id, team IN (SELECT v FROM holes) AS a, team NOT IN (SELECT id FROM teams) AS b, team IN (SELECT v FROM nothing) AS c FROM people ORDER BY id;
SELECT id, team IN (SELECT h.v FROM holes h WHERE h.id <= people.id) AS a FROM people ORDER BY id;
SELECT id, team NOT IN (SELECT h.v FROM holes h WHERE h.id < people.team) AS a FROM people ORDER BY id;
SELECT id FROM people p WHERE salary IN (SELECT q.salary FROM people q WHERE q.team = p.team AND q.id <> p.id) ORDER BY id;
SELECT id FROM people WHERE team = ANY (SELECT id FROM teams WHERE city = 'oslo') ORDER BY id;
-- what the subquery selects is a column of the outer query
SELECT id FROM people WHERE team NOT IN (SELECT team FROM holes) ORDER BY id;
SELECT id FROM people WHERE boss IN (SELECT team FROM holes WHERE v > 1) ORDER BY id;
SELECT id, boss NOT IN (SELECT team FROM holes) AS a, team IN (SELECT boss FROM nothing) AS b FROM people ORDER BY id;
SELECT id FROM people WHERE boss NOT IN (SELECT team FROM nothing) ORDER BY id;
SELECT id FROM people WHERE team <> ALL (SELECT id FROM teams WHERE city = 'oslo') ORDER BY id;
SELECT id FROM people WHERE (id, team) IN (SELECT person, 1 FROM visits) ORDER BY id;
SELECT id FROM people WHERE (id, team) IN ((1, 1), (2, 2), (3, 2)) ORDER BY id;
SELECT id FROM people WHERE (team, id) > (1, 1) ORDER BY id;
SELECT id FROM people WHERE (team, id) <= (2, 3) ORDER BY id;
SELECT id FROM people WHERE (team, boss) = (3, 3) ORDER BY id;
SELECT id FROM people p WHERE EXISTS (SELECT 1 FROM tags WHERE person = p.id) ORDER BY id;
SELECT id FROM people p WHERE NOT EXISTS (SELECT * FROM tags t WHERE t.person = p.id AND t.weight > 1) ORDER BY id;
SELECT id FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.person = p.id AND v.took > p.salary / 10) ORDER BY id;
SELECT id FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.took < p.score) ORDER BY id;
SELECT id, EXISTS (SELECT 1 FROM tags t WHERE t.person = p.id) AS has FROM people p ORDER BY id;
SELECT count(*) FROM people WHERE EXISTS (SELECT 1 FROM teams WHERE budget > 4000);
SELECT count(*) FROM people WHERE EXISTS (SELECT 1 FROM nothing);
SELECT count(*) FROM people WHERE NOT EXISTS (SELECT 1 FROM nothing) AND id > 2;
SELECT id FROM people p WHERE team IS NULL OR EXISTS (SELECT 1 FROM tags t WHERE t.person = p.id) ORDER BY id;
SELECT id FROM people p WHERE CASE WHEN EXISTS (SELECT 1 FROM tags t WHERE t.person = p.id) THEN salary > 900 ELSE team = 3 END ORDER BY id;
SELECT id, (SELECT title FROM teams t WHERE t.id = p.team) AS title FROM people p ORDER BY id;
SELECT id, (SELECT count(*) FROM visits v WHERE v.person = p.id), (SELECT sum(took) FROM visits v WHERE v.person = p.id) FROM people p ORDER BY id;
SELECT id, (SELECT count(*) + 1 FROM tags t WHERE t.person = p.id) AS n, (SELECT max(weight) FROM tags t WHERE t.person = p.id) FROM people p ORDER BY id;
SELECT id, (SELECT avg(q.salary) - p.salary FROM people q WHERE q.team = p.team) AS delta FROM people p ORDER BY id;
SELECT id, (SELECT p.id * 10 + t.id FROM teams t WHERE t.id = p.team) AS both FROM people p ORDER BY id;
SELECT id, (SELECT count(*) FROM tags t WHERE t.person = p.id HAVING count(*) > 1) AS several FROM people p ORDER BY id;
SELECT id FROM people p WHERE salary > (SELECT avg(salary) FROM people q WHERE q.team = p.team) ORDER BY id;
SELECT id FROM people WHERE salary > (SELECT avg(salary) FROM people) ORDER BY id;
SELECT id, (SELECT max(budget) FROM teams) AS most, (SELECT v FROM nothing) AS none FROM people WHERE id < 3 ORDER BY id;
SELECT (SELECT 1), (SELECT 'x'), (SELECT NULL), (SELECT count(*) FROM people) + 1 AS n;
SELECT id, (SELECT page FROM visits v WHERE v.person = p.id ORDER BY at DESC LIMIT 1) AS last_page FROM people p ORDER BY id;
SELECT id, (SELECT v.id FROM visits v WHERE v.person = p.id ORDER BY v.id OFFSET 2 LIMIT 1) AS third FROM people p ORDER BY id;
SELECT t.id, (SELECT count(*) FROM people p WHERE p.team = t.id AND EXISTS (SELECT 1 FROM tags g WHERE g.person = p.id)) AS tagged FROM teams t ORDER BY t.id;
SELECT t.id FROM teams t WHERE EXISTS (SELECT 1 FROM people p WHERE p.team = t.id AND p.salary = (SELECT max(q.salary) FROM people q WHERE q.team = p.team)) ORDER BY t.id;
SELECT team, count(*) FROM people p GROUP BY team HAVING count(*) > (SELECT count(*) FROM tags WHERE person = team) ORDER BY team;
-- what a grouped primary key determines
SELECT label, count(*) AS n FROM codes GROUP BY code ORDER BY code;
SELECT t.title, count(p.name) AS n FROM people p RIGHT JOIN teams t USING (id) GROUP BY id ORDER BY id;
SELECT p.name, count(t.title) AS n FROM people p LEFT JOIN teams t USING (id) GROUP BY id ORDER BY id;
-- relay: an error that upstream raises
SELECT label FROM codes GROUP BY code::text;
-- relay: an error that upstream raises
SELECT p.name FROM people p RIGHT JOIN teams t USING (id) GROUP BY id;
-- relay: an error that upstream raises
SELECT p.name FROM (SELECT id FROM teams) t JOIN people p USING (id) GROUP BY id;
SELECT team, (SELECT title FROM teams t WHERE t.id = p.team) AS title, count(*) FROM people p GROUP BY team ORDER BY team;
SELECT (SELECT title FROM teams t WHERE t.id = p.team) AS title, count(*), sum(salary) FROM people p GROUP BY title ORDER BY title NULLS FIRST;
SELECT sum((SELECT count(*) FROM tags t WHERE t.person = p.id)) FROM people p;
SELECT max(salary) FILTER (WHERE team IN (SELECT id FROM teams WHERE city = 'oslo')) FROM people;
SELECT id FROM people ORDER BY (SELECT title FROM teams t WHERE t.id = team) NULLS LAST, id;
SELECT a.id, b.id FROM people a JOIN people b ON a.boss = b.id AND a.team IN (SELECT id FROM teams) ORDER BY 1, 2;
SELECT id FROM people WHERE id IN (SELECT person FROM visits WHERE page IN (SELECT page FROM visits WHERE id = 3)) ORDER BY id;
SELECT id FROM people WHERE id IN (SELECT max(person) FROM visits GROUP BY page) ORDER BY id;
SELECT id FROM people WHERE id IN (SELECT person FROM visits ORDER BY took DESC NULLS LAST, id LIMIT 5) ORDER BY id;
SELECT id FROM people WHERE id IN (SELECT DISTINCT person FROM tags UNION SELECT id FROM teams) ORDER BY id;
SELECT id FROM people WHERE team BETWEEN SYMMETRIC 3 AND 2 ORDER BY id;
SELECT id FROM people WHERE team NOT BETWEEN SYMMETRIC boss AND 2 AND salary BETWEEN SYMMETRIC 1200.0 AND '800.5' ORDER BY id;
SELECT id, born BETWEEN SYMMETRIC '1990-12-31' AND '1980-01-01' AS b, name NOT BETWEEN SYMMETRIC 'e' AND 'b' AS n, score BETWEEN SYMMETRIC 5 AND 0.5 FROM people ORDER BY id;
SELECT id, team BETWEEN SYMMETRIC (SELECT max(id) FROM teams t WHERE t.id < p.boss) AND (SELECT min(v) FROM holes) FROM people p ORDER BY id;
SELECT team, max(salary) BETWEEN SYMMETRIC 1200 AND min(boss) FROM people GROUP BY team HAVING count(*) BETWEEN SYMMETRIC 3 AND 2 ORDER BY team;
SELECT count(*) FROM people a JOIN people b ON b.id BETWEEN SYMMETRIC a.id + 1 AND a.boss;
-- relay: rows as values
SELECT id FROM people WHERE (team, boss) BETWEEN SYMMETRIC (2, 1) AND (1, 9) ORDER BY id;
-- relay: an error that upstream raises
SELECT id FROM people WHERE team BETWEEN SYMMETRIC 'x' AND 2;
-- relay: several rows as a value
SELECT (SELECT id FROM people);
-- relay: several rows as a value
SELECT id, (SELECT tag FROM tags t WHERE t.person = p.id) FROM people p;
SELECT id, (SELECT count(*) FROM visits v WHERE v.took < p.salary) FROM people p ORDER BY id;
SELECT id FROM people WHERE team = ANY ('{1, 3}') ORDER BY id;
SELECT id FROM people WHERE team = ANY (ARRAY[1, 3]) OR name = ANY (ARRAY['hal', 'x']) ORDER BY id;
SELECT id, team = ANY ('{1,NULL}') AS a, team <> ALL ('{1,NULL}') AS b, team <> ALL ('{}') AS c, team = ANY ('{}'::int[]) AS d FROM people ORDER BY id;
SELECT id FROM people WHERE name LIKE ANY (ARRAY['a%', '%y']) AND name NOT LIKE ALL ('{x%,"fa%"}') ORDER BY id;
SELECT id FROM people WHERE salary > ALL (ARRAY[100, 299.5]) AND salary < ANY ('{1000,1100}'::numeric[]) ORDER BY id;
SELECT id FROM people WHERE born = ANY ('{1980-01-01,1999-09-09}'::date[]) AND name = ANY ('{ann,eve}'::varchar(10)[]) ORDER BY id;
-- relay: no such operator
SELECT id FROM people WHERE team = ANY (ARRAY['1', '2']) ORDER BY id;
-- set operations
SELECT id FROM people UNION SELECT id FROM teams ORDER BY id;
SELECT team FROM people UNION ALL SELECT id FROM teams ORDER BY 1 NULLS FIRST;
SELECT team FROM people INTERSECT SELECT id FROM teams ORDER BY 1;
SELECT team FROM people INTERSECT ALL SELECT v FROM holes ORDER BY 1 NULLS FIRST;
SELECT team FROM people EXCEPT SELECT id FROM teams ORDER BY 1 NULLS FIRST;
SELECT team FROM people EXCEPT ALL SELECT id FROM teams ORDER BY 1 NULLS FIRST;
SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2.5, NULL ORDER BY 1;
SELECT NULL AS a UNION ALL SELECT 1 ORDER BY 1;
SELECT '1' AS a UNION SELECT 1 UNION SELECT 2 ORDER BY 1;
SELECT title FROM teams UNION SELECT name FROM people ORDER BY 1 NULLS LAST;
SELECT id::smallint, budget FROM teams UNION ALL SELECT id, salary FROM people ORDER BY 1, 2;
SELECT born FROM people WHERE id < 3 UNION SELECT at FROM visits WHERE id < 3 ORDER BY 1;
(SELECT id FROM people ORDER BY id DESC LIMIT 2) UNION ALL (SELECT id FROM teams ORDER BY id LIMIT 2) ORDER BY id;
(SELECT id FROM people LIMIT 100) ORDER BY id;
-- relay: an error
(SELECT id FROM people ORDER BY salary LIMIT 3) ORDER BY id;
SELECT id FROM people UNION ALL SELECT id FROM teams ORDER BY id DESC LIMIT 3 OFFSET 1;
SELECT id FROM people INTERSECT SELECT id FROM teams UNION SELECT 100 EXCEPT SELECT 2 ORDER BY 1;
SELECT city, count(*) FROM (SELECT city FROM teams UNION ALL SELECT name FROM people) s GROUP BY city ORDER BY city NULLS FIRST;
SELECT * FROM (SELECT id, title AS t FROM teams UNION ALL SELECT id, name FROM people) s WHERE id = 2 ORDER BY t;
SELECT 'people' AS kind, count(*) FROM people UNION ALL SELECT 'teams', count(*) FROM teams UNION ALL SELECT 'none', count(*) FROM nothing ORDER BY 1;
VALUES (1, 'a'), (2, 'b'), (3, NULL) ORDER BY 1 DESC;
SELECT * FROM (VALUES (1, 'a'), (2.5, 'b'), (NULL, NULL)) AS v (n, t) ORDER BY n;
SELECT p.id, v.label FROM people p JOIN (VALUES (1, 'one'), (2, 'two')) AS v (team, label) ON v.team = p.team ORDER BY 1;
SELECT id FROM people WHERE team IN (VALUES (1), (3)) ORDER BY id;
-- relay: the second parser does not know it
TABLE holes ORDER BY id;
SELECT column1 + 1 FROM (VALUES (1), (2)) v ORDER BY 1;
-- joins
SELECT p.id, t.id FROM people p RIGHT JOIN teams t ON t.id = p.team ORDER BY 1 NULLS FIRST, 2;
SELECT * FROM people p RIGHT JOIN teams t ON t.id = p.team AND p.salary > 900 ORDER BY t.id, p.id;
SELECT p.id, t.id, t.title FROM people p FULL JOIN teams t ON t.id = p.team ORDER BY 1 NULLS FIRST, 2;
SELECT p.id, t.id FROM people p FULL OUTER JOIN teams t ON t.id = p.team AND p.salary > 900 ORDER BY 1 NULLS FIRST, 2;
SELECT p.id, t.id FROM people p FULL JOIN teams t ON t.id = p.team WHERE p.id IS NULL OR t.id IS NULL ORDER BY 1 NULLS FIRST, 2;
SELECT * FROM holes NATURAL JOIN nothing ORDER BY 1;
SELECT * FROM holes h NATURAL LEFT JOIN (SELECT id, title FROM teams) t ORDER BY id;
SELECT id, h.v, t.title FROM holes h FULL JOIN teams t USING (id) ORDER BY id;
SELECT id FROM holes h RIGHT JOIN teams t USING (id) WHERE id > 1 ORDER BY id;
SELECT id, pg_typeof FROM (SELECT id, 1 AS pg_typeof FROM holes FULL JOIN (SELECT id::bigint AS id FROM people) p USING (id)) s ORDER BY id;
SELECT id FROM (SELECT id::bigint AS id FROM holes) a JOIN people b USING (id) ORDER BY id;
SELECT a.id, b.id FROM people a JOIN people b ON a.salary < b.salary AND a.team = b.team ORDER BY 1, 2;
SELECT a.id, b.id FROM teams a JOIN teams b ON a.budget < b.budget ORDER BY 1, 2;
SELECT a.id, b.id FROM people a LEFT JOIN teams b ON a.salary > b.budget ORDER BY 1, 2;
SELECT p.id, t.id FROM people p JOIN teams t ON t.id = p.team OR t.id = p.boss ORDER BY 1, 2;
SELECT a.id, b.id FROM people a JOIN people b ON a.team IS NOT DISTINCT FROM b.team AND a.id < b.id ORDER BY 1, 2;
SELECT a.id, b.id FROM people a LEFT JOIN people b ON (a.team = b.team OR a.team IS NULL AND b.team IS NULL) AND b.boss = 1 ORDER BY 1, 2;
SELECT a.id, s.most FROM people a CROSS JOIN (SELECT max(budget) AS most FROM teams) s ORDER BY 1;
SELECT p.id, t.title, v.n FROM people p LEFT JOIN teams t ON t.id = p.team LEFT JOIN (SELECT person, count(*) AS n FROM visits GROUP BY person) v ON v.person = p.id ORDER BY 1;
SELECT p.id, x.id FROM people p JOIN (teams t JOIN holes h ON h.id = t.id) ON t.id = p.team JOIN holes x ON x.v = h.v ORDER BY 1, 2;
SELECT count(*) FROM people a, people b, teams t WHERE a.team = t.id AND b.team = t.id AND a.id <> b.id;
SELECT a.id FROM people a LEFT JOIN tags g ON g.person = a.id WHERE g.person IS NULL ORDER BY 1;
SELECT p.id, v.id FROM people p JOIN visits v ON v.person = p.id WHERE v.took = 37 ORDER BY 1, 2;
SELECT p.id, v.id FROM people p JOIN visits v ON v.person = p.id WHERE v.id = 37 ORDER BY 1, 2;
-- WITH
WITH t AS (SELECT team, sum(salary) AS s FROM people GROUP BY team) SELECT a.team, a.s, b.s FROM t a LEFT JOIN t b ON b.team = a.team + 1 ORDER BY 1;
WITH a AS (SELECT * FROM visits), b AS (SELECT person, count(*) AS n FROM a GROUP BY person), c AS (SELECT max(n) AS m FROM b) SELECT b.* FROM b, c WHERE b.n = c.m ORDER BY 1;
WITH a AS (SELECT id FROM people ORDER BY id LIMIT 3) SELECT x.id, y.id FROM a x, a y ORDER BY 1, 2;
WITH a AS MATERIALIZED (SELECT id, took FROM visits WHERE took > 50) SELECT count(*) FROM a WHERE id < 60;
WITH a AS NOT MATERIALIZED (SELECT id FROM people) SELECT count(*) FROM a x JOIN a y USING (id);
WITH unused AS (SELECT 1), a (n) AS (SELECT count(*) FROM people) SELECT n + 1 FROM a;
WITH a AS (SELECT 1 AS x) SELECT (WITH b AS (SELECT x + 1 AS y FROM a) SELECT y FROM b) AS z FROM a;
WITH people AS (SELECT * FROM people WHERE id > 6) SELECT id FROM people ORDER BY id;
WITH people AS (SELECT 5 AS id) SELECT id FROM people UNION ALL SELECT id FROM people;
SELECT * FROM (WITH a AS (SELECT id FROM teams) SELECT * FROM a WHERE id > 2) s ORDER BY id;
WITH root AS (SELECT DISTINCT team FROM people) SELECT COUNT(*) AS rows FROM root;
WITH r AS (SELECT p.*, row_number() OVER (PARTITION BY team ORDER BY salary DESC NULLS LAST, id) AS rn FROM people p) SELECT id, team FROM r WHERE rn = 1 ORDER BY id;
SELECT id FROM people p WHERE id = (WITH a AS (SELECT max(person) AS m FROM tags t WHERE t.person = p.id) SELECT m FROM a) ORDER BY id;
-- window functions
SELECT id, row_number() OVER (ORDER BY id), row_number() OVER (PARTITION BY team ORDER BY id DESC) FROM people ORDER BY id;
SELECT id, rank() OVER (ORDER BY salary), dense_rank() OVER (ORDER BY salary), percent_rank() OVER (ORDER BY salary), cume_dist() OVER (ORDER BY salary) FROM people ORDER BY id;
SELECT id, ntile(3) OVER (ORDER BY id), ntile(20) OVER (ORDER BY id), ntile(NULL) OVER (ORDER BY id) FROM people ORDER BY id;
SELECT id, lag(id) OVER (ORDER BY id), lead(id, 2) OVER (ORDER BY id), lag(name, 1, 'none') OVER (ORDER BY id), lead(salary, 1, 0) OVER (PARTITION BY team ORDER BY id) FROM people ORDER BY id;
SELECT id, first_value(name) OVER w, last_value(name) OVER w, nth_value(id, 2) OVER w FROM people WINDOW w AS (PARTITION BY team ORDER BY id) ORDER BY id;
SELECT id, last_value(id) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING), first_value(id) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM people ORDER BY id;
SELECT id, sum(salary) OVER (), sum(salary) OVER (PARTITION BY team), sum(salary) OVER (ORDER BY id), avg(salary) OVER (ORDER BY salary) FROM people ORDER BY id;
SELECT id, sum(took) OVER (PARTITION BY person ORDER BY id ROWS 2 PRECEDING), avg(took) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING), count(*) OVER (ORDER BY at ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM visits ORDER BY id;
SELECT id, count(*) OVER (ORDER BY page), count(took) OVER (ORDER BY page), min(took) OVER (ORDER BY page), max(page) OVER (PARTITION BY person ORDER BY id) FROM visits ORDER BY id;
SELECT id, sum(took) OVER (ORDER BY page GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW), sum(took) OVER (ORDER BY page GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM visits ORDER BY id;
SELECT id, sum(took) OVER (ORDER BY page RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING), count(*) OVER (ORDER BY page RANGE BETWEEN CURRENT ROW AND CURRENT ROW) FROM visits ORDER BY id;
SELECT id, sum(score) OVER (ORDER BY id), avg(score) OVER (ORDER BY id), stddev(salary) OVER (PARTITION BY team) FROM people ORDER BY id;
SELECT id, count(*) FILTER (WHERE salary > 500) OVER (ORDER BY id), sum(salary) FILTER (WHERE team = 1) OVER () FROM people ORDER BY id;
SELECT team, count(*), sum(count(*)) OVER (ORDER BY team), lag(count(*), 1) OVER (ORDER BY team), rank() OVER (ORDER BY sum(salary) DESC NULLS LAST) FROM people GROUP BY team ORDER BY team;
SELECT date_trunc('month', at) AS m, sum(took) AS s, sum(sum(took)) OVER (ORDER BY date_trunc('month', at) ROWS UNBOUNDED PRECEDING) AS running FROM visits GROUP BY 1 ORDER BY 1;
SELECT id, row_number() OVER (PARTITION BY team) > 0 AS positive, salary / sum(salary) OVER () AS share FROM people WHERE salary IS NOT NULL ORDER BY id;
SELECT * FROM (SELECT id, team, row_number() OVER (PARTITION BY team ORDER BY id) AS n FROM people) s WHERE n = 1 AND team > 1 ORDER BY id;
SELECT id, sum(id) OVER (w ROWS UNBOUNDED PRECEDING), count(*) OVER w2 FROM people WINDOW w AS (ORDER BY id), w2 AS (w) ORDER BY id;
SELECT id, string_agg(name, ',') OVER (ORDER BY id) FROM people ORDER BY id;
SELECT DISTINCT team, count(*) OVER (PARTITION BY team) FROM people ORDER BY team;
SELECT id, row_number() OVER (ORDER BY id) FROM nothing;
SELECT id, sum(took) OVER (ORDER BY took RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) FROM visits ORDER BY id;
-- relay: raises an error
SELECT id, ntile(0) OVER (ORDER BY id) FROM people;
-- aggregates
SELECT count(*) FILTER (WHERE team = 1), sum(salary) FILTER (WHERE team IS NULL), max(name) FILTER (WHERE id > 100) FROM people;
SELECT team, count(DISTINCT salary), sum(DISTINCT salary), avg(DISTINCT salary), count(DISTINCT born) FROM people GROUP BY team ORDER BY team;
SELECT sum(DISTINCT score), avg(DISTINCT score) FROM people;
SELECT string_agg(name, ', ' ORDER BY visits.id DESC, people.id), string_agg(name, '' ORDER BY name), string_agg(DISTINCT page, '-') FROM people LEFT JOIN visits ON person = people.id;
SELECT team, string_agg(name, '/' ORDER BY salary DESC NULLS LAST, id) FROM people GROUP BY team ORDER BY team;
SELECT string_agg(DISTINCT tag, ',' ORDER BY tag DESC), string_agg(tag, NULL ORDER BY person, tag), string_agg(t, ',') FROM tags LEFT JOIN nothing ON false;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY took), percentile_cont(0.9) WITHIN GROUP (ORDER BY took DESC), percentile_disc(0.25) WITHIN GROUP (ORDER BY took), mode() WITHIN GROUP (ORDER BY page) FROM visits;
SELECT person, percentile_cont(0.5) WITHIN GROUP (ORDER BY took), percentile_disc(0.5) WITHIN GROUP (ORDER BY page), mode() WITHIN GROUP (ORDER BY took) FROM visits GROUP BY person ORDER BY person;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY salary), percentile_disc(1) WITHIN GROUP (ORDER BY born), percentile_cont(0.3) WITHIN GROUP (ORDER BY v) FROM people LEFT JOIN nothing ON false;
SELECT stddev(took), stddev_pop(took), variance(took), var_pop(took), stddev(salary), var_samp(salary), stddev_samp(score), var_pop(score) FROM visits LEFT JOIN people p ON p.id = person;
SELECT team, stddev(p.id), variance(salary), var_pop(budget) FROM people p LEFT JOIN teams t ON t.id = team GROUP BY team ORDER BY team;
SELECT bool_and(salary > 5), bool_or(team = 9), every(id > 1) FROM people;
SELECT corr(score, salary), covar_pop(score, id), covar_samp(score, id), regr_slope(score, id), regr_intercept(score, id), regr_r2(score, id), regr_count(score, id), regr_avgx(score, id), regr_avgy(score, id), regr_sxx(score, id), regr_syy(score, id), regr_sxy(score, id) FROM people;
SELECT DISTINCT ON (team) team, id, salary FROM people ORDER BY team, salary DESC NULLS LAST, id;
SELECT DISTINCT ON (team, boss) id FROM people ORDER BY boss, team, id DESC;
SELECT DISTINCT ON (page) page, person, id FROM visits WHERE person IS NOT NULL ORDER BY page DESC, id LIMIT 3;
SELECT count(*) FROM (SELECT DISTINCT ON (page) id FROM visits ORDER BY page, id) s;
SELECT team, boss, count(*), sum(salary) FROM people GROUP BY ROLLUP (team, boss) ORDER BY 1, 2, 3;
SELECT team, boss, count(*), GROUPING(team, boss), GROUPING(boss) FROM people GROUP BY CUBE (team, boss) ORDER BY 4, 1, 2;
SELECT team, count(*) FROM people GROUP BY GROUPING SETS ((team), ()) ORDER BY 1 NULLS LAST, 2;
-- relay: a key that folds to a constant is one above the sets
SELECT coalesce(100, team) AS k, count(*) FROM people GROUP BY ROLLUP (coalesce(100, team)) HAVING coalesce(100, team) IS NULL ORDER BY 1, 2;
-- relay: a key that folds to a constant is one above the sets
SELECT CASE WHEN 1 = 1 THEN 'a' ELSE team::text END AS k, count(*) FROM people GROUP BY ROLLUP (1) ORDER BY 1 DESC, 2;
-- relay: a key that folds to a constant is one above the sets
SELECT count(*) FROM people GROUP BY GROUPING SETS ((team > 1 OR true), ()) HAVING (team > 1 OR true) IS NOT NULL ORDER BY 1;
SELECT coalesce(coalesce(team, 0)::text, 'all') AS k, count(*) FROM people GROUP BY ROLLUP (coalesce(team, 0)) ORDER BY 1, 2;
SELECT CASE WHEN team > 1 THEN 'a' ELSE 'b' END AS k, count(*) FROM people GROUP BY ROLLUP (1) ORDER BY 1, 2;
SELECT team + 1 AS k, count(*) FROM people GROUP BY CUBE (team + 1) ORDER BY 1, 2;
SELECT team, boss, max(id) FROM people GROUP BY team, GROUPING SETS ((boss), ()) ORDER BY 1, 2, 3;
SELECT team AS t, GROUPING(team) AS g, count(*) FROM people GROUP BY ROLLUP (t) HAVING count(*) > 1 ORDER BY g, t;
SELECT count(*), sum(v) FROM nothing GROUP BY GROUPING SETS ((), (id)) ORDER BY 1;
SELECT team, GROUPING(team) FROM people GROUP BY team ORDER BY 1;
-- relay: it is determined by a group, and none itself
SELECT team, GROUPING(team) FROM people GROUP BY id ORDER BY 1;
SELECT CASE WHEN GROUPING(team) = 1 THEN 'all' ELSE team::text END AS label, sum(salary) FROM people GROUP BY ROLLUP (team) ORDER BY 1;
SELECT t.id, t.title, count(*), sum(p.salary) FROM people p JOIN teams t ON t.id = p.team GROUP BY ROLLUP (t.id, t.title) ORDER BY 1, 2, 3;
SELECT p.team, t.city, count(*), GROUPING(p.team, t.city) FROM people p JOIN teams t ON t.id = p.team GROUP BY CUBE (p.team, t.city) ORDER BY 4, 1, 2;
SELECT DISTINCT t.id, count(*) FROM teams t JOIN people p ON p.team = t.id JOIN visits v ON v.person = p.id GROUP BY GROUPING SETS ((t.id, p.name), (p.name), ()) ORDER BY 1 DESC, 2;
SELECT p.team, count(*), rank() OVER (PARTITION BY p.team ORDER BY count(*)), sum(count(*)) OVER (ORDER BY p.team NULLS FIRST) FROM people p JOIN teams t ON t.id = p.team GROUP BY ROLLUP (p.team, p.boss) ORDER BY 1, 2, 3, 4;
SELECT team, count(*) FROM people WHERE team IN (SELECT id FROM teams) GROUP BY ROLLUP (team) HAVING team IS NULL OR team > 1 ORDER BY team NULLS FIRST;
SELECT v.person, v.page, max(took) FROM visits v JOIN tags g ON g.person = v.person GROUP BY ROLLUP (v.page, v.person) ORDER BY v.page, v.person, 3;
SELECT s.id, count(*) FROM (SELECT t.id, p.salary FROM teams t, people p WHERE p.team = t.id) s GROUP BY ROLLUP (s.id) ORDER BY s.id, 2;
SELECT p.team, t.title FROM people p LEFT JOIN teams t ON t.id = p.team GROUP BY CUBE (p.team, t.title) ORDER BY 1, 2;
-- relay: VALUES of one row are a constant to PostgreSQL, as soon as they are pulled up
SELECT DISTINCT team FROM people WHERE team IN (VALUES (2)) GROUP BY ROLLUP (team) ORDER BY 1;
-- relay: likewise
SELECT team, count(*) FROM people p WHERE EXISTS (SELECT 1 FROM (VALUES (2)) v (a) WHERE v.a = p.team) GROUP BY ROLLUP (team) ORDER BY 1 NULLS FIRST;
-- relay: likewise
SELECT s.team, count(*) FROM (SELECT p.* FROM people p JOIN (VALUES (2)) v (a) ON v.a = p.team) s GROUP BY ROLLUP (s.team) ORDER BY 1 NULLS FIRST;
-- relay: likewise
WITH c (a) AS (VALUES (2)) SELECT s.team, rank() OVER (ORDER BY s.team NULLS FIRST) FROM (SELECT p.* FROM people p, c WHERE c.a = p.team) s GROUP BY ROLLUP (s.team) ORDER BY 2;
-- relay: likewise of what was equated on the way
SELECT team, count(*) FROM people WHERE team IN (SELECT t.id FROM teams t, (VALUES (2)) v (a) WHERE v.a = t.id) GROUP BY ROLLUP (team) ORDER BY 1 NULLS FIRST;
-- relay: a value of the level further out
SELECT id, (SELECT string_agg(coalesce(q.x::text, 'N'), ',') FROM (SELECT p.team AS x, count(*) FROM people p WHERE p.team = (SELECT max(v.team) FROM people v WHERE v.boss = t.id) GROUP BY ROLLUP (p.team) ORDER BY p.team NULLS FIRST) q) FROM teams t ORDER BY id;
-- relay: the same column twice
SELECT DISTINCT k, kk FROM (SELECT t.id AS k, v.kk FROM teams t, LATERAL (VALUES (t.id)) v (kk)) s GROUP BY CUBE (k, kk) ORDER BY 1, 2;
-- relay: two keys of one class
SELECT p.team, t.id, count(*) FROM people p JOIN teams t ON t.id = p.team GROUP BY CUBE (p.team, t.id) ORDER BY 1, 2, 3;
-- relay: it is equal to a constant
SELECT p.team, count(*) FROM people p JOIN teams t ON t.id = p.team WHERE t.id = 2 GROUP BY ROLLUP (p.team) ORDER BY 1, 2;
-- functions in FROM, LATERAL
SELECT * FROM generate_series(1, 5) AS n ORDER BY n;
SELECT g, count(v.id) FROM generate_series(1, 12, 4) g LEFT JOIN visits v ON v.person = g GROUP BY g ORDER BY g;
SELECT d::date, count(v.id) FROM generate_series(timestamp '2024-01-01', timestamp '2024-01-05', interval '1 day') AS d LEFT JOIN visits v ON v.at >= d AND v.at < d + interval '1 day' GROUP BY d ORDER BY d;
SELECT * FROM generate_series(date '2024-02-27', date '2024-03-02', interval '1 day') AS s (day) ORDER BY day;
SELECT * FROM generate_series(3, 1, -1) n ORDER BY n;
SELECT count(*) FROM generate_series(5, 1);
SELECT count(*) FROM generate_series(1, 100000::bigint) n WHERE n % 7 = 0;
-- relay: raises an error
SELECT * FROM generate_series(1, 5, 0);
SELECT t.id, s.id FROM teams t CROSS JOIN LATERAL (SELECT p.id FROM people p WHERE p.team = t.id ORDER BY p.salary DESC NULLS LAST, p.id LIMIT 1) s ORDER BY 1;
SELECT t.id, s.n, s.m FROM teams t LEFT JOIN LATERAL (SELECT count(*) AS n, max(p.id) AS m FROM people p WHERE p.team = t.id) s ON true ORDER BY 1;
SELECT t.id, s.id FROM teams t LEFT JOIN LATERAL (SELECT p.id FROM people p WHERE p.team = t.id AND p.id > 1) s ON true ORDER BY 1, 2;
SELECT t.id, s.x FROM teams t, LATERAL (SELECT t.budget + p.id AS x FROM people p WHERE p.team = t.id) s ORDER BY 1, 2;
-- shapes of dashboards and layers
SELECT COUNT(*) AS rowcount FROM (SELECT team, SUM(salary) AS s FROM people GROUP BY team LIMIT 50000) AS rowcount_qry;
SELECT name, salary FROM people JOIN (SELECT team AS team__, SUM(salary) AS mme_inner__ FROM people GROUP BY team ORDER BY mme_inner__ DESC NULLS LAST LIMIT 2) AS series_limit ON team = team__ ORDER BY name;
SELECT CASE WHEN (NOT series_limit.team__ IS NULL) THEN title ELSE 'Others' END AS grp, count(*) FROM teams LEFT JOIN (SELECT team AS team__, count(*) AS n FROM people GROUP BY team ORDER BY n DESC, team LIMIT 2) AS series_limit ON id = team__ GROUP BY CASE WHEN (NOT series_limit.team__ IS NULL) THEN title ELSE 'Others' END ORDER BY 1;
SELECT "source"."team" AS "team", SUM("source"."n") AS "sum" FROM (SELECT "public"."people"."team" AS "team", COUNT(*) AS "n" FROM "public"."people" GROUP BY "public"."people"."team") AS "source" GROUP BY "source"."team" ORDER BY "source"."team" ASC;
select "_"."c","_"."a0" from (select "rows"."team" as "c", sum("rows"."salary") as "a0" from (select "$Table"."team" as "team", "$Table"."salary" as "salary" from "public"."people" "$Table") "rows" group by "team") "_" where not "_"."a0" is null order by "_"."c" limit 1000001;
SELECT t0.title, t1.n FROM teams t0 INNER JOIN (SELECT team, COUNT(1) AS n FROM people GROUP BY 1) t1 ON (t0.id IS NOT DISTINCT FROM t1.team) ORDER BY 1;
SELECT 1 AS "a" FROM "people" WHERE "people"."team" = 1 LIMIT 1;
SELECT "people"."id" FROM "people" WHERE NOT (EXISTS(SELECT 1 AS "a" FROM "tags" U0 WHERE U0."person" = ("people"."id") LIMIT 1)) ORDER BY 1 LIMIT 21;
SELECT COUNT(*) FROM (SELECT "id" FROM "people" WHERE 1=1 OFFSET 2) AS "sub";
SELECT page, person, n FROM (SELECT page, person, count(*) AS n, dense_rank() OVER (PARTITION BY page ORDER BY count(*) DESC, person) AS r FROM visits WHERE person IS NOT NULL GROUP BY page, person) s WHERE r <= 2 ORDER BY page, r;
SELECT id, NULL::text || name AS a, name || '-' || NULL::text AS b, lpad(name, NULL::int) AS c FROM people ORDER BY id;
SELECT id, width_bucket(salary, 0, 2000, 4), width_bucket(score, -5::float8, 5::float8, 10), width_bucket(salary, 1200.00, 10, 7), width_bucket(id, 1, 9, 3) FROM people ORDER BY id;
SELECT width_bucket(took, 0, 100, 10) AS b, count(*) FROM visits GROUP BY 1 ORDER BY 1 NULLS FIRST;
-- relay: an error that upstream raises
SELECT width_bucket(salary, 5, 5, 4) FROM people ORDER BY id;
-- tied to the outer row by more than equalities
SELECT v.id, (SELECT count(*) FROM visits w WHERE w.person = v.person AND w.at <= v.at) AS nth, (SELECT sum(w.took) FROM visits w WHERE w.person = v.person AND w.id <= v.id) AS running FROM visits v ORDER BY 1;
SELECT id, (SELECT count(*) FROM people q WHERE q.salary > p.salary) + 1 AS place FROM people p ORDER BY place, id;
SELECT id, (SELECT w.page FROM visits w WHERE w.person = p.id AND w.took < p.salary ORDER BY w.at DESC LIMIT 1) FROM people p ORDER BY id;
SELECT v.id, (SELECT p.name FROM people p WHERE p.id < v.person OR v.person IS NULL ORDER BY p.id DESC LIMIT 1 OFFSET 1) FROM visits v ORDER BY id;
SELECT id, (SELECT max(x) FROM (SELECT w.took AS x FROM visits w WHERE w.person = p.id UNION ALL SELECT p.team) u) FROM people p ORDER BY id;
SELECT id, (SELECT string_agg(x, ',' ORDER BY x) FROM (SELECT t.tag AS x FROM tags t WHERE t.person = p.id UNION SELECT p.name) u) FROM people p ORDER BY id;
SELECT id, ARRAY(SELECT w.id FROM visits w WHERE w.person = p.id AND w.took > p.score ORDER BY w.id DESC LIMIT 3) FROM people p ORDER BY id;
SELECT id FROM people p WHERE EXISTS (SELECT 1 FROM visits w WHERE w.person = p.id GROUP BY w.page HAVING count(*) > 2) ORDER BY id;
SELECT id FROM people p WHERE EXISTS (SELECT 1 FROM visits w WHERE w.person = p.id HAVING count(*) > 13) ORDER BY id;
SELECT id FROM people p WHERE NOT EXISTS (SELECT 1 FROM visits w WHERE w.person = p.id HAVING count(*) > 13) ORDER BY id;
SELECT id, EXISTS (SELECT count(*) FROM visits w WHERE w.person = p.id) AS always FROM people p ORDER BY id;
SELECT id FROM people p WHERE p.team IN (SELECT t.id FROM teams t WHERE t.budget > p.salary ORDER BY t.budget LIMIT 2) ORDER BY id;
SELECT id, p.team NOT IN (SELECT t.id FROM teams t WHERE t.budget > p.salary ORDER BY t.budget LIMIT 2) FROM people p ORDER BY id;
SELECT id FROM people p WHERE p.salary > (SELECT avg(q.salary) FROM people q WHERE q.team = p.team OR q.boss = p.id) ORDER BY id;
SELECT t.id, s.* FROM teams t CROSS JOIN LATERAL (SELECT p.id AS person, p.salary FROM people p WHERE p.team >= t.id ORDER BY p.salary DESC NULLS LAST, p.id LIMIT 2) s ORDER BY 1, 2;
SELECT t.id, s.* FROM teams t LEFT JOIN LATERAL (SELECT count(*) AS n, sum(p.salary) AS total FROM people p WHERE p.team = t.id AND p.salary < t.budget / 4) s ON true ORDER BY 1;
SELECT t.id, s.id FROM teams t LEFT JOIN LATERAL (SELECT p.id FROM people p WHERE p.team = t.id AND p.salary < t.budget / 4 ORDER BY 1 LIMIT 1) s ON s.id > 1 WHERE t.city = 'oslo' ORDER BY 1;
SELECT p.id, v.k, v.x FROM people p, LATERAL (VALUES ('id', p.id::text), ('name', p.name), ('team', p.team::text)) v (k, x) WHERE p.id < 4 ORDER BY 1, 2;
SELECT p.id, d.double, e.more FROM people p CROSS JOIN LATERAL (SELECT p.salary * 2 AS double) d CROSS JOIN LATERAL (SELECT d.double + p.id AS more) e ORDER BY 1;
SELECT p.id, s.id, s.n FROM people p JOIN LATERAL (SELECT w.id, row_number() OVER (ORDER BY w.took DESC NULLS LAST, w.id) AS n FROM visits w WHERE w.person BETWEEN p.id AND p.id + 1) s ON s.n <= 2 ORDER BY 1, 3;
SELECT p.id, s.page FROM people p JOIN LATERAL (SELECT DISTINCT w.page FROM visits w WHERE w.person = p.id AND w.took > p.team * 20) s ON true ORDER BY 1, 2;
-- a condition on what one side has in another type comes after that side's columns
SELECT r FROM (SELECT id, 10 / (id - 1) AS r FROM people UNION ALL SELECT id, 2 FROM teams) q WHERE id = 3 ORDER BY r;
-- relay: an error that upstream raises
SELECT r FROM (SELECT id, 10 / (id - 1) AS r FROM people UNION ALL SELECT budget, 2 FROM teams) q WHERE id = 3 ORDER BY r;
-- what nobody reads of a set operation is computed all the same
SELECT id FROM (SELECT id, 10 / id AS r FROM people UNION ALL SELECT id, 0.5 FROM teams) q ORDER BY id;
-- relay: an error that upstream raises
SELECT count(*) FROM (SELECT 10 / (id - 1) AS r FROM people UNION ALL SELECT id FROM teams LIMIT 50000) q;
-- relay: an error that upstream raises
SELECT id FROM (SELECT id, 10 / (id - 1) AS r FROM people UNION ALL SELECT id, 0.5 FROM teams) q ORDER BY id;
-- what stands before a JOIN hides columns of outer queries from LATERAL within it
SELECT i.id, s.y FROM holes i, teams b CROSS JOIN LATERAL (SELECT budget AS y) s ORDER BY 1, 2;
SELECT i.id, s.y FROM holes i JOIN (teams b CROSS JOIN LATERAL (SELECT b.budget AS y) s) ON b.id = i.id ORDER BY 1, 2;
SELECT i.id, s.y FROM holes i, (SELECT b.id AS k, g AS y FROM teams b, generate_series(1, b.id) g) s WHERE s.k = i.id ORDER BY 1, 2;
-- relay: LATERAL within a JOIN names what stands before that
SELECT o.id, (SELECT sum(s.y) FROM holes i, teams b CROSS JOIN LATERAL (SELECT v AS y) s) FROM holes o ORDER BY 1;
-- relay: likewise
SELECT o.id, (SELECT sum(s.y) FROM holes i JOIN (teams b CROSS JOIN LATERAL (SELECT v AS y) s) ON true) FROM holes o ORDER BY 1;
-- relay: likewise
SELECT o.id, (SELECT sum(s.y) FROM holes i JOIN ((teams b CROSS JOIN LATERAL (SELECT i.v AS y) s) CROSS JOIN tags) ON true) FROM holes o ORDER BY 1;
-- relay: likewise
SELECT o.id, (SELECT count(*) FROM holes i JOIN (teams b CROSS JOIN generate_series(1, v) g) ON true) FROM holes o ORDER BY 1;
-- relay: an ambiguous name
SELECT i.v, s.y FROM holes i, teams b CROSS JOIN LATERAL (SELECT id AS y) s ORDER BY 1, 2;
-- relay: what a RIGHT JOIN's function must not name
SELECT o.id, (SELECT count(*) FROM holes i RIGHT JOIN generate_series(1, v) g ON true) FROM holes o ORDER BY 1;
SELECT d::date, (SELECT count(*) FROM visits v WHERE v.at <= d) AS so_far FROM generate_series(timestamp '2024-01-01', timestamp '2024-01-09', interval '1 day') d ORDER BY 1;
-- relay: an aggregate of the outer query
SELECT team, (SELECT count(*) FROM visits w WHERE w.took > max(p.salary) / 10) AS above FROM people p GROUP BY team ORDER BY team;
SELECT id, (SELECT count(*) FROM nothing n WHERE n.v > p.id) AS none, (SELECT max(n.v) FROM nothing n WHERE n.v > p.id) AS no_value FROM people p ORDER BY id;
WITH w AS (SELECT * FROM people WHERE id < 6) SELECT w.id, (SELECT count(*) FROM visits v WHERE v.person <= w.id) FROM w ORDER BY 1;
SELECT t.id, (SELECT min((SELECT count(*) FROM visits v WHERE v.person = p.id AND v.took > p.salary / 20)) FROM people p WHERE p.team = t.id) AS least FROM teams t ORDER BY 1;
SELECT a.id, b.id FROM people a JOIN people b ON b.id = (SELECT min(c.id) FROM people c WHERE c.id > a.id) ORDER BY 1;
SELECT h.id, (SELECT count(*) FROM visits v WHERE v.person > h.v) FROM holes h ORDER BY h.id;
SELECT id FROM people p ORDER BY (SELECT count(*) FROM people q WHERE q.born < p.born), id;
-- relay: two rows are an error
SELECT id, (SELECT w.id FROM visits w WHERE w.person = p.id AND w.took > p.id) FROM people p ORDER BY id;
SELECT id, (SELECT sum(w.took * p.id) FROM visits w WHERE w.person = p.id) AS weighted, (SELECT count(*) FILTER (WHERE w.took > p.salary / 20) FROM visits w WHERE w.person = p.id) AS n FROM people p ORDER BY id;
SELECT id, (SELECT sum(CASE WHEN q.salary > p.salary THEN 1 ELSE 0 END) FROM people q) FROM people p ORDER BY id;
SELECT id, (SELECT q.id FROM people q WHERE q.id <> p.id ORDER BY abs(q.team - p.team) NULLS LAST, q.id LIMIT 1) AS nearest FROM people p ORDER BY id;
SELECT id, (SELECT count(*) FROM people q WHERE q.score > p.score) AS above FROM people p ORDER BY id;
SELECT id, salary >= ALL (SELECT q.salary FROM people q WHERE q.team = p.team) AS best, salary > ANY (SELECT q.salary FROM people q WHERE q.team = p.team) AS better, salary <> ANY (SELECT q.salary FROM people q) AS other FROM people p ORDER BY id;
SELECT id FROM people WHERE salary <= ALL (SELECT budget FROM teams WHERE budget IS NOT NULL) AND id < SOME (SELECT person FROM visits) ORDER BY id;
SELECT id, id > ALL (SELECT v FROM nothing) AS every_none, id < ANY (SELECT v FROM nothing) AS any_none, id > ALL (SELECT v FROM holes) AS a, name LIKE ANY (SELECT tag || '%' FROM tags) AS l FROM people ORDER BY id;
SELECT p.id, v.id AS latest FROM people p LEFT JOIN visits v ON v.person = p.id AND v.at = (SELECT max(w.at) FROM visits w WHERE w.person = p.id) ORDER BY 1, 2;
SELECT p.id, v.id AS latest FROM people p LEFT JOIN visits v ON v.person = p.id AND v.id = (SELECT max(w.id) FROM visits w WHERE w.page = v.page AND w.person = p.id) AND v.took > 20 ORDER BY 1, 2;
SELECT t.id, p.id FROM teams t LEFT JOIN people p ON p.team = t.id AND p.id IN (SELECT g.person FROM tags g WHERE g.weight > 1) ORDER BY 1, 2;
SELECT t.id, p.id FROM teams t LEFT JOIN people p ON p.team = t.id AND NOT EXISTS (SELECT 1 FROM tags g WHERE g.person = p.id AND g.weight >= t.id) WHERE t.id < 4 ORDER BY 1, 2;
SELECT t.id, p.id, v.id FROM teams t LEFT JOIN people p ON p.team = t.id AND EXISTS (SELECT 1 FROM tags g WHERE g.person = p.id) LEFT JOIN visits v ON v.person = p.id AND v.took >= ALL (SELECT w.took FROM visits w WHERE w.person = p.id AND w.took IS NOT NULL) ORDER BY 1, 2, 3;
SELECT t.id, count(p.id) FROM teams t LEFT JOIN people p ON p.team = t.id AND p.salary > (SELECT avg(q.salary) FROM people q) GROUP BY t.id ORDER BY 1;
SELECT count(DISTINCT (person, page)), count(DISTINCT (page, at)), count(DISTINCT ROW(person)) FROM visits;
SELECT person, count(DISTINCT (page, took)), count(DISTINCT (page, took)) FILTER (WHERE took > 2) FROM visits GROUP BY person ORDER BY person;
SELECT count(DISTINCT (name, born)), count(DISTINCT (boss, name, id > 3)) FROM people;
-- relay: equal numerics are written in several ways
SELECT count(DISTINCT (salary * 1.0, id)) FROM people;
SELECT id FROM people p WHERE EXISTS (SELECT FROM visits v WHERE v.person = p.id) ORDER BY 1;
SELECT EXISTS (SELECT FROM people WHERE id = 2), EXISTS (SELECT FROM nothing), NOT EXISTS (SELECT FROM teams t WHERE t.id > 100 GROUP BY t.city);
-- FETCH FIRST WITH TIES; equal rows come in any order, so that of most is asked for around them
SELECT salary FROM people ORDER BY salary FETCH FIRST 3 ROWS WITH TIES;
SELECT salary FROM people ORDER BY salary DESC FETCH NEXT ROW WITH TIES;
SELECT boss FROM people ORDER BY team, boss DESC OFFSET 1 FETCH FIRST 2 ROWS WITH TIES;
SELECT 7 FROM people ORDER BY salary DESC NULLS LAST FETCH FIRST ROW WITH TIES;
SELECT * FROM (SELECT id, salary FROM people ORDER BY salary FETCH FIRST 3 ROWS WITH TIES) q ORDER BY 1, 2;
SELECT * FROM (SELECT id, salary FROM people ORDER BY salary DESC FETCH NEXT ROW WITH TIES) q ORDER BY 1, 2;
SELECT * FROM (SELECT id, salary FROM people ORDER BY salary DESC NULLS LAST FETCH NEXT 1 ROW WITH TIES) q ORDER BY 1, 2;
SELECT * FROM (SELECT id FROM people ORDER BY team FETCH FIRST (1 + 1) ROWS WITH TIES) q ORDER BY 1;
SELECT person FROM visits ORDER BY person NULLS FIRST OFFSET 3 ROWS FETCH FIRST 5 ROWS WITH TIES;
SELECT page, took FROM visits ORDER BY took DESC, page OFFSET 8 FETCH FIRST 4 ROWS WITH TIES;
SELECT page, took % 7 FROM visits WHERE took > 3 ORDER BY page DESC, took % 7 FETCH FIRST 30 ROWS WITH TIES;
SELECT * FROM (SELECT id FROM people ORDER BY born, score DESC FETCH FIRST 1 ROW WITH TIES) q ORDER BY 1;
SELECT id FROM people ORDER BY id FETCH FIRST 0 ROWS WITH TIES;
SELECT id FROM people ORDER BY team OFFSET 2 FETCH FIRST 0 ROWS WITH TIES;
SELECT id FROM people ORDER BY team OFFSET 99 FETCH FIRST 2 ROWS WITH TIES;
SELECT team FROM people ORDER BY team OFFSET 1 FETCH FIRST 99 ROWS WITH TIES;
SELECT * FROM (SELECT team FROM people ORDER BY team FETCH FIRST (NULL::int) ROWS WITH TIES) q ORDER BY 1;
SELECT v FROM nothing ORDER BY v FETCH FIRST 2 ROWS WITH TIES;
SELECT * FROM (SELECT id FROM people ORDER BY 'x'::text FETCH FIRST ROW WITH TIES) q ORDER BY 1;
(SELECT team FROM people ORDER BY team) FETCH FIRST ROW WITH TIES;
SELECT * FROM (SELECT team, rank() OVER (ORDER BY salary) AS r FROM people ORDER BY r FETCH FIRST 2 ROWS WITH TIES) q ORDER BY 1, 2;
SELECT * FROM (SELECT id FROM people ORDER BY count(*) OVER (PARTITION BY team) DESC FETCH FIRST ROW WITH TIES) q ORDER BY 1;
SELECT * FROM (SELECT id FROM people ORDER BY (SELECT city FROM teams t WHERE t.id = team) FETCH FIRST ROW WITH TIES) q ORDER BY 1;
SELECT * FROM (SELECT id, (SELECT count(*) FROM tags g WHERE g.person = p.id) FROM people p ORDER BY salary DESC NULLS LAST FETCH FIRST ROW WITH TIES) q ORDER BY 1, 2;
SELECT * FROM (SELECT team, count(*) FROM people GROUP BY team ORDER BY count(*) DESC FETCH FIRST ROW WITH TIES) q ORDER BY 1, 2;
SELECT * FROM (SELECT DISTINCT team, boss FROM people ORDER BY team FETCH FIRST 1 ROW WITH TIES) q ORDER BY 1, 2;
SELECT DISTINCT ON (team) team, salary FROM people ORDER BY team, salary FETCH FIRST 2 ROWS WITH TIES;
SELECT DISTINCT ON (team, boss) team, boss, id FROM people ORDER BY team, boss, id FETCH FIRST 2 ROWS WITH TIES;
SELECT team FROM people UNION ALL SELECT v FROM holes ORDER BY 1 FETCH FIRST 3 ROWS WITH TIES;
(SELECT team FROM people ORDER BY team FETCH FIRST ROW WITH TIES) UNION ALL (SELECT v FROM holes ORDER BY v DESC FETCH FIRST ROW WITH TIES) ORDER BY 1;
SELECT id FROM people INTERSECT (SELECT person FROM visits ORDER BY person FETCH FIRST ROW WITH TIES) ORDER BY 1 FETCH FIRST 2 ROWS WITH TIES;
VALUES (1), (1), (2) ORDER BY 1 FETCH FIRST ROW WITH TIES;
WITH q AS (SELECT person, took FROM visits ORDER BY person FETCH FIRST 3 ROWS WITH TIES) SELECT count(*), sum(q.took) FROM q JOIN q r USING (person);
SELECT count(*), sum(took) FROM (SELECT took FROM visits ORDER BY page FETCH FIRST 3 ROWS WITH TIES) q WHERE took > 10;
SELECT id FROM people WHERE salary IN (SELECT salary FROM people ORDER BY salary DESC NULLS LAST FETCH FIRST ROW WITH TIES) ORDER BY id;
SELECT id FROM people p WHERE EXISTS (SELECT 1 FROM tags g WHERE g.person = p.id ORDER BY g.weight FETCH FIRST 2 ROWS WITH TIES) ORDER BY id;
SELECT (SELECT p.id FROM people p ORDER BY p.salary FETCH FIRST ROW WITH TIES) AS least, t.id FROM teams t ORDER BY t.id;
SELECT t.id, s.id, s.salary FROM teams t JOIN LATERAL (SELECT p.id, p.salary FROM people p WHERE p.team = t.id ORDER BY p.salary DESC FETCH FIRST ROW WITH TIES) s ON true ORDER BY 1, 2;
SELECT t.id, s.n FROM teams t LEFT JOIN LATERAL (SELECT count(*) AS n FROM (SELECT 1 FROM visits v WHERE v.person >= t.id ORDER BY v.page FETCH FIRST 2 ROWS WITH TIES) q) s ON true ORDER BY 1;
SELECT p.id, (SELECT sum(q.took) FROM (SELECT v.took FROM visits v WHERE v.person = p.id ORDER BY v.page DESC FETCH FIRST 2 ROWS WITH TIES) q) FROM people p ORDER BY 1;
SELECT p.id, s.id FROM people p JOIN LATERAL (SELECT v.id FROM visits v WHERE v.person >= p.id ORDER BY v.took, v.id FETCH FIRST 0 ROWS WITH TIES) s ON true ORDER BY 1, 2;
-- relay: an offset leaves open which of the ties come
SELECT t.id, s.id FROM teams t JOIN LATERAL (SELECT p.id FROM people p WHERE p.team = t.id ORDER BY p.salary OFFSET 1 FETCH FIRST ROW WITH TIES) s ON true ORDER BY 1, 2;
-- relay: an error that upstream raises
SELECT p.id, (SELECT v.id FROM visits v WHERE v.person = p.id ORDER BY v.page FETCH FIRST ROW WITH TIES) FROM people p ORDER BY 1;
-- relay: an error that upstream raises
SELECT id FROM people FETCH FIRST 2 ROWS WITH TIES;
-- relay: an error that upstream raises
(SELECT team FROM people FETCH FIRST ROW WITH TIES) UNION ALL SELECT 1 ORDER BY 1;
-- relay: an error that upstream raises
SELECT id FROM people ORDER BY id FETCH FIRST NULL ROWS WITH TIES;
-- relay: an error that upstream raises
SELECT id FROM people ORDER BY id FETCH FIRST -1 ROWS WITH TIES;
-- relay: an error that upstream raises
SELECT id FROM people ORDER BY id FETCH FIRST 1 ROW WITH TIES FOR UPDATE SKIP LOCKED;
-- rows of the kept side are chosen before they are joined and grouped
SELECT t.id, t.title, count(p.id) AS n FROM teams t LEFT JOIN people p ON p.team = t.id GROUP BY t.id ORDER BY t.id LIMIT 2;
SELECT t.title, count(p.id) AS n, sum(p.salary), string_agg(p.name, ',' ORDER BY p.id) FROM teams t LEFT JOIN people p ON p.team = t.id GROUP BY t.id ORDER BY t.title DESC NULLS LAST, t.id LIMIT 2 OFFSET 1;
SELECT t.id, t.budget, count(DISTINCT p.id), count(DISTINCT v.id) FILTER (WHERE v.took > 1) FROM teams t LEFT JOIN people p ON p.team = t.id LEFT JOIN visits v ON v.person = p.id GROUP BY t.id, t.budget ORDER BY t.budget, t.id LIMIT 3;
SELECT DISTINCT p.id, p.name FROM people p LEFT JOIN visits v ON v.person = p.id ORDER BY p.name DESC, p.id LIMIT 3;
SELECT DISTINCT p.team FROM people p LEFT JOIN visits v ON v.person = p.id ORDER BY p.team LIMIT 2;
SELECT p.id, t.title, count(v.id) FROM people p LEFT JOIN teams t ON t.id = p.team LEFT JOIN visits v ON v.person = p.id GROUP BY p.id, t.title ORDER BY p.id DESC LIMIT 4;
SELECT p.id, t.title, count(v.id) FROM people p LEFT JOIN teams t ON t.id = p.team LEFT JOIN visits v ON v.person = p.id GROUP BY p.id, t.title ORDER BY t.title, p.id LIMIT 4;
SELECT p.id, t.title, count(v.id) FROM people p JOIN teams t ON t.id = p.team LEFT JOIN visits v ON v.person = p.id GROUP BY p.id, t.title ORDER BY p.id LIMIT 2 OFFSET 1;
SELECT t.id, t.title, count(*) FROM teams t JOIN people p ON p.team = t.id LEFT JOIN tags g ON g.person = p.id GROUP BY t.id ORDER BY t.id LIMIT 1;
SELECT t.id, p.team, count(*) FROM teams t LEFT JOIN people p ON p.team >= t.id GROUP BY t.id, p.team ORDER BY t.id, p.team LIMIT 3;
SELECT t.id, count(p.id) FROM teams t LEFT JOIN people p ON p.team = t.id GROUP BY t.id HAVING count(p.id) > 1 ORDER BY t.id LIMIT 1;
SELECT t.id, count(p.id) FROM teams t LEFT JOIN people p ON p.team = t.id GROUP BY t.id ORDER BY count(p.id) DESC, t.id LIMIT 1;
SELECT t.id, count(p.id) FROM teams t LEFT JOIN people p ON p.team = t.id GROUP BY t.id ORDER BY t.id FETCH FIRST 2 ROWS WITH TIES;
SELECT p.id, p.name, t.title FROM people p LEFT JOIN teams t ON t.id = p.team ORDER BY p.salary DESC NULLS LAST, p.id LIMIT 3;
SELECT p.id, t.title, u.title FROM people p LEFT JOIN teams t ON t.id = p.team LEFT JOIN teams u ON u.id = t.id + 1 ORDER BY p.id OFFSET 1 LIMIT 3;
-- relay: an error that upstream raises
SELECT t.id, sum(1 / (t.id - 3)), count(p.id) FROM teams t LEFT JOIN people p ON p.team = t.id GROUP BY t.id ORDER BY t.title, t.id LIMIT 1;
-- rows by keys of several columns, and by ranges that a comparison of rows says
SELECT id FROM visits WHERE person = 3 OR page = 'p4' ORDER BY id;
SELECT id FROM visits WHERE (person, took) IN ((1, 37), (2, 74), (3, 11), (NULL, 1)) ORDER BY id;
SELECT id FROM visits WHERE (person = 2 AND took > 50) OR (page = 'p1' AND person IN (4, 5)) OR id = 7 ORDER BY id;
SELECT id FROM visits WHERE person = 1 OR person IS NULL ORDER BY id;
SELECT id, at FROM visits WHERE (at, id) > (timestamp '2024-01-10 05:00', 32) ORDER BY at, id LIMIT 5;
SELECT id, at FROM visits WHERE (at, id) <= (timestamp '2024-01-10 05:00', 32) ORDER BY at DESC, id DESC LIMIT 5;
SELECT id, at FROM visits WHERE id BETWEEN 17 AND 23 AND at > timestamp '2024-01-06' ORDER BY at DESC LIMIT 3;
SELECT count(*), min(took), max(id) FROM visits WHERE id > 100 AND page LIKE 'p%' AND at < timestamp '2024-02-03';
SELECT id FROM visits WHERE person = 5 AND page LIKE '%3' ORDER BY id;
SELECT id FROM visits WHERE person = 5 AND page ~ '^p[13]$' ORDER BY id;
SELECT p.id, x.at FROM people p LEFT JOIN LATERAL (SELECT v.at FROM visits v WHERE v.person = p.id ORDER BY v.at DESC LIMIT 1) x ON true WHERE p.id > 1 ORDER BY p.id LIMIT 3;
SELECT p.id, x.took FROM people p LEFT JOIN (SELECT person, took, row_number() OVER (PARTITION BY person ORDER BY id DESC) AS n FROM visits) x ON x.person = p.id AND x.n = 1 ORDER BY p.id DESC LIMIT 3;
SELECT p.id, p.name, string_agg(DISTINCT x.page, ',') FROM people p LEFT JOIN LATERAL (SELECT v.page FROM visits v WHERE v.person = p.id ORDER BY v.at LIMIT 4) x ON true GROUP BY p.id ORDER BY p.id LIMIT 4;
SELECT id, at FROM visits WHERE at >= timestamp '2024-01-05' + interval '3 hours' AND at < timestamp '2024-01-05' + 5 * interval '7 hours' AND id > 3 ORDER BY at DESC LIMIT 4;
SELECT count(*) FROM visits WHERE (at, id) < (timestamp '2024-01-20' + interval '1 day', 70) AND took / (id - 200) < 5;
-- rows by what is computed of them
SELECT id FROM visits WHERE lower(page) = 'p3' ORDER BY id;
SELECT id, took FROM visits WHERE upper(page) = 'P3' AND took > 20 ORDER BY took DESC, id LIMIT 4;
SELECT count(*) FROM visits WHERE 'q2' = replace(page, 'p', 'q') AND at > timestamp '2024-01-09';
SELECT count(*) FROM visits WHERE lower(page) = lower(NULL);
SELECT v.id, p.name FROM visits v JOIN people p ON p.id = v.person WHERE page || '!' = 'p1!' ORDER BY v.id;
-- what hangs on a side that gives several rows is no part of the kept side's row
SELECT t.id, u.title, count(*) FROM teams t LEFT JOIN people p ON p.team = t.id LEFT JOIN teams u ON u.id = p.boss GROUP BY t.id, u.title ORDER BY t.id, u.title LIMIT 3 OFFSET 1;
SELECT DISTINCT t.id, u.title FROM teams t LEFT JOIN people p ON p.team = t.id LEFT JOIN teams u ON u.id = p.boss ORDER BY t.id, u.title LIMIT 4;
SELECT t.id, p.salary IN (SELECT budget FROM teams) AS rich, count(*) FROM teams t LEFT JOIN people p ON p.team = t.id GROUP BY 1, 2 ORDER BY t.id, 2 LIMIT 3;
-- relay: an error that upstream raises
SELECT p.id, 10 / (t.budget - 3000) FROM people p LEFT JOIN teams t ON t.id = p.team ORDER BY p.id LIMIT 2;
