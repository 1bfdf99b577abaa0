-- What pg_dump is to carry: most kinds of objects, and values that are awkward in text.
CREATE EXTENSION hstore;
CREATE SCHEMA "odd Schema";
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (a int, b text);
CREATE SEQUENCE counter START 5 INCREMENT 3;
CREATE TABLE plain (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL DEFAULT 'x', price numeric(10,2),
  ratio float8, at timestamptz, raw bytea, doc jsonb, tags text[], feeling mood, p pair, h hstore, big positive,
  twice numeric GENERATED ALWAYS AS (price * 2) STORED);
INSERT INTO plain (name, price, ratio, at, raw, doc, tags, feeling, p, h, big)
  SELECT E'line\n\ttab \\ back ' || i, i * 1.25, i / 7.0, timestamptz '2020-01-01 UTC' + i * interval '1 hour',
    decode(md5(i::text), 'hex'), jsonb_build_object('i', i, 'n', NULL), array['a', NULL, 'q"uote'],
    (array['sad','ok','happy'])[i % 3 + 1]::mood, row(i, 'b,' || i)::pair, hstore('k', i::text), i
  FROM generate_series(1, 5000) i;
INSERT INTO plain (ratio, price) VALUES ('NaN', 'NaN'), ('-Infinity', NULL), (1e-300, 0);
CREATE TABLE "odd Schema"."odd ""Table" ("select" int PRIMARY KEY REFERENCES plain (id) ON DELETE CASCADE, "Über" text COLLATE "C");
INSERT INTO "odd Schema"."odd ""Table" SELECT i, 'ü' || i FROM generate_series(1, 100) i;
CREATE TABLE parted (id int, day date NOT NULL) PARTITION BY RANGE (day);
CREATE TABLE parted_2020 PARTITION OF parted FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE parted_rest PARTITION OF parted DEFAULT;
INSERT INTO parted SELECT i, date '2019-06-01' + i FROM generate_series(1, 1000) i;
CREATE TABLE child (extra text) INHERITS (plain);
CREATE INDEX ON plain (lower(name)) WHERE price > 10;
CREATE INDEX ON plain USING gin (doc);
CREATE STATISTICS plain_stats ON name, price FROM plain;
CREATE VIEW shown AS SELECT id, name FROM plain WHERE price > 100 WITH LOCAL CHECK OPTION;
CREATE MATERIALIZED VIEW summed AS SELECT feeling, count(*) AS n, sum(price) AS total FROM plain GROUP BY feeling;
CREATE FUNCTION changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name := NEW.name || '!'; RETURN NEW; END $$;
CREATE TRIGGER changes BEFORE UPDATE ON plain FOR EACH ROW EXECUTE FUNCTION changed();
CREATE RULE no_delete AS ON DELETE TO "odd Schema"."odd ""Table" DO INSTEAD NOTHING;
ALTER TABLE parted ENABLE ROW LEVEL SECURITY;
CREATE POLICY by_day ON parted USING (day > '2020-01-01');
CREATE ROLE dump_reader;
GRANT SELECT (id, name) ON plain TO dump_reader;
COMMENT ON TABLE plain IS 'a comment with ''quotes''';
SELECT lo_from_bytea(100001, decode(repeat('00ff10', 50000), 'hex'));
SELECT setval('counter', 42);
CREATE PUBLICATION of_dump FOR TABLE plain;
