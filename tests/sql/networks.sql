-- Addresses. A statement each; "-- relay: why" above one: upstream answers it.
SELECT * FROM hosts ORDER BY id;
SELECT id FROM hosts ORDER BY a, id;
SELECT id, n FROM hosts ORDER BY n DESC NULLS LAST, id;
SELECT a, n FROM hosts ORDER BY n, a DESC;
SELECT a, count(*), min(n), max(n) FROM hosts GROUP BY a ORDER BY a;
SELECT n, count(*), min(a), max(a) FROM hosts GROUP BY n ORDER BY n;
SELECT DISTINCT n FROM hosts ORDER BY 1;
SELECT DISTINCT ON (n) n, id FROM hosts ORDER BY n, id DESC;
SELECT count(DISTINCT a), count(DISTINCT n), count(DISTINCT family(a)) FROM hosts;
SELECT min(a), max(a), min(n), max(n) FROM hosts;
SELECT family(a), min(a), max(n) FILTER (WHERE id > 2) FROM hosts GROUP BY family(a) ORDER BY 1;
SELECT array_agg(a ORDER BY id), array_agg(n ORDER BY id) FROM hosts WHERE id < 9;
SELECT array_agg(a ORDER BY a, id), string_agg(a::text, ',' ORDER BY id), string_agg(host(n), ',' ORDER BY n, id) FROM hosts;
SELECT id FROM hosts WHERE a = '10.1.2.3' ORDER BY id;
SELECT id FROM hosts WHERE a = '10.1.2.3/24' OR n = '10.1.2.0/24' ORDER BY id;
SELECT id FROM hosts WHERE n = inet '10.0.0.0/8' OR a = cidr '10.1.2' ORDER BY id;
SELECT id FROM hosts WHERE a <> '10.1.2.3' AND n <> '10.1.2.0/24' ORDER BY id;
SELECT id FROM hosts WHERE a > '10.1.2.0' AND a <= '192.168.0.1' ORDER BY id;
SELECT id FROM hosts WHERE a BETWEEN '10.0.0.0/8' AND '10.255.255.255' ORDER BY id;
SELECT id FROM hosts WHERE a IN ('10.1.2.3', '::1', NULL) ORDER BY id;
SELECT id FROM hosts WHERE a NOT IN ('10.1.2.3', '::1') ORDER BY id;
SELECT id FROM hosts WHERE n IN ('10.1.2', '::/0') ORDER BY id;
SELECT id FROM hosts WHERE n IN ('10.1.2.0/24', a) ORDER BY id;
SELECT id FROM hosts WHERE a IN ('10.1.2.3'::cidr, '::1') ORDER BY id;
SELECT id FROM hosts WHERE a = ANY ('{10.1.2.3,10.1.2.3/24,NULL}') ORDER BY id;
SELECT id FROM hosts WHERE a <> ALL ('{10.1.2.3,10.1.2.3/24}'::inet[]) ORDER BY id;
SELECT id FROM hosts WHERE n = ANY ('{10.1.2.0/24,0.0.0.0/0}'::cidr[]) ORDER BY id;
SELECT id FROM hosts WHERE a = ANY (near) OR n = ANY (nets) ORDER BY id;
SELECT id FROM hosts WHERE a = ANY (nets) ORDER BY id;
SELECT id, near @> '{10.1.2.3}', near && '{::,10.1.2.3}'::inet[], nets <@ '{::/0,10.0.0.0/8,10.1.0.0/16}' FROM hosts ORDER BY id;
SELECT id FROM hosts ORDER BY near, id;
SELECT id FROM hosts ORDER BY nets DESC, id;
SELECT near, count(*) FROM hosts GROUP BY near ORDER BY near;
SELECT id, near = '{10.1.2.3,10.0.0.0/8}', near < '{::}', near || a, nets[1], near[1], array_length(near, 1), array_to_string(near, '|', '-') FROM hosts ORDER BY id;
SELECT id, ARRAY[a, n], ARRAY[n], ARRAY['10.1.2.3'::inet, NULL] FROM hosts ORDER BY id;
SELECT h.id, x FROM hosts h, unnest(h.near) x ORDER BY h.id, x;
SELECT a.id, b.id FROM hosts a JOIN hosts b ON a.a < b.n ORDER BY 1, 2;
SELECT a.id, b.id FROM hosts a JOIN hosts b ON a.a = b.n ORDER BY 1, 2;
SELECT a.id, b.id FROM hosts a JOIN hosts b USING (a) ORDER BY 1, 2;
SELECT n, id, name FROM hosts JOIN nets USING (n) ORDER BY n, id;
SELECT h.id, t.name FROM hosts h LEFT JOIN nets t ON h.a <<= t.n ORDER BY 1, 2;
SELECT t.name, count(c.at) FROM nets t LEFT JOIN calls c ON c.ip << t.n GROUP BY t.name ORDER BY t.name COLLATE "C";
SELECT network(set_masklen(ip, 30)) AS net, count(*), max(ip) FROM calls GROUP BY 1 ORDER BY 1;
SELECT ip, count(*), sum(at) FROM calls WHERE ip << '10.0.0.0/8' GROUP BY ip ORDER BY count(*) DESC, ip LIMIT 4;
SELECT at FROM calls WHERE ip = '10.1.2.5' ORDER BY at;
SELECT at FROM calls WHERE ip = '2001:db8::3' AND at > 10 ORDER BY at;
SELECT a FROM hosts UNION SELECT n FROM hosts ORDER BY 1;
SELECT n FROM hosts EXCEPT SELECT n FROM nets ORDER BY 1;
SELECT n FROM hosts INTERSECT SELECT a FROM hosts ORDER BY 1;
SELECT id FROM hosts WHERE n IN (SELECT n FROM nets) ORDER BY id;
SELECT id FROM hosts h WHERE EXISTS (SELECT 1 FROM nets t WHERE t.n >>= h.a) ORDER BY id;
SELECT a.id, b.id, a.a << b.n, a.a <<= b.n, a.n >> b.a, a.n >>= b.a, a.a && b.n FROM hosts a, hosts b ORDER BY 1, 2;
SELECT a.id, b.id, inet_same_family(a.a, b.n), CASE WHEN inet_same_family(a.a, b.n) THEN inet_merge(a.a, b.n) END FROM hosts a, hosts b ORDER BY 1, 2;
SELECT a.id, b.id, a.a & b.a, a.a | b.n FROM hosts a JOIN hosts b ON family(a.a) = family(b.a) ORDER BY 1, 2;
SELECT a.id, b.id, a.a - b.a FROM hosts a JOIN hosts b ON family(a.a) = 4 AND family(b.a) = 4 ORDER BY 1, 2;
SELECT id, ~a, ~n, a + 0, id + a, a - 0 FROM hosts WHERE id <> 5 ORDER BY id;
SELECT id, a + step, a - step / 2 FROM hosts WHERE id IN (1, 3, 7, 8, 10, 12) ORDER BY id;
SELECT id, host(a), host(n), family(n), masklen(a), masklen(n), network(a), netmask(a), hostmask(n), broadcast(a), broadcast(n) FROM hosts ORDER BY id;
SELECT id, abbrev(a), abbrev(n), text(a), text(n), a::text, n::text, a::varchar, n::varchar(6), a::char(12), n::name FROM hosts ORDER BY id;
SELECT id, set_masklen(a, 8), set_masklen(n, 12), set_masklen(a, -1) FROM hosts ORDER BY id;
SELECT id, a::cidr, n::inet, cidr(a), label::inet FROM hosts WHERE id < 11 ORDER BY id;
SELECT id, a || '!', 'at ' || n, concat(a, '-', n), concat_ws('/', n, a), format('%s|%s', a, n), length(a::text) FROM hosts ORDER BY id;
SELECT id, coalesce(a, n), coalesce(n, '10/8'), nullif(a, n), nullif(n, '10.1.2.0/24'), greatest(a, n), least(n, a), greatest(n, '10') FROM hosts ORDER BY id;
SELECT id, CASE WHEN id < 5 THEN a ELSE n END, CASE WHEN id < 5 THEN n END, CASE a WHEN '10.1.2.3' THEN 1 ELSE 2 END FROM hosts ORDER BY id;
SELECT id, a IS NULL, a IS DISTINCT FROM n, n IS NOT DISTINCT FROM network(a), (a, n) = ('10.1.2.3', '10.1.0.0/16') FROM hosts ORDER BY id;
SELECT id, rank() OVER (ORDER BY a), lag(n) OVER (ORDER BY id), first_value(a) OVER (PARTITION BY family(a) ORDER BY a, id), max(a) OVER (ORDER BY id) FROM hosts ORDER BY id;
SELECT mode() WITHIN GROUP (ORDER BY n), percentile_disc(0.5) WITHIN GROUP (ORDER BY a), percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM hosts;
SELECT inet '10.1.2.3/8', cidr '10', '::ffff:1.2.3.4'::inet, CAST('2001:DB8::' AS cidr), '10.1'::cidr, inet '10.1/16', NULL::inet, '192.168'::cidr::inet, '10.1.2.3/8'::inet::cidr;
SELECT pg_catalog.host('10.1.2.3/8'), abbrev('10.1.0.0/16'::cidr), abbrev(cidr '2001:db8::/32'), inet '10.1.2.3' + 5, inet '10.1.2.3' - inet '10.1.2.1', 5 + inet '::';
SELECT a.v, b.v, a.v = b.v, a.v < b.v FROM (VALUES (inet '10.0.0.0/8'), ('::')) a (v), (VALUES (cidr '10.0.0.0/8'), ('::')) b (v) ORDER BY 1, 2;
SELECT family(a), grouping(family(a)), count(*) FROM hosts GROUP BY ROLLUP (family(a)) ORDER BY 1, 2;
WITH seen AS (SELECT network(ip) AS net, max(at) AS top FROM calls GROUP BY 1) SELECT net, top FROM seen WHERE net <<= '10.1.2.0/29' ORDER BY net;
-- relay: an error
SELECT id FROM hosts WHERE a = '10.1.2';
-- relay: an error
SELECT '10.1.2.3/8'::cidr, count(*) FROM hosts;
-- relay: an error
SELECT id FROM hosts WHERE n IN ('10.1.2.3/8', '::/0');
-- relay: an error
SELECT a & '::1' FROM hosts WHERE id = 1;
-- relay: out of range
SELECT a + 1 FROM hosts WHERE id = 5;
-- relay: too far apart
SELECT '2001:db8::'::inet - a FROM hosts WHERE id = 6;
-- relay: an error
SELECT set_masklen(a, 33) FROM hosts WHERE id = 1;
-- relay: an error
SELECT inet_merge(a, '::1') FROM hosts WHERE id = 1;
-- relay: an error
SELECT label::cidr FROM hosts ORDER BY id;
-- relay: no such operator
SELECT a = label FROM hosts;
-- relay: no such function
SELECT upper(a) FROM hosts;
-- relay: hexadecimal digits
SELECT '0x0a'::cidr, count(*) FROM hosts;
-- relay: the session's own address
SELECT id FROM hosts WHERE a = inet_client_addr() OR inet_client_addr() IS NOT NULL ORDER BY id;
