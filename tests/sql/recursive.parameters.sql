-- statement => parameters, split by |
WITH RECURSIVE t(n) AS (SELECT $1::int UNION ALL SELECT n + 1 FROM t WHERE n < $2) SELECT n FROM t ORDER BY n => 3 | 7
WITH RECURSIVE d AS (SELECT id, boss, 0 AS depth FROM staff WHERE id = $1 UNION ALL SELECT s.id, s.boss, depth + 1 FROM staff s JOIN d ON s.boss = d.id) SELECT id, depth FROM d ORDER BY id => 2
WITH RECURSIVE reach(at) AS (SELECT $1::int UNION SELECT b FROM edges, reach WHERE a = at AND label = $2) SELECT at FROM reach ORDER BY at => 1 | x
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n FROM t LIMIT $1 => 4
WITH RECURSIVE t AS (SELECT $1::text AS s UNION ALL SELECT s || $2 FROM t WHERE length(s) < 5) SELECT s FROM t ORDER BY s => a | bc
