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
