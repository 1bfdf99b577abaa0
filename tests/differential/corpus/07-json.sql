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
let e = tags ;; nums ;; big ;; flags ;; names ;; days
SELECT id, {e}, array_length({e}, 1), cardinality({e}), array_ndims({e}), array_lower({e}, 1), array_upper({e}, 1) FROM posts ORDER BY id;
SELECT id, 'a' = ANY (tags), 3 = ANY (nums), 3 <> ALL (nums), 3 > ANY (nums), tags @> '{a}', nums && '{3,9}', '{3}' <@ nums, nums = '{1,2,3}' FROM posts ORDER BY id;
SELECT id, array_to_string(tags, ','), array_to_string(nums, '-', 'none'), array_position(nums, 3), array_append(nums, 9), array_cat(nums, '{1}'), nums || 7, 0 || nums, array_remove(nums, 3) FROM posts ORDER BY id;
SELECT ARRAY[1, 2, NULL], ARRAY['a', 'b']::text[], ARRAY[1.50, 2], ARRAY[]::int[], '{1,2}'::int[], ARRAY[true, NULL];
SELECT array_agg(id ORDER BY id), array_agg(author ORDER BY id DESC), array_agg(DISTINCT author ORDER BY author), array_agg(title ORDER BY id) FILTER (WHERE id > 1) FROM posts;
