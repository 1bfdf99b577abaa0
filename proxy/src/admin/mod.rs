//! The operator's HTTP endpoints, on an address of their own (loopback by default; a token elsewhere).
//!
//! | path | what |
//! |---|---|
//! | `/` | a live page: routes per second, hit share, lag, databases if there are several, tables, top statements |
//! | `/status.json` | what the page shows |
//! | `/metrics` | Prometheus text |
//! | `/healthz` | 200 while the process runs |
//! | `/readyz` | 200 once sessions are accepted and the mirror's stream runs (or mirroring is off); else 503 and why |

pub mod observe;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;

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
    pub statements: Vec<StatementReport>,
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
    /// Ok once sessions are accepted and the mirror's stream runs; else why not.
    fn readiness(&self) -> Result<(), String>;
}

/// Serves the endpoints until `shutdown` completes. With a token every request needs it, as
/// `Authorization: Bearer TOKEN` or `?token=TOKEN`.
pub async fn serve(
    listener: tokio::net::TcpListener,
    source: Arc<dyn Source>,
    token: Option<String>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let token: Option<Arc<str>> = token.map(Into::into);
    let router = Router::new()
        .route("/", get(|| async { Html(include_str!("page.html")) }))
        .route("/status.json", get(status))
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .layer(middleware::from_fn(move |request: Request, next: Next| {
            let token = token.clone();
            async move {
                match token {
                    Some(token) if !carries(&request, &token) => StatusCode::UNAUTHORIZED.into_response(),
                    _ => next.run(request).await,
                }
            }
        }))
        .with_state(source);
    axum::serve(listener, router).with_graceful_shutdown(shutdown).await
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

async fn readyz(State(source): State<Arc<dyn Source>>) -> Response {
    match source.readiness() {
        Ok(()) => "ready\n".into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
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
