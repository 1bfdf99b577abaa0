CREATE TABLE posts (id int PRIMARY KEY, tags text[], nums int[], big bigint[], small smallint[], flags boolean[], names varchar(10)[], days date[],
    moments timestamptz[], plain timestamp[], ids uuid[], prices numeric(10,2)[], reals real[], scores double precision[], grid int[][], author int, title varchar(20));
INSERT INTO posts (id, tags, nums, big, small, flags, names, days, moments, plain, ids, prices, reals, scores, grid, author, title) VALUES
    (1, '{a,b}', '{1,2,3}', '{1,9223372036854775807}', '{-1,32767}', '{t,f,NULL}', '{x,"y z"}', '{2024-01-01,infinity}', '{2024-03-31 01:00:00+00}',
        '{2024-03-31 02:30:00.5,-infinity}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', '{1.50,-2.25,NULL}', '{1.5,1e-7}', '{0.1,NaN,-0}', '{{1,2},{3,4}}', 1, 'one'),
    (2, '{}', '{}', '{}', NULL, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', 2, 'two'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, NULL),
    (4, '{a,NULL,"NULL","",",","{","\"","\\"," lead"}', '{NULL}', '{NULL,NULL}', '{0}', '{NULL}', '{NULL,""}', '{NULL}', '{NULL}', '{NULL}', '{NULL}',
        '{NULL}', '{NULL}', '{NULL}', '[0:1][2:3]={{5,6},{7,NULL}}', 3, 'four'),
    (5, '{b,c,ü,日本}', '{3,3,5}', '{3}', '{3}', '{t}', '{b}', '{1999-12-31}', '{infinity,1970-01-01 00:00:00+00}', '{1999-12-31}',
        '{00000000-0000-0000-0000-000000000000,NULL}', '{99999999.99}', '{NaN}', '{1e300,Infinity}', '[2:4]={7,8,9}', 2, 'b'),
    (6, '[5:6]={a,z}', '[0:2]={4,5,6}', '{4}', '{4}', '{f,f}', '{z}', '{2000-02-29}', '{2000-02-29 12:00:00+00}', '{2000-02-29 12:00:00}',
        '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', '{0.00}', '{0}', '{0}', NULL, 5, 'a');
