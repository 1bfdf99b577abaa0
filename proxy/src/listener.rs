//! Accepts clients on all listen addresses, within the limit of sessions, and starts a task for each.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use freshet_config::ListenAddress;
use socket2::TcpKeepalive;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::net::Line;

/// The port in the name of a Unix socket, as libpq looks for it.
const SOCKET_PORT: u16 = 5433;

/// A bound listen address.
#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    /// The path is removed when the listener goes.
    Unix(UnixListener, SocketFile),
}

/// Removes the socket's file at the end.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Listener {
    pub async fn bind(address: &ListenAddress) -> io::Result<Self> {
        match address {
            ListenAddress::Tcp(address) => Ok(Self::Tcp(TcpListener::bind(address.as_str()).await?)),
            ListenAddress::Directory(directory) => {
                let path = socket_file(directory);
                remove_stale(&path).await?;
                let listener = UnixListener::bind(&path)?;
                // As PostgreSQL's: whoever may enter the directory may connect, and upstream asks for the password.
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777))?;
                Ok(Self::Unix(listener, SocketFile { path }))
            }
        }
    }

    /// For logs, and for tests that let the system choose the port.
    pub fn address(&self) -> String {
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or_else(|_| "unknown".to_string(), |a| a.to_string()),
            Self::Unix(_, file) => file.path.display().to_string(),
        }
    }

    pub async fn accept(&self, keepalive: &TcpKeepalive) -> io::Result<Line> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _): (TcpStream, _) = listener.accept().await?;
                Line::tcp(stream, keepalive)
            }
            Self::Unix(listener, _) => {
                let (stream, _): (UnixStream, _) = listener.accept().await?;
                Ok(Line::Unix(stream))
            }
        }
    }
}

/// `.s.PGSQL.PORT` in a directory, or the file itself where another port is wanted.
fn socket_file(path: &Path) -> PathBuf {
    let is_file = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(".s.PGSQL."));
    if is_file { path.to_path_buf() } else { path.join(format!(".s.PGSQL.{SOCKET_PORT}")) }
}

/// A socket file that nobody listens on is left over from a crash.
async fn remove_stale(path: &Path) -> io::Result<()> {
    match UnixStream::connect(path).await {
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
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
