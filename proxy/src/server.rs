//! The wiring, top to bottom: upstream's address, metrics, answerers, listeners, sessions, shutdown.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use freshet_config::{Settings, TableChoice};
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::error::Refusal;
use crate::listener::{Listener, Places};
use crate::metrics::{CauseLabel, Metrics};
use crate::net::ClientStream;
use crate::session::answer::{Answerers, RelayOnly};
use crate::session::machine::MachineLimits;
use crate::session::settings::Interner;
use crate::session::state::Login;
use crate::session::{self, SessionContext};
use crate::shutdown::{Phase, Shutdown, Trigger};
use crate::startup::authenticate::{Passwordless, authenticate};
use crate::startup::negotiate::{Negotiated, negotiate};
use crate::startup::{StartupError, refuse};
use crate::upstream::address::UpstreamAddress;
use crate::upstream::{UpstreamError, cancel, relay};

/// Why freshet did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("upstream.url: {0}")]
    Address(#[from] UpstreamError),
    #[error("cannot listen on {address}: {error}")]
    Listen { address: String, error: io::Error },
}

/// Binds every listen address of the settings.
pub async fn bind(settings: &Settings) -> Result<Vec<Listener>, ServerError> {
    let mut listeners = Vec::new();
    for address in &settings.listen.addresses {
        let bound = Listener::bind(address).await;
        listeners.push(bound.map_err(|error| ServerError::Listen { address: format!("{address:?}"), error })?);
    }
    Ok(listeners)
}

/// Serves until the shutdown comes. `trigger` is what [`Shutdown`]s listen to: freshet moves it on to
/// [`Phase::Stopping`] itself when the drain time is over.
pub async fn run(settings: Settings, listeners: Vec<Listener>, trigger: Arc<Trigger>) -> Result<(), ServerError> {
    let metrics = Metrics::new();
    serve(settings, listeners, trigger, RelayOnly, metrics).await
}

/// What every accepted connection needs.
struct Front<A> {
    settings: Settings,
    upstream: UpstreamAddress,
    answerers: A,
    context: Arc<SessionContext>,
    places: Places,
    shutdown: Shutdown,
}

/// The part of [`run`] that serves clients, with any answerers.
pub async fn serve<A: Answerers>(
    settings: Settings,
    listeners: Vec<Listener>,
    trigger: Arc<Trigger>,
    answerers: A,
    metrics: Metrics,
) -> Result<(), ServerError> {
    let front = Arc::new(Front {
        upstream: UpstreamAddress::parse(&settings.upstream.url)?,
        answerers,
        context: Arc::new(SessionContext {
            metrics,
            interner: Interner::default(),
            limits: MachineLimits {
                statement_bytes_max: settings.limits.statement_bytes_max,
                prepared_statements_max: settings.limits.prepared_statements_max,
                answers_locally: settings.mirror.tables != TableChoice::None,
                // One per start of the server, for its whole life.
                schema: settings.admin.schema.clone().leak(),
            },
            session_buffer_bytes: settings.limits.session_buffer_bytes,
            freshness: settings.freshness.mode,
        }),
        places: Places::new(settings.listen.sessions_max),
        shutdown: trigger.listen(),
        settings,
    });
    let mut accepting = JoinSet::new();
    for listener in listeners {
        info!(address = %listener.address(), upstream = %front.upstream, "listening");
        accepting.spawn(accept(Arc::clone(&front), listener));
    }
    let drain_limit = Duration::from_millis(front.settings.listen.drain_timeout_ms);
    let mut sessions: Vec<JoinSet<()>> = Vec::new();
    while let Some(finished) = accepting.join_next().await {
        sessions.extend(finished);
    }
    let open: usize = sessions.iter().map(JoinSet::len).sum();
    info!(sessions = open, "draining");
    let drained = async {
        for set in &mut sessions {
            while set.join_next().await.is_some() {}
        }
    };
    if tokio::time::timeout(drain_limit, drained).await.is_err() {
        warn!("drain time is over: ending the remaining sessions");
        trigger.advance(Phase::Stopping);
        // A session that cannot even take its last message is dropped.
        let ended = async {
            for set in &mut sessions {
                while set.join_next().await.is_some() {}
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(1), ended).await;
    }
    info!("stopped");
    Ok(())
}

/// Accepts until the drain begins; the sessions it started.
async fn accept<A: Answerers>(front: Arc<Front<A>>, listener: Listener) -> JoinSet<()> {
    let keepalive_idle = Duration::from_millis(front.settings.listen.keepalive_idle_ms);
    let mut shutdown = front.shutdown.clone();
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            () = shutdown.reached(Phase::Draining) => return sessions,
            Some(_) = sessions.join_next() => {}
            accepted = listener.accept(keepalive_idle) => match accepted {
                Ok(client) => {
                    sessions.spawn(handle(Arc::clone(&front), client));
                }
                Err(error) => {
                    // Out of file descriptors, most likely: they come back when sessions end.
                    warn!(%error, "accept");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
}

/// One connection from its first byte to its last.
async fn handle<A: Answerers>(front: Arc<Front<A>>, client: ClientStream) {
    let peer = client.peer();
    match start_up(&front, client, &peer).await {
        Ok(()) => {}
        Err(StartupError::Refused(refusal)) => {
            front.context.metrics.refused.get_or_create(&CauseLabel { cause: refusal.label() }).inc();
            warn!(client = %peer, "{}", refusal.fields().message);
        }
        Err(error) => debug!(client = %peer, %error, "start-up ended"),
    }
}

async fn start_up<A: Answerers>(front: &Front<A>, client: ClientStream, peer: &str) -> Result<(), StartupError> {
    let deadline = tokio::time::Instant::now() + Duration::from_millis(front.settings.listen.login_timeout_ms);
    let connect_limit = Duration::from_millis(front.settings.upstream.connect_timeout_ms);
    let negotiated = tokio::time::timeout_at(deadline, negotiate(client)).await;
    let (client, packet, rest) = match negotiated.map_err(|_| StartupError::Timeout)?? {
        Negotiated::Startup { client, packet, rest } => (client, packet, rest),
        Negotiated::Cancel { client, packet } => {
            front.context.metrics.cancel_requests.inc();
            let sent = cancel::send(&front.upstream, &packet, connect_limit).await;
            // The client takes the close for the end of the request.
            drop(client);
            return sent.map_err(StartupError::Io);
        }
    };
    let Some(place) = front.places.take() else {
        return Err(refuse(client, Refusal::SessionsMax).await);
    };
    let upstream = match relay::open(&front.upstream, connect_limit).await {
        Ok(upstream) => upstream,
        Err(error) => {
            warn!(upstream = %front.upstream.endpoint, %error, "upstream cannot be reached");
            return Err(refuse(client, Refusal::UpstreamUnreachable).await);
        }
    };
    let passwordless = match front.settings.listen.allow_passwordless_upstream {
        true => Passwordless::Allowed,
        false => Passwordless::ForLocalClients,
    };
    let relayed = authenticate(client, upstream, &packet, rest, passwordless);
    let logged_in = tokio::time::timeout_at(deadline, relayed).await.map_err(|_| StartupError::Timeout)??;
    let login = Login {
        user: logged_in.user.clone(),
        database: logged_in.database.clone(),
        application_name: logged_in.application_name.clone(),
        process_id: logged_in.process_id,
        is_replication: logged_in.is_replication,
        client: peer.to_string(),
    };
    let answerer = front.answerers.open(&login);
    session::run(logged_in, login, answerer, Arc::clone(&front.context), front.shutdown.clone()).await;
    drop(place);
    Ok(())
}
