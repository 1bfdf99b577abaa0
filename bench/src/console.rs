//! What a run says: progress on standard error, tables on standard output.

use std::io::{self, Write};

pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

pub(crate) fn print(text: &str) {
    let _ = writeln!(io::stdout(), "{}", text.trim_end_matches('\n'));
}
