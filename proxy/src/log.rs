//! Structured logs on standard error, as text or JSON.

use std::io::IsTerminal;

use freshet_config::{Log, LogFormat};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Starts logging for the whole process; a second call changes nothing.
pub fn start(settings: &Log) {
    let filter = EnvFilter::try_new(&settings.level).unwrap_or_else(|_| EnvFilter::new("info"));
    // Notices to freshet's own statements, such as that what is dropped was not there, are for who looks closer.
    let is_closer = settings.level.contains('=') || filter.max_level_hint() != Some(LevelFilter::INFO);
    let quieter = "tokio_postgres=warn".parse().ok().filter(|_| !is_closer);
    let filter = quieter.into_iter().fold(filter, EnvFilter::add_directive);
    let is_terminal = std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(is_terminal).with_writer(std::io::stderr);
    let _ = match settings.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}
