-- statement => parameters, in text.
SELECT id FROM docs WHERE j @> $1 ORDER BY id => {"tags": ["y","x"]}
SELECT id, j ->> $1 FROM docs ORDER BY id => num
SELECT id, j #>> $1 FROM docs ORDER BY id => {a,b,1}
SELECT $1::jsonb, $1::jsonb -> 'x' => {"x" : {"b":1,"a":[ ]}}
SELECT id FROM docs WHERE j ->> 'num' = $1 AND j ? $2 ORDER BY id => 1.50 | a
