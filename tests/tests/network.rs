//! inet and cidr are answered here as upstream answers: over many addresses at once, with parameters of every kind, while tables change,
//! and by keys that are addresses. What each operator and function does is in `sql/networks.sql` and in the corpus.

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::raw::{RawClient, RawReply, frame};
use freshet_tests::world::{World, settle, until};

/// Addresses that share their first bits in pairs, of both families, with lengths of every kind.
const SETUP: &str = "
    CREATE TABLE many (id int PRIMARY KEY, a inet, n cidr, b inet);
    INSERT INTO many
      SELECT id, a, network(a),
             CASE WHEN id % 3 = 0 THEN a ELSE set_masklen(a, (width - shared / 2) % (width + 1)) END
        FROM (SELECT id, width, shared, set_masklen(whole, CASE WHEN id % 4 = 0 THEN width ELSE get_byte(d, 4) % (width + 1) END) AS a
                FROM (SELECT id, d, CASE WHEN id % 2 = 0 THEN 32 ELSE 128 END AS width, get_byte(d, 5) % 33 AS shared,
                             CASE WHEN id % 2 = 0 THEN '10.16.0.0'::inet + (get_byte(d, 0) << (get_byte(d, 1) % 24))
                                  WHEN id % 7 = 0 THEN '::ffff:0.0.0.0'::inet + (get_byte(d, 0) << (get_byte(d, 1) % 24))
                                  ELSE ('::'::inet + ((get_byte(d, 0) + 1)::int8 << (get_byte(d, 1) % 50))) |
                                       set_masklen(('2001:db8::'::inet & ~('::ffff'::inet + (get_byte(d, 2)::int8 << 40))), 128) END AS whole
                        FROM (SELECT id, decode(md5(id::text), 'hex') AS d FROM generate_series(1, 3000) id) hashed) addresses) lengths;
    INSERT INTO many SELECT 10000 + n, NULL, NULL, NULL FROM generate_series(1, 5) n;
    CREATE TABLE clients (ip inet PRIMARY KEY, title text, hits int NOT NULL);
    INSERT INTO clients SELECT '10.0.0.0/8'::inet + n, 'client ' || n, n FROM generate_series(1, 50) n;
    INSERT INTO clients VALUES ('10.0.0.7', 'another', 0), ('2001:db8::7', 'six', 0);
    CREATE TABLE nets (n cidr PRIMARY KEY, title text); INSERT INTO nets VALUES ('10.0.0.0/8', 'ten'), ('10.0.0.0/16', 'less'), ('2001:db8::/32', 'doc');
    CREATE TABLE lists (id int PRIMARY KEY, a inet[], n cidr[]);
    INSERT INTO lists VALUES (1, '{10.0.0.7,NULL,10.0.0.7/8}', '{10.0.0.0/8}'), (2, '{}', '{}'), (3, NULL, '{2001:db8::/32,10.0.0.0/16}')";

const LOCAL: &[&str] = &[
    "SELECT id, a, n, b FROM many ORDER BY id",
    "SELECT a, n, b FROM many ORDER BY a, n, b",
    "SELECT id, n FROM many ORDER BY n DESC, b DESC NULLS LAST, id",
    "SELECT id, a < b, a <= b, a = b, a <> b, a >= b, a > b, a << b, a <<= b, a >> b, a >>= b, a && b, a = n, n <= b FROM many ORDER BY id",
    "SELECT x.id, y.id, x.a < y.b, x.n > y.a, x.a << y.n, x.n && y.n FROM many x JOIN many y ON y.id = x.id * 7 % 3000 + 1 ORDER BY 1, 2",
    "SELECT id, host(a), abbrev(a), abbrev(n), text(a), a::text, n::text, a::varchar(12), n::char(24), family(a), masklen(b) FROM many ORDER BY id",
    "SELECT id, network(b), netmask(a), hostmask(a), broadcast(b), ~b, a & b, a | b, set_masklen(a, 17), set_masklen(n, 9), inet_merge(a, b), b::cidr FROM many ORDER BY id",
    "SELECT id, a - b, a - '10.0.0.0', inet_same_family(a, b), a + id, a - 1 FROM many WHERE family(a) = 4 AND a <> '0.0.0.0/0' ORDER BY id",
    "SELECT n, count(*), min(a), max(b), count(DISTINCT b), array_agg(a ORDER BY id) FROM many GROUP BY n ORDER BY n",
    "SELECT min(a), max(a), min(n), max(n), count(DISTINCT n), string_agg(DISTINCT host(n), ',' ORDER BY host(n)) FROM many",
    "SELECT DISTINCT b FROM many ORDER BY b",
    "SELECT x.id, y.id FROM many x JOIN many y ON x.a = y.n ORDER BY 1, 2",
    "SELECT x.id, count(y.id) FROM many x LEFT JOIN many y ON y.n >> x.b AND y.id < 60 WHERE x.id < 200 GROUP BY x.id ORDER BY x.id",
    "SELECT id FROM many WHERE a > '10.16.0.0/12' AND a < '10.16.1.0' ORDER BY a, id LIMIT 40",
    "SELECT id FROM many WHERE b BETWEEN '2001:db8::' AND '2001:db8::ffff:ffff' ORDER BY id",
    "SELECT ip, title FROM clients WHERE ip = '10.0.0.7'",
    "SELECT title FROM clients WHERE ip = '10.0.0.7/8'",
    "SELECT ip, hits FROM clients ORDER BY ip DESC LIMIT 5",
    "SELECT c.ip, t.title FROM clients c JOIN nets t ON c.ip << t.n ORDER BY 1, 2",
    "SELECT t.n, count(c.ip), sum(c.hits) FROM nets t LEFT JOIN clients c ON c.ip <<= t.n GROUP BY t.n ORDER BY t.n",
    "SELECT title FROM nets WHERE n = '10.0.0.0/8'",
    "SELECT title FROM nets WHERE n IN ('10', '2001:db8::/32') ORDER BY 1",
    "SELECT * FROM lists ORDER BY id",
    "SELECT c.ip, l.id FROM clients c JOIN lists l ON c.ip = ANY (l.a) ORDER BY 1, 2",
    "SELECT t.n, l.id FROM nets t JOIN lists l ON t.n = ANY (l.n) ORDER BY 1, 2",
];

fn world(mode: FreshnessMode) -> World {
    World::start(mode, SETUP)
}

fn both(world: &World) -> Both {
    Both::open(&world.freshet, world.cluster, "postgres", &world.database, LOCAL)
}

#[test]
fn many_addresses_are_ordered_and_computed_as_upstream_does() {
    let world = world(FreshnessMode::Exact);
    let mut both = both(&world);
    for sql in LOCAL {
        let settled = settle(&mut both.through, sql);
        assert!(settled.route == "local" || settled.route == "hit", "{sql}: {settled:?}");
    }
    both.assert_computed(|_| false);
    both.set("SET freshet.route = 'local'");
    for sql in LOCAL {
        for format in [0, 1] {
            until(&format!("{sql} is answered here"), || {
                let here = both.through.extended(sql, &[], format).expect("answers");
                assert_eq!(here, both.direct.extended(sql, &[], format).expect("answers"), "{sql}");
                both.through.last().expect("answers").0 == "local"
            });
        }
    }
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
    assert_eq!(world.freshet.status(&world.database, "shape_mismatches"), "0");
}

#[test]
fn every_change_counts_for_the_next_statement() {
    let world = world(FreshnessMode::Exact);
    let mut both = both(&world);
    LOCAL.iter().for_each(|sql| drop(settle(&mut both.through, sql)));
    for change in [
        "UPDATE clients SET hits = hits + 1 WHERE ip = '10.0.0.7/8'",
        "UPDATE clients SET ip = '10.0.0.99/8' WHERE ip = '10.0.0.7/8'",
        "DELETE FROM clients WHERE ip << '10.0.0.0/28'",
        "INSERT INTO clients VALUES ('::', 'zero', 5), ('0.0.0.0/0', 'all', 6)",
        "UPDATE nets SET n = '10.0.0.0/9' WHERE n = '10.0.0.0/8'",
        "UPDATE many SET a = b, b = n WHERE id % 5 = 0",
        "DELETE FROM many WHERE a << '10.16.0.0/16'",
        "UPDATE lists SET a = '{::,10.0.0.7}', n = n || '::/0'::cidr WHERE id > 1",
        "ALTER TABLE nets ALTER n TYPE inet",
        "INSERT INTO nets VALUES ('10.1.2.3/8', 'behind')",
        "DELETE FROM nets WHERE n = '10.0.0.0/16'; ALTER TABLE nets ALTER n TYPE cidr USING set_masklen(n, 24)::cidr",
        "TRUNCATE clients",
    ] {
        world.past(change);
        both.compare_all(change);
    }
    for sql in [LOCAL[0], LOCAL[8], LOCAL[15], LOCAL[19]] {
        settle(&mut both.through, sql);
        both.compare("all of it", sql);
    }
}

/// Parse, Bind, Describe, Execute and Sync with binary parameters of declared types, the reply in binary.
fn with_binary(client: &mut RawClient, sql: &str, parameters: &[(u32, &[u8])]) -> RawReply {
    let count = (parameters.len() as u16).to_be_bytes();
    let mut parse = [b"\0", sql.as_bytes(), b"\0", &count].concat();
    parameters.iter().for_each(|(oid, _)| parse.extend(oid.to_be_bytes()));
    let mut bind = [&b"\0\0\0\x01\0\x01"[..], &count].concat();
    for (_, value) in parameters {
        bind.extend((value.len() as u32).to_be_bytes());
        bind.extend_from_slice(value);
    }
    bind.extend(b"\0\x01\0\x01");
    let unit =
        [frame(b'P', &parse), frame(b'B', &bind), frame(b'D', b"P\0"), frame(b'E', b"\0\0\0\0\0"), frame(b'S', b"")];
    client.send(&unit.concat()).expect("sent");
    client.read_reply().expect("answers")
}

fn is_answered_here(client: &mut RawClient) -> bool {
    let (route, _) = client.last().expect("answers");
    route == "hit" || route == "local"
}

const INET: u32 = 869;
const CIDR: u32 = 650;
const ADDRESSES: u32 = 1041;
const NETWORKS: u32 = 651;

#[test]
fn parameters_come_as_text_and_in_binary_with_and_without_a_type() {
    let world = world(FreshnessMode::Exact);
    let (mut through, mut direct) = (world.client(), world.direct());
    settle(&mut through, LOCAL[15]);
    settle(&mut through, LOCAL[20]);
    let (by_ip, by_net) = ("SELECT ip, title FROM clients WHERE ip = $1", "SELECT n, title FROM nets WHERE n = $1");
    for (sql, oid, value, is_local) in [
        (by_ip, 0, Some("10.0.0.7"), true),
        (by_ip, INET, Some("10.0.0.7/8"), true),
        (by_ip, CIDR, Some("10.0.0.7/32"), true),
        (by_ip, INET, None, true),
        (by_ip, 0, Some("10.0.0"), false),
        (by_ip, 25, Some("10.0.0.7"), false),
        (by_net, 0, Some("10.0.0.0/8"), true),
        (by_net, CIDR, Some("10"), true),
        (by_net, INET, Some("10.0.0.0/16"), true),
        (by_net, 0, Some("10"), false),
        (by_net, CIDR, Some("10.1.2.3/8"), false),
    ] {
        for format in [0, 1] {
            let mut ask = || {
                let here = through.extended_of(sql, &[(oid, value)], format).expect("answers");
                assert_eq!(here, direct.extended_of(sql, &[(oid, value)], format).expect("answers"), "{sql} {value:?}");
                is_answered_here(&mut through)
            };
            if is_local {
                until(&format!("{sql} of {oid} {value:?} is answered here"), ask);
            } else {
                assert!(!(0..4).any(|_| ask()), "{sql} of {oid} {value:?} is an error");
            }
        }
    }
    let element = |is_cidr: u8| [&[0, 0, 0, 8, 2, 8, is_cidr, 4, 10, 0, 0, 0][..]].concat();
    let array = |oid: u32, is_cidr: u8| {
        [&[0, 0, 0, 1, 0, 0, 0, 0][..], &oid.to_be_bytes(), &[0, 0, 0, 1, 0, 0, 0, 1], &element(is_cidr)].concat()
    };
    for (sql, oid, value) in [
        (by_ip, INET, vec![2, 8, 0, 4, 10, 0, 0, 7]),
        // It says that it is a cidr, which inet_recv does not look at.
        (by_ip, INET, vec![2, 32, 1, 4, 10, 0, 0, 7]),
        (by_net, CIDR, vec![2, 8, 1, 4, 10, 0, 0, 0]),
        (by_net, INET, vec![2, 8, 0, 4, 10, 0, 0, 0]),
        ("SELECT n, title FROM nets WHERE n = ANY ($1) ORDER BY 1", ADDRESSES, array(INET, 1)),
        ("SELECT n, title FROM nets WHERE n = ANY ($1) ORDER BY 1", NETWORKS, array(CIDR, 0)),
        ("SELECT id, a = $1, a && $1, $1 FROM lists ORDER BY id", ADDRESSES, array(INET, 1)),
    ] {
        until(&format!("{sql} of {oid} {value:?} is answered here"), || {
            let here = with_binary(&mut through, sql, &[(oid, &value)]);
            assert_eq!(here, with_binary(&mut direct, sql, &[(oid, &value)]), "{sql} {value:?}");
            assert_eq!(here.error(), None, "{sql}");
            is_answered_here(&mut through)
        });
    }
    for (oid, value) in
        [(INET, vec![2, 33, 0, 4, 10, 0, 0, 7]), (CIDR, vec![2, 8, 1, 4, 10, 0, 0, 7]), (INET, vec![2, 8, 0])]
    {
        let here = with_binary(&mut through, by_ip, &[(oid, &value)]);
        assert_eq!(here, with_binary(&mut direct, by_ip, &[(oid, &value)]), "{value:?}");
        assert!(here.error().is_some(), "{value:?}");
    }
}

#[test]
fn tables_by_an_address_are_mirrored_and_followed_in_every_mode() {
    for mode in [FreshnessMode::Exact, FreshnessMode::Session] {
        let world = world(mode);
        let mut client = world.client();
        let (by_ip, by_net) =
            ("SELECT title FROM clients WHERE ip = '10.0.0.7'", "SELECT title FROM nets WHERE n = '10.0.0.0/8'");
        settle(&mut client, by_ip);
        settle(&mut client, by_net);
        for n in 0..30 {
            for (table, key, sql) in [("clients", "ip = '10.0.0.7'", by_ip), ("nets", "n = '10.0.0.0/8'::cidr", by_net)]
            {
                let title = format!("title {n}");
                let update = format!("UPDATE {table} SET title = '{title}' WHERE {key}");
                assert_eq!(client.simple(&update).expect("answers").error(), None);
                let rows = client.simple(sql).expect("answers").rows();
                assert_eq!(rows[0][0].as_deref(), Some(title.as_bytes()), "{mode:?}");
            }
            let other = "UPDATE clients SET title = 'x' WHERE ip = '10.0.0.7/8'; UPDATE nets SET title = 'y' WHERE n = '10.0.0.0/16'";
            client.simple(other).expect("answers");
        }
        let moved =
            "UPDATE nets SET n = set_masklen(n, 7) WHERE n = '10.0.0.0/8'; INSERT INTO nets VALUES ('10/8', 'new')";
        assert_eq!(client.simple(moved).expect("answers").error(), None);
        assert_eq!(client.simple(by_net).expect("answers").text(), "new");
        settle(&mut client, by_ip);
        settle(&mut client, by_net);
        assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
    }
}

/// What users define for cidr, which has next to nothing of its own, takes precedence over what there is for inet.
#[test]
fn what_users_define_for_addresses_is_upstreams() {
    const ASKED: &[&str] = &[
        "SELECT host(n), host(n::inet) FROM nets ORDER BY title",
        "SELECT count(*) FROM nets WHERE n = '10.0.0.0/8'",
        "SELECT count(*) FROM nets WHERE n IN ('10.0.0.0/8', '::/0')",
        "SELECT count(*) FROM nets a JOIN nets b USING (n)",
        "SELECT count(*) FROM nets a JOIN clients c ON c.ip << a.n",
        "SELECT n FROM nets ORDER BY n",
        "SELECT ip FROM clients ORDER BY ip LIMIT 3",
        "SELECT max(n) FROM nets",
        "SELECT '10'::cidr, n::text FROM nets ORDER BY title",
    ];
    let world = world(FreshnessMode::Exact);
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, ASKED);
    ASKED.iter().for_each(|sql| drop(settle(&mut both.through, sql)));
    for change in [
        "CREATE FUNCTION host(cidr) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'own' $$",
        "DROP FUNCTION host(cidr)",
        "CREATE FUNCTION never(cidr, cidr) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false';
         CREATE OPERATOR = (LEFTARG = cidr, RIGHTARG = cidr, FUNCTION = never)",
        "DROP OPERATOR = (cidr, cidr)",
        "CREATE FUNCTION never(inet, cidr) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false';
         CREATE OPERATOR << (LEFTARG = inet, RIGHTARG = cidr, FUNCTION = never)",
        "DROP OPERATOR << (inet, cidr)",
        "CREATE FUNCTION max_own(cidr, cidr) RETURNS cidr LANGUAGE sql IMMUTABLE AS 'SELECT $1';
         CREATE AGGREGATE max(cidr) (SFUNC = max_own, STYPE = cidr, INITCOND = '0.0.0.0/0')",
        "DROP AGGREGATE max(cidr)",
        "CREATE FUNCTION backwards(cidr, cidr) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT network_cmp($2, $1)';
         CREATE OPERATOR CLASS backwards DEFAULT FOR TYPE cidr USING btree AS OPERATOR 1 > (inet, inet), OPERATOR 2 >= (inet, inet),
           OPERATOR 3 = (inet, inet), OPERATOR 4 <= (inet, inet), OPERATOR 5 < (inet, inet), FUNCTION 1 backwards(cidr, cidr)",
        "DROP OPERATOR FAMILY backwards USING btree",
        "CREATE SCHEMA own; CREATE DOMAIN own.cidr AS text",
        "DROP SCHEMA own CASCADE",
    ] {
        world.past(change);
        both.compare_all(change);
        both.set("SET search_path = own, pg_catalog, public");
        both.compare_all(change);
        both.set("SET search_path = public");
        both.compare_all(change);
    }
    both.settle("all of it", |_| false);
}
