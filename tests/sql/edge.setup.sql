CREATE TABLE numbers (
    id int PRIMARY KEY, s smallint, i int, b bigint, n numeric, n2 numeric(10,2), n0 numeric(18,0), r real, d double precision
);
INSERT INTO numbers VALUES
    (1, 1, 10, 100, 1.5, 1.50, 1, 1.5, 1.5), (2, -1, -10, -100, -1.50, -1.50, -1, -1.5, -1.5),
    (3, 0, 0, 0, 0, 0, 0, 0, 0), (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (5, 32767, 2147483647, 9223372036854775807, 12345678901234567890.123456789, 99999999.99, 999999999999999999, 3.4e38, 1.7e308),
    (6, -32768, -2147483648, -9223372036854775808, 0.000000000000000001, -99999999.99, -999999999999999999, 1e-30, 5e-324),
    (7, 2, 7, 49, 'NaN', 0.01, 7, 'NaN', 'NaN'), (8, 3, 8, 64, 'Infinity', 0.05, 8, 'Infinity', 'Infinity'),
    (9, 4, 9, 81, '-Infinity', 0.10, 9, '-Infinity', '-Infinity'), (10, 2, 7, 49, 1.500, 1.50, 7, '-0', '-0'),
    (11, 5, 11, 121, 100, 100, 100, 100, 100), (12, 6, 12, 144, 1e-5, 0.00, 0, 1e-5, 1e-5),
    (13, 7, 13, 169, 1e10, 10.00, 0, 1e10, 1e15), (14, 8, 14, 196, 2.5, 2.50, 0, 2.5, 2.5), (15, 9, 15, 225, 3.5, 3.50, 0, 3.5, 3.5);
CREATE TABLE texts (id int PRIMARY KEY, t text, v varchar(10), c char(5), x bytea, u uuid, j json, k jsonb, o boolean);
INSERT INTO texts VALUES
    (1, 'alpha', 'alpha', 'abc', '\x00ff', '00000000-0000-0000-0000-000000000001', '{"a": 1}', '{"a": 1}', true),
    (2, 'Beta', 'beta', 'abc  ', '', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '[1,  2]', '[1, 2]', false),
    (3, '', '', '', NULL, NULL, NULL, NULL, NULL), (4, NULL, NULL, NULL, '\xdeadbeef', NULL, '"x"', '"x"', true),
    (5, 'with %percent_', 'under_', 'x', '\x5c', '12345678-1234-1234-1234-123456789abc', 'null', 'null', false),
    (6, 'größe', 'Ünï', 'é', '\x27', '12345678-1234-1234-1234-123456789abd', '{}', '{}', true),
    (7, 'back\slash', 'tab	', 'a b', '\x0a', NULL, NULL, NULL, NULL), (8, 'alpha', 'ALPHA', 'abc', '\x00ff', NULL, '1', '1', true);
CREATE TABLE times (id int PRIMARY KEY, d date, t time, ts timestamp, tz timestamptz, i interval);
INSERT INTO times VALUES
    (1, '2024-01-01', '00:00', '2024-01-01 00:00', '2024-01-01 00:00+00', '1 day'),
    (2, '2024-02-29', '23:59:59.999999', '2024-02-29 12:34:56.789', '2024-03-31 00:59:59+00', '1 mon 2 days 03:04:05.678'),
    (3, '1999-12-31', '12:00', '1999-12-31 23:59:59.5', '2024-03-31 01:00:00+00', '-1 day'),
    (4, NULL, NULL, NULL, NULL, NULL), (5, 'infinity', '24:00', 'infinity', 'infinity', '1 year'),
    (6, '-infinity', '01:02:03', '-infinity', '-infinity', '-00:00:01'), (7, '0044-03-15 BC', '06:00', '0044-03-15 06:00 BC', '1900-01-01 12:00+00', '1000 years'),
    (8, '2024-10-27', '02:30', '2024-10-27 02:30', '2024-10-27 00:30+00', '30 days'), (9, '2024-10-27', '02:30', '2024-10-27 02:30', '2024-10-27 01:30+00', '1 mon');
CREATE TABLE nothing (id int PRIMARY KEY, a int, b text);
CREATE TABLE keys (a int, b text, n int, PRIMARY KEY (a, b));
INSERT INTO keys SELECT i % 7, 'k' || i, CASE WHEN i % 5 = 0 THEN NULL ELSE i END FROM generate_series(1, 50) i;
CREATE TABLE other (id int PRIMARY KEY, a int, note text);
INSERT INTO other VALUES (1, 0, 'zero'), (2, 1, 'one'), (3, 1, 'uno'), (4, 99, 'none'), (5, NULL, 'null');
CREATE TABLE wides (id int PRIMARY KEY, n numeric, m numeric(60, 2), k numeric(76, 0));
INSERT INTO wides VALUES (1, 1e50, 1e50, 1e75), (2, -123456789012345678901234567890.1234567890123456789, -1e40 - 0.5, -1e38), (3, 99999999999999999999999999999999999999, 0.01, 1),
    (4, 'NaN', NULL, NULL), (5, 1e50 + 1, 1e50, 1e75 - 1), (6, 0.5, 7, 100000000000000000000000000000000000000), (7, 1e50, 0, 0), (8, '-Infinity', 1, 2);
