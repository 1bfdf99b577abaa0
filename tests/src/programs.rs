//! PostgreSQL's own programs as clients, by the connection strings that people use.

use std::process::{Command, Output};

use crate::cluster::binaries;

/// psql with nothing of the user's own: what it printed, or what it complained of.
pub fn psql(connection: &str, sql: &str) -> Result<String, String> {
    let mut command = program("psql");
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", connection, "-c", sql]);
    outcome(&command.output().expect("psql runs"))
}

/// A program of PostgreSQL's that looks at no file and no variable of the user's.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(binaries().join(name));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/nonexistent").env("LC_ALL", "C");
    // libpq finds the user's home by the user's entry, too.
    command.env("PGSSLCERT", "/nonexistent/c").env("PGSSLKEY", "/nonexistent/k").env("PGSSLROOTCERT", "/nonexistent/r");
    command
}

pub fn outcome(output: &Output) -> Result<String, String> {
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_string()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
