-- Found by the generator, seed 88001, world 19: error: expected SERROR VERROR C42803 Marguments to GROUPING must be grouping expressions of the associated query level P23 Fparse_agg.c L1656 Rfinalize_grouping_exprs_walker, got None
--! database 
--! setting SET TimeZone = 'Europe/Berlin'
--! setting SET DateStyle = 'German, DMY'
--! setting SET extra_float_digits = 0
--! protocol extended
--! order 
--! free 
CREATE TABLE people (id int PRIMARY KEY, name text, team int, boss int, salary numeric(10,2), score double precision, born date);
INSERT INTO people VALUES     (1, 'ann', 1, NULL, 1000.00, 1.5, '1980-01-01'), (2, 'bob', 1, 1, 800.50, 2.5, '1985-05-05'), (3, 'cid', 2, 1, 800.50, NULL, '1990-12-31'),     (4, 'dan', 2, 3, NULL, 4.25, NULL), (5, 'eve', 3, 3, 1200.00, 5.0, '1980-01-01'), (6, 'fay', NULL, 2, 300.25, 0.5, '2000-02-29'),     (7, NULL, 3, 2, 1200.00, 5.0, '1999-09-09'), (8, 'hal', 9, 99, 10.00, -3.5, '1970-07-07');
CREATE TABLE teams (id int PRIMARY KEY, title varchar(20), city text, budget bigint);
INSERT INTO teams VALUES (1, 'red', 'oslo', 5000), (2, 'blue', 'rome', 3000), (3, 'green', NULL, NULL), (4, 'void', 'oslo', 100);
CREATE TABLE visits (id int PRIMARY KEY, person int, at timestamp, page text, took int);
INSERT INTO visits SELECT i, CASE WHEN i % 11 = 0 THEN NULL ELSE i % 9 + 1 END, timestamp '2024-01-01' + i * interval '7 hours',     'p' || (i * 7) % 5, CASE WHEN i % 13 = 0 THEN NULL ELSE (i * 37) % 100 END FROM generate_series(1, 120) i;
CREATE TABLE tags (person int, tag text, weight smallint, PRIMARY KEY (person, tag));
INSERT INTO tags VALUES (1, 'x', 1), (1, 'y', 2), (2, 'x', 3), (3, 'z', NULL), (5, 'y', 5), (77, 'q', 1);
CREATE TABLE holes (id int PRIMARY KEY, v int);
INSERT INTO holes VALUES (1, 1), (2, NULL), (3, 3), (4, 4);
CREATE TABLE nothing (id int PRIMARY KEY, v int, t text);
CREATE TABLE codes (code varchar(3) PRIMARY KEY, label text);
INSERT INTO codes VALUES ('a', 'first'), ('b', 'second');
--! statement
SELECT team, GROUPING(team) FROM people GROUP BY id ORDER BY 1
