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
SELECT id FROM posts ORDER BY nums, id;
SELECT id FROM posts ORDER BY nums DESC NULLS LAST, id DESC;
SELECT id FROM posts ORDER BY grid DESC, flags, id;
SELECT id FROM posts ORDER BY prices, reals DESC, id;
SELECT id FROM posts ORDER BY scores NULLS FIRST, id;
SELECT id FROM posts ORDER BY days, moments, plain, ids, big, small, id;
SELECT id, nums < '{2}', nums >= ARRAY[4, 5, 6], nums <= '{}', nums > '{NULL}', nums <> ARRAY[3, 3, 5] FROM posts ORDER BY id;
SELECT id, prices = '{1.5,-2.250,NULL}', prices < '{1}', reals = '{1.5,1e-7}', scores > '{0.1,1}', scores = '{0.1,NaN,0}', scores <> '{}' FROM posts ORDER BY id;
SELECT a.id, b.id AS other FROM posts a JOIN posts b ON a.nums < b.nums ORDER BY 1, 2;
SELECT a.id, b.id AS other FROM posts a JOIN posts b ON a.tags = b.tags ORDER BY 1, 2;
SELECT nums, count(*) AS n FROM posts GROUP BY nums ORDER BY nums;
SELECT author % 2 AS odd, days, count(*) AS n FROM posts GROUP BY 1, 2 ORDER BY 1, 2;
SELECT DISTINCT flags FROM posts ORDER BY 1;
SELECT count(DISTINCT tags), count(DISTINCT ids), count(DISTINCT nums) FILTER (WHERE id > 2) FROM posts;
SELECT count(*) FROM (SELECT DISTINCT tags, names FROM posts) s;
SELECT nums FROM posts UNION SELECT ARRAY[1, 2, 3] ORDER BY 1;
SELECT nums FROM posts EXCEPT SELECT '{}' ORDER BY 1;
SELECT DISTINCT ON (nums) nums, id FROM posts ORDER BY nums DESC, id;
SELECT id, row_number() OVER (PARTITION BY big ORDER BY id), rank() OVER (ORDER BY nums) FROM posts ORDER BY id;
SELECT id, nums[1:2], nums[2:], nums[:1], nums[:], nums[5:1], nums[0:0], nums[NULL:2] FROM posts ORDER BY id;
SELECT id, tags[2:id], (tags[1:2])[1], array_length(big[1:1], 1), prices[2:3], scores[-5:100] FROM posts ORDER BY id;
SELECT id, nums || 9, 0 || nums, nums || nums, nums || NULL::int, nums || NULL::int[], nums || id::smallint FROM posts ORDER BY id;
SELECT id, tags || 'q'::text, 'q'::text || tags, tags || '{}'::text[], title || ARRAY['x'::varchar], prices || 1, big || id FROM posts ORDER BY id;
SELECT id, array_append(nums, 5), array_append(nums, NULL), array_prepend(5, nums), array_cat(nums, ARRAY[1]), array_append(tags, 'z'), array_prepend('z', tags) FROM posts WHERE grid IS NOT NULL ORDER BY id;
SELECT id, array_remove(nums, 3), array_remove(tags, NULL), array_remove(tags, 'a'), array_remove(prices, 1.5), array_remove(scores, 'NaN'), array_remove(reals, 0::real) FROM posts ORDER BY id;
SELECT id, array_replace(nums, 3, 30), array_replace(tags, NULL, 'n'), array_replace(nums, 4, NULL), array_replace(days, date 'infinity', '2000-01-01') FROM posts ORDER BY id;
SELECT id, array_position(nums, 5), array_position(tags, 'a'), array_position(tags, NULL), array_position(nums, 3, 2), array_position(scores, 'NaN'), array_positions(nums, 3), array_positions(tags, 'none') FROM posts ORDER BY id;
SELECT id, string_to_array(title, 'o'), string_to_array(title, NULL), string_to_array(title, ''), string_to_array('a,,b', ',', ''), string_to_array('', ',') FROM posts ORDER BY id;
SELECT string_to_array('xx~^~yy~^~zz', '~^~', 'yy'), string_to_array(NULL, ','), (string_to_array('a b c', ' '))[2], array_to_string(string_to_array('3,1', ',')::text[], '+');
SELECT array_agg(id ORDER BY id) || array_agg(author ORDER BY id), cardinality(array_agg(id) || 5) FROM posts;
WITH RECURSIVE walk(at, seen) AS (SELECT 1, ARRAY[1] UNION ALL SELECT p.author + 1, w.seen || (p.author + 1) FROM walk w JOIN posts p ON p.id = w.at WHERE p.author + 1 <> ALL (w.seen)) SELECT at, seen FROM walk ORDER BY seen;
SELECT u.x, count(*) FROM posts, unnest(nums[1:2] || author) AS u(x) GROUP BY u.x ORDER BY u.x;
-- relay: several dimensions
SELECT id, grid || ARRAY[1, 2] FROM posts ORDER BY id;
-- relay: several dimensions
SELECT id, grid[1:1] FROM posts ORDER BY id;
-- relay: a slice of a slice
SELECT id, grid[1:1][1] FROM posts ORDER BY id;
-- relay: a type for both
SELECT id, nums || 9.5 FROM posts ORDER BY id;
-- relay: a type for both
SELECT id, nums || big[1] FROM posts ORDER BY id;
-- relay: an untyped literal
SELECT id, nums || '{1}' FROM posts ORDER BY id;
-- relay: float arrays in groups
SELECT scores FROM posts GROUP BY scores ORDER BY 1;
-- relay: a NULL start
SELECT array_position(nums, 3, NULL) FROM posts ORDER BY 1;
-- relay: floats in arrays are not compared here
SELECT id FROM posts WHERE scores @> ARRAY[0::float8] ORDER BY id;
-- relay: arrays of other element types
SELECT id FROM posts WHERE nums = big ORDER BY id;
-- relay: an error
SELECT '[2147483646:2147483646]={1}'::int[] || 2;
SELECT id, tags::text, nums::text, big::varchar, small::text || '!', flags::text, names::text, days::text FROM posts ORDER BY id;
SELECT tags::text AS t, count(*) FROM posts GROUP BY 1 ORDER BY 1;
SELECT id FROM posts WHERE nums::text LIKE '%2%' ORDER BY id;
SELECT ARRAY[1.50, 2]::text, ARRAY[1.5::float8, 1e20]::text, ARRAY['a b', NULL, 'q"']::text, '{}'::int[]::text, NULL::int[]::text, '{a,b}'::text[]::text;
SELECT id, grid::text, moments::text, plain::text, ids::text, prices::text, reals::text, scores::varchar FROM posts ORDER BY id;
SELECT id FROM posts WHERE tags && ARRAY['a', 'q']::VARCHAR(255)[]::text[] ORDER BY id;
SELECT id FROM posts WHERE names && ARRAY['x', 'zzzzzzzzzzzz']::varchar(10)[] ORDER BY id;
SELECT id, ARRAY[title, 'longer than that']::varchar(3)[] AS cut, ARRAY[id, 1.255]::numeric(10,2)[] AS scaled, ARRAY[1.5, 2]::varchar(2)[] FROM posts ORDER BY id;
SELECT (ARRAY[title]::varchar(2)[])[1], ARRAY['2024-01-01 10:11:12.345678']::timestamp(2)[] FROM posts ORDER BY id;
-- relay: the elements of an array get a modifier
SELECT tags::varchar(1)[] FROM posts ORDER BY id;
-- relay: likewise of a text
SELECT '{abc,def}'::varchar(2)[] FROM posts;
SELECT ARRAY[]::varchar(2)[] FROM posts;
SELECT id, names::text[], tags::varchar[], (names::text[])[1], tags::varchar[]::text[] = tags FROM posts ORDER BY id;
-- relay: an outer join below would be an inner one, whatever the array
SELECT p.id, q.id FROM posts p LEFT JOIN posts q ON q.id = p.id + 3 WHERE (q.id = ANY ('{}'::int[])) IS FALSE ORDER BY p.id;
-- relay: likewise
SELECT p.id, q.id FROM posts p LEFT JOIN posts q ON q.id = p.id + 3 WHERE (q.id = ANY (p.nums)) IS NOT UNKNOWN ORDER BY p.id;
SELECT p.id, q.id FROM posts p LEFT JOIN posts q ON q.id = p.id + 3 WHERE (q.id = ANY (p.nums)) IS NOT TRUE ORDER BY p.id;
