//! Memory while every text is a new one: the bound on kept replies has to hold.

use std::io;
use std::time::Instant;

use crate::console::{print, say};
use crate::hits::{DATABASE, Options, RESULTS_MAX, Stand};
use crate::process::memory_kb;
use crate::results::{Better, Results};
use crate::wire::{Client, query_message};

pub(super) fn measure(options: &Options, stand: &Stand, results: &mut Results) -> io::Result<()> {
    say(&format!("storm of {} distinct texts", options.keys));
    let mut client = Client::connect(stand.freshet.address, "postgres", DATABASE)?;
    client.query(&query_message("SET freshet.freshness = 'session'"))?;
    let resident = || memory_kb(stand.freshet.process.id, "VmRSS") as f64 / 1024.0;
    // Shapes are verified and buffers have grown.
    for n in 0..1_000 {
        ask(&mut client, n)?;
    }
    let before = resident();
    let (mut most, began) = (before, Instant::now());
    for n in 0..options.keys {
        ask(&mut client, n)?;
        if n % 1_000 == 0 {
            most = most.max(resident());
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let grown = most.max(resident()) - before;
    let cap = RESULTS_MAX as f64 / f64::from(1 << 20);
    let metric = ("memory grown", "MB", Better::Less);
    results.figure("storm", "freshet session", metric, &[grown], &format!("cap {cap} MB"))?;
    let metric = ("rate", "queries/s", Better::More);
    results.figure("storm", "freshet session", metric, &[options.keys as f64 / seconds], "one connection")?;
    print(&format!(
        "storm: {:.0} texts/s at one connection; resident memory grew by {grown:.1} MB (wanted at most {:.1}: the cap and 10 %){}",
        options.keys as f64 / seconds,
        1.1 * cap,
        if grown <= 1.1 * cap { "" } else { " MISSED" }
    ));
    results.end("storm")
}

fn ask(client: &mut Client, n: u64) -> io::Result<()> {
    // The largest is a row too: every text finds exactly one.
    let reply = client.query(&query_message(&format!("SELECT id, val FROM points WHERE id = {}", n % 1_000_000)))?;
    let is_there = crate::wire::first_row(reply).first() == Some(&Some((n % 1_000_000).to_string()));
    if is_there { Ok(()) } else { Err(io::Error::other(format!("id {n} is not in its reply"))) }
}
