//! Dates, local times and moments compared with each other, in every zone: by constants, by parameters, by what is computed from now().
//! Large tables, whose rows are found by ranges.

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{World, settle, until};

const SETUP: &str = "
    CREATE TABLE visits (id int PRIMARY KEY, at timestamptz, local timestamp, day date, org int);
    INSERT INTO visits SELECT n, timestamptz '2024-03-01 00:00+00' + n * interval '7 minutes', timestamp '2024-03-01 00:00' + n * interval '7 minutes',
        date '2024-03-01' + n / 205, n % 9 FROM generate_series(1, 20000) n;
    INSERT INTO visits VALUES (30001, 'infinity', 'infinity', 'infinity', 1), (30002, '-infinity', '-infinity', '-infinity', 1), (30003, NULL, NULL, NULL, 1),
        (30004, '294276-12-31 12:00+00', '294276-12-31 12:00', '5874897-12-31', 2), (30005, '4714-11-24 00:00+00 BC', '4714-11-24 00:00 BC', '4714-11-24 BC', 2),
        (30006, '2011-12-30 00:00 Pacific/Apia', '2011-12-30 00:00', '2011-12-30', 3), (30007, '2011-12-31 00:00 Pacific/Apia', '2011-12-31 00:00', '2011-12-31', 3),
        (30008, '2024-03-10 02:30 America/New_York', '2024-03-10 02:30', '2024-03-10', 3), (30009, '2024-11-03 01:30 America/New_York', '2024-11-03 01:30', '2024-11-03', 3);
    ANALYZE";

const ZONES: &[&str] = &[
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "+02:00",
    "GMT-02:00",
    "-05:30",
    "UTC+2",
    "<+03>-03",
];

const VALUES: &[&str] = &[
    "'2024-03-10'::date",
    "date '2024-03-31'",
    "timestamp '2024-03-10 02:30'",
    "'2024-03-10 03:00'::timestamp",
    "timestamptz '2024-03-31 01:30+00'",
    "timestamp '2011-12-30 12:00'",
    "date '2011-12-30'",
    "timestamptz '2011-12-30 10:00+00'",
    "date '2024-03-05' + 3",
    "date '2024-03-05' + interval '3 days 5 hours'",
    "'infinity'::date",
    "'-infinity'::timestamp",
    "'infinity'::timestamptz",
    "'5874897-12-31'::date",
    "'294276-12-31 23:59'::timestamp",
    "'4714-11-24 BC'::date",
    "NULL::date",
];

#[test]
fn they_are_compared_as_upstream_compares_them() {
    freshet::session::local::patient::want();
    let world = World::start(FreshnessMode::Session, SETUP);
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, &[]);
    settle(&mut both.through, "SELECT * FROM visits");
    both.through.simple("SET freshet.route = 'local'").expect("answers");
    for zone in ZONES {
        both.set(&format!("SET TIME ZONE '{zone}'"));
        until(zone, || both.routed(zone, "SELECT at, to_char(at, 'TZ OF') FROM visits WHERE id < 3").0 != "relay");
        for value in VALUES {
            for column in ["at", "local", "day"] {
                let sql = format!(
                    "SELECT count(*) FILTER (WHERE {column} < {value}), count(*) FILTER (WHERE {column} >= {value}) FROM visits WHERE org < 7"
                );
                both.compare(zone, &sql);
                for order in ["<", "<=", ">", ">=", "="] {
                    for sql in [
                        format!("SELECT id FROM visits WHERE {column} {order} {value} ORDER BY id DESC LIMIT 3"),
                        format!("SELECT count(*), min(id) FROM visits WHERE {value} {order} {column} AND org = 3"),
                    ] {
                        let (route, reason) = both.routed(zone, &sql);
                        assert!(route != "relay" || reason.contains("not computed here"), "{zone}: {sql}: {reason}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_parameter_may_be_of_another_type() {
    let world = World::start(FreshnessMode::Session, SETUP);
    let (mut here, mut there) = (world.client(), world.direct());
    settle(&mut here, "SELECT * FROM visits");
    for client in [&mut here, &mut there] {
        client.simple("SET TIME ZONE 'America/New_York'").expect("answers");
    }
    for kind in ["date", "timestamp", "timestamptz"] {
        for column in ["at", "local", "day"] {
            let sql = format!(
                "SELECT id FROM visits WHERE org = $1::int AND {column} >= $2::{kind} AND {column} < $3::{kind} + interval '1 day' ORDER BY id"
            );
            for (from, to) in [("2024-03-09", "2024-03-11"), ("2024-03-30", "2024-04-01"), ("infinity", "2024-04-01")] {
                until(&format!("{sql} {from}"), || {
                    let values = [Some("3"), Some(from), Some(to)];
                    let ask = |client: &mut RawClient| client.extended(&sql, &values, 0).expect("answers");
                    let (found, expected) = (ask(&mut here), ask(&mut there));
                    let (route, reason) = here.last().expect("answers");
                    assert_eq!(found.frames, expected.frames, "{sql} {from}: {route} {reason}");
                    route != "relay"
                });
            }
        }
    }
}
