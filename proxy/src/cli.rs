//! The command line: sub-commands and the flags of `serve`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use freshet_config::{ConfigErrors, Settings, Sources};

use crate::server;

/// A PostgreSQL proxy cache: swap the connection string, keep the answers exact.
#[derive(Debug, Parser)]
#[command(name = "freshet", version, about, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub serve: ServeFlags,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve clients (the default command)
    Serve(ServeFlags),
    /// Say whether upstream is ready and, per table, whether it is mirrored or what would make it so; changes nothing
    Check(ServeFlags),
    /// Show how a statement would be answered, and why
    Explain {
        /// The statement
        sql: String,
        #[command(flatten)]
        flags: ServeFlags,
    },
    /// Say by the exit status whether a freshet of these settings serves on this machine, for health checks
    Health(ServeFlags),
    /// Start a throwaway PostgreSQL with real data and freshet before it
    Demo {
        /// End after the table of results
        #[arg(long)]
        once: bool,
        /// The folder with the demo's tables
        #[arg(long, value_name = "FOLDER", default_value = "deploy/data")]
        data: PathBuf,
        /// Where clients connect [default: 127.0.0.1:5433, or a free port]
        #[arg(long, value_name = "HOST:PORT")]
        listen: Option<String>,
        /// The live page and /metrics [default: 127.0.0.1:9433, or a free port]
        #[arg(long, value_name = "HOST:PORT")]
        admin: Option<String>,
    },
    /// Free writers that wait for this freshet as a synchronous standby
    Release(ServeFlags),
    /// Remove everything that freshet made upstream
    Uninstall(ServeFlags),
}

/// The settings that have a flag; every other is in the file or a FRESHET_* variable.
#[derive(Args, Clone, Debug, Default)]
pub struct ServeFlags {
    /// The real PostgreSQL: postgres://user:password@host:port/database
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// Where clients connect: host:port or a socket directory; repeatable [default: 127.0.0.1:5433]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<String>,
    /// The live page and /metrics [default: 127.0.0.1:9433]
    #[arg(long, value_name = "HOST:PORT")]
    pub admin: Option<String>,
    /// The settings' file
    #[arg(long, value_name = "FILE", env = "FRESHET_CONFIG")]
    pub config: Option<PathBuf>,
    /// exact, session or standby [default: exact]
    #[arg(long, value_name = "MODE")]
    pub freshness: Option<String>,
    /// auto, none, or table names separated by commas [default: auto]
    #[arg(long, value_name = "CHOICE")]
    pub tables: Option<String>,
}

impl ServeFlags {
    /// File, then environment, then these flags.
    pub fn settings(&self) -> Result<Settings, ConfigErrors> {
        let mut flags: Vec<(&'static str, String)> = Vec::new();
        flags.extend(self.upstream.clone().map(|url| ("upstream.url", url)));
        flags.extend(self.listen.iter().map(|address| ("listen.addresses", address.clone())));
        flags.extend(self.admin.clone().map(|address| ("admin.address", address)));
        flags.extend(self.freshness.clone().map(|mode| ("freshness.mode", mode)));
        flags.extend(self.tables.clone().map(|choice| ("mirror.tables", choice)));
        let sources = Sources { file: self.config.as_deref(), variables: variables(), flags };
        Settings::load_checked(&sources, server::check_settings)
    }
}

/// freshet's own. Others need not even be UTF-8.
fn variables() -> Vec<(String, OsString)> {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| name.starts_with("FRESHET_"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serving_is_the_default_command() {
        let cli = Cli::parse_from(["freshet", "--upstream", "postgres://u@h/d", "--listen", "a:1", "--listen", "/run"]);
        assert!(cli.command.is_none());
        let settings = cli.serve.settings().expect("right");
        assert_eq!(settings.listen.addresses.len(), 2);
        let cli = Cli::parse_from(["freshet", "serve", "--upstream", "postgres://u@h/d", "--freshness", "session"]);
        let Some(Command::Serve(flags)) = cli.command else { panic!("serve") };
        assert_eq!(flags.settings().expect("right").freshness.mode.name(), "session");
    }
}
