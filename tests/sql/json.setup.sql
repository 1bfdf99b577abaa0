CREATE TABLE docs (id int PRIMARY KEY, j jsonb, k text, n int, p text[], plain json);
INSERT INTO docs VALUES
    (1, '{"a": {"b": [10, "x,y]", null, {"c": true}]}, "q\"": "z", "n": null, "num": 1.50, "big": 12345678901234567890.125, "e": 1e20, "s": "é\n\t\"\\\u0001"}', 'a', 0, '{a,b,1}', '{"a" : 1, "a": 2}'),
    (2, '[1, 2.0, "three", [4, [5]], {"k": "v"}, null, false]', 'k', -1, '{3,1,0}', '[1 , 2]'),
    (3, '"lone"', 'lone', 0, '{}', 'null'), (4, '42', 'x', 1, '{0}', '1'), (5, 'null', '', 2, '{NULL}', '""'), (6, 'true', 'true', 0, '{a,NULL}', '{}'),
    (7, NULL, NULL, NULL, NULL, NULL), (8, '{}', 'a', 3, '{a}', '[]'), (9, '[]', 'a', -3, '{-1}', '{"x": [1]}'),
    (10, '{"": 1, "a b": {"": [[]]}, "tags": ["x", "y", "x"], "num": 1.5, "num2": -0.0}', '', 0, '{"a b",""}', NULL),
    (11, '{"num": "7", "flag": "true", "when": "2024-02-29", "deep": {"deep": {"deep": "down"}}}', 'num', 0, '{deep,deep,deep}', NULL);
CREATE TABLE bags (id int PRIMARY KEY, plain json[], docs jsonb[], grid jsonb[][]);
INSERT INTO bags VALUES
    (1, '{"{\"a\" : 1, \"a\": [2 , 3]}","[1 , 2]",NULL,"\"q\\\"u\"",null}', '{"{\"b\":2, \"aa\":[1 ,2.50]}",NULL,"\"x\"","1e5"}', '{{1,2},{"{\"k\": []}",NULL}}'),
    (2, '{}', '{}', '{}'), (3, NULL, NULL, NULL), (4, '{"\"\\u0000\"","1e999999"}', '{"1e400"}', '[0:1]={true,null}'), (5, '[3:4]={1,"{}"}', '{"[]","{}"}', '{{{1}}}');
