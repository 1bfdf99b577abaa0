//! Accepts clients on all listen addresses, within the limit of sessions, and starts a task for each.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use freshet_config::ListenAddress;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream, lookup_host};

use crate::net::Line;

/// Connections that wait to be accepted, as tokio has it.
const BACKLOG: i32 = 1024;
/// The port in the name of a Unix socket, as libpq looks for it.
const SOCKET_PORT: u16 = 5433;

/// A bound listen address.
#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    /// The path is removed when the listener goes, and before it does.
    Unix(SocketFile, UnixListener),
}

/// Removes the socket's file at the end, unless another stands in its place by then: PostgreSQL, for one, takes the name whoever has it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    made: Option<(u64, u64)>,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.made.is_some() && self.made == identity(&self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Device and inode of a socket; None: there is none.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::symlink_metadata(path).ok()?;
    found.file_type().is_socket().then(|| (found.dev(), found.ino()))
}

impl Listener {
    pub async fn bind(address: &ListenAddress) -> io::Result<Self> {
        match address {
            ListenAddress::Tcp(address) => Ok(Self::Tcp(bind_tcp(address).await?)),
            ListenAddress::Directory(directory) => {
                let path = socket_file(directory);
                remove_stale(&path).await?;
                let listener = UnixListener::bind(&path)?;
                // As PostgreSQL's: whoever may enter the directory may connect, and upstream asks for the password.
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777))?;
                let made = identity(&path);
                Ok(Self::Unix(SocketFile { path, made }, listener))
            }
        }
    }

    /// For logs, and for tests that let the system choose the port.
    pub fn address(&self) -> String {
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or_else(|_| "unknown".to_string(), |a| a.to_string()),
            Self::Unix(file, _) => file.path.display().to_string(),
        }
    }

    pub async fn accept(&self, keepalive: &TcpKeepalive) -> io::Result<Line> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _): (TcpStream, _) = listener.accept().await?;
                Line::tcp(stream, keepalive)
            }
            Self::Unix(_, listener) => {
                let (stream, _): (UnixStream, _) = listener.accept().await?;
                Ok(Line::Unix(stream))
            }
        }
    }
}

/// The first address of the name that can be listened on. One of IPv6 is for IPv6 alone, as with PostgreSQL (pqcomm.c), so that `0.0.0.0`
/// may stand beside `[::]`.
async fn bind_tcp(address: &str) -> io::Result<TcpListener> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for at in lookup_host(address).await? {
        match bind_at(at) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn bind_at(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// `.s.PGSQL.PORT` in a directory, or the file itself where another port is wanted.
pub fn socket_file(path: &Path) -> PathBuf {
    let is_file = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(".s.PGSQL."));
    if is_file { path.to_path_buf() } else { path.join(format!(".s.PGSQL.{SOCKET_PORT}")) }
}

/// A socket file that nobody listens on is left over from a crash.
async fn remove_stale(path: &Path) -> io::Result<()> {
    match UnixStream::connect(path).await {
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        // What is no socket is refused, too, and is somebody's.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && identity(path).is_some() => {
            std::fs::remove_file(path)
        }
        Err(_) => Ok(()),
    }
}

/// Counts sessions against the limit; a place is given back when it is dropped.
#[derive(Clone, Debug)]
pub struct Places {
    semaphore: Arc<tokio::sync::Semaphore>,
}

impl Places {
    pub fn new(sessions_max: usize) -> Self {
        Self { semaphore: Arc::new(tokio::sync::Semaphore::new(sessions_max)) }
    }

    pub fn take(&self) -> Option<tokio::sync::OwnedSemaphorePermit> {
        Arc::clone(&self.semaphore).try_acquire_owned().ok()
    }
}
