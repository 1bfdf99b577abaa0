-- jsonb; see queries.sql for the form.
SELECT id, j, plain FROM docs ORDER BY id;
SELECT id, j -> 'a', j ->> 'a', j -> 'num', j ->> 'num', j ->> 's', j -> 's', j ->> 'q"', j ->> 'n', j -> 'n', j ->> 'e', j ->> 'big' FROM docs ORDER BY id;
SELECT id, j -> k, j ->> k, j -> n, j ->> n, j #> p, j #>> p FROM docs ORDER BY id;
SELECT id, j -> 0, j ->> 1, j ->> 2, j -> -1, j -> -7, j -> -8, j -> 3 -> 1 -> 0, j -> 100, j ->> 5, j -> 5 FROM docs ORDER BY id;
SELECT id, j -> 'a' -> 'b' ->> 1, j #>> '{a,b,1}', j #> '{a,b,3,c}', j #>> '{a,b,-1,c}', j #>> '{}', j #> '{}', j #>> '{a,x}', j #>> '{3, 1,0}' FROM docs ORDER BY id;
SELECT id, j #>> ARRAY['deep', 'deep', 'deep'], j #>> '{"a b","",0}', j -> '' FROM docs ORDER BY id;
SELECT id, j['a'], j['a']['b'][1], j[0], j[-1], j[n], j['tags'][0], j[k] FROM docs ORDER BY id;
SELECT id FROM docs WHERE j['tags'][0] = '"x"' ORDER BY id;
SELECT id, j ? 'a', j ? 'lone', j ? 'three', j ? '', j ? k FROM docs ORDER BY id;
SELECT id, j @> '{}', j @> '[]', j @> '{"num":1.5}', j @> '{"num": 1.50, "tags":["y"]}', j @> '[2, "three"]', j @> '"lone"', j @> '42.0', j @> '[[5]]', j @> '[[[5]]]' FROM docs ORDER BY id;
SELECT id, j @> '{"a":{"b":[10,{"c":true}]}}', j @> 'null', j @> '[null]', j @> '[{"k":"v"}]', j @> '{"a":1}', '{"num":1.5,"num2":0,"":1}' <@ j, j <@ '{"num":1}' FROM docs ORDER BY id;
SELECT id FROM docs WHERE j @> '{"tags":["x"]}' ORDER BY id;
SELECT id FROM docs WHERE j ->> 'num' = '1.50' ORDER BY id;
SELECT id, (j ->> 'num')::numeric * 2, (j ->> 'when')::date FROM docs WHERE id IN (1, 10, 11) ORDER BY id;
SELECT j ->> 'num' AS num, count(*) FROM docs GROUP BY 1 ORDER BY 1 NULLS FIRST;
SELECT id, jsonb_typeof(j), jsonb_typeof(j -> 'a'), jsonb_typeof(j -> 0) FROM docs ORDER BY id;
SELECT id, jsonb_array_length(j), jsonb_array_length(j -> 3) FROM docs WHERE id IN (2, 9, 7) AND jsonb_typeof(j) = 'array' ORDER BY id;
SELECT jsonb_array_length(j -> 'tags') FROM docs WHERE j ? 'tags' ORDER BY id;
SELECT '{"b": 1, "aa":[1,2 ,{}], "a":"x\/\u00e9\n", "b":-0.50e2}'::jsonb, '[1.10, -0, 1e3, "\u0001", null]'::jsonb, ' "x" '::jsonb, '{"é":1,"zz":2,"z":3}'::jsonb, '[]'::jsonb;
SELECT id, coalesce(j -> 'a', '{"none": true}') FROM docs ORDER BY id;
SELECT id, CASE WHEN j ? 'num' THEN j -> 'num' ELSE '0' END FROM docs ORDER BY id;
SELECT max(j ->> 'num'), min(j #>> '{a,b,0}'), count(j -> 'n'), count(j ->> 'n'), string_agg(j ->> 'num', ',' ORDER BY id) FROM docs;
SELECT a.id, b.id FROM docs a JOIN docs b ON a.j ->> 'num' = b.j ->> 'num' ORDER BY a.id, b.id;
SELECT array_agg(j ->> 'num' ORDER BY id) FROM docs;
-- relay: an error that upstream raises
SELECT jsonb_array_length(j) FROM docs ORDER BY id;
-- relay: the order of json
SELECT j FROM docs ORDER BY j;
SELECT plain -> 'a' FROM docs ORDER BY id;
-- Arrays of JSON.
SELECT * FROM bags ORDER BY id;
SELECT id, plain[1], plain[3], plain[4], docs[1], docs[id], plain[1] -> 'a', plain[1] ->> 0, docs[1] ->> 'aa', docs[1] @> '{"b": 2}', grid[1] FROM bags WHERE id <> 4 ORDER BY id;
SELECT id, plain::text, docs::text, array_length(plain, 1), cardinality(docs), array_ndims(grid), array_lower(plain, 1), array_upper(grid, 2), array_to_string(docs, '; ', '*') FROM bags ORDER BY id;
SELECT b.id, u, u.u ->> 'b' FROM bags b, unnest(b.docs) u ORDER BY b.id, u.u::text;
SELECT b.id, u.p, u.d, u.n FROM bags b, LATERAL unnest(b.plain, b.docs) WITH ORDINALITY AS u (p, d, n) WHERE b.id <> 4 ORDER BY b.id, u.n;
SELECT id, array_append(plain, '{"z" :1}'), array_prepend('[1,  2]'::jsonb, docs), array_cat(docs, '{2}'::jsonb[]), plain || plain, docs || '{"z":1}'::jsonb, docs[1:2], plain[2:] FROM bags WHERE id <> 5 ORDER BY id;
SELECT id, to_json(plain), to_jsonb(docs), to_json(docs), array_to_json(plain), json_build_object('p', plain, 'd', docs) FROM bags WHERE id <> 4 ORDER BY id;
SELECT array_agg(plain ORDER BY id), array_agg(j ORDER BY id DESC), (array_agg(j ORDER BY id))[2], (array_agg(plain ORDER BY id))[1] -> 'a', ARRAY(SELECT plain FROM docs ORDER BY id) FROM docs;
SELECT id, ARRAY[plain, '{"n" : 1}'], ARRAY[j, NULL, '[1,2]'] FROM docs WHERE id < 3 ORDER BY id;
SELECT '{"{\"b\":1,   \"a\" :2}",NULL,"[ ]"}'::jsonb[], '{"{\"b\":1,   \"a\" :2}",NULL,"[ ]"}'::json[], ARRAY['{"x" :1}', '2']::jsonb[], (ARRAY['{"x" :1}', '2']::json[])[1] ->> 'x';
SELECT id, coalesce(plain, '{1}'), CASE WHEN id > 2 THEN docs ELSE '{2}' END FROM bags ORDER BY id;
SELECT plain FROM bags WHERE id = 1 UNION ALL SELECT '{"9"}';
-- relay: what has an order of its own
SELECT id FROM bags WHERE docs = '{}' ORDER BY id;
-- relay: what has an order of its own
SELECT id FROM bags WHERE '[]' = ANY (docs) ORDER BY id;
-- relay: what has an order of its own
SELECT id, array_position(docs, '[]'), array_remove(docs, '{}') FROM bags WHERE id < 4 ORDER BY id;
-- relay: what has an order of its own
SELECT docs FROM bags ORDER BY docs, id;
-- relay: what has an order of its own
SELECT docs, count(*) FROM bags GROUP BY docs ORDER BY 2, max(id);
