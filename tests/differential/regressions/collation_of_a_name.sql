-- A name made of text is ordered by the collation of the text, and so is what is made of the name (found by the generator).
--! database TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'
--! setting SET TimeZone = 'Europe/Berlin'
--! setting SET DateStyle = 'German, DMY'
--! setting SET extra_float_digits = 0
--! protocol 
--! order 0 1 2
--! free 
CREATE TABLE t1 (id integer, a integer, t text, c0 jsonb, c1 date, c2 integer, c3 numeric(30,10), c4 integer[], c5 interval, c6 char(4), PRIMARY KEY (id));
INSERT INTO t1 VALUES ('3', NULL, '', '[1, 2, "x"]', '2024-03-10', '4', '0', '{}', '04:05:06.789', 'a-b'), ('4', '2', 'b', '[1, 2, "x"]', NULL, NULL, '2.50', NULL, '1 mon', 'B');
--! statement
SELECT 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid, CAST(CAST(s1.c6 AS name) AS character varying), s1.c2, NULL::integer[] FROM t1 s1 ORDER BY 1 NULLS FIRST, 2, 3 DESC NULLS LAST
