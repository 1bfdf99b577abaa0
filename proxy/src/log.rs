//! Structured logs on standard error, as text or JSON.
//!
//! A thread of its own writes them: a full disk, or a pipe that nobody reads, holds nothing else up. What it is behind with by more than
//! [`LINES_MAX`] is left out.

use std::io::{self, IsTerminal, Write};

use freshet_config::{Log, LogFormat};
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Lines that wait to be written.
const LINES_MAX: usize = 8_192;

/// Starts logging for the whole process; a second call changes nothing. What was told until the guard is dropped is written then, if it can
/// be within a second.
pub fn start(settings: &Log) -> WorkerGuard {
    let filter = EnvFilter::try_new(&settings.level).unwrap_or_else(|_| EnvFilter::new("info"));
    // Notices to freshet's own statements, such as that what is dropped was not there, are for who looks closer.
    let is_closer = settings.level.contains('=') || filter.max_level_hint() != Some(LevelFilter::INFO);
    let quieter = "tokio_postgres=warn".parse().ok().filter(|_| !is_closer);
    let filter = quieter.into_iter().fold(filter, EnvFilter::add_directive);
    let is_terminal = io::stderr().is_terminal();
    let (writer, guard) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(LINES_MAX)
        .thread_name("freshet-log")
        .finish(io::stderr());
    // Told on standard error, too, which panics where that cannot be written.
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(is_terminal).log_internal_errors(false);
    let _ = match settings.format {
        LogFormat::Text => builder.with_writer(move || OneLine(writer.clone())).try_init(),
        LogFormat::Json => builder.json().with_writer(writer).try_init(),
    };
    guard
}

/// Writes each event as one line: a name of a table, or of a client, may have line breaks in it, and must not look like another event.
struct OneLine<W>(W);

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let (text, end) = event.strip_suffix(b"\n").map_or((event, &b""[..]), |text| (text, b"\n"));
        let is_broken = |byte: &u8| matches!(byte, b'\n' | b'\r');
        if !text.iter().any(is_broken) {
            self.0.write_all(event)?;
            return Ok(event.len());
        }
        let mut line = Vec::with_capacity(event.len() + 8);
        for byte in text {
            match byte {
                b'\n' => line.extend_from_slice(b"\\n"),
                b'\r' => line.extend_from_slice(b"\\r"),
                byte => line.push(*byte),
            }
        }
        line.extend_from_slice(end);
        self.0.write_all(&line)?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let mut out = OneLine(Vec::new());
        out.write_all(b"INFO mirrored table=\"a\"\n").expect("written");
        out.write_all(b"INFO mirrored table=\"x\r\nERROR forged\"\n").expect("written");
        assert_eq!(out.0, b"INFO mirrored table=\"a\"\nINFO mirrored table=\"x\\r\\nERROR forged\"\n");
    }
}
