//! An upstream that leads through a pooler: it knows no replication, and takes who asks for that for another client.

use std::io::{Read, Write, copy};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use freshet_config::{Settings, TableChoice};
use freshet_tests::cluster::Cluster;

/// Parameters of a start-up message that poolers are told to ignore (`ignore_startup_parameters`).
const IGNORED: [&[u8]; 2] = [b"replication", b"options"];

/// Listens before `server` until the test ends.
fn pooler(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || passed_on(client, server));
        }
    });
    address
}

fn passed_on(mut client: TcpStream, server: SocketAddr) -> std::io::Result<()> {
    let mut server = TcpStream::connect(server)?;
    let (head, body) = loop {
        let mut head = [0; 8];
        client.read_exact(&mut head)?;
        let mut body = vec![0; i32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize - head.len()];
        client.read_exact(&mut body)?;
        // Protocol 3; what else there is are requests for encryption, and cancelling.
        if head[4..6] == [0, 3] {
            break (head, body);
        }
        client.write_all(b"N")?;
    };
    let texts: Vec<&[u8]> = body.split(|byte| *byte == 0).take_while(|text| !text.is_empty()).collect();
    let mut kept = Vec::new();
    for pair in texts.chunks_exact(2).filter(|pair| !IGNORED.contains(&pair[0])) {
        pair.iter().for_each(|text| kept.extend([text, &b"\0"[..]].concat()));
    }
    kept.push(0);
    server.write_all(&((head.len() + kept.len()) as i32).to_be_bytes())?;
    server.write_all(&head[4..])?;
    server.write_all(&kept)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    let up = thread::spawn(move || {
        let _ = copy(&mut from_client, &mut to_server);
        to_server.shutdown(Shutdown::Write)
    });
    let _ = copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Both);
    up.join().unwrap_or(Ok(()))
}

#[test]
fn check_says_that_replication_does_not_pass_a_pooler() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE t (id int PRIMARY KEY)");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut settings = Settings::default();
    settings.upstream.url = cluster.url(&database);
    let check = |settings: &Settings| runtime.block_on(freshet::check::check(settings)).expect("upstream answers");
    let report = check(&settings);
    assert!(report.is_fine && report.text.contains("ready      wal_level"), "{}", report.text);
    let slots = "SELECT count(*) FROM pg_stat_replication";
    assert_eq!(cluster.psql(&database, slots), "0", "nothing is left");

    let through = pooler(cluster.address());
    let (direct, pooled) = (format!(":{}/", cluster.port()), format!(":{}/", through.port()));
    settings.upstream.url = settings.upstream.url.replace(&direct, &pooled);
    let report = check(&settings);
    let why =
        "MISSING    replication\n           why:  an ordinary session answers where one for replication was asked for";
    assert!(!report.is_fine && report.text.contains(why), "{}", report.text);
    assert!(report.text.contains("a pooler belongs in front of freshet"), "{}", report.text);
    // A plain relay needs none.
    settings.mirror.tables = TableChoice::None;
    assert!(!check(&settings).text.contains("MISSING    replication"));
}

/// What keeps a mirror from starting, or holds its start up, is told beforehand.
#[test]
fn what_is_in_the_way_of_a_mirror_is_told_beforehand() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let setup = "CREATE TABLE t (id int PRIMARY KEY)";
    let (fit, unfit) = (Cluster::start(&["max_prepared_transactions=2"]), Cluster::start(&["wal_level=replica"]));
    let settings = |cluster: &Cluster| {
        let database = cluster.database();
        cluster.psql(&database, setup);
        let mut settings = Settings::default();
        settings.upstream.url = cluster.url(&database);
        (settings, database)
    };
    let explain = |settings: &Settings| {
        runtime.block_on(freshet::check::explain(settings, "SELECT count(*) FROM t")).expect("answers").text
    };
    let (of_unfit, _) = settings(&unfit);
    let told = explain(&of_unfit);
    assert!(told.starts_with("route: relay\nreason: nothing is mirrored: ") && told.contains("wal_level"), "{told}");
    let (of_fit, database) = settings(&fit);
    assert!(explain(&of_fit).starts_with("route: local"), "{}", explain(&of_fit));
    let check = || runtime.block_on(freshet::check::check(&of_fit)).expect("answers").text;
    assert!(!check().contains("open transactions"), "{}", check());
    fit.psql(&database, "BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'left over'");
    let told = check();
    assert!(told.contains("open transactions") && told.contains("prepared transaction 'left over'"), "{told}");
    fit.psql(&database, "ROLLBACK PREPARED 'left over'");
}
