CREATE TABLE carts (id int PRIMARY KEY, items text[], counts int[], grid int[][], prices numeric(8,2)[], moments timestamptz[], tags varchar(5)[], doc jsonb, csv text, lo int, hi bigint);
INSERT INTO carts VALUES
    (1, '{a,b,NULL}', '{1,2}', '{{1,2},{3,4}}', '{1.50,2.25}', '{2024-03-31 01:00:00+00}', '{x,y}', '{"b": 1, "a": {"c": [1, "z"]}, "n": null, "e\u0301": "q\"u"}', 'p,q,,r', 1, 3),
    (2, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '', 5, 4),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2),
    (4, '{"","c d",b}', '{7}', '[0:1][2:3]={{5,6},{7,NULL}}', '{NULL}', '{infinity}', '{z,NULL}', '{"list": ["x", 1.50, true, null, {"k": 2}], "t": "text"}', 'one', 2, 2),
    (5, '[5:6]={a,z}', '[0:2]={4,5,6}', '{{9}}', '{99.99}', '{1999-12-31 00:00:00+00}', '{b}', '{"list": [], "t": ""}', 'ü,NULL,日本', 0, 1);
CREATE TABLE lists (id int PRIMARY KEY, j jsonb);
INSERT INTO lists VALUES (1, '["b", "a", null, 1, [2], {"k": "v"}]'), (2, '[]'), (3, NULL), (4, '[1.0, 10, "x"]');
CREATE TABLE names (id int PRIMARY KEY, item text);
INSERT INTO names VALUES (1, 'a'), (2, 'b'), (3, 'z');
