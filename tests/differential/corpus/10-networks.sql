-- Addresses and networks.
let a = '10.1.2.3' ;; '10.1.2.3/8' ;; '10.1.2.0/24' ;; '0.0.0.0/0' ;; '255.255.255.255' ;; '::' ;; '::1/128' ;; '2001:db8::1:0:0:1/64' ;; '::ffff:10.1.2.3' ;; 'ABCD:0:0:1::/33' ;; '10.1/16' ;; '1.2.3.4.' ;; '10.1.2' ;; '' ;; NULL
let b = '10.1.2.3' ;; '10.0.0.0/8' ;; '10.1.2.128/25' ;; '::/0' ;; '2001:db8::/32' ;; NULL
let c = '10' ;; '10.1' ;; '172.16' ;; '192.168' ;; '224' ;; '10.1.2.0/24' ;; '10.1.2.3/24' ;; '2001:db8::/32' ;; '::ffff:1.2.0.0/112' ;; '2001:db8:0:1::/64' ;; '::/0' ;; '0/0' ;; NULL
let comparison = = ;; <> ;; < ;; <= ;; > ;; >= ;; << ;; <<= ;; >> ;; >>= ;; &&
SELECT {a}::inet {comparison} {b}::inet, {b}::cidr {comparison} {a}::inet;
SELECT {a}::inet, host({a}::inet), text({a}::inet), {a}::inet::text, {a}::inet::varchar(9), {a}::inet::char(20), abbrev({a}::inet), {a}::text::inet, {a}::inet::name;
SELECT family({a}::inet), masklen({a}::inet), network({a}::inet), netmask({a}::inet), hostmask({a}::inet), broadcast({a}::inet), ~{a}::inet, {a}::inet::cidr, cidr({a}::inet);
SELECT {c}::cidr, abbrev({c}::cidr), text({c}::cidr), host({c}::cidr), broadcast({c}::cidr), {c}::cidr::inet, {c}::text::cidr, {c}::cidr::text, {c}::cidr::varchar(5), {c}::cidr::bpchar;
SELECT {a}::inet & {b}::inet, {a}::inet | {b}::inet, inet_merge({a}, {b}::inet);
SELECT inet_same_family({a}, {b}), {a}::inet - {b}::inet;
let n = 0 ;; 1 ;; -1 ;; 256 ;; -4294967296 ;; 9223372036854775807 ;; NULL
SELECT {a}::inet + {n}, {n} + {b}::inet;
SELECT {a}::inet - {n}::bigint;
let m = 0 ;; 8 ;; 24 ;; 32 ;; 33 ;; 128 ;; 129 ;; -1 ;; -2 ;; NULL
SELECT set_masklen({a}::inet, {m});
SELECT set_masklen({c}::cidr, {m});
let column = a ;; n
let other = n ;; a
SELECT {column}, count(*), min({other}), max({other}), count(DISTINCT {other}) FROM hosts GROUP BY {column} ORDER BY 1;
SELECT id, {column} IS NULL, {column} = {b}, {column} < {other}, {column} <<= {b}::cidr, coalesce({column}, {other}), nullif({column}, {other}), greatest({column}, {other}), {column} IN ({b}, '::1') FROM hosts ORDER BY {column} DESC, id;
SELECT array_agg({column} ORDER BY id), array_agg(DISTINCT {column} ORDER BY {column}), string_agg({column}::text, ',' ORDER BY id) FROM hosts;
SELECT h.id, g.id FROM hosts h JOIN hosts g ON h.{column} = g.{other} ORDER BY 1, 2;
SELECT h.id, g.id FROM hosts h JOIN hosts g ON h.{column} >> g.{other} ORDER BY 1, 2;
SELECT mode() WITHIN GROUP (ORDER BY {column}), percentile_disc(0.3) WITHIN GROUP (ORDER BY {column}) FROM hosts;
SELECT id, near[1], nets[1:1], {column} = ANY (near), {column} = ANY (nets), near || '{::}'::inet[], array_append(nets, n) FROM hosts ORDER BY id;
-- Which type a literal, a list, a set or a choice has.
SELECT cidr('10.1'), cidr({a}), inet({a}), inet({c}::cidr);
SELECT id FROM hosts WHERE n IN ('10.1', {c}, NULL) ORDER BY id;
SELECT id FROM hosts WHERE n = {c} ORDER BY id;
SELECT id FROM hosts WHERE a = ANY (ARRAY[{a}, '::1']) ORDER BY id;
SELECT id FROM hosts WHERE a = ANY (ARRAY[{a}, n]) ORDER BY id;
SELECT id FROM hosts WHERE {a}::inet = ANY (ARRAY[a, n]) OR {b} <> ALL (ARRAY[n]) ORDER BY id;
SELECT least({c}, n), greatest(n, {c}, a), coalesce(n, {c}), nullif({c}, n), CASE WHEN id < 4 THEN {c} ELSE n END FROM hosts ORDER BY id;
SELECT lag(n, 1, {c}) OVER (ORDER BY id), lead(n, 2, a) OVER (ORDER BY id), lag(a, 1, n) OVER (ORDER BY id) FROM hosts ORDER BY id;
SELECT n FROM hosts UNION ALL SELECT {c} ORDER BY 1;
SELECT {c}, 1 UNION SELECT n, id FROM hosts UNION SELECT a, id FROM hosts ORDER BY 1, 2;
SELECT x.v FROM (VALUES (cidr '10.0.0.0/8'), ({c})) x (v) ORDER BY 1;
SELECT a FROM hosts JOIN (SELECT n AS a FROM nets) t USING (a) ORDER BY a;
SELECT a FROM hosts FULL JOIN (SELECT n AS a FROM hosts) t USING (a) ORDER BY a;
SELECT id FROM hosts WHERE a NOT IN (SELECT n FROM nets) ORDER BY id;
SELECT id FROM hosts WHERE n = ANY (SELECT a FROM hosts) OR a > ALL (SELECT n FROM nets) ORDER BY id;
SELECT id FROM hosts WHERE (a, n) IN (SELECT a, network(a) FROM hosts) ORDER BY id;
SELECT h.id, t.name FROM hosts h JOIN nets t ON network(h.a) = t.n OR network(set_masklen(h.n, 8)) = t.n ORDER BY 1, 2;
SELECT id, array_position(near, n), array_remove(nets, n), array_replace(near, a, n), array_cat(near, ARRAY[a]), nets || n, n || nets, cardinality(near), near[1:2] FROM hosts ORDER BY id;
SELECT id, near = {n}, near && nets, nets @> ARRAY[n], near < ARRAY[a] FROM hosts ORDER BY id;
SELECT id, to_json(a), jsonb_build_object('n', n), row_to_json(h) FROM hosts h ORDER BY id;
SELECT id, quote_literal(a), quote_nullable(n), format('%L %s', n, a), pg_typeof(n), num_nulls(a, n) FROM hosts ORDER BY id;
SELECT id, host(a) ~ '^10', split_part(host(a), '.', 1), substring(n::text FROM 1 FOR 4), a::text LIKE '10.%', upper(abbrev(a)), length(text(n)) FROM hosts ORDER BY id;
SELECT id FROM hosts WHERE a LIKE '10%' ORDER BY id;
SELECT {a}::pg_catalog.inet, {c}::pg_catalog.cidr, CAST({a} AS "inet"), {a}::inet::text::inet;
SELECT id FROM hosts WHERE a BETWEEN {a} AND {b} AND n::inet <> a ORDER BY id;
SELECT id FROM hosts WHERE a BETWEEN SYMMETRIC '10.255.0.0' AND '10.0.0.0' ORDER BY id;
SELECT id FROM hosts ORDER BY a USING <, id;
SELECT network(a), count(*), count(*) FILTER (WHERE a << {b}), max(host(a) COLLATE "C") FROM hosts GROUP BY network(a) HAVING min(a) IS DISTINCT FROM {b} ORDER BY 1;
SELECT n, a, count(*) FROM hosts GROUP BY CUBE (n, a) ORDER BY n, a, 3;
SELECT string_agg(a, ',') FROM hosts;
SELECT sum(a), avg(n) FROM hosts;
SELECT a + 1.5, a * 2, a || n FROM hosts;
SELECT a::int, 5::inet FROM hosts;
WITH RECURSIVE up (n, d) AS (SELECT '10.1.2.3'::inet, 0 UNION ALL SELECT set_masklen(n, masklen(n) - 8), d + 1 FROM up WHERE masklen(n) >= 8) SELECT n, network(n), d FROM up ORDER BY d;
SELECT first_value(n) OVER w, nth_value(a, 2) OVER w, dense_rank() OVER w, min(a) OVER w FROM hosts WINDOW w AS (PARTITION BY family(a) ORDER BY n, id) ORDER BY family(a), n, id;
SELECT h.id, l.top FROM hosts h, LATERAL (SELECT max(c.ip) AS top FROM calls c WHERE c.ip <<= h.n) l ORDER BY h.id;
SELECT h.id, (SELECT count(*) FROM calls c WHERE c.ip = h.a) FROM hosts h ORDER BY h.id;
SELECT DISTINCT ON (family(ip)) ip, at FROM calls ORDER BY family(ip), ip DESC, at;
SELECT ip, count(*) FROM calls WHERE ip IN ('10.1.2.1', '2001:db8::4', '10.1.2.1/24') GROUP BY ip ORDER BY ip;
SELECT at FROM calls WHERE ip = '10.1.2.4/32' AND at < 20 OR ip = cidr '2001:db8::2' ORDER BY at;
