//! Replies of many rows, which are on their way before all of them are made: byte for byte as upstream's.

use freshet_config::FreshnessMode;
use freshet_tests::client::{Message, RawClient, bind, describe, execute, parse, query, sync, tags, terminate};
use freshet_tests::world::{World, settle};

const SETUP: &str = "CREATE TABLE wide (id int PRIMARY KEY, score int, name text, kind text, at timestamptz, price numeric(12,2), tags int[]);
    INSERT INTO wide SELECT n, n * 7919 % 10007, CASE WHEN n % 9 > 0 THEN 'name ' || n END, 'kind ' || n % 3,
        timestamptz '2024-01-01 00:00:00Z' + n * interval '37 seconds', n * 1.25, ARRAY[n, n % 7] FROM generate_series(1, 17000) n;
    CREATE TABLE other (id int PRIMARY KEY, seen bool); INSERT INTO other SELECT n, n % 2 = 0 FROM generate_series(1, 17000) n";

/// Their order is whole. `@`: a number that no other run has, so that no kept reply fits.
const TEXTS: [&str; 6] = [
    "SELECT id, score FROM wide WHERE id > -@ ORDER BY score DESC, id",
    "SELECT * FROM wide WHERE score > -@ ORDER BY id",
    "SELECT id, name, kind, at, price FROM wide WHERE score > -@ ORDER BY score, id",
    "SELECT w.id, w.name, o.seen FROM wide w JOIN other o ON o.id = w.id WHERE w.score > -@ ORDER BY w.id",
    "SELECT id, row_number() OVER (ORDER BY score, id) FROM wide WHERE id > -@ ORDER BY id",
    "SELECT repeat(kind, 100), id FROM wide WHERE id > -@ ORDER BY id",
];

/// One way to ask.
type Way = fn(&str) -> Vec<u8>;

fn unnamed(sql: &str, format: u16) -> Vec<u8> {
    [parse("", sql), bind("", "", &[], format), execute("", 0), sync()].concat()
}

fn described(sql: &str) -> Vec<u8> {
    [parse("", sql), describe('S', ""), bind("", "", &[], 1), describe('P', ""), execute("", 0), sync()].concat()
}

const WAYS: [Way; 4] = [query, |sql| unnamed(sql, 0), |sql| unnamed(sql, 1), described];

fn ask(client: &mut RawClient, messages: &[u8]) -> Vec<Message> {
    client.send(messages);
    client.read_until('Z')
}

fn bytes(messages: &[Message]) -> Vec<(char, &[u8])> {
    messages.iter().map(|message| (message.tag, &message.body[..])).collect()
}

#[test]
fn long_replies_are_upstreams_byte_for_byte() {
    let world = World::start(FreshnessMode::Session, SETUP);
    let mut asked = 0;
    let mut settling = world.client();
    settle(&mut settling, "SELECT count(*) FROM wide");
    settle(&mut settling, "SELECT count(*) FROM other");
    let mut direct = RawClient::log_in(world.cluster.port(), &world.database);
    let mut through = RawClient::log_in(world.freshet.port(), &world.database);
    for text in TEXTS {
        for way in WAYS {
            let mut count_here = 0;
            // Its first runs are compared with upstream's.
            for _ in 0..12 {
                asked += 1;
                let messages = way(&text.replace('@', &asked.to_string()));
                let got = ask(&mut through, &messages);
                let route = ask(&mut through, &query("SHOW freshet.last"));
                let want = ask(&mut direct, &messages);
                assert!(bytes(&got) == bytes(&want), "{text}: {} {}", got.len(), want.len());
                count_here += usize::from(String::from_utf8_lossy(&route[1].body).contains("local"));
                if count_here == 2 {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            assert_eq!(count_here, 2, "{text}");
        }
    }
}

/// Who takes its time to read a reply is not idle: PostgreSQL would still be sending it.
#[test]
fn who_reads_slowly_is_not_idle() {
    let world = World::start(FreshnessMode::Session, SETUP);
    // More than the sockets hold.
    let long = "SELECT repeat(kind, 250), id FROM wide WHERE id > -@ ORDER BY id";
    settle(&mut world.client(), &long.replace('@', "1"));
    let mut through = RawClient::log_in(world.freshet.port(), &world.database);
    ask(&mut through, &query("SET idle_in_transaction_session_timeout = '700ms'"));
    ask(&mut through, &query("SELECT id FROM wide WHERE id = 1"));
    ask(&mut through, &query("BEGIN"));
    through.send(&query(&long.replace('@', "2")));
    std::thread::sleep(std::time::Duration::from_secs(2));
    let got = through.read_until('Z');
    assert_eq!(got.iter().filter(|message| message.tag == 'D').count(), 17_000);
    assert_eq!(tags(&ask(&mut through, &query("COMMIT"))), "CZ");
}

/// In a pipeline, in a block, and while the client reads nothing.
#[test]
fn who_does_not_read_yet_gets_all_of_it_later() {
    let world = World::start(FreshnessMode::Session, SETUP);
    settle(&mut world.client(), &TEXTS[1].replace('@', "1"));
    let mut direct = RawClient::log_in(world.cluster.port(), &world.database);
    let mut through = RawClient::log_in(world.freshet.port(), &world.database);
    let several: Vec<u8> = (2..6).flat_map(|n| unnamed(&TEXTS[1].replace('@', &n.to_string()), 1)).collect();
    let block = [query("BEGIN"), several.clone(), query("SELECT 1 / 0"), several.clone(), query("ROLLBACK")].concat();
    for (messages, replies) in [(several, 4), (block, 11)] {
        for client in [&mut direct, &mut through] {
            client.send(&messages);
        }
        // Long enough for all of it to be made.
        std::thread::sleep(std::time::Duration::from_millis(300));
        for number in 0..replies {
            let (want, got) = (direct.read_until('Z'), through.read_until('Z'));
            assert_eq!(tags(&want).len(), tags(&got).len(), "{number}");
            let rows = |messages: &[Message]| -> Vec<Vec<u8>> {
                messages.iter().filter(|message| message.tag == 'D').map(|message| message.body.to_vec()).collect()
            };
            assert!(rows(&want) == rows(&got), "{number}");
        }
    }
    // Nobody waits for those who leave in the middle.
    through.send(&unnamed(&TEXTS[1].replace('@', "99"), 0));
    through.send(&terminate());
    drop(through);
    settle(&mut world.client(), &TEXTS[0].replace('@', "100"));
}
