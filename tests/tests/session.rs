//! Local answers inside real sessions, with an answerer that knows one table by heart: what the protocol makes of them,
//! when they are asked for, and what they may depend on.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use freshet::metrics::Metrics;
use freshet::server;
use freshet::session::answer::early::EarlyRows;
use freshet::session::answer::{
    Account, Answerer, Answerers, ObservedReply, Observer, Outcome, Relay, Relayed, Reply, TextTable, Unit,
};
use freshet::session::effect::{Effect, Written};
use freshet::session::state::{Login, SessionState};
use freshet::shutdown::{self, Phase, Trigger};
use freshet::statistics::Answered;
use freshet::upstream::address::UpstreamAddress;
use freshet::wire::extended::{format_at, write_parameter_description};
use freshet::wire::query::{Field, write_command_complete, write_data_row, write_row_description, write_value};
use freshet::workers::Workers;
use freshet_config::{ListenAddress, Settings};
use freshet_engine::reason::UpstreamReason;
use freshet_tests::client::{RawClient, bind, close, describe, execute, parse, query, rows, sync, tags};
use freshet_tests::cluster::Cluster;

/// What the canned answerer was asked and told, in order.
type Notes = Arc<Mutex<Vec<String>>>;

#[derive(Clone)]
struct Canned {
    notes: Notes,
}

struct Watching {
    notes: Notes,
}

impl Observer for Watching {
    fn bytes_max(&self) -> usize {
        1000
    }

    fn observe(self: Box<Self>, reply: ObservedReply) {
        let frames = freshet::wire::frame::Frames::new(&reply.bytes).count();
        self.notes.lock().unwrap().push(format!("observed {frames} frames"));
    }
}

impl Answerers for Canned {
    type Answerer = Self;

    fn open(&self, _login: &Login) -> Self {
        self.clone()
    }
}

impl Answerer for Canned {
    fn look_up(&mut self, unit: &Unit<'_>, state: &SessionState) -> Option<Reply> {
        let settings = state.settings.as_ref().expect("certain");
        let zone = settings.value("TimeZone").expect("known");
        let path = settings.values.search_path.join(",");
        self.notes.lock().unwrap().push(format!("{:?} as {} in {zone} on {path}", unit.form, settings.role()));
        (unit.sql == b"SELECT hit").then(|| reply(unit, Answered::Hit))
    }

    async fn answer(&mut self, unit: &Unit<'_>, _state: &SessionState, _early: Option<&Arc<EarlyRows>>) -> Outcome {
        tokio::task::yield_now().await;
        let is_binary = unit.bind.is_some_and(|bind| format_at(bind.result_formats, 0) == 1);
        let is_unknown = is_binary && unit.sql.starts_with(b"SELECT canned FROM");
        if unit.sql.starts_with(b"SELECT canned") && !is_unknown {
            return Outcome::Local(reply(unit, Answered::Local));
        }
        let observer: Box<dyn Observer> = Box::new(Watching { notes: Arc::clone(&self.notes) });
        Outcome::Relay(Relay { observer: Some(observer), ..Relay::because(UpstreamReason::FirstRun) })
    }

    fn write_acknowledged(&mut self, what: Effect, _written: &Written) {
        self.notes.lock().unwrap().push(format!("acknowledged {what:?}"));
    }

    fn relayed(&mut self, _unit: &Relayed) {}

    fn configuration(&self) -> u64 {
        0
    }

    fn knows(&self, _: &str) -> bool {
        false
    }

    fn wants_settings(&self) -> bool {
        true
    }

    fn catalog_version(&self) -> u64 {
        0
    }

    fn catalog(&self) -> Option<Arc<freshet_engine::catalog::Catalog>> {
        None
    }

    async fn virtual_table(&mut self, _name: &str, _role: &str) -> Option<TextTable> {
        None
    }

    async fn sees_statistics(&mut self, _role: &str) -> bool {
        false
    }
}

/// One int4 column, one row: 42.
fn reply(unit: &Unit<'_>, route: Answered) -> Reply {
    let format = unit.bind.map_or(0, |bind| format_at(bind.result_formats, 0));
    let columns = |format: i16| {
        let field =
            Field { name: b"canned", table_oid: 0, attnum: 0, type_oid: 23, type_length: 4, typmod: -1, format };
        let mut out = Vec::new();
        write_row_description(&mut out, [field].into_iter());
        Bytes::from(out)
    };
    let mut rows = Vec::new();
    let value: &[u8] = if format == 1 { &[0, 0, 0, 42] } else { b"42" };
    write_data_row(&mut rows, 1, |out| write_value(out, Some(value)));
    write_command_complete(&mut rows, "SELECT 1");
    let mut parameters = Vec::new();
    write_parameter_description(&mut parameters, &[]);
    Reply {
        parameters: parameters.into(),
        statement_columns: columns(0),
        columns: columns(format),
        rows: vec![rows.into()],
        account: Account { route, rows: 1, ..Account::default() },
    }
}

struct Server {
    port: u16,
    notes: Notes,
    trigger: Arc<Trigger>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    fn start(url: &str) -> Self {
        let mut settings = Settings::default();
        settings.upstream.url = url.to_string();
        settings.listen.addresses = vec![ListenAddress::Tcp("127.0.0.1:0".to_string())];
        let notes = Notes::default();
        let canned = Canned { notes: Arc::clone(&notes) };
        let (trigger, _) = shutdown::channel();
        let trigger = Arc::new(trigger);
        let of_thread = Arc::clone(&trigger);
        let (report, port) = std::sync::mpsc::channel();
        let upstream = UpstreamAddress::parse(url).expect("an address");
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listeners = server::bind(&settings).await.expect("a free port");
                let address = listeners[0].address();
                report.send(address.rsplit_once(':').and_then(|(_, port)| port.parse().ok())).expect("awaited");
                let workers = Arc::new(Workers::start(1).expect("a thread"));
                let serving = server::serve(settings, upstream, listeners, of_thread, canned, Metrics::new(), workers);
                serving.await.expect("serves");
            });
        });
        let port = port.recv().expect("starts").expect("a port");
        Self { port, notes, trigger, thread: Some(thread) }
    }

    fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.trigger.advance(Phase::Draining);
        self.trigger.advance(Phase::Stopping);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn route(client: &mut RawClient) -> String {
    let last = client.query("SHOW freshet.last");
    let row = rows(&last).remove(0);
    [row[0].clone(), row[1].clone()].map(Option::unwrap_or_default).join(" ").trim().to_string()
}

#[test]
fn every_form_of_unit_gets_its_replies() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let server = Server::start(&cluster.url(&database));
    let mut client = RawClient::log_in(server.port, &database);
    let simple = client.query("SELECT canned");
    assert_eq!(tags(&simple), "TDCZ");
    assert_eq!(rows(&simple), [[Some("42".to_string())]]);
    assert_eq!(route(&mut client), "local");
    client.query("SELECT hit");
    assert_eq!(route(&mut client), "hit");
    let mut converse = |pieces: &[Vec<u8>]| {
        client.send(&pieces.concat());
        tags(&client.read_until('Z'))
    };
    let whole = [parse("", "SELECT canned"), bind("", "", &[], 1), describe('P', ""), execute("", 0), sync()];
    assert_eq!(converse(&whole), "12TDCZ");
    // A statement that upstream has, as pgx and tokio-postgres prepare it.
    assert_eq!(converse(&[parse("s", "SELECT 'canned'"), describe('S', "s"), sync()]), "1tTZ");
    assert_eq!(converse(&[bind("", "s", &[], 1), execute("", 0), sync()]), "2DCZ");
    // As lib/pq does it: prepared in one unit, run in the next.
    assert_eq!(converse(&[parse("", "SELECT canned"), describe('S', ""), sync()]), "1tTZ");
    assert_eq!(converse(&[bind("", "", &[], 0), execute("", 0), sync()]), "2DCZ");
    // As sqlx: with a Close behind.
    assert_eq!(converse(&[parse("", "SELECT canned"), sync()]), "1Z");
    assert_eq!(converse(&[bind("", "", &[], 0), execute("", 0), close('P', ""), sync()]), "2DC3Z");
    let notes = server.take_notes();
    assert!(notes[0].starts_with("Simple as postgres in "), "{notes:?}");
    assert!(notes[0].ends_with(" on pg_catalog,public"), "{notes:?}");
}

#[test]
fn what_was_answered_locally_leaves_upstream_as_the_client_believes() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let server = Server::start(&cluster.url(&database));
    let mut client = RawClient::log_in(server.port, &database);
    let mut converse = |pieces: &[Vec<u8>]| {
        client.send(&pieces.concat());
        client.read_until('Z')
    };
    // Parsed locally, then run in a way that only upstream answers (this one, with binary results).
    let local = "SELECT canned FROM (VALUES (7), (8)) v(canned)";
    assert_eq!(tags(&converse(&[parse("", local), describe('S', ""), sync()])), "1tTZ");
    let limited = converse(&[bind("", "", &[], 1), execute("", 1), sync()]);
    assert_eq!(tags(&limited), "2DsZ");
    assert_eq!(rows(&limited), [[Some("\0\0\0\u{7}".to_string())]]);
    // A local simple query ends the unnamed statement.
    converse(&[query("SELECT canned")]);
    let gone = converse(&[bind("", "", &[], 1), execute("", 1), sync()]);
    assert_eq!(tags(&gone), "EZ");
    assert!(String::from_utf8_lossy(&gone[0].body).contains("26000"), "{gone:?}");
    // In a transaction block the unnamed portal outlives its unit: at its end, it has no more rows.
    converse(&[query("BEGIN")]);
    assert_eq!(tags(&converse(&[parse("", local), bind("", "", &[], 0), execute("", 0), sync()])), "12DCZ");
    assert_eq!(tags(&converse(&[describe('P', ""), execute("", 0), sync()])), "TCZ");
    converse(&[query("COMMIT")]);
    // Nothing of freshet's own stays behind.
    let left = converse(&[query("SELECT count(*) FROM pg_prepared_statements")]);
    assert_eq!(rows(&left), [[Some("0".to_string())]]);
}

#[test]
fn transactions_are_served_until_they_write() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE t (a int)");
    let server = Server::start(&cluster.url(&database));
    let mut client = RawClient::log_in(server.port, &database);
    let mut after = |statements: &[&str]| {
        for statement in statements {
            client.query(statement);
        }
        client.query("SELECT canned AS c FROM (VALUES (1)) v(canned)");
        let taken = route(&mut client);
        client.query("ROLLBACK");
        taken
    };
    assert_eq!(after(&["BEGIN"]), "local");
    assert_eq!(after(&["BEGIN", "SAVEPOINT a"]), "local");
    assert_eq!(after(&["BEGIN", "INSERT INTO t VALUES (1)"]), "relay transaction_wrote");
    assert_eq!(after(&["BEGIN", "SELECT * FROM t FOR UPDATE"]), "relay transaction_wrote");
    assert_eq!(after(&["BEGIN ISOLATION LEVEL REPEATABLE READ"]), "relay isolation_level");
    assert_eq!(after(&["BEGIN; SELECT 1"]), "local");
    // Followed by the text, reported by upstream, or asked within the block.
    assert_eq!(after(&["BEGIN", "SET LOCAL TimeZone = 'Asia/Tokyo'"]), "local");
    assert!(server.take_notes().iter().any(|note| note.contains(" in Asia/Tokyo on ")));
    assert_eq!(after(&["BEGIN", "SET LOCAL search_path = pg_catalog"]), "local");
    assert!(server.take_notes().iter().any(|note| note.ends_with(" on pg_catalog")));
    assert_eq!(
        after(&["BEGIN", "SET LOCAL statement_timeout = 100", "SET LOCAL search_path = \"x\""]),
        "relay opaque_session: settings changed in this transaction"
    );
    assert_eq!(after(&["BEGIN", "DO $$ BEGIN END $$"]), "relay opaque_session: DO");
    assert_eq!(after(&["BEGIN", "SAVEPOINT a", "INSERT INTO t VALUES (1)", "ROLLBACK TO a"]), "local");
    // In one unit the write may stand before the savepoint, and stays.
    let wrote = "relay transaction_wrote";
    assert_eq!(after(&["BEGIN", "INSERT INTO t VALUES (1); SAVEPOINT a", "ROLLBACK TO a"]), wrote);
    assert_eq!(after(&["BEGIN; INSERT INTO t VALUES (1); SAVEPOINT a; SELECT 1", "ROLLBACK TO a"]), wrote);
    assert_eq!(after(&["BEGIN", "SAVEPOINT a", "INSERT INTO t VALUES (1); SAVEPOINT b", "ROLLBACK TO b"]), wrote);
    assert_eq!(after(&["BEGIN", "SAVEPOINT a", "INSERT INTO t VALUES (1); SAVEPOINT b", "ROLLBACK TO a"]), "local");
    assert_eq!(after(&["BEGIN; SAVEPOINT a", "INSERT INTO t VALUES (1)", "ROLLBACK TO a"]), "local");
    assert_eq!(after(&["BEGIN", "SET LOCAL work_mem = '8MB'"]), "local");
    assert_eq!(after(&["BEGIN", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"]), "relay isolation_level");
    server.take_notes();
    assert_eq!(after(&["SET TimeZone = 'Asia/Tokyo'"]), "local");
    assert!(server.take_notes().iter().any(|note| note.contains(" in Asia/Tokyo on ")));
    assert_eq!(after(&["BEGIN", "SET TimeZone = 'UTC'", "ROLLBACK"]), "local");
    assert!(server.take_notes().iter().any(|note| note.contains(" in Asia/Tokyo on ")));
    assert_eq!(after(&["SET default_transaction_isolation = 'serializable'", "BEGIN"]), "relay isolation_level");
    assert_eq!(after(&["DISCARD ALL"]), "local");
    assert_eq!(after(&["CREATE TEMP TABLE t (a int)"]), "relay opaque_session: temporary tables");
    assert_eq!(after(&["DISCARD ALL"]), "local");
    assert_eq!(after(&["SET client_encoding = 'LATIN1'"]), "relay session_setting: client_encoding = LATIN1");
}

#[test]
fn acknowledged_writes_and_observed_replies_are_told() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE t (a int)");
    let server = Server::start(&cluster.url(&database));
    let mut client = RawClient::log_in(server.port, &database);
    client.query("SELECT 1 AS one");
    let notes = server.take_notes();
    assert!(notes.contains(&"observed 4 frames".to_string()), "{notes:?}");
    for (statements, expected) in [
        (&["INSERT INTO t VALUES (1)"][..], true),
        (&["BEGIN", "INSERT INTO t VALUES (1)", "COMMIT"], true),
        (&["DO $$ BEGIN NULL; END $$"], true),
        (&["SELECT * FROM t", "BEGIN", "SELECT 1 AS one", "COMMIT"], false),
    ] {
        server.take_notes();
        for statement in statements {
            client.query(statement);
        }
        let told = server.take_notes().iter().any(|note| note.starts_with("acknowledged"));
        assert_eq!(told, expected, "{statements:?}");
    }
}
