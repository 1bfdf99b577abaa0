-- Domains over types that are held, over each other, over an enum, over types that are not held, and a table that is changed later.
CREATE DOMAIN year AS int CHECK (VALUE > 1900);
CREATE DOMAIN late AS year CHECK (VALUE > 1950) NOT NULL;
CREATE DOMAIN email AS varchar(40) CHECK (VALUE LIKE '%@%');
CREATE DOMAIN label AS text COLLATE "C";
CREATE DOMAIN code AS char(4);
CREATE DOMAIN amount AS numeric(10, 2);
CREATE DOMAIN loose AS numeric;
CREATE DOMAIN stamp AS timestamp(3) with time zone;
CREATE DOMAIN doc AS jsonb;
CREATE DOMAIN key AS uuid;
CREATE DOMAIN place AS point;
CREATE DOMAIN many AS int[];
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN good AS mood CHECK (VALUE <> 'sad');
CREATE TABLE people (id int PRIMARY KEY, y year, l late, e email, t label, c code, a amount, n loose, s stamp, d doc, k key, p place, m many, g good, plain int, word text);
INSERT INTO people SELECT i, CASE WHEN i % 7 > 0 THEN 1950 + i % 5 END, 1960 + i % 3, 'm' || i % 4 || '@x', chr(60 + i % 40), 'c' || i % 3, i / 3.0, i / 4.0,
       '2024-01-01 00:00+00'::timestamptz + i * interval '1.2345 hours', jsonb_build_object('i', i % 3), md5((i % 5)::text)::uuid, point(i, i),
       ARRAY[i, i + 1], (ARRAY['ok', 'happy'])[i % 2 + 1]::mood, 1950 + i % 6, 'm' || i % 5 || '@x' FROM generate_series(1, 60) i;
CREATE TABLE keyed (y year, e email, v int, PRIMARY KEY (e, y));
INSERT INTO keyed SELECT 1950 + i % 10, 'm' || i / 10 || '@x', i FROM generate_series(1, 39) i;
CREATE VIEW seen AS SELECT id, y, e, upper(t) AS u, a FROM people;
