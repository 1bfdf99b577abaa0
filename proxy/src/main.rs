//! The `freshet` command: arguments → settings → server.

use std::fmt::Display;
use std::io::Write;
use std::pin::Pin;
use std::process::ExitCode;

use clap::Parser;
use freshet::check::Report;
use freshet::cli::{Cli, Command, ServeFlags};
use freshet::demo::DemoOptions;
use freshet::shutdown::Phase;
use freshet::upstream::UpstreamError;
use freshet::{check, demo, health, log, server, shutdown};
use freshet_config::{ConfigErrors, Settings};
use freshet_engine::STACK_BYTES;
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // `explain` binds here.
    match std::thread::Builder::new().stack_size(STACK_BYTES).spawn(|| run(cli)) {
        // A panic has been reported by itself.
        Ok(thread) => thread.join().unwrap_or(ExitCode::FAILURE),
        Err(error) => failed(format_args!("no thread with a stack of {} MiB: {error}", STACK_BYTES >> 20)),
    }
}

fn run(cli: Cli) -> ExitCode {
    let ended = match cli.command {
        None => serve(&cli.serve),
        Some(Command::Serve(flags)) => serve(&flags),
        Some(Command::Check(flags)) => {
            report(flags.settings(), End::ByItself, |settings| Box::pin(check::check(settings)))
        }
        Some(Command::Explain { sql, flags }) => report(flags.settings(), End::ByItself, move |settings| {
            Box::pin(async move { check::explain(settings, &sql).await })
        }),
        Some(Command::Uninstall(flags)) => {
            report(flags.settings(), End::ByItself, |settings| Box::pin(check::uninstall(settings)))
        }
        Some(Command::Health(flags)) => healthy(flags),
        Some(Command::Demo { once, data, listen, admin }) => show(DemoOptions { data, once, listen, admin }),
        Some(Command::Release(flags)) => report(flags.settings(), End::BySignal, |settings| {
            let log = log::start(&settings.log);
            Box::pin(async move {
                let _log = log;
                check::release(settings).await
            })
        }),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(error),
    }
}

fn failed(error: impl Display) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "freshet: {error}");
    ExitCode::FAILURE
}

/// How a command is meant to end.
#[derive(Clone, Copy)]
enum End {
    ByItself,
    BySignal,
}

/// Prints what one of the operator's questions found out; an error if not all is well.
fn report(
    settings: Result<Settings, ConfigErrors>,
    end: End,
    ask: impl for<'a> FnOnce(&'a Settings) -> Pin<Box<dyn Future<Output = Result<Report, UpstreamError>> + 'a>>,
) -> Result<(), Box<dyn std::error::Error>> {
    let settings = settings?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(async {
        // As the first process of a container it would not be ended by a signal that it does not ask for.
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            asked = ask(&settings) => Ok::<_, Box<dyn std::error::Error>>(Some(asked?)),
            _ = terminate.recv() => Ok(None),
            _ = interrupt.recv() => Ok(None),
        }
    })?;
    runtime.shutdown_background();
    let Some(report) = report else {
        return if matches!(end, End::BySignal) { Ok(()) } else { Err("interrupted".into()) };
    };
    std::io::stdout().write_all(report.text.as_bytes())?;
    if report.is_fine { Ok(()) } else { Err("not everything is fine, see above".into()) }
}

fn healthy(flags: ServeFlags) -> Result<(), Box<dyn std::error::Error>> {
    // Nobody is asked there, and who serves may have it by a flag that is not known here.
    let flags = ServeFlags { upstream: Some("postgres://nobody@localhost/none".into()), ..flags };
    Ok(health::health(&flags.settings()?)?)
}

fn show(options: DemoOptions) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(demo::run(options))?)
}

fn serve(flags: &ServeFlags) -> Result<(), Box<dyn std::error::Error>> {
    let settings = flags.settings()?;
    if let Some(problem) = server::check_way(&settings) {
        return Err(ConfigErrors { problems: vec![problem] }.into());
    }
    let _log = log::start(&settings.log);
    raise_file_limit(settings.listen.sessions_max);
    server::use_small_pages();
    // For what sessions share; they themselves have threads of their own.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served: Result<(), Box<dyn std::error::Error>> = runtime.block_on(async {
        let listeners = server::bind(&settings).await?;
        let (trigger, _) = shutdown::channel();
        let trigger = std::sync::Arc::new(trigger);
        let on_signal = std::sync::Arc::clone(&trigger);
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::spawn(async move {
            // The first lets statements end, the second has them cancelled, a third ends freshet as it is.
            for phase in [Phase::Draining, Phase::Cancelling] {
                tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
                on_signal.advance(phase);
            }
            tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
            let _ = kill_process(getpid(), Signal::KILL);
        });
        Ok(server::run(settings, listeners, trigger).await?)
    });
    // Whatever a thread may still wait for (a name that is looked up, rows that are freed) is nobody's concern any more.
    runtime.shutdown_background();
    if served.is_ok() {
        tracing::info!("stopped");
    }
    served
}

/// A session has two sockets: the 1,024 open files that a shell allows by default would end at some five hundred.
fn raise_file_limit(sessions_max: usize) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let is_raised = setrlimit(Resource::Nofile, limit).is_ok();
    let files = limit.current.unwrap_or(u64::MAX);
    if !is_raised || files < 2 * sessions_max as u64 + 100 {
        tracing::warn!(files, sessions_max, "the limit of open files allows fewer sessions than listen.sessions_max");
    }
}
