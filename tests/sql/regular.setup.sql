CREATE TABLE lines (id int PRIMARY KEY, t text, v varchar(40), c char(10), u text);
INSERT INTO lines SELECT id, t, t, left(t, 10), CASE WHEN id % 3 = 0 THEN t || 'é' ELSE t END FROM (VALUES
    (1, 'hello world'), (2, 'Hello  World'), (3, ''), (4, NULL), (5, 'a.b-c_d'), (6, E'two\nlines'), (7, 'order id=4711; qty=3'), (8, '2024-02-29'),
    (9, '+49 (30) 123-456'), (10, 'x@example.org'), (11, 'aaa'), (12, 'abcabc'), (13, E'tab\there'), (14, '[brackets] {braces} \back'), (15, '   lead and trail  '),
    (16, '100%'), (17, 'http://a.b/c?d=e'), (18, 'https://a.b'), (19, 'A1B2C3'), (20, '00042'), (21, 'under_score'), (22, '^caret$')) t (id, t);
