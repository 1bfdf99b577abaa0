//! An upstream of our own, for what PostgreSQL does not say or do: each of its first connections goes by a script.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use freshet_config::{Settings, TableChoice};

use crate::client::message;
use crate::freshet::Freshet;

/// What a connection does after the start-up packet; its result is handed out in the end, and the line is closed.
pub type Script = Box<dyn FnOnce(&mut TcpStream) -> Vec<u8> + Send>;

pub struct Fake {
    port: u16,
    /// Of each connection the start-up packet, and the script's result.
    thread: JoinHandle<Vec<(Vec<u8>, Vec<u8>)>>,
}

/// Answers the first connection that says something by `script`.
pub fn fake(script: impl FnOnce(&mut TcpStream) -> Vec<u8> + Send + 'static) -> Fake {
    fakes(vec![Box::new(script)])
}

/// Answers as many connections that say something, each by its script, all at the same time.
pub fn fakes(scripts: Vec<Script>) -> Fake {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let thread = std::thread::spawn(move || {
        let begin = |script: Script| {
            let (packet, mut stream) = accept(&listener);
            std::thread::spawn(move || (packet, script(&mut stream)))
        };
        let begun: Vec<_> = scripts.into_iter().map(begin).collect();
        begun.into_iter().map(|connection| connection.join().expect("no panic")).collect()
    });
    Fake { port, thread }
}

/// The next connection that says something, and its start-up packet.
fn accept(listener: &TcpListener) -> (Vec<u8>, TcpStream) {
    loop {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut length = [0; 4];
        if stream.read_exact(&mut length).is_err() {
            continue;
        }
        let mut packet = length.to_vec();
        packet.resize(u32::from_be_bytes(length) as usize, 0);
        stream.read_exact(&mut packet[4..]).expect("all of it");
        return (packet, stream);
    }
}

/// Lets the client in, whoever it is.
pub fn welcome() -> Vec<u8> {
    [message(b'R', &[0; 4]), message(b'Z', b"I")].concat()
}

impl Fake {
    /// A plain relay in front of it.
    pub fn relay(&self) -> Freshet {
        self.relay_with(|_| {})
    }

    pub fn relay_with(&self, change: impl FnOnce(&mut Settings)) -> Freshet {
        let url = format!("postgres://u@127.0.0.1:{}/d?sslmode=disable", self.port);
        Freshet::start(&url, |settings| {
            settings.mirror.tables = TableChoice::None;
            change(settings);
        })
    }

    /// When all scripts have come to their ends: of each the start-up packet, and the result.
    pub fn ended(self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.thread.join().expect("no panic")
    }
}
