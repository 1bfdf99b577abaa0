-- Statement => parameters, as text, separated by |; \N is NULL.
SELECT t.id, s.n FROM teams t LEFT JOIN LATERAL (SELECT json_agg(q.name ORDER BY q.id) AS n FROM (SELECT p.id, p.name FROM people p WHERE p.team = t.id ORDER BY p.id LIMIT $1) q) s ON true ORDER BY 1 => 2
SELECT t.id, s.n FROM teams t LEFT JOIN LATERAL (SELECT json_agg(q.name ORDER BY q.id) AS n FROM (SELECT p.id, p.name FROM people p WHERE p.team = t.id ORDER BY p.id LIMIT $1 OFFSET $2) q) s ON true ORDER BY 1 => 2 | 1
SELECT t.id, s.n FROM teams t LEFT JOIN LATERAL (SELECT count(*) AS n FROM (SELECT 1 FROM people p WHERE p.team = t.id LIMIT $1 OFFSET $2) q) s ON true ORDER BY 1 => \N | \N
SELECT t.id, s.n FROM teams t LEFT JOIN LATERAL (SELECT count(*) AS n FROM (SELECT 1 FROM people p WHERE p.team = t.id LIMIT $1 OFFSET $2) q) s ON true ORDER BY 1 => 9223372036854775807 | 1
SELECT t.id FROM teams t WHERE EXISTS (SELECT 1 FROM people p WHERE p.team = t.id LIMIT $1) ORDER BY 1 => 1
SELECT t.id FROM teams t WHERE EXISTS (SELECT 1 FROM people p WHERE p.team = t.id LIMIT $1) ORDER BY 1 => 0
SELECT t.id FROM teams t WHERE EXISTS (SELECT 1 FROM people p WHERE p.team = t.id OFFSET $1) ORDER BY 1 => 1
SELECT t.id, (SELECT p.name FROM people p WHERE p.team = t.id ORDER BY p.salary DESC NULLS LAST, p.id LIMIT $1) FROM teams t ORDER BY 1 => 1
SELECT t.id, (SELECT p.name FROM people p WHERE p.team = t.id ORDER BY p.id LIMIT 1 OFFSET $1) FROM teams t ORDER BY 1 => 1
SELECT p.id FROM people p WHERE p.id IN (SELECT v.person FROM visits v WHERE v.person > p.id - 2 ORDER BY v.took, v.id LIMIT $1) ORDER BY 1 => 2
SELECT p.id, s.id FROM people p JOIN LATERAL (SELECT v.id FROM visits v WHERE v.person >= p.id ORDER BY v.took, v.id LIMIT $1 + 1) s ON true ORDER BY 1, 2 => 1
SELECT t.id, (SELECT count(*) FROM people p WHERE p.team = t.id LIMIT $1) FROM teams t ORDER BY 1 => 1
SELECT t.id, (SELECT count(*) FROM people p WHERE p.team = t.id LIMIT $1) FROM teams t ORDER BY 1 => 0
SELECT id FROM people ORDER BY id LIMIT $1 OFFSET $2 => 2 | 1
SELECT id FROM people WHERE team BETWEEN SYMMETRIC $1 AND $2 ORDER BY id => 3 | 2
SELECT id, $1 BETWEEN SYMMETRIC team AND boss, salary NOT BETWEEN SYMMETRIC $2 AND 5000 FROM people ORDER BY id => 2 | 800.5
-- relay: an error that upstream raises
SELECT t.id FROM teams t WHERE EXISTS (SELECT 1 FROM people p WHERE p.team = t.id LIMIT $1) ORDER BY 1 => -1
-- relay: an error that upstream raises, without any row
SELECT t.id FROM teams t WHERE EXISTS (SELECT 1 FROM nothing p WHERE p.v = t.id OFFSET $1) ORDER BY 1 => -1
SELECT * FROM (SELECT id, team FROM people ORDER BY team FETCH FIRST $1 ROWS WITH TIES) q ORDER BY 1, 2 => 1
SELECT team FROM people ORDER BY team DESC OFFSET $2 FETCH FIRST ($1 + 1) ROWS WITH TIES => 1 | 1
SELECT id, team FROM people ORDER BY team FETCH FIRST $1 ROWS WITH TIES => 0
SELECT * FROM (SELECT id, team FROM people ORDER BY team FETCH FIRST $1 ROWS WITH TIES) q ORDER BY 1, 2 => \N
SELECT team FROM people ORDER BY team OFFSET $1 FETCH FIRST 9223372036854775807 ROWS WITH TIES => 2
SELECT t.id, s.id FROM teams t JOIN LATERAL (SELECT p.id FROM people p WHERE p.team = t.id ORDER BY p.salary DESC FETCH FIRST $1 ROWS WITH TIES) s ON true ORDER BY 1, 2 => 1
SELECT t.id, s.id FROM teams t JOIN LATERAL (SELECT p.id FROM people p WHERE p.team = t.id ORDER BY p.salary DESC FETCH FIRST $1 ROWS WITH TIES) s ON true ORDER BY 1, 2 => \N
-- relay: an error that upstream raises
SELECT id, team FROM people ORDER BY team FETCH FIRST $1 ROWS WITH TIES => -1
SELECT v.id FROM visits v JOIN people p ON p.id = v.person WHERE p.name = 'ann' AND 10 / (v.took - $1) < 1000 ORDER BY v.id => 1000
-- relay: without an index PostgreSQL computes it of all rows
SELECT v.id FROM visits v JOIN people p ON p.id = v.person WHERE p.name = 'ann' AND 10 / (v.took - $1) < 1000 ORDER BY v.id => 11
SELECT v.id FROM visits v WHERE v.person IN (SELECT id FROM people WHERE name = 'ann') AND 10 / (v.took - $1) < 1000 ORDER BY v.id => 1000
-- relay: likewise
SELECT v.id FROM visits v WHERE v.person IN (SELECT id FROM people WHERE name = 'ann') AND 10 / (v.took - $1) < 1000 ORDER BY v.id => 11
SELECT p.id, v.id FROM people p LEFT JOIN visits v ON v.person = p.id AND 10 / (v.took - $1) < 1000 WHERE p.id = 3 ORDER BY 2 => 1000
-- relay: likewise
SELECT p.id, v.id FROM people p LEFT JOIN visits v ON v.person = p.id AND 10 / (v.took - $1) < 1000 WHERE p.id = 3 ORDER BY 2 => 11
-- relay: a subquery with an order is computed by itself
SELECT z.id, z.q FROM (SELECT id, person, 10 / (took - $1) AS q FROM visits ORDER BY id) z JOIN people p ON p.id = z.person WHERE p.name = 'ann' ORDER BY 1 => 11
SELECT p.id, z.q FROM people p JOIN (SELECT person, 100 / (max(took) - $1) AS q FROM visits GROUP BY person) z ON z.person = p.id WHERE p.name = 'ann' => 1000
-- relay: groups are computed as a whole, with what is made of them
SELECT p.id, z.q FROM people p JOIN (SELECT person, 100 / (max(took) - $1) AS q FROM visits GROUP BY person) z ON z.person = p.id WHERE p.name = 'ann' => 70
-- relay: and what they are asked
SELECT p.id, z.m FROM people p JOIN (SELECT person, max(took) AS m FROM visits GROUP BY person HAVING 10 / (max(took) - $1) < 1000) z ON z.person = p.id WHERE p.name = 'ann' => 70
-- relay: and what they are made by
SELECT p.id, z.m FROM people p JOIN (SELECT person, max(took) AS m FROM visits GROUP BY person, 10 / (took - $1)) z ON z.person = p.id WHERE p.name = 'ann' ORDER BY 1, 2 => 11
-- relay: what a row that is made up has NULL in place of is computed with the table
SELECT p.id, z.q FROM people p LEFT JOIN (SELECT person, coalesce(10 / (took - $1), 0) AS q FROM visits) z ON z.person = p.id WHERE p.name = 'ann' ORDER BY 1, 2 => 11
-- relay: both keys of a hash join are
SELECT v.id FROM visits v JOIN people p ON v.person = p.id AND 10 / (v.took - $1) = p.team WHERE p.name = 'ann' ORDER BY 1 => 11
SELECT v.id FROM visits v JOIN people p ON v.person = p.id WHERE p.name = 'ann' AND v.page = ANY ('{p1,p2}') AND v.page LIKE 'p%' AND v.at > $1::timestamp - interval '1 day' ORDER BY 1 => 2024-01-03
-- relay: both keys, also of a subquery
SELECT z.id FROM (SELECT id, person, 10 / (took - $1) AS q FROM visits) z JOIN people p ON p.id = z.person AND p.team = z.q WHERE p.name = 'ann' ORDER BY 1 => 11
-- relay: for every row of the table there are too many
SELECT z.id FROM people p JOIN (SELECT v.* FROM visits v WHERE (SELECT x.took FROM visits x WHERE x.person = v.person AND (x.person <> 1 OR x.id = 9)) < $1) z ON z.person = p.id WHERE p.name = 'ann' ORDER BY 1 => 1000
SELECT p.id, z.q FROM people p LEFT JOIN (SELECT person, took * 2 AS q FROM visits) z ON z.person = p.id WHERE p.name = $1 ORDER BY 1, 2 => ann
SELECT p.id, z.s FROM people p JOIN (SELECT person, sum(took) AS s, count(*) FROM visits WHERE page LIKE 'p%' GROUP BY person) z ON z.person = p.id WHERE p.name = $1 => ann
-- relay: what is compared with a subquery's value is computed, also where that is NULL
SELECT v.id FROM visits v WHERE (SELECT min(x.took) FROM visits x WHERE x.id = v.id + 1000) < 10 / (v.took - $1) ORDER BY 1 => 11
SELECT v.id FROM visits v WHERE (SELECT min(x.took) FROM visits x WHERE x.id = v.id + 1) < v.took - 1 AND v.id < $1 ORDER BY 1 => 11
