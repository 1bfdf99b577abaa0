-- Bit strings.
let a = '101' ;; '' ;; '0' ;; '11111111' ;; '000000001' ;; 'x1F' ;; NULL
let b = '101' ;; '100' ;; '1' ;; '1010' ;; NULL
let s = bit ;; varbit ;; bit(3) ;; varbit(2) ;; bit(12)
let comparison = = ;; <> ;; < ;; <= ;; > ;; >=
SELECT {a}::{s} {comparison} {b}::varbit, varbit {a} {comparison} varbit {b};
SELECT {a}::{s}, {a}::text::{s}, {a}::{s}::text, {a}::{s}::varbit, {a}::varbit::bit(4);
SELECT {a}::bit(8) {comparison} {b}::bit(8), {a}::bit(8) & {b}::bit(8), {a}::bit(8) | {b}::bit(8), {a}::bit(8) # {b}::bit(8), ~ {a}::{s};
SELECT {a}::{s} || {b}::varbit, {a}::bit(4) || {b}::bit(3), length({a}::{s}), bit_length({a}::{s}), octet_length({a}::{s}), bit_count({a}::{s});
let n = 0 ;; 1 ;; 3 ;; 9 ;; -2 ;; 2147483647 ;; NULL
SELECT {a}::bit(6) << {n}, {a}::bit(6) >> {n};
SELECT get_bit({a}::bit(6), {n});
SELECT {a}::bit(8)::int, {a}::bit(40)::bigint, {a}::bit(32)::int, {a}::bit(64)::bigint, {a}::varbit::bit(8)::int4;
SELECT {a}::varbit::bit::int, {a}::varbit::bit(33)::int;
let column = b ;; v ;; w ;; one
SELECT {column}, count(*) FROM flags GROUP BY {column} ORDER BY 1;
SELECT id, {column} IS NULL, {column} = {b}, {column} < '1', coalesce({column}, '1'), {column}::text FROM flags ORDER BY {column} DESC, id;
SELECT id, pg_catalog.bit({column}, 5, true), pg_catalog.varbit({column}, 3, true) FROM flags ORDER BY id;
