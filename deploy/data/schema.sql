CREATE TABLE airlines (
    carrier text PRIMARY KEY,
    name    text NOT NULL
);
CREATE TABLE airports (
    faa   text PRIMARY KEY,
    name  text NOT NULL,
    lat   double precision NOT NULL,
    lon   double precision NOT NULL,
    alt   integer NOT NULL,
    tz    smallint NOT NULL,
    dst   text NOT NULL,
    tzone text
);
CREATE TABLE planes (
    tailnum      text PRIMARY KEY,
    year         smallint,
    type         text NOT NULL,
    manufacturer text NOT NULL,
    model        text NOT NULL,
    engines      smallint NOT NULL,
    seats        integer NOT NULL,
    speed        integer,
    engine       text NOT NULL
);
CREATE TABLE weather (
    origin     text NOT NULL,
    year       smallint NOT NULL,
    month      smallint NOT NULL,
    day        smallint NOT NULL,
    hour       smallint NOT NULL,
    temp       double precision,
    dewp       double precision,
    humid      double precision,
    wind_dir   smallint,
    wind_speed double precision,
    wind_gust  double precision,
    precip     double precision NOT NULL,
    pressure   double precision,
    visib      double precision NOT NULL,
    time_hour  timestamptz NOT NULL,
    PRIMARY KEY (origin, time_hour)
);
CREATE TABLE flights (
    year           smallint NOT NULL,
    month          smallint NOT NULL,
    day            smallint NOT NULL,
    dep_time       smallint,
    sched_dep_time smallint NOT NULL,
    dep_delay      smallint,
    arr_time       smallint,
    sched_arr_time smallint NOT NULL,
    arr_delay      smallint,
    carrier        text NOT NULL REFERENCES airlines,
    flight         integer NOT NULL,
    tailnum        text,
    origin         text NOT NULL REFERENCES airports,
    dest           text NOT NULL,
    air_time       smallint,
    distance       integer NOT NULL,
    hour           smallint NOT NULL,
    minute         smallint NOT NULL,
    time_hour      timestamptz NOT NULL,
    PRIMARY KEY (time_hour, origin, carrier, flight)
);
