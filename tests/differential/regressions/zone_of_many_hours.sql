-- Found by the generator, seed 3, world 221: quarantined
--! database 
--! setting SET TimeZone = 'Asia/Kolkata'
--! setting SET DateStyle = 'Postgres, DMY'
--! setting SET IntervalStyle = 'iso_8601'
--! protocol extended binary
--! parameter 1184 \N
--! parameter 3802 [1, 2, "x"]
--! parameter 1700 2.50
--! parameter 1043 a-b
--! parameter 23 7
--! parameter 1186 1000000 hours
--! parameter 1114 2024-02-29 12:34:56.789
--! parameter 1043 \N
--! order 
--! free 
CREATE TABLE t2 (id integer, a integer, t text, c0 double precision, c1 char(4), c2 real, c3 smallint, PRIMARY KEY (id));
INSERT INTO t2 VALUES ('10', '5', 'co', '0', 'b', '0', '0');
--! statement
WITH s1 (x0, x1, x2, x3, x4) AS NOT MATERIALIZED (SELECT $1, $2, $3, $4, $5 FROM t2 s2) SELECT pg_catalog.timezone($6, $7), w2.x1, w1.x2, $8 FROM s1 w1 JOIN s1 w2 ON w1.x4 = w2.x4
