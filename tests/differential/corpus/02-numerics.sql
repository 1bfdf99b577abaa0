-- numeric: display scales of every operation, rounding, special values, casts.
let a = 1 ;; 10 ;; 0.1 ;; -2.50 ;; 0 ;; 0.00 ;; 123456789012345678.123456789 ;; 'NaN' ;; 'Infinity' ;; '-Infinity' ;; NULL
let b = 3 ;; 0.07 ;; -1.000 ;; 0 ;; 'NaN' ;; 'Infinity' ;; NULL
let arithmetic = + ;; - ;; * ;; / ;; %
let comparison = = ;; <> ;; < ;; <= ;; > ;; >=
SELECT {a}::numeric {arithmetic} {b}::numeric;
SELECT {a}::numeric {comparison} {b}::numeric;
let x = n ;; n2 ;; n0
let y = n ;; n2 ;; n0
SELECT id, {x} {comparison} {y} FROM numbers ORDER BY id;
SELECT id, {x} + {y}, {x} - {y}, {x} * {y} FROM numbers WHERE id <> 5 ORDER BY id;
SELECT id, {x} / 7, 7 / ({x} + 1000), {x} % 0.3, mod({x}, 7) FROM numbers ORDER BY id;
let f = abs ;; ceil ;; ceiling ;; floor ;; round ;; trunc ;; sign ;; sqrt ;; ln ;; log ;; log10 ;; exp ;; trim_scale ;; min_scale ;; scale
SELECT {f}({a}::numeric);
SELECT id, {f}(abs({x}) + 1) FROM numbers WHERE id IN (1, 2, 3, 4, 10, 11, 15) ORDER BY id;
let places = 0 ;; 1 ;; 2 ;; -1 ;; -3 ;; 20
let v = 0.5 ;; 1.5 ;; 2.5 ;; -0.5 ;; -2.555 ;; 149.995 ;; 1e10 ;; 0.00005 ;; 'NaN' ;; NULL
SELECT round({v}::numeric, {places}), trunc({v}::numeric, {places});
SELECT id, round({x}, 1), trunc({x}, -1), {x}::numeric(20,1), {x}::int8 FROM numbers WHERE id NOT IN (5, 7, 8, 9) ORDER BY id;
let to = smallint ;; integer ;; bigint ;; real ;; double precision ;; text ;; numeric(5,2) ;; numeric(3) ;; numeric(2,-1) ;; numeric(3,5) ;; varchar(4)
SELECT {v}::numeric::{to};
let literal = '1e3' ;; '.5' ;; '5.' ;; '-0' ;; '0.000' ;; ' 12 ' ;; '1e-10' ;; 'inf' ;; 'nan' ;; '' ;; '1,5' ;; '1e' ;; '12345678901234567890123456789012345678'
SELECT {literal}::numeric, {literal}::numeric + 0;
SELECT 1.10, 1e2, .5, 5., 0.1 + 0.20, -1.5, 10.0 / 4, 1 / 3.0, 2 / 3.00, 1e-3 * 1e-3;
SELECT sum({x}), min({x}), max({x}), count({x}) FROM numbers;
SELECT sum({x}), avg({x}), var_pop({x}), var_samp({x}), stddev({x}), stddev_pop({x}), stddev_samp({x}), variance({x}) FROM numbers WHERE id IN (1, 2, 3, 4, 11, 14, 15);
SELECT avg({x}), stddev({x}), variance({x}) FROM numbers WHERE id = 1;
SELECT id FROM numbers ORDER BY {x} DESC NULLS FIRST, id;
SELECT id, +{x}, -{x}, @{x} FROM numbers ORDER BY id;
SELECT id, greatest({x}, 1.5), least({x}, 0.010), coalesce({x}, 0.000), nullif({x}, 1.5), {x} IS DISTINCT FROM 1.5 FROM numbers ORDER BY id;
SELECT n2, count(*), sum(n) FROM numbers WHERE id NOT IN (7, 8, 9) GROUP BY n2 ORDER BY n2;
SELECT power({v}::numeric, 2), {v}::numeric ^ 0.5;
let exponent = 0 ;; 1 ;; -1 ;; 2 ;; 3.00 ;; 12 ;; -5 ;; 0.5 ;; -1.25 ;; 0.000 ;; 'NaN' ;; 'Infinity' ;; '-Infinity' ;; NULL
let base = 0 ;; 1.0 ;; -1 ;; 2 ;; 10 ;; 0.1 ;; 1.05 ;; -0.5 ;; 100 ;; 12345.678 ;; 0.9999999 ;; 'NaN' ;; 'Infinity' ;; '-Infinity' ;; NULL
SELECT power({base}::numeric, {exponent}::numeric), pow({base}::numeric, {exponent}::numeric), {base}::numeric ^ {exponent}::numeric;
SELECT log({base}::numeric, {exponent}::numeric);
SELECT power({v}::numeric, 2), {v}::numeric ^ 3, power(1.05, {v}::numeric);
SELECT factorial(0), factorial(5), factorial(33), factorial(-1 + id) FROM numbers WHERE id BETWEEN 1 AND 20 ORDER BY id;
SELECT id, sqrt(abs({x})), power({x}, 2), {x} ^ 3, power(abs({x}) + 1, 0.25) FROM numbers WHERE id IN (1, 2, 3, 4, 11) ORDER BY id;
SELECT div({a}::numeric, {b}::numeric), mod({a}::numeric, {b}::numeric);
SELECT numeric_inc(1.50), gcd(12.0, 18.00), lcm(4.0, 6.0);
SELECT gcd({a}::numeric, {b}::numeric), lcm({a}::numeric, {b}::numeric);
SELECT width_bucket(5.35, 0.024, 10.06, 5), width_bucket(n2, 0, 10, 4) FROM numbers ORDER BY id;
SELECT id, {x}::real, {x}::double precision, {x}::text, {x}::smallint FROM numbers WHERE id IN (1, 2, 3, 4, 7, 10) ORDER BY id;
SELECT id, s::numeric / 3, i::numeric * 1.50, b::numeric - 0.5 FROM numbers ORDER BY id;
let pattern = '9' ;; '999' ;; '0999.99' ;; 'FM999.99' ;; 'FM990.00' ;; '9,999,999.9' ;; 'FM9,999,999.90' ;; '999MI' ;; 'FM999MI' ;; '999PL' ;; 'SG999.9' ;; '999PR' ;; 'FM999PR' ;; '999th' ;; 'FM999TH' ;; 'RN' ;; 'FMrn' ;; '9V99' ;; '"n: "999' ;; 'x99\"y' ;; '' ;; 'B99' ;; '99D9' ;; '9.9EEEE' ;; '09' ;; '0' ;; '.99' ;; '00.00' ;; 'FM00.0099' ;; 'MI9,99' ;; 'PL,,,9' ;; '99.0' ;; 'FM.99'
let number = 0 ;; 1 ;; -1 ;; 12 ;; -123 ;; 1234567 ;; NULL
SELECT to_char({number}::integer, {pattern}), to_char({number}::bigint, {pattern});
let decimal = 0 ;; 0.1 ;; -0.1 ;; 1.5 ;; -1.55 ;; 12.345 ;; 999.999 ;; -1234.5 ;; 1e10 ;; 3.999 ;; NULL
SELECT to_char({decimal}::numeric, {pattern}), to_char({decimal}::numeric(20,3), {pattern});
let float = 0 ;; 0.1 ;; -0.001 ;; 1.5 ;; -2.5 ;; 1234567.891 ;; 1e15 ;; 123456789012345678 ;; NULL
SELECT to_char({float}::double precision, {pattern}), to_char({float}::real, {pattern});
SELECT id, to_char(s, '9,999'), to_char(i, 'FM9,999,999,999'), to_char(b, '0000MI'), to_char(n2, '9,999.99'), to_char(r, '99.9'), to_char(d, 'FM99.990') FROM numbers WHERE id NOT IN (7, 8, 9) ORDER BY id;
let said = '12' ;; '-3.5' ;; '1,234.50' ;; ' 7' ;; '12.' ;; '.5' ;; '+4' ;; '<5>' ;; '12-' ;; '12+' ;; '1 2' ;; 'a1b2' ;; '12th' ;; '1234567' ;; '' ;; ' ' ;; '- 5' ;; '$9.99' ;; NULL
let template = '99' ;; '9999.99' ;; '9,999.99' ;; 'FM9,999.99' ;; '00.00' ;; 'MI99.9' ;; '99.9MI' ;; 'PL99' ;; 'SG99.9' ;; '99SG' ;; '99PR' ;; '99TH' ;; '"x"99' ;; '9 9' ;; '.99' ;; '' ;; '99.' ;; 'S99' ;; '99V9' ;; '99D9' ;; 'RN' ;; 'xx'
SELECT to_number({said}, {template});
SELECT to_number(t, {template}) FROM texts WHERE id = 4;
let w = 100000000000000000000000000000000000000 ;; -170141183460469231731687303715884105728 ;; 99999999999999999999999999999999999999.99 ;; 1e75 ;; -1e-60 ;; 123456789012345678901234567890.123456789012345678901234567890 ;; 1e76
let u = 1 ;; -0.30 ;; 18446744073709551616 ;; 12345678901234567890123456789012345678901234567890.50 ;; 0 ;; 'NaN' ;; '-Infinity' ;; NULL
SELECT {w}::numeric {arithmetic} {u}::numeric, {u}::numeric {arithmetic} {w}::numeric;
SELECT {w}::numeric {comparison} {u}::numeric, {u}::numeric {comparison} {w}::numeric, {w}::numeric IN ({u}::numeric, 1e75);
SELECT div({w}::numeric, {u}::numeric), mod({w}::numeric, {u}::numeric), greatest({w}::numeric, {u}::numeric);
SELECT abs({w}::numeric), -{w}::numeric, ceil({w}::numeric), floor({w}::numeric), round({w}::numeric), trunc({w}::numeric), sign({w}::numeric), trim_scale({w}::numeric), scale({w}::numeric), min_scale({w}::numeric);
SELECT round({w}::numeric, {places}), trunc({w}::numeric, {places});
let wide_to = bigint ;; real ;; double precision ;; text ;; numeric(65,0) ;; numeric(76,30) ;; numeric(39,1) ;; numeric(60,-20) ;; numeric(38) ;; varchar(12)
SELECT {w}::numeric::{wide_to};
SELECT sqrt(abs({w}::numeric)), ln(abs({w}::numeric)), exp({w}::numeric), power({w}::numeric, 2), gcd({w}::numeric, 6), lcm({w}::numeric, 6), factorial(40);
SELECT sum(v), avg(v), min(v), max(v), count(DISTINCT v), sum(DISTINCT v), variance(v) FROM (VALUES (1, {w}::numeric), (2, {u}::numeric), (3, {w}::numeric), (4, 99999999999999999999999999999999999999), (5, 0.5)) x (id, v);
SELECT id, v, sum(v) OVER (ORDER BY id), avg(v) OVER (ORDER BY id ROWS 1 PRECEDING), rank() OVER (ORDER BY v), lag(v) OVER (ORDER BY id) FROM (VALUES (1, {w}::numeric), (2, {u}::numeric), (3, {w}::numeric + 1), (4, 99999999999999999999999999999999999999)) x (id, v) ORDER BY v, id;
SELECT v, count(*) FROM (VALUES ({w}::numeric), ({w}::numeric), (1), (NULL), ({w}::numeric - 1)) x (v) GROUP BY v ORDER BY v DESC NULLS LAST;
SELECT a.v FROM (VALUES ({w}::numeric), (1)) a (v) JOIN (VALUES ({w}::numeric), (2)) b (v) ON a.v = b.v;
SELECT to_json({w}::numeric), jsonb_build_array({w}::numeric), ('[' || {w}::numeric || ']')::jsonb, ARRAY[{w}::numeric, 1], to_char({w}::numeric, 'FM9999999999999999999999999999999999999999999999999.00');
SELECT sum(b::numeric * 18446744073709551616), sum(DISTINCT b::numeric * 18446744073709551616 + i), avg(b::numeric * 18446744073709551616) FROM numbers;
SELECT sum(q.s) FROM (SELECT sum(b::numeric * 18446744073709551616 * 1000) AS s FROM numbers GROUP BY id % 3) q;
-- All the digits that are held.
let full = 99999999999999999999999999999999999999 ;; 9.0000000000000000000000000000000000000 ;; 86000000000000000000000000000000000000 ;; 85070591730234615865843651857942052863 ;; 85070591730234615865843651857942052864 ;; 85070591.730234615865843651857943
SELECT sqrt({full}::numeric), sqrt(abs({full}::numeric)) + 1;
