//! Upstream's address is given to another server while the old one lives: who gets to the new one is not answered from the rows of
//! the old one, and the mirror follows.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use freshet_config::TableChoice;
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{settle, until};

const READ: &str = "SELECT count(*) FROM t";

/// Forwards each new connection to where the address leads by then.
fn forward(target: Arc<Mutex<SocketAddr>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = *target.lock().expect("not poisoned");
            let Ok(server) = TcpStream::connect(server) else { continue };
            let (Ok(from_server), Ok(to_client)) = (server.try_clone(), client.try_clone()) else { continue };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            std::thread::spawn(move || pump(from_server, to_client));
            std::thread::spawn(move || pump(client, server));
        }
    });
    address
}

fn pump(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
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
    let target = Arc::new(Mutex::new(old.address()));
    let address = forward(Arc::clone(&target));
    let freshet = Freshet::start(&format!("postgres://postgres@{address}/moved"), |settings| {
        settings.mirror.tables = TableChoice::List(vec!["t".into()]);
    });
    freshet.wait_until_mirrored("moved", &["public.t"]);
    let connect = || RawClient::connect(freshet.address(), "postgres", "moved").expect("connects");
    let mut before = connect();
    settle(&mut before, READ);
    *target.lock().expect("not poisoned") = new.address();
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
