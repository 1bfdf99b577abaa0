-- The tables that statements.sql is about. Loaded into an empty database by describe.py.
CREATE TABLE flights (
    id int8 PRIMARY KEY, year int2 NOT NULL, month int4 NOT NULL, day int4 NOT NULL, dep_time int4, dep_delay float8,
    arr_delay float8, carrier text NOT NULL, flight int4, tailnum varchar(10), origin char(3), dest char(3),
    air_time float4, distance numeric(8, 2), time_hour timestamptz NOT NULL
);
CREATE TABLE airlines (carrier text PRIMARY KEY, name varchar(80) NOT NULL);
CREATE TABLE planes (tailnum varchar(10) PRIMARY KEY, year int4, type text, seats int2, speed numeric, built date);
CREATE TABLE edge (
    a int4, b bool, c bpchar, d date, f4 float4, f8 float8, i interval, i2 int2, i8 int8, j jsonb, n name, num numeric,
    num2 numeric(6, -2), t text, tm time, ts timestamp, ts3 timestamp(3), tz timestamptz, u uuid, v varchar, by bytea,
    "Mixed Case" int4, z timetz, arr int4[], PRIMARY KEY (a, i8)
);
