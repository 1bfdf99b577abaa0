//! How much each table is asked for, told to the mirror: where not all tables have room, those with the most reads per byte do.
//!
//! Counted are statements however they were answered, by the counters of their shapes, so that a read costs nothing more.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use freshet_engine::catalog::RelationId;
use tokio::time::{MissedTickBehavior, interval};

use crate::session::local::Local;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Reads count half after this many looks: a dashboard polls some times a minute.
const HALF_LIFE_LOOKS: f64 = 60.0;
/// What nobody has asked for since long is forgotten.
const WEIGHT_MIN: f64 = 1e-3;

/// Looks until the database's mirror ends.
pub async fn watch(local: Weak<Local>) {
    let mut weights = HashMap::new();
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(local) = local.upgrade().filter(|local| !local.freshness.is_stopped()) else { return };
        look(&local, &mut weights);
    }
}

fn look(local: &Arc<Local>, weights: &mut HashMap<RelationId, f64>) {
    let catalog = local.freshness.catalog();
    let reads = local.statistics.reads().into_iter();
    let reads = reads.map(|(relations, calls)| (catalog.expand(&relations), calls));
    age(weights, reads);
    local.freshness.replication().set_weights(weights.clone());
}

fn age(weights: &mut HashMap<RelationId, f64>, reads: impl Iterator<Item = (Vec<RelationId>, u64)>) {
    weights.values_mut().for_each(|weight| *weight *= 0.5_f64.powf(1.0 / HALF_LIFE_LOOKS));
    for (relations, calls) in reads {
        for relation in relations {
            *weights.entry(relation).or_default() += calls as f64;
        }
    }
    weights.retain(|_, weight| *weight > WEIGHT_MIN);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lose_half_their_weight_in_a_minute_and_are_forgotten_in_the_end() {
        let (one, two) = (RelationId(1), RelationId(2));
        let mut weights = HashMap::new();
        age(&mut weights, [(vec![one, two], 4), (vec![two], 2)].into_iter());
        assert_eq!(weights, HashMap::from([(one, 4.0), (two, 6.0)]));
        (0..60).for_each(|_| age(&mut weights, std::iter::empty()));
        assert!((weights[&one] - 2.0).abs() < 1e-9, "{weights:?}");
        age(&mut weights, std::iter::once((vec![one], 1)));
        assert!(weights[&one] > weights[&two], "read just now: {weights:?}");
        (0..60 * 12).for_each(|_| age(&mut weights, std::iter::empty()));
        assert!(weights.is_empty(), "{weights:?}");
    }
}
