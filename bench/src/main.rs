//! The `freshet-bench` command: suites that compare freshet with upstream and with what is possible at all.

mod all;
mod batch;
mod canned;
mod changes;
mod cheapest;
mod console;
mod data;
mod driver;
mod engine;
mod fit;
mod freshness;
mod hits;
mod kv;
mod load;
mod parts;
mod poolers;
mod process;
mod reference;
mod relay;
mod report;
mod results;
mod rows;
mod scale;
mod series;
mod servers;
mod spread;
mod star;
mod throughput;
mod tpch;
mod turns;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use freshet::listener::Listener;
use freshet::{server, shutdown};
use freshet_config::{Settings, Sources};
use tokio::net::TcpListener;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(
    name = "freshet-bench",
    version,
    about = "Ratios in one run; rows compared with PostgreSQL's (bench/README.md: which, and when)"
)]
struct Arguments {
    #[command(subcommand)]
    suite: Suite,
}

/// What the suites have in common.
#[derive(clap::Args)]
struct Common {
    /// A short run of less, for CI.
    #[arg(long)]
    quick: bool,
    /// One part alone, as named above.
    #[arg(long)]
    only: Option<String>,
    /// Appends JSON lines to this file; what it holds from the same commit and settings is not measured again.
    #[arg(long)]
    results: Option<PathBuf>,
    /// Ends with an error when so many seconds have passed and a case is complete; what is in the results is kept.
    #[arg(long, value_name = "SECONDS")]
    stop_after: Option<u64>,
}

#[derive(Subcommand)]
enum Suite {
    /// Every suite, one after the other: up to three hours, `--quick` five minutes.
    All {
        #[arg(long)]
        quick: bool,
        /// Appends JSON lines to this file; what it holds from the same commit and settings is not measured again.
        #[arg(long)]
        results: Option<PathBuf>,
    },
    /// Threads with persistent connections against upstream, freshet and the ceilings; a part is a workload, such as point_read.
    Throughput {
        #[arg(long, default_value_t = 8)]
        threads: usize,
        /// Length of one run: five seconds in five rounds.
        #[arg(long, default_value_t = 1.0)]
        seconds: f64,
        /// Rounds, servers interleaved; medians are shown.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        #[command(flatten)]
        common: Common,
    },
    /// What freshet costs where it only passes on, against upstream, the cheapest relay and PgBouncer; a part is
    /// select-simple and the like, latency, batch, copy, idle or syscalls.
    Relay {
        /// Length of one run.
        #[arg(long, default_value_t = 1.0)]
        seconds: f64,
        /// Rounds, servers interleaved; medians are shown.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        #[command(flatten)]
        common: Common,
        /// The program under test, if not the one beside this.
        #[arg(long)]
        freshet: Option<PathBuf>,
    },
    /// freshet's engine against DuckDB, both in process, and against the machine's memory bandwidth; a part is a
    /// statement, a group (`small`, `50K`) or both as `50K/large_sort`.
    Engine {
        #[arg(long, default_value_t = 7)]
        rounds: usize,
        /// Least duration of one round.
        #[arg(long, default_value_t = 100)]
        round_ms: u64,
        /// Rows of the star's large tables.
        #[arg(long, value_delimiter = ',', default_value = "50000,1000000,5000000")]
        sizes: Vec<i64>,
        #[command(flatten)]
        common: Common,
    },
    /// Statements one after the other, by upstream, freshet and DuckDB in process; a part is a workload without its
    /// variant, or a group.
    Batch {
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Least duration of one round.
        #[arg(long, default_value_t = 200)]
        round_ms: u64,
        /// Of DuckDB, in process; by default as many as there are processors.
        #[arg(long, value_name = "THREADS")]
        duckdb_threads: Option<usize>,
        #[command(flatten)]
        common: Common,
    },
    /// Kept replies against the ceilings, their survival, and the bound on their memory; a part is rates, connections,
    /// latency, survival or storm.
    Hits {
        /// Length of one run.
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Connections of the part that has many.
        #[arg(long, default_value_t = 1000)]
        connections: usize,
        /// Distinct texts of the storm.
        #[arg(long, default_value_t = 1_000_000)]
        keys: u64,
        #[command(flatten)]
        common: Common,
    },
    /// Single keys created, read and deleted, against upstream and Redis; a part is create, read or delete.
    Kv {
        /// Keys in each store.
        #[arg(long, default_value_t = 1_000_000)]
        keys: u64,
        #[arg(long, value_delimiter = ',', default_value = "1,8,64")]
        connections: Vec<usize>,
        /// Of one phase at most; it ends earlier when its keys have had their turn. Those over all keys take what they take.
        #[arg(long, default_value_t = 1.0)]
        seconds: f64,
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        #[command(flatten)]
        common: Common,
    },
    /// How old answers are, what waiting and following cost, while others commit; a part is a mode (exact, session or
    /// standby), saturation or apply.
    Freshness {
        /// Length of one measurement, all its rounds together.
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
        /// In turns with the same writers at a PostgreSQL that nobody follows.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Commits per second, one measurement each; 500 is the rate at which the cost to writers is judged.
        #[arg(long, value_delimiter = ',', default_value = "0,300,500,3000")]
        rates: Vec<u64>,
        /// Of a bulk load that is applied.
        #[arg(long, default_value_t = 500_000)]
        rows: u64,
        #[command(flatten)]
        common: Common,
    },
    /// How costs grow, with the fitted exponent; a part is what grows: rows, tables, connections or shapes.
    Scale {
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        #[command(flatten)]
        common: Common,
    },
    /// The 22 queries of TPC-H against upstream and DuckDB in process; a part is a query, such as q1.
    Tpch {
        /// 1: six million line items.
        #[arg(long, default_value_t = 1.0)]
        scale: f64,
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        #[command(flatten)]
        common: Common,
    },
    /// What an application sees through ordinary drivers, direct, relayed and cached; a part is a statement such as
    /// point, or batch.
    Driver {
        /// Length of one run.
        #[arg(long, default_value_t = 1.0)]
        seconds: f64,
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        #[command(flatten)]
        common: Common,
    },
    /// One page with charts from a file of results.
    Report {
        results: PathBuf,
        /// By default beside the results.
        #[arg(long)]
        output: Option<PathBuf>,
        /// Prints the overview as a table of Markdown instead.
        #[arg(long)]
        markdown: bool,
        /// Also puts that table between the marks in this file.
        #[arg(long, num_args = 0..=1, default_missing_value = "bench/README.md")]
        readme: Option<PathBuf>,
        /// And a short one between those in this file.
        #[arg(long, default_value = "README.md")]
        short: PathBuf,
    },
    /// What changed from one file of results to another, beyond the noise of both.
    Compare {
        old: PathBuf,
        new: PathBuf,
        /// Exits with 1 if anything of freshet's is worse.
        #[arg(long)]
        fail_on_worse: bool,
    },
    /// A freshet of its own process for a suite.
    #[command(hide = true)]
    ServeFreshet {
        upstream: String,
        tables: String,
        /// Bytes that kept replies may take, if not the default.
        result_bytes_max: Option<String>,
        /// `exact` if not said.
        #[arg(long)]
        freshness: Option<String>,
    },
    /// A ceiling of its own process for a suite.
    #[command(hide = true)]
    ServeCheapest { upstream: String },
    /// A ceiling of its own process for a suite.
    #[command(hide = true)]
    ServeCanned { replies: PathBuf, barrier: Option<String> },
    /// The ceiling of the key-value load, a process of its own.
    #[command(hide = true)]
    ServeExchanges { exchanges: PathBuf },
}

fn main() -> ExitCode {
    match run(Arguments::parse().suite) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "freshet-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(suite: Suite) -> std::io::Result<()> {
    apply_budget(&suite);
    match suite {
        Suite::All { quick, results } => all::run(quick, results.as_deref()),
        Suite::Throughput { threads, seconds, rounds, common: Common { quick, only, results, .. } } => {
            use throughput::WireProtocol::{Prepared, Simple};
            let (seconds, rounds) = if quick { (0.1, 1) } else { (seconds, rounds) };
            let protocols = if quick { vec![Prepared] } else { vec![Simple, Prepared] };
            throughput::run(&throughput::Options {
                threads,
                seconds,
                rounds,
                protocols,
                only,
                is_quick: quick,
                results,
            })
        }
        Suite::Relay { seconds, rounds, common: Common { quick, only, results, .. }, freshet } => {
            let (seconds, rounds) = if quick { (0.15, 2) } else { (seconds, rounds) };
            relay::run(&relay::Options { seconds, rounds, quick, only, freshet, results })
        }
        Suite::Engine { rounds, round_ms, sizes, common: Common { quick, only, results, .. } } => {
            let (rounds, round_ms, sizes) = if quick { (3, 5, vec![50_000]) } else { (rounds, round_ms, sizes) };
            engine::run(&engine::Options { rounds, round_ms, sizes, only, results })
        }
        Suite::Batch { rounds, round_ms, duckdb_threads, common: Common { quick, only, results, .. } } => {
            let (rounds, round_ms) = if quick { (2, 5) } else { (rounds, round_ms) };
            batch::run(&batch::Options { rounds, round_ms, duckdb_threads, quick, only, results })
        }
        Suite::Hits { seconds, rounds, connections, keys, common: Common { quick, only, results, .. } } => {
            let (seconds, rounds) = if quick { (0.1, 1) } else { (seconds, rounds) };
            let (connections, keys) = if quick { (100, 20_000) } else { (connections, keys) };
            hits::run(&hits::Options { seconds, rounds, connections, keys, only, results })
        }
        Suite::Kv { keys, connections, seconds, rounds, common: Common { quick, only, results, .. } } => {
            let (keys, connections) = if quick { (10_000, vec![8]) } else { (keys, connections) };
            let (seconds, rounds) = if quick { (0.15, 1) } else { (seconds, rounds) };
            kv::run(&kv::Options { keys, connections, seconds, rounds, only, results })
        }
        Suite::Freshness { seconds, rounds, rates, rows, common: Common { quick, only, results, .. } } => {
            let (seconds, rounds, rates) = if quick { (1.0, 1, vec![300]) } else { (seconds, rounds, rates) };
            let rows = if quick { rows.min(50_000) } else { rows };
            freshness::run(&freshness::Options { seconds, rounds: rounds.max(1), rates, rows, only, results })
        }
        Suite::Scale { rounds, common: Common { quick, only, results, .. } } => {
            scale::run(&scale::Options { rounds: if quick { 1 } else { rounds }, quick, only, results })
        }
        Suite::Tpch { scale, rounds, common: Common { quick, only, results, .. } } => {
            let (scale, rounds) = if quick { (0.01, 1) } else { (scale, rounds) };
            tpch::run(&tpch::Options { scale, rounds, only, results })
        }
        Suite::Driver { seconds, rounds, common: Common { quick, only, results, .. } } => {
            let (seconds, rounds, batch) = if quick { (0.1, 1, 1_000) } else { (seconds, rounds, 10_000) };
            driver::run(&driver::Options { seconds, rounds, batch, only, results })
        }
        Suite::Report { results, markdown: true, .. } => report::markdown(&results),
        Suite::Report { results, output, readme, short, .. } => {
            if let Some(readme) = readme {
                report::fill(&results, &readme, &short)?;
            }
            report::run(&results, output.as_deref())
        }
        Suite::Compare { old, new, fail_on_worse } => match changes::run(&old, &new)? {
            0 => Ok(()),
            worse if fail_on_worse => Err(std::io::Error::other(format!("worse: {worse}"))),
            _ => Ok(()),
        },
        Suite::ServeCheapest { upstream } => serve_cheapest(&upstream),
        Suite::ServeFreshet { upstream, tables, result_bytes_max, freshness } => {
            let optional = [("cache.result_bytes_max", result_bytes_max), ("freshness.mode", freshness)];
            let optional = optional.into_iter().filter_map(|(key, value)| Some((key, value?)));
            server::use_small_pages();
            block_on(serve_freshet([("upstream.url", upstream), ("mirror.tables", tables)].into_iter().chain(optional)))
        }
        Suite::ServeExchanges { exchanges } => kv::ceiling::serve(&exchanges),
        Suite::ServeCanned { replies, barrier } => block_on(serve_canned(replies, barrier)),
    }
}

/// States that of the whole suite, a part of which takes less, and sets when to stop.
fn apply_budget(suite: &Suite) {
    let (name, common) = match suite {
        Suite::Engine { common, .. } => ("engine", common),
        Suite::Batch { common, .. } => ("batch", common),
        Suite::Throughput { common, .. } => ("throughput", common),
        Suite::Hits { common, .. } => ("hits", common),
        Suite::Kv { common, .. } => ("kv", common),
        Suite::Freshness { common, .. } => ("freshness", common),
        Suite::Scale { common, .. } => ("scale", common),
        Suite::Tpch { common, .. } => ("tpch", common),
        Suite::Driver { common, .. } => ("driver", common),
        Suite::Relay { common, .. } => ("relay", common),
        _ => return,
    };
    if let Some(budget) = all::budget(name, common.quick, common.only.as_deref()) {
        console::say(&format!("== {name}: at most {} s", budget.as_secs()));
    }
    if let Some(seconds) = common.stop_after {
        results::stop_after(std::time::Duration::from_secs(seconds));
    }
}

fn block_on(server: impl Future<Output = std::io::Result<()>>) -> std::io::Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(server)
}

async fn serve_freshet(flags: impl Iterator<Item = (&'static str, String)>) -> std::io::Result<()> {
    let flags = flags.collect();
    // FRESHET_... of the environment, as freshet itself takes them, but for those that the tests have.
    let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let variables = variables.filter(|(name, _)| !name.starts_with("FRESHET_TEST_")).collect();
    let settings = Settings::load(&Sources { file: None, variables, flags }).map_err(std::io::Error::other)?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    canned::announce(listener.local_addr()?);
    let (trigger, _) = shutdown::channel();
    server::run_on(settings, vec![Listener::Tcp(listener)], None, std::sync::Arc::new(trigger))
        .await
        .map_err(std::io::Error::other)
}

fn serve_cheapest(upstream: &str) -> std::io::Result<()> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    canned::announce(listener.local_addr()?);
    cheapest::serve(&listener, upstream)
}

async fn serve_canned(replies: PathBuf, barrier: Option<String>) -> std::io::Result<()> {
    let pairs: Vec<(Vec<u8>, Vec<u8>)> = serde_json::from_slice(&std::fs::read(replies)?)?;
    let replies = pairs.into_iter().collect();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    canned::announce(listener.local_addr()?);
    canned::serve(listener, replies, barrier).await
}
