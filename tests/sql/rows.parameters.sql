-- statement => parameters, split by |
SELECT u FROM unnest($1::int[]) u ORDER BY u => {3,1,NULL}
SELECT c.id, i FROM carts c, unnest(c.items) i WHERE i = $1 ORDER BY c.id => a
SELECT n.id FROM names n JOIN unnest($1::text[]) x ON x = n.item ORDER BY 1 => {a,z}
SELECT value FROM jsonb_array_elements_text($1::jsonb) ORDER BY 1 => ["b", "a"]
SELECT s FROM string_to_table($1, $2) s ORDER BY 1 => a;b;c | ;
SELECT c.id, g FROM carts c, generate_series(c.lo, $1::int) g ORDER BY 1, 2 => 4
