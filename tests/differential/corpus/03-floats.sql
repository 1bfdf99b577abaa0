-- real and double precision: operators, text, casts, aggregates, special values.
let a = '1' ;; '-0' ;; '0.1' ;; '1e300' ;; '-2.5' ;; 'NaN' ;; 'Infinity' ;; '-Infinity' ;; NULL
let b = '3' ;; '-0.5' ;; '0' ;; 'NaN' ;; 'Infinity' ;; NULL
let arithmetic = + ;; - ;; * ;; /
let comparison = = ;; <> ;; < ;; <= ;; > ;; >=
SELECT {a}::double precision {arithmetic} {b}::double precision;
SELECT {a}::double precision {comparison} {b}::double precision, {a}::double precision {comparison} 1::real, 1::real {comparison} {b}::double precision;
let r = '1' ;; '-0' ;; '0.1' ;; '3e38' ;; 'NaN' ;; 'Infinity' ;; NULL
SELECT {r}::real {arithmetic} {b}::real, {r}::real {arithmetic} 2::double precision, 2::double precision {arithmetic} {r}::real;
SELECT {r}::real {comparison} {b}::real;
let x = r ;; d
SELECT id, {x} + 1, {x} * 2, {x} - d, 1 / ({x} + 7) FROM numbers WHERE id NOT IN (5) ORDER BY id;
SELECT id, {x} {comparison} d, r {comparison} {x} FROM numbers ORDER BY id;
let f = abs ;; ceil ;; ceiling ;; floor ;; round ;; trunc ;; sign ;; sqrt ;; cbrt ;; degrees ;; radians ;; exp ;; ln ;; log
SELECT {f}({a}::double precision);
SELECT id, {f}(abs(d)) FROM numbers WHERE id IN (1, 2, 4, 11, 14) ORDER BY id;
SELECT abs({r}::real), -{r}::real, @{r}::real, +{r}::real, -{a}::double precision, @{a}::double precision, +{a}::double precision;
let v = 0 ;; 1.5 ;; 2.5 ;; -0.5 ;; 1e15 ;; 123456.789 ;; 1e-5 ;; 3e9 ;; 40000
let to = smallint ;; integer ;; bigint ;; numeric ;; numeric(10,2) ;; real ;; double precision ;; text
SELECT {v}::double precision::{to}, {v}::real::{to};
SELECT {a}::double precision::numeric, {a}::double precision::text;
SELECT id, r::text, d::text, d::real, r::double precision FROM numbers WHERE id NOT IN (5, 6) ORDER BY id;
let literal = '1e1' ;; '.5' ;; 'inf' ;; '-infinity' ;; 'nan' ;; '1e400' ;; '' ;; '0x1p3' ;; ' 7 '
SELECT {literal}::double precision;
SELECT {literal}::real;
SELECT sum({x}), avg({x}), min({x}), max({x}), count({x}), stddev({x}), variance({x}), var_pop({x}), stddev_pop({x}), stddev_samp({x}), var_samp({x}) FROM numbers WHERE id IN (1, 2, 3, 4, 11, 14, 15);
SELECT min({x}), max({x}), sum({x}) FROM numbers;
SELECT id FROM numbers ORDER BY {x} NULLS FIRST, id;
SELECT corr(d, s), covar_pop(d, s), covar_samp(d, s), regr_avgx(d, s), regr_avgy(d, s), regr_count(d, s), regr_intercept(d, s), regr_r2(d, s), regr_slope(d, s), regr_sxx(d, s), regr_sxy(d, s), regr_syy(d, s) FROM numbers WHERE id IN (1, 2, 3, 4, 11, 14, 15);
let p = 0 ;; 0.25 ;; 0.5 ;; 1 ;; NULL
SELECT percentile_cont({p}) WITHIN GROUP (ORDER BY d), percentile_disc({p}) WITHIN GROUP (ORDER BY d), percentile_disc({p}) WITHIN GROUP (ORDER BY i) FROM numbers WHERE id IN (1, 2, 3, 4, 11, 14, 15);
let m = i ;; s ;; d
SELECT mode() WITHIN GROUP (ORDER BY {m}) FROM numbers WHERE id IN (1, 7, 10);
SELECT greatest({a}::double precision, {b}::double precision), least({a}::double precision, {b}::double precision);
SELECT width_bucket({v}::double precision, 0::double precision, 10::double precision, 4);
SELECT {a}::double precision IS DISTINCT FROM {b}::double precision, nullif({a}::double precision, {b}::double precision);
SELECT 1::real + 1, 1::real + 1::bigint, 1::real * 1.5, 2.5 * 1::double precision, 1::smallint / 2::double precision;
SELECT |/ 9::double precision, sqrt(2::double precision);
SELECT pi();
SELECT 2 ^ 3, ||/ 27::double precision;
SELECT dpow(2, 3);
let ordered = s ;; i ;; b ;; r ;; d ;; n2
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY {ordered}), mode() WITHIN GROUP (ORDER BY {ordered}), percentile_disc(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY {ordered}) FROM numbers WHERE id IN (1, 2, 4, 11, 12);
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY {ordered}) FROM numbers WHERE id IN (1, 2, 4, 11, 12);
SELECT mode() WITHIN GROUP (ORDER BY {ordered}) FROM numbers WHERE id IN (1, 2, 4, 11, 12);
SELECT array_agg({ordered} ORDER BY id) FROM numbers WHERE id NOT IN (5, 6);
SELECT array_agg(n ORDER BY id) FROM numbers WHERE id NOT IN (5, 6);
-- percentiles by arrays of fractions
let fractions = ARRAY[0.1, 0.9] ;; ARRAY[0, 1] ;; ARRAY[0.25::float8, NULL, 0.75] ;; '{0.5}'::float8[] ;; '{}'::float8[] ;; NULL::float8[] ;; ARRAY[1.5] ;; ARRAY[-0.1, 0.5] ;; ARRAY[[0.1, 0.2], [0.3, 0.4]]
SELECT percentile_cont({fractions}) WITHIN GROUP (ORDER BY d), percentile_disc({fractions}) WITHIN GROUP (ORDER BY d DESC), percentile_disc({fractions}) WITHIN GROUP (ORDER BY i) FROM numbers WHERE id IN (1, 2, 3, 4, 11, 14, 15);
SELECT percentile_cont({fractions}) WITHIN GROUP (ORDER BY d) FROM numbers WHERE id < 0;
SELECT id % 3 AS k, percentile_cont({fractions}) WITHIN GROUP (ORDER BY id), (percentile_disc({fractions}) WITHIN GROUP (ORDER BY id))[1] FROM numbers GROUP BY 1 ORDER BY 1;
let pb = 0 ;; '-0' ;; 1 ;; 2 ;; -3 ;; 0.5 ;; 1.5 ;; 10 ;; 94906267 ;; 1e15 ;; 1e200 ;; -0.125 ;; 4e-320 ;; 'NaN' ;; 'Infinity' ;; '-Infinity' ;; NULL
let pe = 0 ;; 1 ;; 2 ;; 3 ;; 10 ;; 62 ;; 500 ;; -1 ;; -2 ;; 0.5 ;; 1e10 ;; 'NaN' ;; 'Infinity' ;; '-Infinity' ;; NULL
SELECT power({pb}::float8, {pe}::float8), pow({pb}::float8, {pe}::float8), {pb}::float8 ^ {pe}::float8;
SELECT 2 ^ 10, 2 ^ 3 ^ 2, -2 ^ 2, power(2, 3), pow(10, 6), power(3::smallint, 4::bigint), 2 ^ 0.5::numeric;
SELECT i, power(i, 2), i ^ 2 FROM numbers WHERE abs(i) < 1000000 ORDER BY id;
