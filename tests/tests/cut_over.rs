//! Upstream's address is given to another server, while the old one lives or after it: who gets to the new one is not answered from the
//! rows of the old one, and the mirror follows.

use std::net::SocketAddr;

use freshet_config::TableChoice;
use freshet_tests::cluster::Cluster;
use freshet_tests::forward::Forward;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{settle, until};

const READ: &str = "SELECT count(*) FROM t";

fn start(upstream: SocketAddr) -> Freshet {
    let freshet = Freshet::start(&format!("postgres://postgres@{upstream}/moved"), |settings| {
        settings.mirror.tables = TableChoice::List(vec!["t".into()]);
    });
    freshet.wait_until_mirrored("moved", &["public.t"]);
    freshet
}

fn count(client: &mut RawClient) -> String {
    let reply = client.simple(READ).expect("answers");
    assert_eq!(reply.error(), None);
    reply.text()
}

#[test]
fn who_is_at_another_server_is_not_answered_from_the_old_one() {
    let (old, new) = (Cluster::start(&[]), Cluster::start(&[]));
    for server in [&old, &new] {
        server.psql("postgres", "CREATE DATABASE moved");
        server.psql("moved", "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
    }
    let way = Forward::to(old.address());
    let freshet = start(way.address);
    let connect = || RawClient::connect(freshet.address(), "postgres", "moved").expect("connects");
    let mut before = connect();
    settle(&mut before, READ);
    way.lead_to(new.address());
    let mut after = connect();
    for written in 2..5 {
        let reply = after.simple(&format!("INSERT INTO t VALUES ({written})")).expect("answers");
        assert_eq!(reply.error(), None);
        assert_eq!(count(&mut after), written.to_string(), "its own write");
    }
    until("answered from the new server's rows", || {
        assert_eq!(count(&mut after), "4");
        after.last().expect("answers").0 != "relay"
    });
    new.psql("moved", "INSERT INTO t VALUES (5)");
    assert_eq!(count(&mut after), "5");
    // Who has stayed where it was sees what is there.
    assert_eq!(count(&mut before), "1");
    assert_eq!(before.last().expect("answers"), ("relay".to_string(), "other_server".to_string()));
}

/// It has the system identifier of its primary and, up to a point, its log: what the primary was asked to keep after that is lost, and
/// nobody may be shown it.
#[test]
fn a_standby_that_was_promoted_is_another_server() {
    let primary = Cluster::start(&[]);
    primary.psql("postgres", "CREATE DATABASE moved");
    primary.psql("moved", "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
    let standby = primary.standby();
    let way = Forward::to(primary.address());
    let freshet = start(way.address);
    let connect = || RawClient::connect(freshet.address(), "postgres", "moved").expect("connects");
    let mut before = connect();
    settle(&mut before, READ);
    let system = "SELECT system_identifier FROM pg_control_system()";
    assert_eq!(standby.psql("moved", system), primary.psql("moved", system));
    // What freshet makes on the primary gets there, too.
    until("the standby has followed", || standby.psql("moved", "SELECT count(*) FROM pg_publication_rel") == "1");

    standby.stop();
    primary.psql("moved", "INSERT INTO t SELECT generate_series(2, 9)");
    until("the mirror has what will be lost", || {
        assert_eq!(count(&mut before), "9");
        before.last().expect("answers").0 != "relay"
    });
    primary.stop();
    standby.restart();
    assert_eq!(standby.psql("postgres", "SELECT pg_promote()"), "t");
    let timeline = "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)";
    assert_eq!(standby.psql("postgres", timeline), "00000002");
    way.lead_to(standby.address());

    let mut after = connect();
    for written in 2..5 {
        standby.psql("moved", &format!("INSERT INTO t VALUES ({})", 100 + written));
        assert_eq!(count(&mut after), written.to_string(), "{:?}", after.last());
    }
    until("answered from the rows of the promoted server", || {
        assert_eq!(count(&mut after), "4");
        after.last().expect("answers").0 != "relay"
    });
    standby.psql("moved", "INSERT INTO t VALUES (200)");
    assert_eq!(count(&mut after), "5");
    // The publication that came by the log has been made anew.
    let made = "SELECT (SELECT count(*) FROM pg_publication), (SELECT count(*) FROM pg_replication_slots)";
    assert_eq!(standby.psql("moved", made), "1|1");
}
