//! No password is in the log, at whatever level, nor what proves that a client knows it. freshet runs in a process of its
//! own, whose standard error is the log.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use freshet::wire::frame::Frames;
use freshet_config::ListenAddress;
use freshet_tests::cluster::{Cluster, LOGIN_CLEARTEXT, LOGIN_MD5, LOGIN_SCRAM, free_port};
use freshet_tests::freshet::Freshet;
use freshet_tests::programs::psql;
use freshet_tests::world::until;

/// Where the process of its own finds what it is to serve.
const PORT: &str = "FRESHET_TEST_PORT";
const UPSTREAM: &str = "FRESHET_TEST_UPSTREAM";

#[test]
#[ignore = "another test runs it, in a process of its own"]
fn freshet_serves_until_its_input_ends() {
    let told = |name| std::env::var(name).expect("told by the other test");
    let address = ListenAddress::Tcp(format!("127.0.0.1:{}", told(PORT)));
    let _freshet = Freshet::start(&told(UPSTREAM), |settings| settings.listen.addresses = vec![address]);
    io::stdin().read_to_end(&mut Vec::new()).expect("a pipe");
}

/// Its process, and its port.
fn serve(upstream: &str, log: &Path) -> (Child, u16) {
    let port = free_port();
    let process = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "freshet_serves_until_its_input_ends", "--ignored", "--nocapture"])
        .env(PORT, port.to_string())
        .env(UPSTREAM, upstream)
        .env("FRESHET_TEST_LOG", "trace")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(File::create(log).expect("a file"))
        .spawn()
        .expect("this program runs");
    until("freshet listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    (process, port)
}

/// A line to `port` that can be listened in on: its own port, and what its client will have said.
fn tapped(port: u16) -> (u16, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let tap = listener.local_addr().expect("bound").port();
    let listening = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        let mut server = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
        let mut to_client = client.try_clone().expect("a file descriptor");
        let mut from_server = server.try_clone().expect("a file descriptor");
        let answers = std::thread::spawn(move || {
            let _ = io::copy(&mut from_server, &mut to_client);
            let _ = to_client.shutdown(Shutdown::Both);
        });
        let (mut said, mut space) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = client.read(&mut space) {
            said.extend_from_slice(&space[..count]);
            let _ = server.write_all(&space[..count]);
        }
        let _ = server.shutdown(Shutdown::Both);
        answers.join().expect("no panic");
        said
    });
    (tap, listening)
}

/// psql's answer to a statement, and what it sent for the password.
fn ask(port: u16, database: &str, role: &str, password: &str, sql: &str) -> (Result<String, String>, String) {
    let (tap, listening) = tapped(port);
    let connection = format!(
        "host=127.0.0.1 port={tap} user={role} password={password} dbname={database} connect_timeout=20
         sslmode=disable gssencmode=disable"
    );
    let outcome = psql(&connection, sql);
    let said = listening.join().expect("no panic");
    let start_up = u32::from_be_bytes(said[..4].try_into().expect("a length")) as usize;
    let answers = Frames::new(&said[start_up..]).filter(|frame| frame.tag == b'p');
    let last = String::from_utf8_lossy(answers.last().expect("an answer").body).into_owned();
    let proof = last.trim_end_matches('\0').rsplit(",p=").next().unwrap_or_default().to_string();
    (outcome, proof)
}

/// The forms in which a log may have a text's bytes.
fn forms(secret: &str) -> [String; 3] {
    let listed = format!("{:?}", secret.as_bytes());
    let hex = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    [secret.to_string(), listed[1..listed.len() - 1].to_string(), hex]
}

#[test]
fn a_log_of_everything_has_neither_a_password_nor_its_proof() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    let roles = [LOGIN_CLEARTEXT, LOGIN_MD5, LOGIN_SCRAM];
    for role in roles {
        let method = if role == LOGIN_MD5 { "md5" } else { "scram-sha-256" };
        let alter = format!("SET password_encryption = '{method}'; ALTER ROLE {role} PASSWORD 'right-{role}'");
        cluster.psql("postgres", &alter);
    }
    cluster.psql(&database, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    // freshet itself logs in with a password, too, on all its connections.
    let upstream = format!("postgres://{LOGIN_SCRAM}:right-{LOGIN_SCRAM}@127.0.0.1:{}/{database}", cluster.port());
    let (mut process, port) = serve(&upstream, &log);
    let mut secrets = Vec::new();
    for role in roles {
        let (right, wrong) = (format!("right-{role}"), format!("wrong-{role}"));
        let (outcome, proof) = ask(port, &database, role, &right, "SELECT current_user");
        assert_eq!(outcome.as_deref(), Ok(role));
        let is_proof = match role {
            LOGIN_CLEARTEXT => proof == right,
            LOGIN_MD5 => proof.starts_with("md5") && proof.len() == 35,
            _ => proof.ends_with('=') && proof.len() == 44,
        };
        assert!(is_proof, "{role}: {proof}");
        let (outcome, wrong_proof) = ask(port, &database, role, &wrong, "SELECT current_user");
        assert!(outcome.expect_err("refused").contains("password authentication failed"));
        secrets.extend([right, wrong, proof, wrong_proof]);
    }
    let password = format!("right-{LOGIN_SCRAM}");
    until("the table is mirrored", || {
        let mut answer = |sql| {
            let (outcome, proof) = ask(port, &database, LOGIN_SCRAM, &password, sql);
            secrets.push(proof);
            outcome.expect("an answer")
        };
        answer("SELECT count(*) FROM t");
        answer("SELECT state FROM freshet.tables") == "mirrored"
    });
    // Waiting closes its input.
    assert!(process.wait().expect("it runs").success());
    let log = String::from_utf8_lossy(&std::fs::read(log).expect("a file")).into_owned();
    assert!(log.contains("listening") && log.contains("start-up ended"), "what is told at all levels: {log}");
    for secret in secrets {
        let found = forms(&secret).into_iter().find(|form| log.contains(form));
        assert_eq!(found, None, "{log}");
    }
}
