//! What a run prints.

use std::time::Duration;

use crate::ledger::locked;
use crate::world::World;

#[expect(clippy::print_stdout, reason = "a program whose output is its report")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// The whole report of a run.
pub(crate) fn print(world: &World, versions: &str) {
    let counters = world.counters();
    let count = |name: &str| counters.get(name).copied().unwrap_or_default();
    let reads = count("reads");
    let local = count("reads local") + count("reads hit");
    say(&format!(
        "mode {}{}, seed {}, {} s, {versions}",
        world.mode.name(),
        if world.has_event_trigger { " with the event trigger" } else { "" },
        world.seed,
        world.started.elapsed().as_secs()
    ));
    say(&format!(
        "reads checked {reads}: {} computed here, {} from cached replies, {} relayed ({} % here); {} compared with upstream at one \
         state, {} of them answered here; catalog changes {}, reads after them {}, {} of them answered here",
        count("reads local"),
        count("reads hit"),
        count("reads relay") + count("reads capture"),
        100 * local / reads.max(1),
        count("comparisons"),
        count("comparisons local"),
        count("catalog changes through freshet") + count("catalog changes past it"),
        count("catalog reads"),
        count("catalog reads local"),
    ));
    let kinds = ["Stale", "Wrong", "NonMonotonic", "Early", "NotRecovered"];
    let found = kinds.map(|kind| format!("{} {}", kind, count(&format!("found {kind}"))));
    say(&format!("found: {}", found.join(", ")));
    for (kind, text) in locked(&world.found).iter().take(20) {
        say(&format!("  {kind:?}: {text}"));
    }
    let ages = locked(&world.ages);
    if ages.iter().sum::<u64>() > 0 {
        let age = |(power, count): (usize, &u64)| format!("<{} ms {count}", 1_u64 << power);
        let ages: Vec<String> = ages.iter().enumerate().filter(|(_, count)| **count > 0).map(age).collect();
        say(&format!("age of what was written past freshet, per slot read: {}", ages.join(", ")));
    }
    if world.lateness() > Duration::ZERO {
        say(&format!("a change of the catalog past freshet was not seen {:.0?} after it, at most", world.lateness()));
    }
    for (name, count) in &counters {
        say(&format!("  {name}: {count}"));
    }
}
