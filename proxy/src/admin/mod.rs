//! The operator's HTTP endpoints, on an address of their own (loopback by default; a token elsewhere).
//!
//! | path | what |
//! |---|---|
//! | `/` | a live page: routes per second, hit share, lag, databases if there are several, tables, top statements |
//! | `/status.json` | what the page shows |
//! | `/metrics` | Prometheus text |
//! | `/healthz` | 200 while the process runs |
//! | `/readyz` | 200 while sessions are accepted and the mirror's stream runs (or mirroring is off); else 503 and why |
//!
//! The last two are for whoever supervises the process, who has no token: they answer without one, but do not say why.
//! Without a token the address is a loopback one, but any page in a browser on this machine can have its own name lead
//! here (DNS rebinding): requests for a name other than localhost are refused.

mod door;
pub mod observe;

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;

use crate::admin::door::Door;
use crate::statistics::ShapeReport;

/// What the endpoints show; made afresh for each request by [`Source::status`].
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    pub version: &'static str,
    pub upstream: String,
    pub freshness: &'static str,
    /// `running`, or why not.
    pub mirror: String,
    /// Those that are mirrored, that of the URL first.
    pub databases: Vec<DatabaseReport>,
    pub routes: RouteTotals,
    pub sessions: u64,
    pub lag_ms: Option<u64>,
    pub lag_bytes: Option<u64>,
    pub audits: u64,
    pub wrong_answers: u64,
    pub tables: Vec<TableReport>,
    /// The most frequent first.
    pub statements: Vec<StatementReport>,
    /// Those that upstream works for the longest.
    pub profit: Vec<StatementReport>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RouteTotals {
    pub hit: u64,
    pub local: u64,
    pub capture: u64,
    pub relay: u64,
}

/// One database's mirror: a line of `freshet.databases` and of the page.
#[derive(Clone, Debug, Serialize)]
pub struct DatabaseReport {
    pub name: String,
    /// `running`, or why not.
    pub mirror: String,
    /// Those that are mirrored.
    pub tables: u64,
    pub bytes: u64,
    pub lag_ms: Option<u64>,
}

/// A statement of the page.
#[derive(Clone, Debug, Serialize)]
pub struct StatementReport {
    pub database: String,
    #[serde(flatten)]
    pub shape: ShapeReport,
}

/// One line of `freshet.tables` and of the page.
#[derive(Clone, Debug, Serialize)]
pub struct TableReport {
    pub database: String,
    /// `schema.table`.
    pub name: String,
    /// `mirrored`, `copying`, `tracked` or `relayed`.
    pub state: &'static str,
    pub rows: u64,
    pub bytes: u64,
    /// Why it is not mirrored; empty if it is.
    pub reason: String,
}

/// Where the endpoints get what they show.
pub trait Source: Send + Sync + 'static {
    fn status(&self) -> Status;
    /// Prometheus text format.
    fn metrics(&self) -> String;
    /// Ok while sessions are accepted and the mirror's stream runs; else why not.
    fn readiness(&self) -> Result<(), String>;
}

/// Serves the endpoints until `shutdown` completes. With a token whatever tells more than a status needs it, as
/// `Authorization: Bearer TOKEN` or `?token=TOKEN`.
pub async fn serve(
    listener: tokio::net::TcpListener,
    source: Arc<dyn Source>,
    token: Option<String>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let guard = Guard { token: token.map(Into::into) };
    let of_readyz = guard.clone();
    let guarded: Router<Arc<dyn Source>> = Router::new()
        .route("/", get(|| async { Html(include_str!("page.html")) }))
        .route("/status.json", get(status))
        .route("/metrics", get(metrics))
        .layer(middleware::from_fn(move |request: Request, next: Next| {
            let refusal = guard.refusal(&request);
            async move {
                match refusal {
                    Some(refusal) => refusal.into_response(),
                    None => next.run(request).await,
                }
            }
        }));
    let readyz = move |State(source): State<Arc<dyn Source>>, request: Request| async move {
        readiness(source.readiness(), of_readyz.refusal(&request).is_none())
    };
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .merge(guarded)
        .with_state(source);
    axum::serve(Door::new(listener), router).with_graceful_shutdown(shutdown).await
}

/// Who may see more than a status.
#[derive(Clone)]
struct Guard {
    token: Option<Arc<str>>,
}

impl Guard {
    fn refusal(&self, request: &Request) -> Option<StatusCode> {
        match &self.token {
            Some(token) if carries(request, token) => None,
            Some(_) => Some(StatusCode::UNAUTHORIZED),
            None if is_for_this_machine(request) => None,
            None => Some(StatusCode::MISDIRECTED_REQUEST),
        }
    }
}

async fn status(State(source): State<Arc<dyn Source>>) -> Response {
    match serde_json::to_string(&source.status()) {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn metrics(State(source): State<Arc<dyn Source>>) -> Response {
    let content_type = [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
    (content_type, source.metrics()).into_response()
}

/// What is said of it where the reason may be seen, or may not.
fn readiness(told: Result<(), String>, may_see: bool) -> Response {
    match told {
        Ok(()) => "ready\n".into_response(),
        Err(why) if may_see => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response(),
    }
}

/// By its Host header, which every browser sends: an address is nobody's name.
fn is_for_this_machine(request: &Request) -> bool {
    let Some(host) = request.headers().get(header::HOST) else { return true };
    let authority = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    authority.is_some_and(|authority| {
        let host = authority.host().trim_matches(['[', ']']);
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok()
    })
}

/// Compares in time that does not depend on where the two differ.
fn carries(request: &Request, token: &str) -> bool {
    let equals = |given: &str| {
        given.len() == token.len()
            && given.bytes().zip(token.bytes()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    };
    let bearer = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let in_header = bearer.and_then(|value| value.strip_prefix("Bearer ")).is_some_and(equals);
    let query = request.uri().query().unwrap_or_default();
    in_header || query.split('&').filter_map(|pair| pair.strip_prefix("token=")).any(equals)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::admin::door::CONNECTIONS_MAX;

    /// What never gets ready.
    struct Unready;

    impl Source for Unready {
        fn status(&self) -> Status {
            panic!("not asked for here")
        }

        fn metrics(&self) -> String {
            "metrics\n".into()
        }

        fn readiness(&self) -> Result<(), String> {
            Err("the mirror is not running".into())
        }
    }

    async fn serving(token: Option<&str>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, Arc::new(Unready), token.map(Into::into), std::future::pending()));
        address
    }

    /// The whole reply.
    async fn ask(at: SocketAddr, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        reply
    }

    #[tokio::test]
    async fn a_token_guards_all_but_the_status() {
        let at = serving(Some("secret")).await;
        let host = "Host: localhost\r\n";
        let with_token = format!("{host}Authorization: Bearer secret\r\n");
        assert!(ask(at, "/metrics", host).await.starts_with("HTTP/1.1 401"));
        assert!(ask(at, "/metrics", &with_token).await.ends_with("metrics\n"));
        assert!(ask(at, "/metrics?token=secret", host).await.starts_with("HTTP/1.1 200"));
        assert!(ask(at, "/healthz", host).await.starts_with("HTTP/1.1 200"));
        let bare = ask(at, "/readyz", host).await;
        assert!(bare.starts_with("HTTP/1.1 503") && bare.ends_with("\r\n\r\nnot ready\n"), "{bare}");
        let told = ask(at, "/readyz", &with_token).await;
        assert!(told.starts_with("HTTP/1.1 503") && told.ends_with("the mirror is not running\n"), "{told}");
    }

    #[tokio::test]
    async fn without_a_token_requests_by_another_name_are_refused() {
        let at = serving(None).await;
        for host in ["localhost", "LOCALHOST:9433", "127.0.0.1", "127.0.0.1:9433", "[::1]:9433", "[::1]"] {
            let reply = ask(at, "/metrics", &format!("Host: {host}\r\n")).await;
            assert!(reply.starts_with("HTTP/1.1 200"), "{host}: {reply}");
        }
        for host in ["rebound.example", "rebound.example:9433", "localhost.rebound.example", "127.0.0.1.example"] {
            let headers = format!("Host: {host}\r\n");
            let reply = ask(at, "/metrics", &headers).await;
            assert!(reply.starts_with("HTTP/1.1 421"), "{host}: {reply}");
            let reply = ask(at, "/readyz", &headers).await;
            assert!(reply.starts_with("HTTP/1.1 503") && reply.ends_with("not ready\n"), "{host}: {reply}");
        }
        let reply = ask(at, "/readyz", "Host: localhost\r\n").await;
        assert!(reply.ends_with("the mirror is not running\n"), "{reply}");
        // The token is what counts where there is one.
        let at = serving(Some("secret")).await;
        let headers = "Host: freshet.example\r\nAuthorization: Bearer secret\r\n";
        assert!(ask(at, "/metrics", headers).await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn one_connection_too_many_waits_for_another_to_end() {
        let at = serving(None).await;
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            idle.push(TcpStream::connect(at).await.unwrap());
        }
        let host = "Host: localhost\r\n";
        let early = tokio::time::timeout(Duration::from_millis(200), ask(at, "/healthz", host)).await;
        assert!(early.is_err(), "{early:?}");
        drop(idle);
        assert!(ask(at, "/healthz", host).await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn whoever_keeps_its_place_without_asking_yields_it_when_places_run_out() {
        let at = serving(None).await;
        let mut held = Vec::new();
        for count in 0..CONNECTIONS_MAX + 6 {
            let mut stream = TcpStream::connect(at).await.unwrap();
            // Half a head, or a whole request on a connection that is kept.
            let said: &[u8] =
                if count % 2 == 0 { b"GET /healthz HTT" } else { b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" };
            stream.write_all(said).await.unwrap();
            held.push(stream);
        }
        let within = Duration::from_secs(4);
        let healthy = tokio::time::timeout(within, ask(at, "/healthz", "Host: localhost\r\n")).await;
        assert!(healthy.unwrap().starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn a_head_that_comes_byte_by_byte_is_not_waited_for() {
        let at = serving(None).await;
        let (mut read, mut write) = TcpStream::connect(at).await.unwrap().into_split();
        let drip = tokio::spawn(async move {
            let mut pace = tokio::time::interval(Duration::from_millis(100));
            while write.write_all(b"G").await.is_ok() {
                pace.tick().await;
            }
        });
        let ended = tokio::time::timeout(Duration::from_secs(15), read.read_to_end(&mut Vec::new())).await;
        drip.abort();
        assert!(ended.is_ok(), "still waiting for the end of a head");
    }
}
