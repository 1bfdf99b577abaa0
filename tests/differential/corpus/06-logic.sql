-- Booleans, NULLs, CASE and its kin, row comparison, uuid, bytea.
let a = true ;; false ;; NULL
let b = true ;; false ;; NULL
let comparison = = ;; <> ;; < ;; <= ;; > ;; >=
SELECT {a} AND {b}, {a} OR {b}, NOT {a}, {a}::boolean {comparison} {b}::boolean;
SELECT ({a})::boolean IS TRUE, ({a})::boolean IS NOT TRUE, ({a})::boolean IS FALSE, ({a})::boolean IS NOT FALSE, ({a})::boolean IS UNKNOWN, ({a})::boolean IS NOT UNKNOWN, ({a})::boolean IS NULL;
let literal = 't' ;; 'yes' ;; 'of' ;; 'OFF' ;; '1' ;; ' true ' ;; 'o' ;; ''
SELECT {literal}::boolean;
SELECT {a}::boolean::integer, {a}::boolean::text, {a}::boolean::varchar(3), 0::boolean, 5::boolean;
SELECT booland_statefunc({a}, {b});
SELECT bool_and(o), bool_or(o), every(o), count(o), min(id) FILTER (WHERE o) FROM texts;
SELECT o, count(*) FROM texts GROUP BY o ORDER BY o NULLS FIRST;
let v = 1 ;; 2 ;; NULL
SELECT CASE {v} WHEN 1 THEN 'one' WHEN 2 THEN 'two' END, CASE WHEN {v} = 1 THEN 1 WHEN {v} > 1 THEN 2.50 ELSE 0 END, CASE WHEN {v} IS NULL THEN NULL ELSE 'x' END;
SELECT coalesce({v}, 7), coalesce(NULL, {v}, 1.5), nullif({v}, 1), greatest({v}, 1, 3), least({v}, 1.5), greatest(NULL, {v}), least(NULL, NULL);
SELECT {v} IN (1, 3), {v} IN (1, NULL), {v} NOT IN (3, NULL), {v} NOT IN (3), {v} = ANY ('{1,3}'::int[]), {v} <> ALL ('{1,NULL}'::int[]);
let o = = ;; <> ;; < ;; <= ;; > ;; >=
SELECT ({v}, 2) {o} (1, {v}), ROW(1, {v}, 3) {o} ROW(1, 2, 3);
SELECT {v} IS DISTINCT FROM 1, {v} IS NOT DISTINCT FROM NULL, {v}::int IS DISTINCT FROM 2.0, {v} BETWEEN 1 AND 2, {v} NOT BETWEEN 2 AND 1;
let low = 1 ;; 2.5 ;; NULL ;; '3'
let high = 0 ;; 3 ;; NULL::numeric
SELECT {v} BETWEEN SYMMETRIC {low} AND {high}, {v} NOT BETWEEN SYMMETRIC {low} AND {high}, {v} BETWEEN SYMMETRIC {high} AND {low}, {v} NOT BETWEEN ASYMMETRIC {low} AND {high};
SELECT id FROM numbers WHERE i NOT BETWEEN SYMMETRIC s AND {low} OR n2 BETWEEN SYMMETRIC {high} AND s ORDER BY id;
let not = NOT ;; 
SELECT 'b' {not} BETWEEN SYMMETRIC 'c' AND 'a', 'b' {not} BETWEEN SYMMETRIC 'c' AND NULL, 1 {not} BETWEEN SYMMETRIC 'x' AND 2, true {not} BETWEEN SYMMETRIC true AND 1;
SELECT id, t {not} BETWEEN SYMMETRIC v AND 'm', u {not} BETWEEN SYMMETRIC '12345678-1234-1234-1234-123456789abc' AND u FROM texts ORDER BY id;
SELECT id, (i {not} BETWEEN SYMMETRIC s AND 7) IS NULL, count(*) FILTER (WHERE i {not} BETWEEN SYMMETRIC 9 AND s) OVER () FROM numbers ORDER BY id;
SELECT i {not} BETWEEN SYMMETRIC 9 AND 1 FROM numbers WHERE id = 1;
SELECT ({v}, 2) {not} BETWEEN SYMMETRIC (1, 3) AND (1, 1);
SELECT id, i IS NULL AND s IS NULL, i > 5 AND s < 5, i > 5 OR s IS NULL, NOT (i > 5) FROM numbers ORDER BY id;
SELECT id, CASE WHEN i > 5 THEN 'big' WHEN i IS NULL THEN 'none' ELSE i::text END, CASE s WHEN 1 THEN b WHEN 2 THEN n2 END FROM numbers ORDER BY id;
SELECT id FROM numbers WHERE i NOT IN (7, NULL);
SELECT id FROM numbers WHERE i NOT IN (SELECT a FROM other WHERE a IS NOT NULL) ORDER BY id;
SELECT id FROM numbers WHERE i NOT IN (SELECT a FROM other);
SELECT id FROM numbers WHERE NOT EXISTS (SELECT 1 FROM other WHERE other.a = numbers.s) ORDER BY id;
let u = '00000000-0000-0000-0000-000000000001' ;; 'FFFFFFFF-ffff-ffff-ffff-ffffffffffff' ;; '{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}' ;; 'x'
SELECT {u}::uuid, {u}::uuid::text, {u}::uuid {o} '12345678-1234-1234-1234-123456789abc'::uuid;
SELECT id, u {o} '12345678-1234-1234-1234-123456789abc', u::text FROM texts ORDER BY id;
SELECT u, count(*) FROM texts GROUP BY u ORDER BY u NULLS FIRST;
let y = '\x00ff' ;; '' ;; 'abc' ;; '\x5c' ;; NULL
SELECT {y}::bytea, length({y}::bytea), octet_length({y}::bytea), {y}::bytea {o} '\x5c'::bytea, md5({y}::bytea), {y}::bytea || '\x01'::bytea, bit_length({y}::bytea), {y}::bytea LIKE '%'::bytea, {y}::bytea NOT LIKE 'a%'::bytea;
SELECT {y}::bytea || 'x'::bytea, octet_length({y}::bytea), bit_length({y}::bytea), {y}::bytea LIKE 'a_c'::bytea, {y}::bytea NOT LIKE 'a%'::bytea;
SELECT substring({y}::bytea, 1, 1), encode({y}::bytea, 'hex');
SELECT id, x {o} '\x27'::bytea, length(x), md5(x) FROM texts ORDER BY id;
SELECT x, count(*) FROM texts GROUP BY x ORDER BY x NULLS FIRST;
SELECT count(*) FILTER (WHERE {a}), count(*) FILTER (WHERE NOT {a}) FROM numbers;
SELECT count(DISTINCT o), count(DISTINCT u), count(DISTINCT x) FROM texts;
let setting = 'corpus.none' ;; 'Corpus.None' ;; 'corpus.no.ne'
SELECT current_setting({setting}, true), current_setting({setting}, true) IS NULL, count(*) FROM texts;
SELECT current_setting({setting}), count(*) FROM texts;
SELECT id, coalesce(nullif(current_setting({setting}, true), ''), x::text) FROM texts ORDER BY id;
