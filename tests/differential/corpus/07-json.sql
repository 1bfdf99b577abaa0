-- jsonb and json by column, arrays.
let k = 'a' ;; 'num' ;; 'tags' ;; '' ;; 'missing' ;; NULL
SELECT id, j -> {k}, j ->> {k}, j ? {k} FROM docs ORDER BY id;
let n = 0 ;; 1 ;; -1 ;; 99 ;; NULL
SELECT id, j -> {n}, j ->> {n} FROM docs ORDER BY id;
let p = '{a,b}' ;; '{tags,0}' ;; '{}' ;; '{a,b,2,c}' ;; '{num}' ;; NULL
SELECT id, j #> {p}, j #>> {p} FROM docs ORDER BY id;
let c = '{}' ;; '[]' ;; '{"num": 1.5}' ;; '[1]' ;; '{"a": {}}' ;; '42' ;; NULL
SELECT id, j @> {c}::jsonb, {c}::jsonb <@ j FROM docs ORDER BY id;
let t = text ;; int ;; numeric ;; boolean ;; double precision
SELECT id, (j ->> 'num')::{t} FROM docs WHERE id IN (1, 7, 8) ORDER BY id;
SELECT id, j::text, plain::text, jsonb_typeof(j), jsonb_array_length(CASE WHEN jsonb_typeof(j) = 'array' THEN j END) FROM docs ORDER BY id;
let d = '{"a": 1}' ;; '[1, 2.50, "x"]' ;; 'null' ;; '"s"' ;; '1e5' ;; '{"b":2,"a":1,"b":3}' ;; '' ;; '{'
SELECT {d}::jsonb, {d}::json;
SELECT id, tags[1], nums[2], big[1], names[1], prices[1], scores[2] FROM posts ORDER BY id;
SELECT nums[1:2] AS part, count(*), min(id) FROM posts GROUP BY 1 ORDER BY 3;
SELECT count(DISTINCT s[1:2]) FROM (VALUES (ARRAY[1,2,3]), (ARRAY[1,2,NULL]), (NULL)) AS v (s);
let e = tags ;; nums ;; big ;; flags ;; names ;; days
SELECT id, {e}, array_length({e}, 1), cardinality({e}), array_ndims({e}), array_lower({e}, 1), array_upper({e}, 1) FROM posts ORDER BY id;
SELECT id, 'a' = ANY (tags), 3 = ANY (nums), 3 <> ALL (nums), 3 > ANY (nums), tags @> '{a}', nums && '{3,9}', '{3}' <@ nums, nums = '{1,2,3}' FROM posts ORDER BY id;
SELECT id, array_to_string(tags, ','), array_to_string(nums, '-', 'none'), array_position(nums, 3), array_append(nums, 9), array_cat(nums, '{1}'), nums || 7, 0 || nums, array_remove(nums, 3) FROM posts ORDER BY id;
SELECT ARRAY[1, 2, NULL], ARRAY['a', 'b']::text[], ARRAY[1.50, 2], ARRAY[]::int[], '{1,2}'::int[], ARRAY[true, NULL];
SELECT array_agg(id ORDER BY id), array_agg(author ORDER BY id DESC), array_agg(DISTINCT author ORDER BY author), array_agg(title ORDER BY id) FILTER (WHERE id > 1) FROM posts;
-- jsonb by equality, put together and taken apart.
let f = '{"a": 1, "b": [1, 2.50, "x", null]}' ;; '[1, "a", {"z": []}, "a", null]' ;; '{}' ;; '[]' ;; '"a"' ;; '1.0' ;; 'null' ;; '{"é\"": {"b": {}}, "bb": true, "c": 1e3}' ;; NULL
let g = '{"b": [1.0, 2.5, "x", null], "a": 1.00}' ;; '["a", 1]' ;; '{}' ;; '[]' ;; '1' ;; '-0.0' ;; '{"c": 1000, "a": {"b": 1}}' ;; NULL
SELECT {f}::jsonb = {g}::jsonb, {f}::jsonb <> {g}, {g} = {f}::jsonb, {f}::jsonb IS DISTINCT FROM {g}::jsonb, nullif({f}::jsonb, {g});
SELECT {f}::jsonb || {g}::jsonb, {f}::jsonb || {g}, {g} || {f}::jsonb;
let x = '1' ;; '1.00' ;; '-2.5' ;; '1e30' ;; 'true' ;; 'false' ;; 'null' ;; '"a"' ;; '[]' ;; '[[]]' ;; '{}' ;; '[1]' ;; '[1, 2]' ;; '[[1], 0]' ;; '{"a": 1}' ;; '{"a": {"b": []}}' ;; '{"a": 1, "bb": null}' ;; NULL
let y = '0' ;; '1.0' ;; '"a"' ;; 'false' ;; 'null' ;; '[]' ;; '[null]' ;; '[1, 3]' ;; '[{}, 0]' ;; '{}' ;; '{"a": []}' ;; '{"a": 2}' ;; NULL
SELECT {x}::jsonb < {y}::jsonb, {x}::jsonb <= {y}, {x} > {y}::jsonb, {x}::jsonb >= {y}::jsonb, {x}::jsonb BETWEEN {y} AND '{}', greatest({x}::jsonb, {y}), least({x}::jsonb, {y}::jsonb);
SELECT id FROM docs WHERE j -> 'num' > {x} ORDER BY id;
SELECT id FROM docs WHERE (j -> 'num') <= {y} AND j >= '0' ORDER BY id;
let key = 'a' ;; 'b' ;; 'é"' ;; '' ;; NULL
SELECT {f}::jsonb - {key};
SELECT {f}::jsonb - {key}::text, {f}::jsonb - ARRAY['c', {key}];
let at = 0 ;; 1 ;; -1 ;; 9 ;; -9 ;; NULL
SELECT {f}::jsonb - {at}::int;
SELECT {f}::jsonb ?| ARRAY[{key}, 'bb'], {f}::jsonb ?& ARRAY[{key}, 'b'], {f}::jsonb ?| '{}', {f}::jsonb ?& '{}';
SELECT jsonb_pretty({f}), jsonb_pretty({g}::jsonb);
let number = '7' ;; '-2.5' ;; '1e3' ;; '99999.5' ;; '3000000000' ;; 'true' ;; '"7"' ;; 'null' ;; '[7]' ;; NULL
let to = int2 ;; int4 ;; int8 ;; float4 ;; float8 ;; numeric ;; bool
SELECT {number}::jsonb::{to}, ('[' || {number} || ']')::jsonb -> 0 = {number}::jsonb;
SELECT count(DISTINCT j), count(DISTINCT j -> 'a') FROM docs WHERE id < 5;
SELECT j -> {k} AS part, count(*), min(id) FROM docs GROUP BY 1 ORDER BY 3;
SELECT id FROM docs WHERE j = {f} OR j -> 'num' = {number} ORDER BY id;
-- JSON made of values and rows.
let v = 1 ;; -2.50 ;; 1e20::float8 ;; 'NaN'::float4 ;; 'a "q" \ é' ;; true ;; date '2024-02-29' ;; timestamp '2024-02-29 12:00:00.5' ;; timestamptz '2024-07-01 00:00+00' ;; interval '1 day 2 hours' ;; '\x01ff'::bytea ;; ARRAY[1, NULL, 3] ;; ARRAY['a', NULL, '"'] ;; '{"a" :1}'::json ;; '{"b": [1, 2]}'::jsonb ;; inet '10.0.0.1/8' ;; '101'::bit(3) ;; NULL
SELECT json_build_object('v', {v}, 'w', {k}), jsonb_build_object('vv', {v}, 'w', {k}, 'vv', 1), json_build_array({v}, {k}), jsonb_build_array({k}, {v});
SELECT to_json({v}), to_jsonb({v});
SELECT json_build_object({v}, 1), jsonb_build_object({v}, 1);
SELECT json_agg({v}), jsonb_agg({v}), json_object_agg(id, {v} ORDER BY id), jsonb_object_agg(id % 3, {v} ORDER BY id) FROM docs WHERE id < 5;
SELECT json_agg({e} ORDER BY id), to_json(array_agg(id ORDER BY id)), array_to_json(array_agg(title ORDER BY id)) FROM posts;
SELECT row_to_json(q), to_jsonb(q) FROM (SELECT id, {e} AS "an ""item""" FROM posts ORDER BY id) q ORDER BY q.id;
SELECT json_agg(q ORDER BY q.id), jsonb_agg(q ORDER BY q.id DESC), count(q) FROM (SELECT id, {e} FROM posts) q;
SELECT p.id, (SELECT json_agg(q.id) FROM (SELECT id FROM docs d WHERE d.id % 4 + 1 = p.id ORDER BY id DESC) q) FROM posts p ORDER BY p.id;
SELECT p.id, ARRAY(SELECT d.id FROM docs d WHERE d.id = p.id ORDER BY d.id DESC), ARRAY(SELECT id FROM docs ORDER BY id DESC LIMIT 3) FROM posts p ORDER BY p.id;
SELECT row_to_json((SELECT r FROM (SELECT p.id, p.title AS t, {v} AS v) r)), row_to_json(ROW(p.id, {v})) FROM posts p ORDER BY p.id;
SELECT to_json(plain), plain::jsonb, plain::text::jsonb, j::json, json_build_object('j', j, 'plain', plain) FROM docs ORDER BY id;
-- json as it was given.
let plain = ' {"a" : {"b":[10 , "x,y]" ,null ]} , "a":{"c": 1.50 }, "q\"" : "z\u00e9\n\/" , "e" : { } ,"n":null} ' ;; '[1 , 2.50e3,"t" ,[ ], {"k" : [1]}, null , false ]' ;; ' "lone\t" ' ;; ' 4.20 ' ;; 'null ' ;; 'true' ;; '{}' ;; '[]' ;; '[[1,2],[3,4,5]]' ;; '{"a":{"b":1},"a":{"c":2}}' ;; '{"x":"\ud83d\ude00"}' ;; '{"a":"\u0000"}' ;; '{"a b":{"":[[" "]]}}' ;; NULL
let name = 'a' ;; 'q"' ;; 'n' ;; 'e' ;; '' ;; 'a b' ;; NULL
SELECT {plain}::json -> {name};
SELECT {plain}::json ->> {name};
let place = 0 ;; 2 ;; 5 ;; -1 ;; -7 ;; 99 ;; NULL
SELECT {plain}::json -> {place};
SELECT {plain}::json ->> {place};
let path = '{}' ;; '{a}' ;; '{a,b}' ;; '{a,b,1}' ;; '{a,c}' ;; '{0}' ;; '{" 1",0}' ;; '{-1}' ;; '{1,-1}' ;; '{4,k,0}' ;; '{a b,"",0,0}' ;; '{a,NULL}' ;; '{q"}' ;; '{1.5}' ;; NULL
SELECT {plain}::json #> {path};
SELECT {plain}::json #>> {path};
SELECT json_typeof({plain}::json);
SELECT json_array_length({plain}::json);
SELECT * FROM json_array_elements({plain}) WITH ORDINALITY;
SELECT * FROM json_array_elements_text({plain}) WITH ORDINALITY;
SELECT * FROM json_each({plain}) WITH ORDINALITY;
SELECT * FROM json_each_text({plain}) WITH ORDINALITY;
SELECT json_object_keys({plain}) AS k;
SELECT json_array_elements({plain}::json) ->> 'k' AS k;
SELECT id, plain -> 'a', plain ->> 'a', plain #>> '{x,0}', plain -> 0, json_typeof(plain) FROM docs ORDER BY id;
SELECT d.id, e.value FROM docs d, json_array_elements(d.plain -> 'x') e ORDER BY 1;
SELECT (plain ->> 'a')::int + 1 AS more, count(*) FROM docs WHERE plain ->> 'a' IS NOT NULL GROUP BY 1;
let half = '"\ud83d\ude00 \uD83D\uDE00x"' ;; '{"\ud83d\ude00": [1, "\u00e9\ud834\udd1e"]}' ;; '"\ud83d"' ;; '"\ude00"' ;; '"\ud83d\ud83d\ude00"' ;; '"\ud83d \ude00"' ;; '"\u0000"' ;; '"\\ud83d"' ;; '"\ud83d\u0041"' ;; '"\uffff\ufffe"'
SELECT {half}::jsonb, {half}::json, {half}::jsonb::text;
SELECT {half}::json ->> 0, {half}::json #>> '{}', {half}::json -> '😀', {half}::jsonb -> '😀' ->> 1;
SELECT {half}::jsonb #>> '{}', jsonb_typeof({half}::jsonb), json_typeof({half}::json);
SELECT {half}::json -> '😀' ->> 1;
-- Subscripts (jsonbsubs.c).
let step = 'a' ;; 'tags' ;; 0 ;; -1 ;; 1::smallint ;; 'missing' ;; NULL ;; '0' ;; id ;; 1::bigint ;; 1.5
SELECT id, j[{step}], j['tags'][{step}], (j -> 'tags')[{step}] FROM docs ORDER BY id;
SELECT id FROM docs WHERE j[{step}] = '1' OR j['tags'][{step}] IS NOT NULL ORDER BY id;
-- Arrays of JSON.
let js = '{"b" : 1, "a":[ ]}' ;; '[1 , 2]' ;; '"q\"u"' ;; 'null' ;; '1.50' ;; '"\u0000"' ;; '1e400' ;; 'x' ;; NULL
let al = '{}' ;; '{"{\"b\": 2, \"a\" :1}",NULL,"[ ]","1.0"}' ;; '{1,true,null,"\"x\""}' ;; '{{1,2},{3,4}}' ;; '[2:3]={1,"{}"}' ;; '{x}' ;; '{"{"}' ;; '{"\"\\u0000\""}' ;; NULL
SELECT ARRAY[{js}::json, '{}'], ARRAY[{js}::json, NULL]::text;
SELECT ARRAY[{js}::jsonb, '[1,  2]'], ARRAY[{js}, '0']::jsonb[];
SELECT {al}::json[], ({al}::json[])::text, ({al}::json[])[1], array_length({al}::json[], 1), to_json({al}::json[]);
SELECT {al}::jsonb[], ({al}::jsonb[])[1] -> 'b', array_to_string({al}::jsonb[], ';', '*'), to_jsonb({al}::jsonb[]), array_to_json({al}::jsonb[]);
SELECT to_jsonb({al}::json[]), array_to_json({al}::json[]), array_to_string({al}::json[], ' ');
SELECT array_append({al}::jsonb[], {js}::jsonb), array_prepend({js}::jsonb, {al}::jsonb[]), {al}::jsonb[] || {js}::jsonb;
SELECT array_append({al}::json[], {js}), array_cat({al}::json[], {al}), {al}::json[] || {al}::json[], {js}::json || {al}::json[];
SELECT u.u ->> 0, u.u ->> 'b', u.u::text FROM unnest({al}::json[]) u;
SELECT u, u.u @> '{}', u.u - 'b' FROM unnest({al}::jsonb[]) u WHERE jsonb_typeof(u.u) = 'object';
SELECT {al}::jsonb[] = {al}, {al}::jsonb[] < '{1}';
SELECT {al}::json[] = {al}::json[];
SELECT array_position({al}::jsonb[], {js}), array_remove({al}::jsonb[], {js}::jsonb), array_replace({al}::jsonb[], '1', '2'), array_positions({al}::jsonb[], '1');
SELECT array_position({al}::json[], {js}::json);
SELECT {js}::jsonb = ANY ({al}::jsonb[]), {al}::jsonb[] @> ARRAY[{js}::jsonb], {al}::jsonb[] && '{1}';
SELECT {js}::json = ANY ({al}::json[]);
SELECT ({al}::json[])::jsonb[], ({al}::jsonb[])::json[], ({al}::text[])::json[], ({al}::json[])::text[];
SELECT array_agg(plain ORDER BY id), array_agg(j ORDER BY id DESC), array_agg(DISTINCT j) FROM docs;
SELECT array_agg(plain ORDER BY id) FILTER (WHERE id > 8), (array_agg(j ORDER BY id))[2] FROM docs;
SELECT count(DISTINCT {al}::json[]), max({al}::jsonb[]) FROM docs;
SELECT DISTINCT {al}::json[] FROM docs;
SELECT {al}::jsonb[] AS a, count(*) FROM docs GROUP BY 1 ORDER BY 1;
SELECT greatest({al}::json[], '{}'), nullif({al}::jsonb[], '{}');
SELECT row_number() OVER (PARTITION BY {al}::jsonb[] ORDER BY id) FROM docs ORDER BY id;
-- No elements at all.
let em = text ;; int ;; date ;; json ;; jsonb ;; uuid ;; numeric
SELECT 5 = ANY ('{}'::{em}[]);
SELECT 'a'::text <> ALL ('{}'::{em}[]), NULL::int = ANY ('{}'::{em}[]);
SELECT id, 5 < ANY (ARRAY[]::{em}[]), title = ANY (ARRAY[]::{em}[]) FROM posts ORDER BY id;
SELECT 'a' = ANY ('{}'::{em}[]), 'a' = ANY ('{}');
