CREATE TABLE staff (id int PRIMARY KEY, boss int, name text, title varchar(10), pay numeric(8,2));
INSERT INTO staff VALUES (1, NULL, 'ann', 'chief', 100.50), (2, 1, 'bob', 'head', 80), (3, 1, 'cid', 'head', NULL), (4, 2, 'dan', NULL, 60.25),
    (5, 2, 'eve', 'hand', 60.25), (6, 4, 'fay', 'hand', 10), (7, 99, 'gil', 'lost', 1), (8, 8, 'hal', 'self', 2);
CREATE TABLE edges (a int, b int, cost bigint, label text, number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
INSERT INTO edges VALUES (1, 2, 5, 'x'), (2, 3, 1, 'y'), (3, 1, 2, 'z'), (3, 4, 9, NULL), (4, 5, 1, 'x'), (5, 5, 0, 'x'), (1, 4, 20, 'w'), (NULL, 1, 1, 'n'),
    (6, NULL, 1, 'm'), (1, 2, 5, 'x');
CREATE TABLE wide (id int, up int, PRIMARY KEY (id));
INSERT INTO wide SELECT i, i / 10 FROM generate_series(1, 20000) i;
CREATE TABLE nobody (id int PRIMARY KEY, boss int, name text);
