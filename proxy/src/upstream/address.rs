//! Where upstream is and as whom freshet itself logs in: `postgres://user:password@host:port/database`.
//!
//! URLs are read by tokio-postgres, so that the forms are those that people know from libpq
//! (`?host=/var/run/postgresql` for a socket directory, percent-encoding); what they say of TLS is read by
//! [`security`](crate::upstream::security).

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use socket2::TcpKeepalive;
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode, TargetSessionAttrs};

use crate::upstream::UpstreamError;
use crate::upstream::security::{self, Attempt, Security};
use crate::upstream::url;

/// The line to take.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    Tcp {
        host: String,
        port: u16,
    },
    /// The socket file itself, `directory/.s.PGSQL.port`.
    Unix(PathBuf),
}

/// One upstream database and the role that freshet's own connections use.
#[derive(Clone)]
pub struct UpstreamAddress {
    pub endpoint: Endpoint,
    pub user: String,
    pub password: Option<Vec<u8>>,
    pub database: String,
    pub connect_timeout: Duration,
    pub security: Security,
    pub keepalive: TcpKeepalive,
    /// `hostaddr`: where to connect, while the host's name is what the certificate must be for.
    pub host_address: Option<IpAddr>,
    parsed: tokio_postgres::Config,
}

impl UpstreamAddress {
    /// Reads a URL and the files it names.
    pub fn parse(url: &str) -> Result<Self, UpstreamError> {
        if let Some(what) = url::unescaped(url) {
            return Err(UpstreamError::Address(what));
        }
        let (rest, of_security) = security::split(url);
        let parsed: tokio_postgres::Config = rest.parse().map_err(|error: tokio_postgres::Error| {
            UpstreamError::Address(url::what_is_wrong(url).unwrap_or_else(|| error.to_string()))
        })?;
        is_one_server(&parsed)?;
        let port = parsed.get_ports().first().copied().unwrap_or(5432);
        let host_address = parsed.get_hostaddrs().first().copied();
        let endpoint = match parsed.get_hosts().first() {
            None => Endpoint::Tcp { host: host_address.map_or("127.0.0.1".into(), |at| at.to_string()), port },
            Some(Host::Tcp(host)) => Endpoint::Tcp { host: host.clone(), port },
            #[cfg(unix)]
            Some(Host::Unix(directory)) => Endpoint::Unix(directory.join(format!(".s.PGSQL.{port}"))),
        };
        let user = parsed.get_user().unwrap_or("postgres").to_string();
        // As in libpq, the database defaults to the user's name.
        let database = parsed.get_dbname().unwrap_or(&user).to_string();
        Ok(Self {
            security: security::read(&of_security, &endpoint)?,
            // A peer that vanished without a FIN is noticed in about half a minute, also while nothing is asked of it.
            keepalive: TcpKeepalive::new()
                .with_time(Duration::from_secs(15))
                .with_interval(Duration::from_secs(5))
                .with_retries(3),
            host_address,
            endpoint,
            password: parsed.get_password().map(<[u8]>::to_vec),
            connect_timeout: parsed.get_connect_timeout().copied().unwrap_or(Duration::from_secs(10)),
            user,
            database,
            parsed,
        })
    }

    /// The address that the settings name. Where the URL has no `connect_timeout`, that of the settings holds, for clients' lines and
    /// freshet's own.
    pub fn of(settings: &freshet_config::Upstream) -> Result<Self, UpstreamError> {
        let address = Self::parse(&settings.url)?;
        let of_settings = Duration::from_millis(settings.connect_timeout_ms);
        let connect_timeout = address.parsed.get_connect_timeout().copied().unwrap_or(of_settings);
        Ok(Self { connect_timeout, ..address })
    }

    /// Reads the files that `url`, of which the address was made, names again: for this one and all that were cloned from it.
    /// After an error everything stays as it was.
    pub fn reload(&self, url: &str) -> Result<(), UpstreamError> {
        self.security.renew(&Self::parse(url)?.security);
        Ok(())
    }

    /// The ways to open a line, in the order to try them.
    pub fn attempts(&self) -> &'static [Attempt] {
        self.security.attempts(&self.endpoint)
    }

    /// The same for tokio-postgres, every field filled in; for a line that is open already.
    pub fn to_config(&self, application_name: &str) -> tokio_postgres::Config {
        let mut config = self.parsed.clone();
        config.user(&self.user).dbname(&self.database).application_name(application_name);
        config.connect_timeout(self.connect_timeout).ssl_mode(SslMode::Disable);
        if self.parsed.get_hosts().is_empty() {
            config.host("127.0.0.1");
        }
        config
    }

    /// With other probes of an idle line.
    pub fn with_keepalive(self, keepalive: TcpKeepalive) -> Self {
        Self { keepalive, ..self }
    }

    /// Another database of the same upstream.
    pub fn with_database(&self, database: &str) -> Self {
        Self { database: database.to_string(), ..self.clone() }
    }
}

/// libpq would choose among several; a mirror is of one.
fn is_one_server(parsed: &tokio_postgres::Config) -> Result<(), UpstreamError> {
    let places = [parsed.get_hosts().len(), parsed.get_hostaddrs().len(), parsed.get_ports().len()];
    if places.into_iter().any(|count| count > 1) {
        return Err(UpstreamError::Address("upstream is one server: give one host and one port".into()));
    }
    // What a primary is asked for may stand there: with one server it chooses nothing.
    let wants_primary =
        matches!(parsed.get_target_session_attrs(), TargetSessionAttrs::Any | TargetSessionAttrs::ReadWrite);
    if !wants_primary || parsed.get_load_balance_hosts() != LoadBalanceHosts::Disable {
        let what = "upstream is one server, a primary: target_session_attrs and load_balance_hosts have nothing to choose from";
        return Err(UpstreamError::Address(what.into()));
    }
    Ok(())
}

/// Never shows the password.
impl std::fmt::Debug for UpstreamAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Display for UpstreamAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}/{}", self.user, self.endpoint, self.database)
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_both_lines_are_read_and_never_show_the_password() {
        let tcp = UpstreamAddress::parse("postgres://ann:s%40crt@db.example:6000/shop").unwrap();
        assert_eq!(tcp.endpoint, Endpoint::Tcp { host: "db.example".into(), port: 6000 });
        assert_eq!(tcp.password.as_deref(), Some(&b"s@crt"[..]));
        assert_eq!(format!("{tcp:?}"), "ann@db.example:6000/shop");

        let unix = UpstreamAddress::parse("postgresql:///shop?host=/run/pg&user=ann&port=6001").unwrap();
        assert_eq!(unix.endpoint, Endpoint::Unix("/run/pg/.s.PGSQL.6001".into()));
        assert_eq!(UpstreamAddress::parse("postgres://ann@h").unwrap().database, "ann");
    }

    #[test]
    fn an_address_stands_beside_its_name_or_alone() {
        let both = UpstreamAddress::parse("postgres://ann@db.example:6000/shop?hostaddr=10.0.0.7").unwrap();
        assert_eq!(both.endpoint, Endpoint::Tcp { host: "db.example".into(), port: 6000 });
        assert_eq!(both.host_address, Some("10.0.0.7".parse().unwrap()));
        let alone = UpstreamAddress::parse("postgresql:///shop?hostaddr=10.0.0.7&user=ann").unwrap();
        assert_eq!(alone.endpoint, Endpoint::Tcp { host: "10.0.0.7".into(), port: 5432 });
    }

    #[test]
    fn a_question_mark_in_the_password_is_not_the_querys() {
        let address = UpstreamAddress::parse("postgres://ann:a?b@db.example/shop?sslmode=require").unwrap();
        assert_eq!(address.password.as_deref(), Some(&b"a?b"[..]));
        assert_eq!(address.security.mode, security::SslMode::Require);
        assert!(UpstreamAddress::parse("postgres://db.example/shop?sslmode=require&user=ann@corp").is_err());
        assert!(UpstreamAddress::parse("postgres://db.example/shop?sslmode=require&user=ann%40corp").is_ok());
        assert_eq!(UpstreamAddress::parse("postgres://ann:a/b@h/d").unwrap().password.as_deref(), Some(&b"a/b"[..]));
    }

    #[test]
    fn several_servers_are_refused() {
        for (rest, word) in [
            ("a,b/d", "one host"),
            ("a:1,b:2/d", "one host"),
            ("a/d?host=/run/postgresql", "one host"),
            ("a/d?port=6000", "one port"),
            ("a/d?hostaddr=10.0.0.1,10.0.0.2", "one host"),
            ("a/d?target_session_attrs=read-only", "target_session_attrs"),
            ("a/d?load_balance_hosts=random", "load_balance_hosts"),
        ] {
            let error = UpstreamAddress::parse(&format!("postgres://u@{rest}")).expect_err(rest).to_string();
            assert!(error.contains(word), "{rest}: {error}");
        }
        assert!(UpstreamAddress::parse("postgres://u@a/d?target_session_attrs=any&load_balance_hosts=disable").is_ok());
        assert!(
            UpstreamAddress::parse("postgres://u@a/d?target_session_attrs=read-write").is_ok(),
            "one is enough for that"
        );
    }

    #[test]
    fn what_is_no_address_is_refused() {
        assert!(UpstreamAddress::parse("http://h/d").is_err());
        assert!(UpstreamAddress::parse("postgres://h/d?sslmode=sometimes").is_err());
        assert!(UpstreamAddress::parse("postgres://h/d?sslcrl=/x").is_err());
    }
}
