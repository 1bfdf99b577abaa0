CREATE TABLE words (id int PRIMARY KEY, w text, v varchar(12), c char(8), g int, n name, cc text COLLATE "C");
INSERT INTO words SELECT id, w, w, w, id % 4, left(w, 20), w FROM (VALUES
    (1, 'apple'), (2, 'Apple'), (3, 'APPLE'), (4, 'äpfel'), (5, 'zebra'), (6, 'Zoë'), (7, 'zoe'), (8, ''), (9, ' '), (10, NULL), (11, 'a b'),
    (12, 'ab'), (13, 'a-b'), (14, 'A_b'), (15, '10'), (16, '9'), (17, '-1'), (18, 'été'), (19, 'ete'), (20, 'Été'), (21, '日本'), (22, 'ß'),
    (23, 'ss'), (24, 'SS'), (25, 'co-op'), (26, 'coop'), (27, 'CO-OP'), (28, 'naïve'), (29, 'naive'), (30, 'a'), (31, 'A'), (32, NULL),
    (33, 'apple'), (34, '!x'), (35, '~x'), (36, 'Ω'), (37, 'ω'), (38, 'e' || chr(769) || 'te')) t (id, w);
CREATE TABLE many (id int PRIMARY KEY, k text, x int);
INSERT INTO many SELECT i, chr(65 + i % 57) || md5((i * 7919)::text), i % 100 FROM generate_series(1, 6000) i;
CREATE TABLE side (w text PRIMARY KEY, score int);
INSERT INTO side VALUES ('Apple', 1), ('zoe', 2), ('ete', 3), ('SS', 4), ('m', 5);
CREATE FUNCTION tidied(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower($1) || upper($1)';
CREATE FUNCTION is_early(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT $1 < 'm' $$;
