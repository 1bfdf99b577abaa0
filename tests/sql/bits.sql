-- Bit strings. A statement each; "-- relay: why" above one: upstream answers it.
SELECT * FROM flags ORDER BY id;
SELECT id FROM flags ORDER BY b, id;
SELECT id, v FROM flags ORDER BY v DESC NULLS LAST, id;
SELECT v, w FROM flags ORDER BY w, v;
SELECT a.id, c.id FROM flags a JOIN flags c ON a.v < c.v ORDER BY 1, 2;
SELECT a.id, c.id FROM flags a JOIN flags c ON a.v = c.w ORDER BY 1, 2;
SELECT a.id, c.id FROM flags a JOIN flags c USING (b) ORDER BY 1, 2;
SELECT a.id, a.v <= c.w, a.v <> c.w, a.v >= c.w, a.b > c.b FROM flags a JOIN flags c ON a.id = c.id ORDER BY 1;
SELECT b, count(*) FROM flags GROUP BY b ORDER BY b;
SELECT DISTINCT w FROM flags ORDER BY 1;
SELECT v FROM flags UNION SELECT w FROM flags ORDER BY 1;
SELECT id FROM flags WHERE b = '10110001' ORDER BY id;
SELECT id FROM flags WHERE v IN ('101', '1', NULL) ORDER BY id;
SELECT id, v::text, b::varchar, b::text || 'x', v || b, b || b FROM flags ORDER BY id;
SELECT id, ~b, b & '00001111', b | '11110000', b # '11111111', b << 3, b >> 2, b << -1, b >> 99 FROM flags ORDER BY id;
SELECT id, length(v), bit_length(v), octet_length(v), length(b), bit_count(v), bit_count(b) FROM flags ORDER BY id;
SELECT id, b::int, b::bigint, v::bit(4), v::bit(70), v::varbit(2), b::varbit, v::bit, w::bit(3)::int FROM flags ORDER BY id;
SELECT id, v::bit(64)::bigint FROM flags ORDER BY id;
SELECT get_bit(b, 0), get_bit(b, 7) FROM flags WHERE id = 1;
SELECT id, coalesce(v, '1'), nullif(v, '101'), greatest(v, w), least(v, w), CASE WHEN one = '1' THEN b END FROM flags ORDER BY id;
SELECT id, rank() OVER (ORDER BY v), lag(b) OVER (ORDER BY id), count(b) OVER (PARTITION BY one) FROM flags ORDER BY id;
SELECT bit '101', varbit 'x1F', '101'::text::bit(5), 'b01'::varchar::varbit, '1'::bit varying(3), 'xff'::bit(4), '101'::bit;
SELECT max(id) FROM flags WHERE v > '1' AND w IS NOT NULL;
-- relay: an error
SELECT id, b & v FROM flags WHERE id = 1;
-- relay: an error
SELECT get_bit(v, 70) FROM flags WHERE id = 1;
-- relay: out of range
SELECT v::int FROM flags WHERE id = 8;
-- relay: a number's bits
SELECT 5::bit(4);
-- relay: an aggregate of bits
SELECT bit_and(b) FROM flags;
-- relay: the row description has the length, or not
SELECT id, varbit(v, 64, false) FROM flags ORDER BY id;
