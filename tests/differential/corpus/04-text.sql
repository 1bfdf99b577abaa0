-- text, varchar, char(n), name: operators, functions, patterns, blanks.
let a = '' ;; 'a' ;; 'Abc' ;; 'a b ' ;; 'größe' ;; 'x%_\y' ;; NULL
let b = 'a' ;; 'ABC' ;; 'z ' ;; '' ;; NULL
let comparison = = ;; <> ;; < ;; <= ;; > ;; >=
let s = text ;; varchar(5) ;; char(5) ;; name
let t = text ;; varchar(5) ;; char(5) ;; name
SELECT {a}::{s} {comparison} {b}::{t};
let x = t ;; v ;; c
let y = t ;; v ;; c
SELECT id, {x} {comparison} {y} FROM texts ORDER BY id;
SELECT id, {x} || {y}, {x} || 1, 2.50 || {y}, {x} || NULL FROM texts ORDER BY id;
let f = upper ;; lower ;; initcap ;; length ;; char_length ;; character_length ;; octet_length ;; bit_length ;; reverse ;; trim ;; btrim ;; ltrim ;; rtrim ;; ascii ;; md5 ;; quote_literal ;; quote_ident ;; to_hex
SELECT {f}({a});
SELECT id, {f}({x}) FROM texts WHERE id IN (1, 2, 3, 4, 8) ORDER BY id;
let n = 0 ;; 1 ;; 2 ;; -1 ;; 10 ;; NULL
SELECT left({a}, {n}), right({a}, {n}), repeat({a}, {n}), lpad({a}, {n}), rpad({a}, {n}), lpad({a}, {n}, 'xy'), rpad({a}, {n}, ''), substr({a}, {n}), substring({a} FROM {n});
SELECT substring({a}, 2, 2), substr({a}, 0, 2), substring({a} FROM 2 FOR 1), substr({a}, -1, 3);
SELECT substring({a}::text, {n}, 2), substr({a}::text, 1, {n});
SELECT overlay({a} PLACING 'zz' FROM 2 FOR 1), overlay({a} PLACING 'q' FROM 1);
SELECT position({b} IN {a}), strpos({a}, {b}), starts_with({a}, {b}), replace({a}, {b}, '-'), translate({a}, 'abc', 'xy'), split_part({a}, 'b', 1), split_part({a}, ' ', -1);
SELECT btrim({a}, 'a '), ltrim({a}, 'xa'), rtrim({a}, ' c'), trim(both 'a' FROM {a}), trim(leading FROM {a}), trim(trailing ' ' FROM {a});
let p = 'a%' ;; '%b%' ;; '_b_' ;; '' ;; '%' ;; 'x\%\_%' ;; 'A%' ;; '%e' ;; NULL
SELECT {a} LIKE {p}, {a} NOT LIKE {p}, {a} ILIKE {p}, {a} NOT ILIKE {p}, {a} ~~ {p}, {a} !~~ {p}, {a} ~~* {p}, {a} !~~* {p};
SELECT id, {x} LIKE {p}, {x} NOT LIKE {p} FROM texts ORDER BY id;
SELECT id, {x} ILIKE {p} FROM texts WHERE id <> 6 ORDER BY id;
SELECT {a} LIKE 'a!%%' ESCAPE '!', {a} LIKE '%' ESCAPE '', {a} NOT LIKE '_#_' ESCAPE '#';
let g = '^a' ;; 'b$' ;; '[a-c]+' ;; 'a|z' ;; '.' ;; '\d' ;; '^$' ;; NULL
SELECT {a} ~ {g}, {a} !~ {g}, {a} ~* {g}, {a} !~* {g};
SELECT substring({a} FROM {g}), regexp_replace({a}, {g}, '-'), regexp_replace({a}, {g}, '', 'g');
SELECT regexp_match({a}, {g}), (regexp_match({a}, {g}, 'i'))[1], regexp_match({a}, '(.)(.+)$'), regexp_match({a}, '(b) ?', 'g');
SELECT regexp_split_to_array({a}, {g}), regexp_split_to_array({a}, 'b', 'i'), regexp_split_to_array({a}, '\s+'), regexp_split_to_array({a}, ' ', 'g');
SELECT id, regexp_match({x}, '^(\w)(\w*)$'), (regexp_match({x}, '[a-z]+'))[1], regexp_split_to_array({x}, '[aeiou]') FROM texts ORDER BY id;
let code = hex ;; base64 ;; escape ;; HEX ;; hexx
SELECT encode({a}::bytea, '{code}'), encode(repeat('x''y', 57)::bytea, '{code}'), encode('\x00ff0a'::bytea, '{code}');
SELECT overlay({a}, {b}, {n}), overlay({a} PLACING {b} FROM {n} FOR 2), overlay({a}::text PLACING 'q' FROM 3 FOR {n}), quote_literal({b});
SELECT {a} SIMILAR TO '(a|A)%';
SELECT {a}::name ~ {g}, {a}::name !~ {g}, {a}::char(4) ~ {g}, {a}::char(4) !~ {g}, {a}::name ~~ 'a%', {a}::name !~~ 'a%', {a}::name ~~* 'A%', {a}::name !~~* 'A%', {a}::char(4) ~~* 'A%', {a}::char(4) !~~* '%c';
SELECT {a} ^@ {b}, {a}::text ^@ 'a', pg_catalog.like({a}::text, 'a%'), pg_catalog.notlike({a}::text, 'a%'), pg_catalog.like({a}::name, 'a%'), pg_catalog.notlike({a}::name, 'a%');
SELECT concat({a}, 1, NULL, true, 1.50), concat_ws('-', {a}, NULL, 2), concat_ws(NULL, {a}), concat({b}, {a}), {a} || {b};
SELECT format('%s|%I|%L', {a}, 'x', 'y'), format('%2$s %1$s', {a}, 'z');
SELECT format({a}), format({a}, {b}), format('%s|%L|%-9s|%9s|%%', {a}, {b}, {a}, 1.50, true), format('%1$*3$s|%2$-*3$L', {a}, {b}, 7), format('%*s|%s', -6, {a}, NULL);
let form = '%' ;; '%1' ;; '%1$' ;; '%9$s' ;; '%0$s' ;; '%d' ;; '%*3s' ;; '%99999999999s' ;; '%1$*s' ;; '%s%s%s%s' ;; '%%%%' ;; '%-5L|%5L' ;; '%2$s%s' ;; NULL ;; '% s' ;; '%1$-5s%2$05s' ;; '%-*s' ;; '%--7s|'
SELECT format({form}, '4', {b});
let to = text ;; varchar ;; varchar(2) ;; char(3) ;; char ;; name ;; bpchar
SELECT {a}::{to}, {a}::char(4)::{to}, {a}::varchar(3)::{to}, {a}::name::{to};
SELECT id, {x}::{to} FROM texts ORDER BY id;
let value = 'true' ;; '0' ;; '12' ;; '1.5' ;; '2024-02-29' ;; '12:30' ;; '1 day' ;; 'x'
let other = boolean ;; smallint ;; integer ;; bigint ;; numeric ;; real ;; double precision ;; date ;; time ;; timestamp ;; timestamptz ;; interval ;; uuid
SELECT {value}::text::{other};
SELECT {value}::varchar(10)::{other};
SELECT count({x}), count(DISTINCT {x}), string_agg({x}, ',' ORDER BY id), bool_and({x} > 'a') FROM texts;
let m = t ;; v ;; c
let ordered = t ;; v ;; c ;; u ;; o
let aggregated = t ;; v ;; u ;; o
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY {ordered}) FROM texts;
SELECT mode() WITHIN GROUP (ORDER BY {ordered}) FROM texts WHERE id IN (1, 8);
SELECT array_agg({aggregated} ORDER BY id) FROM texts;
SELECT min({m}), max({m}) FROM texts;
SELECT {x}, count(*) FROM texts GROUP BY {x} ORDER BY {x} NULLS FIRST;
SELECT DISTINCT {x} FROM texts ORDER BY {x} DESC;
SELECT id, {x} IN ('alpha', 'abc', NULL), {x} NOT IN ('alpha', 'abc'), {x} BETWEEN 'a' AND 'b', {x} = ANY ('{alpha,abc}'), nullif({x}, 'alpha'), coalesce({x}, 'none'), greatest({x}, 'b'), least({x}, 'b') FROM texts ORDER BY id;
SELECT a.id, b.id FROM texts a JOIN texts b ON a.{x} = b.{y} ORDER BY 1, 2;
SELECT string_agg({x}, NULL ORDER BY id DESC), string_agg({x}, '' ORDER BY {x}, id), array_agg({x}::text ORDER BY id) FROM texts;
SELECT convert_from('\x41'::bytea, 'UTF8'), encode('\x00ff'::bytea, 'hex'), encode('abc'::bytea, 'base64'), decode('ff', 'hex'), chr(8364), unistr('a');
SELECT 'a' 'b', E'a\nb\x41', $$q'q$$, U&'x', 'it''s', 'a'::"char";
let bits = 1 ;; 13 ;; 32 ;; 63 ;; 64
SELECT ('x' || md5({a}))::bit({bits})::bigint, ('x' || md5({a}))::bit(32)::integer;
let digits = '101' ;; 'b11' ;; 'xF0f' ;; '' ;; 'x' ;; '12' ;; 'xg'
SELECT {digits}::text::bit(8)::integer, {digits}::bit(12)::bigint, {digits}::varchar::bit(64)::bigint;
SELECT {digits}::bit::int;
let collation = "C" ;; "POSIX" ;; "default" ;; "en-US-x-icu" ;; pg_catalog."sv-x-icu"
SELECT id, t COLLATE {collation} {comparison} 'b', v COLLATE {collation} {comparison} t, 'B' {comparison} t COLLATE {collation} FROM texts ORDER BY id;
SELECT id FROM texts ORDER BY t COLLATE {collation} DESC, id;
SELECT min(t COLLATE {collation}), max(v COLLATE {collation}), count(DISTINCT t COLLATE {collation}) FROM texts;
SELECT lower({a} COLLATE {collation}), upper({a} COLLATE {collation}), {a} COLLATE {collation} ILIKE 'A%', {a} COLLATE {collation} < 'b', greatest({a} COLLATE {collation}, 'b');
SELECT id, rank() OVER (ORDER BY t COLLATE {collation}), count(*) OVER (PARTITION BY t COLLATE {collation}) FROM texts ORDER BY id;
SELECT a.id, b.id FROM texts a JOIN texts b ON a.t COLLATE {collation} = b.v ORDER BY 1, 2;
SELECT t COLLATE "C" < v COLLATE {collation} FROM texts WHERE id = 1;
let similar = 'abc' ;; 'a%' ;; '_b_' ;; '(a|b)bc' ;; '[a-c]+' ;; '[^a]%' ;; 'a{1}bc' ;; 'ab?c*' ;; 'a.c' ;; '^abc$' ;; '' ;; 'a\%' ;; '100#%' ;; '[]a]' ;; 'a\"b' ;; 'é_' ;; 'ab\' ;; NULL
let of_similar = 'abc' ;; 'a%' ;; 'bbc' ;; '' ;; '100%' ;; 'éa' ;; 'xabc' ;; 'a.c' ;; NULL
SELECT {of_similar} SIMILAR TO {similar}, {of_similar} NOT SIMILAR TO {similar}, {of_similar}::varchar SIMILAR TO {similar} ESCAPE '#', {of_similar} SIMILAR TO {similar} ESCAPE '';
SELECT similar_to_escape({similar}), similar_to_escape({similar}, '#'), 'abc' SIMILAR TO 'a%' AND true, NOT 'abc' SIMILAR TO 'x%', 'a' SIMILAR TO 'a' ESCAPE 'xy';
