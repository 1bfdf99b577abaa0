//! The `freshet` command: arguments → settings → server.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use freshet::cli::{Cli, Command, ServeFlags};
use freshet::{log, server, shutdown};
use tokio::signal::unix::{SignalKind, signal};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match cli.command {
        None => serve(&cli.serve),
        Some(Command::Serve(flags)) => serve(&flags),
        Some(Command::Check(_) | Command::Explain { .. } | Command::Demo { .. }) => Err("not built yet".into()),
        Some(Command::Release(_) | Command::Uninstall(_)) => Err("not built yet".into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "freshet: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(flags: &ServeFlags) -> Result<(), Box<dyn std::error::Error>> {
    let settings = flags.settings()?;
    log::start(&settings.log);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if settings.limits.worker_threads > 0 {
        builder.worker_threads(settings.limits.worker_threads);
    }
    builder.enable_all().build()?.block_on(async {
        let listeners = server::bind(&settings).await?;
        let (trigger, mut ended) = shutdown::channel();
        let trigger = std::sync::Arc::new(trigger);
        let on_signal = std::sync::Arc::clone(&trigger);
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::spawn(async move {
            tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
            on_signal.advance(shutdown::Phase::Draining);
            tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {}, () = ended.reached(shutdown::Phase::Stopping) => {} }
            on_signal.advance(shutdown::Phase::Stopping);
        });
        Ok(server::run(settings, listeners, trigger).await?)
    })
}
