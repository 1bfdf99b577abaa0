//! The small pool of freshet's own ordinary connections: catalog look-ups, privileges, publication changes.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, Timeouts};
use tokio_postgres::NoTls;

use crate::upstream::UpstreamError;
use crate::upstream::address::UpstreamAddress;

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
        // A role's own settings must not change what freshet's questions mean, nor how long they may block others.
        config.options("-c search_path=pg_catalog -c statement_timeout=30s -c lock_timeout=3s -c TimeZone=UTC");
        let manager = Manager::from_config(config, NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
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

    /// Ends every idle connection and refuses new ones.
    pub fn close(&self) {
        self.pool.close();
    }
}

impl From<tokio_postgres::Error> for UpstreamError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(server) = error.as_db_error() else {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            return Self::Io(std::io::Error::other(format!("{error}{cause}")));
        };
        Self::Server(crate::upstream::ServerError {
            severity: server.parsed_severity().map_or_else(|| server.severity().to_string(), |s| s.to_string()),
            code: server.code().code().to_string(),
            message: server.message().to_string(),
            detail: server.detail().unwrap_or_default().to_string(),
            hint: server.hint().unwrap_or_default().to_string(),
        })
    }
}
