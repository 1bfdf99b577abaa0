-- Functions in FROM; see queries.sql for the form.
SELECT c.id, i FROM carts c, unnest(c.items) AS i ORDER BY c.id, i;
SELECT c.id, i.item, i.n FROM carts c CROSS JOIN LATERAL unnest(items) WITH ORDINALITY AS i(item, n) ORDER BY c.id, i.n;
SELECT id, item FROM carts LEFT JOIN LATERAL unnest(items) AS u(item) ON true ORDER BY id, item;
SELECT id, u.* FROM carts LEFT JOIN unnest(counts) WITH ORDINALITY u ON true ORDER BY id, ordinality;
SELECT c.id, x FROM carts c JOIN unnest(c.counts) x ON x > c.lo ORDER BY c.id, x;
SELECT c.id, u FROM carts c, unnest(c.grid) u ORDER BY c.id, u;
SELECT c.id, p FROM carts c, unnest(c.prices) p ORDER BY c.id, p;
SELECT c.id, m FROM carts c, unnest(c.moments) m ORDER BY c.id, m;
SELECT c.id, t FROM carts c, unnest(c.tags) t ORDER BY c.id, t;
SELECT * FROM unnest(ARRAY[3, 1, 2]) ORDER BY 1;
SELECT * FROM unnest(ARRAY[3, 1, 2]) WITH ORDINALITY;
SELECT * FROM unnest('{a,b}'::text[], ARRAY[1, 2, 3]) AS u(name, n) ORDER BY n;
SELECT * FROM unnest(ARRAY[1], ARRAY['x', 'y']) WITH ORDINALITY ORDER BY ordinality;
SELECT c.id, u.* FROM carts c, unnest(c.items, c.counts) WITH ORDINALITY AS u(item, n, at) ORDER BY c.id, at;
SELECT * FROM unnest(NULL::int[]) u;
SELECT i, count(*) AS n FROM carts, unnest(items) i GROUP BY i ORDER BY n DESC, i;
SELECT DISTINCT i FROM carts c, unnest(c.items) i WHERE c.id < 5 ORDER BY i;
SELECT c.id, n.id AS name FROM carts c CROSS JOIN unnest(c.items) i JOIN names n ON n.item = i ORDER BY 1, 2;
SELECT n.id, u.x FROM names n JOIN unnest(ARRAY['a', 'z', 'q']) AS u(x) ON u.x = n.item ORDER BY 1;
SELECT n.id, u.x FROM names n RIGHT JOIN unnest(ARRAY['a', 'z', 'q']) AS u(x) ON u.x = n.item ORDER BY 1, 2;
SELECT id FROM carts WHERE id IN (SELECT * FROM unnest(ARRAY[1, 4, NULL])) ORDER BY id;
SELECT id, (SELECT sum(x) FROM unnest(ARRAY[1, 2]) x) AS s FROM carts ORDER BY id;
SELECT s.id, sum(s.u) FROM (SELECT id, u FROM carts, unnest(counts) u WHERE u > 1) s GROUP BY s.id ORDER BY s.id;
WITH flat AS (SELECT id, i FROM carts, unnest(items) i) SELECT a.id, b.id AS other, a.i FROM flat a JOIN flat b ON a.i = b.i AND a.id < b.id ORDER BY 1, 2, 3;
SELECT c.id, g FROM carts c, generate_series(c.lo, c.hi) g ORDER BY c.id, g;
SELECT c.id, g.n FROM carts c LEFT JOIN generate_series(c.lo, c.lo + 2) AS g(n) ON true ORDER BY c.id, g.n;
SELECT g, n FROM generate_series(1, 3) WITH ORDINALITY AS s(g, n) ORDER BY g DESC;
SELECT c.id, d FROM carts c, generate_series(timestamp '2024-01-30' + c.lo * interval '1 day', timestamp '2024-03-31', interval '1 month') d ORDER BY c.id, d;
SELECT c.id, e.key, e.value FROM carts c, jsonb_each(c.doc) e ORDER BY c.id, e.key;
SELECT c.id, key, value FROM carts c, jsonb_each_text(c.doc) ORDER BY c.id, key;
SELECT c.id, e.* FROM carts c LEFT JOIN LATERAL jsonb_each_text(doc) WITH ORDINALITY e(k, v, n) ON true ORDER BY c.id, n;
SELECT c.id, k FROM carts c, jsonb_object_keys(c.doc) k ORDER BY c.id, k;
SELECT c.id, e.value, e.ordinality FROM carts c, jsonb_array_elements(c.doc -> 'list') WITH ORDINALITY e ORDER BY c.id, e.ordinality;
SELECT c.id, tag FROM carts c, jsonb_array_elements_text(c.doc -> 'list') tag ORDER BY c.id, tag;
SELECT l.id, value FROM lists l, jsonb_array_elements_text(l.j) ORDER BY l.id, value;
SELECT l.id, e.value ->> 'k' AS k, e.value ->> 0 AS z FROM lists l, jsonb_array_elements(j) e ORDER BY l.id, 2, 3;
SELECT * FROM jsonb_array_elements_text('["x", null, {"a": 1}]') WITH ORDINALITY;
SELECT * FROM jsonb_each('{"b": [1, 2], "a": "x"}') ORDER BY key;
SELECT c.id, s, length(s) FROM carts c, string_to_table(c.csv, ',') s ORDER BY c.id, s;
SELECT c.id, s.part, s.n FROM carts c, string_to_table(csv, ',', 'NULL') WITH ORDINALITY s(part, n) ORDER BY c.id, s.n;
SELECT * FROM string_to_table('abc', NULL) WITH ORDINALITY t(c, n) ORDER BY n;
SELECT * FROM string_to_table('a||b|', '|') WITH ORDINALITY t(c, n) ORDER BY n;
SELECT * FROM string_to_table('ab', '') t;
SELECT count(*) FROM string_to_table('', ',') t;
SELECT c.id, i, e.key FROM carts c, unnest(c.items) i, jsonb_each_text(c.doc) e WHERE i = 'a' ORDER BY 1, 2, 3;
SELECT u.u FROM unnest(ARRAY[2, 1]) u ORDER BY u;
SELECT unnest FROM unnest(ARRAY[2, 1]) ORDER BY unnest;
-- relay: an array of no type
SELECT * FROM unnest('{1,2}') u;
-- relay: two in the select list
SELECT unnest(ARRAY[1, 2]) AS u, generate_series(1, 2);
-- relay: not an array
SELECT l.id, e.value FROM lists l, jsonb_each(l.j) e ORDER BY 1, 2;
SELECT * FROM json_array_elements_text('["x"]') x;
SELECT id FROM carts c WHERE EXISTS (SELECT 1 FROM unnest(c.items) i WHERE i = 'a') ORDER BY id;
-- relay: rows from
SELECT * FROM ROWS FROM (unnest(ARRAY[1]), generate_series(1, 2)) ORDER BY 2;
-- relay: an error
SELECT count(*) FROM unnest();
-- relay: an error
SELECT * FROM generate_series(1::int2, 3::int2);
-- relay: an error
SELECT count(*) FROM (VALUES (ARRAY[1])) a(arr), (VALUES (ARRAY[2])) b(arr) CROSS JOIN unnest(arr) x;
-- relay: a JOIN behind a comma
SELECT n.id, c.id, x FROM names n, carts c CROSS JOIN unnest(c.counts) x ORDER BY 1, 2, 3;
SELECT n.id, c.id, x FROM carts c CROSS JOIN unnest(c.counts) x, names n ORDER BY 1, 2, 3;
SELECT id, (SELECT sum(x) FROM unnest(c.counts) x) AS s, ARRAY(SELECT i FROM unnest(c.items) i ORDER BY i DESC) AS d FROM carts c ORDER BY id;
SELECT id, (SELECT string_agg(k, ',' ORDER BY k) FROM jsonb_object_keys(c.doc) k) AS k FROM carts c ORDER BY id;
SELECT id FROM carts c WHERE EXISTS (SELECT 1 FROM jsonb_array_elements_text(c.doc -> 'list') t WHERE t <> 'x') ORDER BY id;
SELECT id, (SELECT count(*) FROM jsonb_each_text(c.doc) WITH ORDINALITY e(k, v, n) WHERE n > 1) FROM carts c ORDER BY id;
SELECT id, (SELECT max(g) FROM generate_series(c.lo, c.hi) g) AS top, (SELECT count(*) FROM generate_series(c.lo, 5) WITH ORDINALITY) AS n FROM carts c ORDER BY id;
SELECT n.id, (SELECT count(*) FROM carts c, unnest(c.items) i WHERE i = n.item AND c.id < n.id + 2) FROM names n ORDER BY 1;
