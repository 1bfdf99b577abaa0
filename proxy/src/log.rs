//! Structured logs on standard error, as text or JSON.

use std::io::{self, IsTerminal, Write};

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
    let is_terminal = io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(is_terminal);
    let _ = match settings.format {
        LogFormat::Text => builder.with_writer(|| OneLine(io::stderr())).try_init(),
        LogFormat::Json => builder.json().with_writer(io::stderr).try_init(),
    };
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
