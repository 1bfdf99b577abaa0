-- Shapes of the statements that dashboards, semantic layers and ORMs send, over the tables of queries.setup.sql.
-- "-- must" or "-- should" above a statement tells its class; the test measures how many of each are answered here.
-- must
SELECT page AS page, SUM(took) AS "SUM(took)" FROM public.visits GROUP BY page ORDER BY "SUM(took)" DESC LIMIT 10000;
-- must
SELECT DATE_TRUNC('MONTH', at) AS at, COUNT(*) AS count FROM visits WHERE at >= TO_TIMESTAMP('2004-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND at < TO_TIMESTAMP('2034-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('MONTH', at) ORDER BY 1;
-- must
SELECT DATE_TRUNC('HOUR', at) + INTERVAL '15 MINUTES' * FLOOR(EXTRACT(MINUTE FROM at) / 15) AS t, count(*) FROM visits GROUP BY 1 ORDER BY 1 LIMIT 20;
-- must
SELECT name, sum(took) FROM visits JOIN people p ON p.id = person JOIN (SELECT name AS name__, SUM(salary) AS mme_inner__ FROM people WHERE salary > 1 GROUP BY name ORDER BY mme_inner__ DESC LIMIT 25) AS series_limit ON name = name__ GROUP BY name ORDER BY name;
-- must
SELECT id FROM people WHERE NOT name IN ('ann') AND (team IS NULL OR team IN (1, 2)) AND name ILIKE '%a%' AND NOT name LIKE 'z%' AND team <> 7 ORDER BY id;
-- must
SELECT CASE WHEN took > 50 THEN 'long' ELSE 'short' END AS c, SUM(took) / SUM(person) AS r, COUNT(DISTINCT page) FROM visits WHERE CASE WHEN took > 50 THEN 'long' ELSE 'short' END = 'long' GROUP BY CASE WHEN took > 50 THEN 'long' ELSE 'short' END;
-- must
SELECT id, page FROM visits ORDER BY id LIMIT 50 OFFSET 50;
-- must
SELECT DISTINCT page AS column_values FROM visits ORDER BY 1 LIMIT 10000;
-- must
SELECT COUNT(*) AS rowcount FROM (SELECT * FROM people LIMIT 50000) AS rowcount_qry;
-- should
SELECT COUNT(*) FILTER (WHERE took > 3), PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY took), STDDEV(took), STRING_AGG(DISTINCT page, ',' ORDER BY page) FROM visits;
-- should
SELECT timestamp 'epoch' + id * interval '1 second' AS t FROM visits ORDER BY 1 LIMIT 5;
-- should
WITH a AS (SELECT page, sum(took) AS s FROM visits GROUP BY ROLLUP (page)) SELECT page, s, rank() OVER (ORDER BY s DESC NULLS LAST) FROM a ORDER BY 3, 1 LIMIT 1001;
-- must
SELECT "teams__via__team"."title" AS "teams__via__team__title", SUM("public"."people"."salary") AS "sum" FROM "public"."people" LEFT JOIN "public"."teams" AS "teams__via__team" ON "public"."people"."team" = "teams__via__team"."id" GROUP BY "teams__via__team"."title" ORDER BY "teams__via__team"."title" ASC;
-- must
SELECT "source"."b" AS "b", COUNT(*) AS "count" FROM (SELECT (FLOOR((("public"."people"."salary" - 22.5) / 7.5)) * 7.5) + 22.5 AS "b" FROM "public"."people") AS "source" GROUP BY "source"."b" ORDER BY "source"."b" ASC;
-- must
SELECT COUNT(*) AS "count" FROM "public"."visits" WHERE "public"."visits"."at" >= DATE_TRUNC('quarter', NOW()) AND "public"."visits"."at" < DATE_TRUNC('quarter', (NOW() + INTERVAL '3 month'));
-- must
SELECT COUNT(*) FROM visits WHERE at >= CAST((NOW() + INTERVAL '-30 day') AS date);
-- must
SELECT CAST(extract(hour from at) AS integer) AS h, count(*) FROM visits GROUP BY CAST(extract(hour from at) AS integer) ORDER BY 1;
-- must
SELECT (DATE_TRUNC('week', (at + INTERVAL '1 day')) + INTERVAL '-1 day') AS w, CAST(at AS date) AS d, count(*) FROM visits GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 9;
-- must
SELECT id FROM people WHERE (name <> 'x' OR name IS NULL) AND (LOWER(name) LIKE '%a%') AND (team = 1 OR team = 2) AND born BETWEEN date '1970-01-01' AND date '1999-01-01' ORDER BY id;
-- must
SELECT count(*) FROM visits WHERE at >= timestamp with time zone '2024-01-05 00:00:00.000Z';
-- should
SELECT CAST(extract(year from AGE(DATE_TRUNC('day', at), DATE_TRUNC('day', at - interval '400 day'))) AS integer) FROM visits ORDER BY id LIMIT 3;
-- should
SELECT DATE_TRUNC('day', at) AS d, SUM(SUM(took)) OVER (ORDER BY DATE_TRUNC('day', at) ROWS UNBOUNDED PRECEDING), LAG(COUNT(*), 1) OVER (ORDER BY DATE_TRUNC('day', at)) FROM visits GROUP BY 1 ORDER BY 1 LIMIT 9;
-- should
SELECT page, ABS(0) AS "pivot-grouping", count(*) FROM visits GROUP BY page, ABS(0) ORDER BY page;
-- should
SELECT STDDEV_POP(took), VAR_POP(took), SUM(CASE WHEN took > 5 THEN 1 ELSE 0.0 END), CAST(SUM(took) AS float) / count(*) FROM visits;
-- should
SELECT SUBSTRING(page, 1, 1234) AS s FROM visits ORDER BY 1 LIMIT 10;
-- should
SELECT timezone('America/New_York', timezone('UTC', at)) FROM visits ORDER BY id LIMIT 3;
-- should
SELECT split_part(page, 'p', 2) AS s, count(*) FROM visits GROUP BY 1 ORDER BY 1;
-- must
SELECT floor(extract(epoch from at) / 3600) * 3600 AS "time", page AS metric, avg(took) FROM visits WHERE at BETWEEN '2024-01-01T00:00:00Z' AND '2024-01-03T00:00:00Z' GROUP BY 1, 2 ORDER BY 1, 2;
-- must
SELECT at AS "time", took FROM visits WHERE at BETWEEN '2024-01-01T00:00:00Z' AND '2024-01-03T00:00:00Z' ORDER BY 1;
-- must
SELECT floor((person) / 60) * 60 AS t, count(*) FROM visits WHERE person >= 1 AND person <= 1800000000 GROUP BY 1 ORDER BY 1;
-- must
SELECT name AS __text, id AS __value FROM people WHERE name IN ('ann', 'bob') ORDER BY 1;
-- should
SELECT coalesce(nullif(page, 'p1'), 'none') AS p, greatest(min(took), 3), least(max(took), 50) FROM visits GROUP BY 1 ORDER BY 1;
-- should
SELECT date_trunc('day', timezone('UTC', at), 'Europe/Berlin') AS d, count(*) FROM visits GROUP BY 1 ORDER BY 1 LIMIT 4;
-- should
SELECT date_bin('6 hours', at, timestamp '2000-01-01') AS b, count(*) FROM visits GROUP BY 1 ORDER BY 1 LIMIT 4;
-- should
SELECT to_char(at, 'YYYY-MM-DD HH24:MI') AS c, concat_ws('-', page, person) FROM visits ORDER BY id LIMIT 4;
-- should
SELECT g::date AS day, count(v.id) FROM generate_series(timestamp '2024-01-01', timestamp '2024-01-10', interval '1 day') g LEFT JOIN visits v ON date_trunc('day', v.at) = g GROUP BY 1 ORDER BY 1;
-- should
SELECT count(*) FROM visits WHERE page = ANY ('{p1,p2}');
-- should
SELECT count(*) FROM visits WHERE at > now() - interval '10 years';
-- must
WITH t AS (SELECT page, took, CASE WHEN took > 9 THEN 'a' END AS k FROM visits) SELECT k, to_char(sum(took), '999') FROM t GROUP BY k ORDER BY k;
-- must
SELECT id AS value, name FROM people ORDER BY name;
-- must
SELECT "t"."page" AS "page", SUM("t"."took") AS "sum:took:ok" FROM "public"."visits" "t" INNER JOIN "public"."people" "p" ON ("t"."person" = "p"."id") WHERE ("p"."born" >= (DATE '1980-01-01')) GROUP BY 1 HAVING (COUNT(1) > 0) ORDER BY 1;
-- must
SELECT CAST(TRUNC(EXTRACT(YEAR FROM born)) AS INTEGER) AS "yr", SUM(1) AS "n", DATE_TRUNC('MONTH', CAST(born AS DATE)) AS m FROM people GROUP BY 1, 3 ORDER BY 1 ASC NULLS FIRST, 3;
-- must
SELECT CAST((DATE_TRUNC('day', at) + (-EXTRACT(DOW FROM at) * INTERVAL '1 DAY')) AS DATE) AS w, count(*) FROM visits GROUP BY 1 ORDER BY 1 LIMIT 3;
-- should
SELECT t0.page, t1.m FROM (SELECT page FROM visits GROUP BY 1) t0 INNER JOIN (SELECT page, MAX(took) AS m FROM visits GROUP BY 1) t1 ON (t0.page IS NOT DISTINCT FROM t1.page) CROSS JOIN (SELECT COUNT(1) AS c FROM visits) t2 ORDER BY 1;
-- should
SELECT SUBSTR(LTRIM(CAST(id AS TEXT), ' '), 1, LENGTH(LTRIM(CAST(id AS TEXT), ' '))) FROM people ORDER BY id;
-- must
select "_"."c", "_"."a0" from (select "rows"."page" as "c", sum("rows"."took") as "a0" from (select "$Table"."page", "$Table"."took" from "public"."visits" "$Table") "rows" group by "page") "_" where not "_"."a0" is null order by 1 limit 1000001;
-- should
select "$Outer"."id", "$Inner"."title" from (select * from people) "$Outer" left outer join (select id as i, title from teams) "$Inner" on ("$Outer"."team" = "$Inner"."i" or "$Outer"."team" is null and "$Inner"."i" is null) order by 1;
-- should
select count(distinct "rows"."page") + max(case when "rows"."page" is null then 1 else 0 end) as "a0" from visits "rows";
-- must
SELECT TO_CHAR(DATE_TRUNC('month', at), 'YYYY-MM') AS "m", COALESCE(SUM(CAST((took) AS DOUBLE PRECISION)), 0) AS "s", COUNT(CASE WHEN (took > 3) THEN 1 END) FROM visits GROUP BY 1 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY;
-- must
SELECT DATE(at AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York') AS d, count(*) FROM visits GROUP BY 1 ORDER BY 1 FETCH NEXT 5 ROWS ONLY;
-- must
SELECT count(*) FROM visits WHERE at >= (SELECT (DATE_TRUNC('month', DATE_TRUNC('day', CURRENT_TIMESTAMP)) + (-500 || ' month')::INTERVAL));
-- should
SELECT p.team AS "p.team", COALESCE(COALESCE(CAST((SUM(DISTINCT (CAST(FLOOR(COALESCE(p.salary, 0) * (1000000 * 1.0)) AS DECIMAL(65, 0))) + ('x' || MD5(p.id::varchar))::bit(64)::bigint::DECIMAL(65) * 18446744073709551616 + ('x' || SUBSTR(MD5(p.id::varchar), 17))::bit(64)::bigint::DECIMAL(65)) - SUM(DISTINCT ('x' || MD5(p.id::varchar))::bit(64)::bigint::DECIMAL(65) * 18446744073709551616 + ('x' || SUBSTR(MD5(p.id::varchar), 17))::bit(64)::bigint::DECIMAL(65))) AS DOUBLE PRECISION) / CAST((1000000 * 1.0) AS DOUBLE PRECISION), 0), 0) AS "p.total" FROM people AS p LEFT JOIN visits AS v ON p.id = v.person GROUP BY 1 ORDER BY 2 DESC NULLS LAST, 1 FETCH NEXT 500 ROWS ONLY;
-- should
SELECT page, m, DENSE_RANK() OVER (ORDER BY z) FROM (SELECT page, person, m, MIN(m) OVER (PARTITION BY page) AS z FROM (SELECT page, person, sum(took) AS m FROM visits GROUP BY 1, 2) a) b ORDER BY 1, 2, 3;
-- must
SELECT date_trunc('month', (v.at::timestamptz AT TIME ZONE 'America/Los_Angeles')) "v__at_month", count(*) "v__count" FROM public.visits AS "v" WHERE (v.at >= '2024-01-01T00:00:00.000Z'::timestamptz AND v.at <= '2024-12-31T23:59:59.999Z'::timestamptz) GROUP BY 1 ORDER BY 1 ASC LIMIT 10000;
-- should
SELECT d.day, sum(v.took) FROM (VALUES ('2024-01-02'::timestamptz), ('2024-01-03'::timestamptz)) AS d (day) JOIN visits v ON v.at <= d.day GROUP BY 1 ORDER BY 1;
-- should
WITH base AS (SELECT * FROM visits), dedupe AS (SELECT *, row_number() OVER (PARTITION BY person ORDER BY id DESC) AS rn FROM base), final AS (SELECT * FROM dedupe WHERE rn = 1) SELECT * FROM final ORDER BY id LIMIT 500;
-- must
WITH root as (select page, count(*) as n from visits group by page) SELECT COUNT(*) as rows FROM root;
-- must
SELECT DATE_TRUNC('month', "visits"."at" AT TIME ZONE 'America/New_York') AS "m", COUNT("visits"."id") AS "c" FROM "visits" WHERE UPPER("visits"."page"::text) LIKE UPPER('%P1%') GROUP BY 1 ORDER BY 1 LIMIT 21;
-- must
SELECT ("visits"."at" AT TIME ZONE 'UTC')::date AS d FROM "visits" ORDER BY "visits"."id" LIMIT 3;
-- should
SELECT "people"."id", EXISTS(SELECT 1 AS "a" FROM "visits" U0 WHERE (U0."person" = ("people"."id") AND U0."took" > 90) LIMIT 1) AS "busy", (SELECT U0."page" FROM "visits" U0 WHERE U0."person" = ("people"."id") ORDER BY U0."at" DESC LIMIT 1) AS "last" FROM "people" ORDER BY 1;
-- should
SELECT "col1", "qual0" FROM (SELECT "visits"."id" AS "col1", ROW_NUMBER() OVER (PARTITION BY "visits"."page" ORDER BY "visits"."took" DESC, "visits"."id") AS "qual0" FROM "visits") "qualify" WHERE "qual0" <= 2 ORDER BY 1;
-- should
SELECT "people"."team", COUNT("people"."id") FILTER (WHERE "people"."salary" > 900) AS n, ARRAY_AGG("people"."id" ORDER BY "people"."id") FROM "people" GROUP BY 1 ORDER BY 1;
-- must
SELECT "people"."id" AS a1, "people"."name" AS a2 FROM "people" WHERE "people"."id" IN (1, 2, 3) ORDER BY a1 LIMIT 11 OFFSET 0;
-- must
SELECT 1 AS one FROM "people" WHERE "people"."id" IN (SELECT "visits"."person" FROM "visits" WHERE "visits"."took" = 37) LIMIT 1;
-- must
SELECT COUNT(*) FROM (SELECT "public"."people"."id" FROM "public"."people" WHERE 1=1 OFFSET 0) AS "sub";
-- must
SELECT "t0"."id", COALESCE("aggr"."_count", 0) AS "_count" FROM "people" AS "t0" LEFT JOIN (SELECT "person", COUNT(*) AS "_count" FROM "visits" WHERE 1=1 GROUP BY "person") AS "aggr" ON ("t0"."id" = "aggr"."person") WHERE (EXISTS(SELECT 1 FROM visits j WHERE j.person = t0.id)) ORDER BY "t0"."id" ASC LIMIT 20 OFFSET 0;
-- must
SELECT * FROM people WHERE id = 3 LIMIT 1;
-- must
SELECT count(1) AS "cnt" FROM "people" "p" LEFT JOIN "teams" "t" ON "t"."id" = "p"."team" WHERE "t"."title" ILIKE ('%' || 'r' || '%');
-- should
SELECT width_bucket(salary, 0, 2000, 4) AS b, count(*), power(2, 3), sqrt(16), ln(1) FROM people GROUP BY 1 ORDER BY 1;
-- should
SELECT regexp_replace(page, '[0-9]+', 'N') AS r, count(*) FROM visits WHERE page ~ '^p' AND page !~* 'Q' GROUP BY 1;
-- should
SELECT replace(page, 'p', 'q'), left(page, 1), right(page, 1), position('1' in page), md5(page) FROM visits ORDER BY id LIMIT 3;
-- should
SELECT make_date(2024, 1, 2), make_interval(days => 2);
-- should
SELECT bool_and(took > 0), bool_or(took > 98), corr(took, person), mode() WITHIN GROUP (ORDER BY page) FROM visits;
-- should
SELECT page, count(*) FROM visits GROUP BY page UNION ALL SELECT 'all', count(*) FROM visits ORDER BY 1;
-- should
SELECT person FROM visits INTERSECT SELECT id FROM people EXCEPT SELECT 3 ORDER BY 1;
-- should
SELECT DISTINCT ON (page) page, took FROM visits ORDER BY page, took DESC NULLS LAST, id;
-- must
WITH top AS (SELECT id, page FROM visits ORDER BY id LIMIT 3) SELECT top.id, top.page AS sort FROM top ORDER BY top.id;
-- must
SELECT settings.id, settings.page format FROM visits settings WHERE settings.id = 5;
