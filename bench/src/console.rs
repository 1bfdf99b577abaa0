//! What a run says: progress on standard error, tables on standard output.

use std::io::{self, IsTerminal as _, Write};

use indicatif::{ProgressBar, ProgressStyle};

pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

pub(crate) fn print(text: &str) {
    let _ = writeln!(io::stdout(), "{}", text.trim_end_matches('\n'));
}

/// A bar for what is loaded, or a line where standard error is no terminal; a few rows need none.
pub(crate) fn progress(what: &str, rows: u64) -> ProgressBar {
    if rows < 100_000 {
        return ProgressBar::hidden();
    }
    if !io::stderr().is_terminal() {
        say(what);
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("{msg} [{bar:40}] {percent}%").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(rows).with_style(style).with_message(what.to_owned())
}
