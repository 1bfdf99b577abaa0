-- Integers: every operator over every pair of widths at their boundaries, functions, casts.
let a = smallint '7' ;; smallint '-32768' ;; integer '-7' ;; integer '2147483647' ;; bigint '3' ;; bigint '-9223372036854775808' ;; NULL::smallint ;; NULL::bigint
let b = smallint '2' ;; integer '-2' ;; bigint '9223372036854775807' ;; NULL::integer
let arithmetic = + ;; - ;; * ;; /
let comparison = = ;; <> ;; < ;; <= ;; > ;; >=
SELECT {a} {arithmetic} {b};
SELECT {a} {comparison} {b};
let x = s ;; i ;; b
let y = s ;; i ;; b
SELECT id, {x} {comparison} {y} FROM numbers ORDER BY id;
SELECT id, {x} {arithmetic} {y} FROM numbers WHERE id IN (1, 2, 4, 7, 11, 15) ORDER BY id;
let same = smallint '7' {o} smallint '3' ;; integer '-7' {o} integer '3' ;; bigint '-9223372036854775808' {o} bigint '-1' ;; NULL {o} 1 ;; 5 {o} 0
let bitwise = % ;; & ;; | ;; #
SELECT id, {x} {bitwise} {x} FROM numbers WHERE id <> 3 ORDER BY id;
SELECT smallint '-7' {bitwise} smallint '3', integer '-7' {bitwise} integer '3', bigint '-7' {bitwise} bigint '3';
let shift = << ;; >>
SELECT smallint '-7' {shift} 2, integer '-7' {shift} 3, bigint '-7' {shift} 33, smallint '1' {shift} 15, integer '1' {shift} 31, bigint '1' {shift} 63;
SELECT id, {x} {shift} 1 FROM numbers ORDER BY id;
let one = abs(v) ;; -v ;; +v ;; ~v ;; @v ;; sign(v)
let value = smallint '-5' ;; integer '-2147483648' ;; bigint '-9223372036854775807' ;; NULL::integer ;; smallint '-32768'
SELECT {one} FROM (SELECT {value} AS v) q;
SELECT abs({x}), -{x}, +{x}, ~{x}, @{x} FROM numbers WHERE id NOT IN (6) ORDER BY id;
let f = mod ;; gcd ;; lcm
SELECT {f}(12, 18), {f}(bigint '-12', bigint '18'), {f}(0, 5), {f}(NULL, 5);
SELECT mod(smallint '7', smallint '-3'), mod(7::bigint, 0::bigint);
SELECT id, mod({x}, 3::smallint), {x} % 5::smallint FROM numbers ORDER BY id;
SELECT int2({value}), int4({value}), int8({value});
let to = smallint ;; integer ;; bigint ;; numeric ;; real ;; double precision ;; text ;; boolean ;; varchar(3) ;; char(4)
SELECT {value}::{to};
SELECT id, {x}::{to} FROM numbers WHERE id IN (1, 2, 3, 4, 7) ORDER BY id;
let literal = '0' ;; '-1' ;; ' 42 ' ;; '32768' ;; '+7' ;; '99999999999' ;; '1.5' ;; '' ;; '0x10' ;; '1_000'
SELECT {literal}::smallint;
SELECT {literal}::integer;
SELECT {literal}::bigint;
SELECT 2147483647, 2147483648, -2147483648, 9223372036854775807, 9223372036854775808, -9223372036854775808;
SELECT id, s + 1, i + 1::smallint, b + 1, 1 - s, 2 * i FROM numbers WHERE id NOT IN (5, 6) ORDER BY id;
SELECT id, factorial(s) FROM numbers WHERE s BETWEEN 0 AND 9 ORDER BY id;
SELECT sum({x}), avg({x}), min({x}), max({x}), count({x}), count(DISTINCT {x}) FROM numbers;
SELECT bit_and({x}), bit_or({x}), bit_xor({x}), bit_xor(DISTINCT {x}), bit_and({x}) FILTER (WHERE id < 3) FROM numbers;
SELECT id % 3 AS k, bit_or({x}), bit_xor({x}) OVER (ORDER BY id) FROM numbers GROUP BY 1, id, {x} ORDER BY 1, id;
SELECT sum({x}), avg({x}), min({x}), max({x}), count({x}) FROM numbers WHERE id < 0;
SELECT var_pop({x}), var_samp({x}), stddev({x}), stddev_pop({x}), stddev_samp({x}), variance({x}) FROM numbers WHERE id NOT IN (5, 6);
SELECT {x}, count(*) FROM numbers GROUP BY {x} ORDER BY {x} NULLS FIRST;
SELECT id FROM numbers ORDER BY {x} DESC NULLS LAST, id;
SELECT id, {x} IN (1, 7, NULL), {x} NOT IN (1, 7), {x} NOT IN (1, NULL), {x} BETWEEN 0 AND 9, {x} NOT BETWEEN SYMMETRIC 9 AND 0 FROM numbers ORDER BY id;
SELECT id, {x} IS DISTINCT FROM {y}, {x} IS NOT DISTINCT FROM 7, greatest({x}, {y}), least({x}, 3), nullif({x}, {y}), coalesce({x}, -1) FROM numbers ORDER BY id;
SELECT to_hex(255), to_hex(bigint '-1'), chr(65), ascii('A');
SELECT width_bucket({x}, 0, 10, 5) FROM numbers WHERE id IN (1, 7, 8, 9) ORDER BY id;
let row = 1 ;; 2 ;; 4 ;; 5 ;; 6
let step = s + s ;; s * 2::smallint ;; i + 1 ;; i - 1 ;; i * i ;; b + 1 ;; b - 2 ;; b * 3 ;; -s ;; -i ;; -b ;; abs(i) ;; i + s ;; b - i ;; i / -1 ;; b / -1 ;; s::int * i
SELECT {step} FROM numbers WHERE id = {row};
