-- Arrays as values; see queries.sql for the form.
SELECT * FROM posts ORDER BY id;
SELECT id, tags, nums FROM posts WHERE tags IS NOT NULL ORDER BY id;
SELECT id FROM posts WHERE 'a' = ANY (tags) ORDER BY id;
SELECT id FROM posts WHERE 'a' <> ALL (tags) ORDER BY id;
SELECT id FROM posts WHERE NOT ('b' = ANY (tags)) ORDER BY id;
SELECT id, 'a' = ANY (tags) AS a, 'q' = ANY (tags) AS q, NULL::text = ANY (tags) AS n, title = ANY (tags) AS t, title <> ALL (tags) AS u FROM posts ORDER BY id;
SELECT id, 3 = ANY (nums), id = ANY (nums), author = ANY (big), id <> ALL (small), 3::bigint = ANY (nums), 3::smallint = ANY (big) FROM posts ORDER BY id;
SELECT id, true = ANY (flags), date '2024-01-01' = ANY (days), title = ANY (names), '2000-02-29 12:00:00'::timestamp = ANY (plain) FROM posts ORDER BY id;
SELECT id, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' = ANY (ids), timestamptz '1970-01-01 00:00:00+00' = ANY (moments) FROM posts ORDER BY id;
SELECT id, 7 = ANY (grid), 4 = ANY (grid) FROM posts ORDER BY id;
SELECT id FROM posts WHERE author = ANY ('{1,2}'::int[]) ORDER BY id;
SELECT id FROM posts WHERE author = ANY (ARRAY[1, 5]) ORDER BY id;
SELECT id FROM posts WHERE author = ANY (ARRAY[id, 2]) ORDER BY id;
SELECT id FROM posts WHERE title = ANY ('{one,b,"four"}') ORDER BY id;
SELECT id, array_length(tags, 1), array_length(grid, 2), array_length(nums, 0), array_length(nums, NULL), cardinality(grid), array_ndims(grid) FROM posts ORDER BY id;
SELECT id, array_lower(nums, 1), array_upper(nums, 1), array_lower(grid, 2), array_upper(tags, 1), cardinality(tags) FROM posts ORDER BY id;
SELECT id, array_to_string(tags, ','), array_to_string(nums, '-', '*'), array_to_string(prices, ' '), array_to_string(flags, '', '?'), array_to_string(days, ', ') FROM posts ORDER BY id;
SELECT id, array_to_string(scores, '|', NULL), array_to_string(moments, ';'), array_to_string(grid, ',') FROM posts ORDER BY id;
SELECT id, tags[1], nums[2], nums[0], big[1], prices[2], flags[3], days[1], grid[1], tags[id], names[2], scores[1], ids[1], reals[1], moments[1] FROM posts ORDER BY id;
SELECT id FROM posts WHERE tags @> ARRAY['a'] ORDER BY id;
SELECT id FROM posts WHERE tags @> '{a,b}' ORDER BY id;
SELECT id FROM posts WHERE tags && ARRAY['b', 'z'] ORDER BY id;
SELECT id, nums @> ARRAY[3, 3], nums <@ ARRAY[1, 2, 3, 4, 5, 6], nums && '{5,NULL}', nums @> '{}', '{}' <@ nums, nums @> '{NULL}' FROM posts ORDER BY id;
SELECT id, grid && ARRAY[7], days @> ARRAY[date '2000-02-29'], ids && ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid] FROM posts ORDER BY id;
SELECT id, nums = ARRAY[1, 2, 3], nums <> '{}', tags = '{a,b}', nums = '{4,5,6}', tags = ARRAY['a', 'b'] FROM posts ORDER BY id;
SELECT ARRAY[1, 2, 3], ARRAY['a', 'b'], ARRAY[1, 2.5], ARRAY[NULL, 1], ARRAY[]::text[], '{1,2}'::bigint[], ARRAY['1', '2']::int[];
SELECT id, ARRAY[id, author], ARRAY[title, 'x'], ARRAY[id, NULL, 2.5] FROM posts ORDER BY id;
SELECT array_agg(id) FROM (SELECT id FROM posts ORDER BY id) s;
SELECT author, array_agg(id ORDER BY id DESC), array_agg(title ORDER BY id) FROM posts GROUP BY author ORDER BY author;
SELECT array_agg(DISTINCT author), array_agg(DISTINCT title), array_agg(DISTINCT author ORDER BY author DESC) FROM posts;
SELECT array_agg(id ORDER BY id) FILTER (WHERE id > 3), array_agg(id) FILTER (WHERE id > 30) FROM posts;
SELECT array_agg(title || '!' ORDER BY title NULLS FIRST, id), array_agg(author * 1.5 ORDER BY id), array_agg(id::float8 ORDER BY id) FROM posts;
SELECT array_agg(author > 1 ORDER BY id), array_agg(date '2024-01-01' + id ORDER BY id), array_agg(now() - now() > interval '1 day' ORDER BY id) FROM posts WHERE id < 4;
SELECT array_length(array_agg(id ORDER BY id), 1), array_to_string(array_agg(title ORDER BY id), ',') FROM posts;
SELECT (array_agg(title ORDER BY id DESC))[1] FROM posts;
SELECT id, count(*) OVER (), array_agg(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM posts ORDER BY id;
SELECT count(tags), count(*) FROM posts;
SELECT id, coalesce(tags, '{}') AS t, CASE WHEN id < 3 THEN nums ELSE ARRAY[0] END AS n FROM posts ORDER BY id;
SELECT p.id, q.tags FROM posts p LEFT JOIN posts q ON q.id = p.author AND q.id > 1 ORDER BY p.id;
WITH t AS (SELECT author, array_agg(id ORDER BY id) AS ids FROM posts GROUP BY author) SELECT * FROM t WHERE 1 = ANY (ids) ORDER BY author;
SELECT count(*) FROM (SELECT nums FROM posts WHERE id = 1 UNION ALL SELECT '{9}') s WHERE 9 = ANY (nums);
SELECT array_agg(title ORDER BY id), string_agg(title, ',' ORDER BY id), max(title) FROM posts;
SELECT id, ARRAY[title], ARRAY[prices[1], prices[2]], coalesce(ARRAY[prices[1]], ARRAY[prices[2]]) FROM posts ORDER BY id;
SELECT (array_agg(id ORDER BY id DESC))[1], (SELECT (array_agg(p.id ORDER BY p.id))[2] FROM posts p) FROM posts;
-- relay: a subscript of what is no name and has no parentheses
SELECT array_agg(id)[1] FROM posts;
-- relay: a subscript of what is no name and has no parentheses
SELECT ARRAY[1, 2][1] FROM posts;
-- relay: order of arrays
SELECT id FROM posts ORDER BY tags, id;
-- relay: floats in arrays are not compared here
SELECT id FROM posts WHERE scores @> ARRAY[0::float8] ORDER BY id;
-- relay: arrays of other element types
SELECT id FROM posts WHERE nums = big ORDER BY id;
-- relay: arrays as text
SELECT tags::text FROM posts ORDER BY id;
-- relay: slices
SELECT id, nums[1:2] FROM posts ORDER BY id;
