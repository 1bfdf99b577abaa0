-- Found by the generator, seed 88001, world 18: messages: expected [('1', ""), ('2', ""), ('T', "\0\u{2}?column?\0\0\0\0\0\0\0\0\0\u{2}�\0\u{8}����\0\u{1}?column?\0\0\0\0\0\0\0\0\0\0\u{19}������\0\u{1}"), ('C', "SELECT 0\0"), ('Z', "I")], got [('1', ""), ('2', ""), ('T', "\0\u{2}?column?\0\0\0\0\0\0\0\0\0\u{2}�\0\u{8}����\0\u{1}?column?\0\0\0\0\0\0\0\0\0\0\u{19}������\0\u{1}"), ('C', "SELECT 5\0"), ('Z', "I")]
--! database TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'
--! setting SET TimeZone = 'Asia/Kolkata'
--! setting SET DateStyle = 'Postgres, DMY'
--! setting SET IntervalStyle = 'iso_8601'
--! protocol extended binary
--! parameter 701 \N
--! parameter 25 B
--! parameter 1007 {}
--! order 
--! free 
CREATE TYPE state AS ENUM ('new', 'paid', 'Shipped', 'void', 'a b');
CREATE TABLE t1 (id integer, a integer, t text, c0 state, c1 integer, c2 bigint);
ALTER TABLE t1 REPLICA IDENTITY FULL;
--! statement
SELECT $1, $2 FROM (WITH RECURSIVE r (x0, x1) AS (SELECT 1, 'a'::text UNION SELECT x0 + 2, upper(x1) FROM r WHERE x0 < 9) SELECT x0, x1 FROM r) s1 FULL JOIN t1 s2 ON s1.x0 = s2.c2 WHERE ((s2.id = ANY ($3)) IS FALSE)
