//! Structured logs on standard error, as text or JSON.

use freshet_config::{Log, LogFormat};
use tracing_subscriber::EnvFilter;

/// Starts logging for the whole process; a second call changes nothing.
pub fn start(settings: &Log) {
    let filter = EnvFilter::try_new(&settings.level).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let _ = match settings.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}
