-- Statement => parameters, as text, separated by |.
SELECT id FROM hosts WHERE a = $1 ORDER BY id => 10.1.2.3
SELECT id FROM hosts WHERE n = $1 ORDER BY id => 10.1.2.0/24
SELECT id, a - $1 FROM hosts WHERE id = 1 => 10.1.0.0
SELECT id, a + $1 FROM hosts WHERE id = 1 => 77
SELECT id FROM hosts WHERE a << $1 ORDER BY id => 10.0.0.0/8
SELECT id FROM hosts WHERE $1::inet <<= n ORDER BY id => 10.1.2.3
SELECT id FROM hosts WHERE a IN ($1, $2) ORDER BY id => 10.1.2.3 | ::1
SELECT id FROM hosts WHERE n IN ($1, $2) ORDER BY id => 10.1.2 | ::/0
SELECT id FROM hosts WHERE a = ANY ($1) ORDER BY id => {10.1.2.3,::1}
SELECT id FROM hosts WHERE n = ANY ($1::cidr[]) ORDER BY id => {10.1.2.0/24,10/8}
SELECT $1::inet, $2::cidr, host($3), abbrev($1::inet) => 10.1.2.3/8 | 10.1 | ::1/64
SELECT id, coalesce(n, $1), set_masklen(a, $2) FROM hosts ORDER BY id => 10/8 | 9
SELECT $1::inet[], $2::cidr[] => {10.1.2.3,NULL,::} | {10,::/0}
SELECT count(*) FROM calls WHERE ip = $1 AND at > $2 => 10.1.2.5 | 20
