//! Keys, validity and what outlives which change.

mod survival;
mod upkeep;

use std::sync::Arc;

use super::*;
use crate::catalog::RelationId;
use crate::snapshot::Snapshot;
use crate::table::{Generation, TableVersion};
use crate::types::{Lsn, Value};

fn key(sql: &str, settings_id: u64) -> ResultKey {
    let mut key = ResultKey::default();
    key.set(&KeyParts { settings_id, sql: sql.as_bytes(), ..KeyParts::default() });
    key
}

fn reply(bytes: usize, dependencies: &[(u32, u64)]) -> Arc<CachedReply> {
    Arc::new(CachedReply {
        row_description: bytes::Bytes::from_static(b"T"),
        rows: vec![b'D'; bytes].into(),
        row_count: 1,
        relations: dependencies.iter().map(|(id, _)| RelationId(*id)).collect(),
        basis: Basis::of(dependencies.iter().map(|(id, _)| RelationId(*id)), &snapshot(1, dependencies)),
        reads: None,
        last: u64::MAX,
        parameters: Box::default(),
        keys: Keys::default(),
        barrier: 0,
        configuration: 0,
        keep: Keep::default(),
        share: Share::default(),
        found: Found::default(),
        repeated: Repeated::default(),
        withdrawn: Withdrawn::default(),
        catalog_version: 1,
        folds_settings: false,
        elapsed_us: 10,
        attachment: Arc::new(()),
    })
}

fn snapshot(catalog_version: u64, tables: &[(u32, u64)]) -> Snapshot {
    let catalog = Arc::new(crate::catalog::Catalog { version: catalog_version, ..Default::default() });
    let mut snapshot = Snapshot { catalog, ..Snapshot::default() };
    for (id, lsn) in tables {
        let schema = crate::catalog::TableSchema {
            id: RelationId(*id),
            schema: "public".into(),
            name: "t".into(),
            columns: vec![],
            primary_key: vec![],
            identity: crate::catalog::ReplicaIdentity::Full,
        };
        let version = TableVersion::empty(Arc::new(schema), Generation(Lsn(*lsn)));
        snapshot.tables.insert(RelationId(*id), Arc::new(version));
    }
    snapshot
}

#[test]
fn a_key_differs_when_any_part_of_it_does() {
    let cache = ResultCache::new(1 << 20, usize::MAX);
    assert!(cache.insert(&key("SELECT 1", 7), reply(10, &[])));
    assert!(cache.get(&key("SELECT 1", 7)).is_some());
    assert!(cache.get(&key("SELECT 1", 8)).is_none(), "another role or setting");
    assert!(cache.get(&key("SELECT 2", 7)).is_none());
    let mut with_parameter = ResultKey::default();
    let parts = KeyParts { settings_id: 7, sql: b"SELECT 1", parameters: b"\0\0", ..KeyParts::default() };
    with_parameter.set(&parts);
    assert!(cache.get(&with_parameter).is_none());
}

#[test]
fn parts_cannot_run_into_each_other() {
    let mut left = ResultKey::default();
    left.set(&KeyParts { settings_id: 1, sql: b"ab", parameter_types: b"c", ..KeyParts::default() });
    let mut right = ResultKey::default();
    right.set(&KeyParts { settings_id: 1, sql: b"a", parameter_types: b"bc", ..KeyParts::default() });
    assert_ne!(left.as_bytes(), right.as_bytes());
}

#[test]
fn a_reply_is_valid_only_for_the_generations_it_read() {
    let reply = reply(10, &[(1, 100), (2, 200)]);
    assert!(reply.is_valid_at(&snapshot(1, &[(1, 100), (2, 200), (3, 900)])));
    assert!(!reply.is_valid_at(&snapshot(1, &[(1, 101), (2, 200)])), "a later change");
    assert!(!reply.is_valid_at(&snapshot(1, &[(1, 99), (2, 200)])), "an earlier state");
    assert!(!reply.is_valid_at(&snapshot(1, &[(1, 100)])), "a table that is no longer mirrored");
    assert!(!reply.is_valid_at(&snapshot(2, &[(1, 100), (2, 200)])), "another catalog");
}

#[test]
fn the_short_question_is_never_answered_yes_where_the_long_one_is_not() {
    let asked = reply(10, &[(1, 100), (2, 200)]);
    let others = [
        reply(10, &[(1, 100), (2, 200)]),
        reply(10, &[(1, 101), (2, 200)]),
        reply(10, &[(2, 200), (1, 100)]),
        reply(10, &[(1, 100)]),
        reply(10, &[]),
    ];
    let snapshots = [
        snapshot(1, &[(1, 100), (2, 200)]),
        snapshot(1, &[(1, 101), (2, 200)]),
        snapshot(1, &[(1, 100)]),
        snapshot(2, &[(1, 100), (2, 200)]),
    ];
    let mut generations = Vec::new();
    asked.generations_at(&snapshots[0], &mut generations);
    assert!(others[0].is_at(&generations, 1));
    for snapshot in &snapshots {
        asked.generations_at(snapshot, &mut generations);
        for other in &others {
            let is_at = other.is_at(&generations, snapshot.catalog.version);
            assert!(!is_at || other.is_valid_at(snapshot), "{other:?} at {generations:?}");
        }
    }
}

#[test]
fn one_huge_reply_is_refused() {
    let cache = ResultCache::new(80_000, usize::MAX);
    assert!(!cache.insert(&key("SELECT 1", 7), reply(20_000, &[])));
    assert!(cache.insert(&key("SELECT 1", 7), reply(2_000, &[])));
}

#[test]
fn replies_to_quick_reads_are_kept_at_once_only_while_some_are_found_again() {
    let cache = ResultCache::new(64 << 20, usize::MAX);
    let key = |at: usize| key(&format!("SELECT v FROM t WHERE id = {at}"), 7);
    let slow = || {
        let reply = Arc::into_inner(reply(10, &[])).expect("nobody else has it");
        Arc::new(CachedReply { elapsed_us: 1_000, ..reply })
    };
    let kept = (0..20_000).filter(|at| cache.insert(&key(*at), reply(10, &[]))).count();
    assert!((1_000..1_100).contains(&kept), "{kept}");
    assert!(cache.insert(&key(20_000), slow()));
    // Seen for the second time.
    assert!(cache.insert(&key(19_999), reply(10, &[])));
    // Those that are asked for twice and then found make the others welcome again.
    let mut at_once = 0;
    for at in 30_000..40_000 {
        if cache.insert(&key(at), reply(10, &[])) {
            at_once += 1;
        } else {
            assert!(cache.insert(&key(at), reply(10, &[])), "{at} was just seen");
        }
        assert!(cache.get(&key(at)).is_some());
    }
    assert!(at_once > 9_000, "{at_once}");
}

#[test]
fn a_cache_that_is_cleared_has_no_entries_from_then_on() {
    let cache = ResultCache::new(64 << 20, usize::MAX);
    for at in 0..20_000 {
        cache.insert(&key(&format!("SELECT {at}"), 7), reply(10, &[]));
    }
    cache.clear();
    assert_eq!(cache.size(), (0, 0));
    assert!(cache.get(&key("SELECT 1", 7)).is_none());
}

/// Replies asked for as often each: the few that take a second to make stay when many that take nothing come.
#[test]
fn what_took_long_is_not_driven_out_by_what_did_not() {
    let cache = ResultCache::new(512 << 10, 64 << 10);
    let taking = |elapsed_us: u64| {
        let reply = Arc::into_inner(reply(1_000, &[(1, 5)])).expect("nobody else has it");
        Arc::new(CachedReply { elapsed_us, ..reply })
    };
    let keys = |named: &str, count: usize| (0..count).map(|n| key(&format!("{named} {n}"), 1)).collect::<Vec<_>>();
    let (dear, cheap) = (keys("dear", 40), keys("cheap", 3_000));
    let settle = || (0..4).for_each(|_| cache.replies.run_pending_tasks());
    // The cache counts only once it is half full.
    let first = keys("first", 200);
    for key in &first {
        cache.insert(key, taking(60));
        settle();
    }
    for key in &dear {
        cache.insert(key, taking(1_000_000));
        let _ = cache.get(key);
        settle();
    }
    for key in &cheap {
        cache.insert(key, taking(60));
        let _ = cache.get(key);
        settle();
    }
    let left = |keys: &[ResultKey]| keys.iter().filter(|key| cache.peek(key).is_some()).count();
    assert!(left(&dear) >= 22, "{} of 40", left(&dear));
    assert!(left(&cheap) < 3_000, "there is no room for all");
    assert!(cache.size().1 <= 512 << 10, "{:?}", cache.size());
}

/// Each text with a long list has its own; the replies with one plan share one.
#[test]
fn what_a_reply_depends_on_is_weighed() {
    let with = |reads: &Arc<Reads>, parameters: Box<[Value]>| {
        let reply = Arc::into_inner(reply(100, &[(1, 5)])).expect("nobody else has it");
        CachedReply { reads: Some(Arc::clone(reads)), parameters, ..reply }
    };
    let of_plan = || Arc::new(Reads { scans: Vec::new(), top: None, bytes: 90_000 });
    let plain = reply(100, &[(1, 5)]).resident_bytes();
    for parameters in [vec![], vec![Value::Int4(7)]] {
        let own = of_plan();
        assert!(with(&own, parameters.into()).resident_bytes() >= plain + 90_000);
    }
    let shared = of_plan();
    let weighed = |replies: &mut Vec<CachedReply>| {
        replies.push(with(&shared, Box::new([Value::Int4(7)])));
        replies.last().expect("one").resident_bytes() - plain
    };
    let mut replies = Vec::new();
    let all: usize = (0..100).map(|_| weighed(&mut replies)).sum();
    assert!((90_000..900_000).contains(&all), "{all}");
    assert!(replies[99].resident_bytes() >= plain + 90_000 / 32, "the others may go");
    // Whoever took it into account has to take the same out.
    replies.drain(50..);
    let again: usize = replies.iter().map(|reply| reply.resident_bytes() - plain).sum();
    assert!(again < all && again > 90_000 && replies[0].resident_bytes() >= plain + 90_000, "{again} of {all}");
}
