-- statement => parameters, in text; arrays of unknown and of declared type.
SELECT id FROM posts WHERE author = ANY ($1) ORDER BY id => {1,2}
SELECT id FROM posts WHERE author = ANY ($1) ORDER BY id => {}
SELECT id FROM posts WHERE author = ANY ($1) ORDER BY id => {1,NULL,3,4,5,6,7,8,9,10}
SELECT id FROM posts WHERE author <> ALL ($1) ORDER BY id => {1,NULL}
SELECT id FROM posts WHERE author <> ALL ($1) ORDER BY id => {1,7,8,9,10,11,12,13,14}
SELECT id FROM posts WHERE title = ANY ($1) ORDER BY id => {one,"four","with \"quotes\" and \\",b}
SELECT id FROM posts WHERE title = ANY ($1::text[]) ORDER BY id => {one,two}
SELECT id FROM posts WHERE id = ANY ($1::bigint[]) AND $2 = ANY (tags) ORDER BY id => {1,2,3,6} | a
SELECT id FROM posts WHERE tags @> $1 ORDER BY id => {a}
SELECT id FROM posts WHERE tags && $1 AND id > $2 ORDER BY id => {b,z} | 1
SELECT $1::int[], array_length($1::int[], 1), ($1::int[])[2] => {4,5,6}
SELECT id FROM posts WHERE nums < $1 ORDER BY id => {2}
SELECT id, nums[$1:$2], nums || $3::int FROM posts ORDER BY id => 1 | 2 | 8
SELECT id, array_position(tags, $1), array_remove(tags, $1) FROM posts ORDER BY id => a
SELECT string_to_array($1, $2) => x;y;; | ;
