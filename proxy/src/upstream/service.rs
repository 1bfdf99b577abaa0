//! The small pool of freshet's own ordinary connections: catalog look-ups, privileges, publication changes.

use std::pin::Pin;
use std::time::Duration;

use deadpool_postgres::{Connect, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, Timeouts};
use tokio::io::Empty;
use tokio::task::JoinHandle;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::{Client, Config, Connection};

use crate::net::Line;
use crate::upstream::UpstreamError;
use crate::upstream::address::UpstreamAddress;
use crate::upstream::connect::open_by;
use crate::upstream::connection::end_point_digest;
use crate::upstream::security::{self, Attempt};

/// How long a question waits for a free connection before it is given up.
const WAIT: Duration = Duration::from_secs(5);

/// Cheap to clone. Connections are opened when first needed.
#[derive(Clone)]
pub struct ServicePool {
    pool: Pool,
}

impl ServicePool {
    pub fn new(address: &UpstreamAddress, connections_max: usize) -> Result<Self, UpstreamError> {
        let mut config = address.to_config("freshet service");
        config.channel_binding(match address.security.channel_binding {
            security::ChannelBinding::Disable => tokio_postgres::config::ChannelBinding::Disable,
            security::ChannelBinding::Prefer => tokio_postgres::config::ChannelBinding::Prefer,
            security::ChannelBinding::Require => tokio_postgres::config::ChannelBinding::Require,
        });
        // A role's own settings must not change what freshet's questions mean, nor how long they may block others: not even if this host
        // is lost while a transaction holds locks.
        config.options(
            "-c search_path=pg_catalog -c statement_timeout=30s -c lock_timeout=3s -c TimeZone=UTC \
                        -c idle_in_transaction_session_timeout=60s -c tcp_user_timeout=60s \
                        -c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3 \
                        -c synchronous_commit=local -c default_transaction_isolation=read\\ committed \
                        -c default_transaction_read_only=off",
        );
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(config, Dialer { address: address.clone() }, recycling);
        let timeouts = Timeouts { wait: Some(WAIT), create: Some(address.connect_timeout), recycle: Some(WAIT) };
        let pool = Pool::builder(manager)
            .max_size(connections_max)
            .runtime(Runtime::Tokio1)
            .timeouts(timeouts)
            .build()
            .map_err(|error| UpstreamError::Address(error.to_string()))?;
        Ok(Self { pool })
    }

    pub async fn connection(&self) -> Result<Object, UpstreamError> {
        self.pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => error.into(),
            PoolError::Timeout(_) => UpstreamError::Timeout("connection pool"),
            PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
                UpstreamError::Protocol("connection pool closed")
            }
        })
    }

    /// Ends every idle connection; new ones are opened when needed.
    pub fn renew(&self) {
        self.pool.retain(|_, _| false);
    }

    /// Ends every idle connection and refuses new ones.
    pub fn close(&self) {
        self.pool.close();
    }
}

/// Opens the pool's connections as freshet opens all its others.
struct Dialer {
    address: UpstreamAddress,
}

type Opened<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Connect for Dialer {
    fn connect(&self, config: &Config) -> Opened<Result<(Client, JoinHandle<()>), tokio_postgres::Error>> {
        let (address, mut config) = (self.address.clone(), config.clone());
        // For tokio-postgres every line is one that its TLS opens, with nothing to negotiate first.
        config.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
        Box::pin(async move {
            let mut attempts = address.attempts().iter().copied();
            let mut attempt = attempts.next().unwrap_or(Attempt::Plain);
            let mut refused = None;
            loop {
                let opener = Opener { address: address.clone(), attempt };
                let error = match config.connect_raw(tokio::io::empty(), opener).await {
                    Ok(opened) => return Ok(begin(opened)),
                    Err(error) => error,
                };
                match (UpstreamError::from(error), attempts.next()) {
                    (UpstreamError::Server(error), Some(other)) if error.code == NOT_ADMITTED => {
                        (refused, attempt) = (Some(error), other);
                    }
                    (error, _) => {
                        let told = Told(error.after(refused));
                        return config.connect_raw(tokio::io::empty(), told).await.map(begin);
                    }
                }
            }
        })
    }
}

fn begin((client, connection): (Client, Connection<Empty, Line>)) -> (Client, JoinHandle<()>) {
    // An error ends the client's calls as well, which tell it.
    (client, tokio::spawn(async move { drop(connection.await) }))
}

/// 28000: no pg_hba.conf entry for this kind of line.
const NOT_ADMITTED: &str = "28000";

/// A line that is not opened: tokio-postgres makes its errors itself, and carries this one.
struct Told(UpstreamError);

impl TlsConnect<Empty> for Told {
    type Stream = Line;
    type Error = std::io::Error;
    type Future = std::future::Ready<std::io::Result<Line>>;

    fn connect(self, _: Empty) -> Self::Future {
        std::future::ready(Err(match self.0 {
            UpstreamError::Io(error) => error,
            error => std::io::Error::other(error),
        }))
    }
}

struct Opener {
    address: UpstreamAddress,
    attempt: Attempt,
}

impl TlsConnect<Empty> for Opener {
    type Stream = Line;
    type Error = std::io::Error;
    type Future = Opened<std::io::Result<Line>>;

    fn connect(self, _: Empty) -> Self::Future {
        Box::pin(async move { open_by(&self.address, self.attempt, self.address.connect_timeout).await })
    }
}

impl TlsStream for Line {
    fn channel_binding(&self) -> ChannelBinding {
        end_point_digest(self).map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

const NO_PASSWORD: &str =
    "upstream asks for a password, and upstream.url has none; it may stand there, or in FRESHET_UPSTREAM_URL";
/// So says PgBouncer.
const TAKES_NO_OPTIONS: &str =
    "upstream.url leads to a pooler; let it lead to PostgreSQL itself: a pooler belongs in front of freshet";

impl From<tokio_postgres::Error> for UpstreamError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(server) = error.as_db_error() else {
            let cause = std::error::Error::source(&error);
            // The line could not be opened: tokio-postgres takes that for a failure of its TLS.
            if let Some(error) = cause.and_then(|cause| cause.downcast_ref::<std::io::Error>()) {
                let told = error.get_ref().and_then(|told| told.downcast_ref::<Self>());
                return match told {
                    Some(Self::Server(told)) => Self::Server(told.clone()),
                    Some(Self::Authentication(told)) => Self::Authentication(told.clone()),
                    _ => Self::Io(std::io::Error::new(error.kind(), error.to_string())),
                };
            }
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            if cause.ends_with("password missing") {
                return Self::Authentication(NO_PASSWORD.to_owned());
            }
            return Self::Io(std::io::Error::other(format!("{error}{cause}")));
        };
        Self::Server(crate::upstream::ServerError {
            severity: server.parsed_severity().map_or_else(|| server.severity().to_string(), |s| s.to_string()),
            code: server.code().code().to_string(),
            message: server.message().to_string(),
            detail: server.detail().unwrap_or_default().to_string(),
            hint: match server.message().starts_with("unsupported startup parameter") {
                true => TAKES_NO_OPTIONS.to_owned(),
                false => server.hint().unwrap_or_default().to_string(),
            },
        })
    }
}
