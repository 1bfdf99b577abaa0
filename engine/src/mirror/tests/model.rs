//! Random transactions against a model.

use super::*;

#[derive(Clone, Debug)]
pub(super) enum Op {
    Insert {
        id: i32,
        kind: i32,
        note: Option<String>,
    },
    /// `pick`: position among the rows, modulo. `rekey`: the identity changes to this id where it is free.
    Update {
        pick: usize,
        kind: i32,
        note: Option<String>,
        rekey: Option<i32>,
        note_is_unchanged: bool,
    },
    Delete {
        pick: usize,
    },
    Truncate,
}

fn any_note() -> impl Strategy<Value = Option<String>> {
    proptest::option::weighted(0.8, prop_oneof![Just("a".to_string()), Just("bb".to_string()), "[xyzä]{0,12}"])
}

pub(super) fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0..40i32, 0..3i32, any_note()).prop_map(|(id, kind, note)| Op::Insert { id, kind, note }),
        8 => (any::<usize>(), 0..3i32, any_note(), proptest::option::weighted(0.3, 0..40i32), any::<bool>())
            .prop_map(|(pick, kind, note, rekey, note_is_unchanged)| Op::Update {
                pick, kind, note, rekey, note_is_unchanged,
            }),
        5 => any::<usize>().prop_map(|pick| Op::Delete { pick }),
        1 => Just(Op::Truncate),
    ]
}

/// Performs an operation on the model and writes it to the stream; one that PostgreSQL would refuse is left out.
pub(super) fn perform(op: &Op, model: &mut Vec<Row>, stream: &mut Stream<'_>) {
    let is_free = |model: &[Row], stream: &Stream<'_>, row: &Row, except: Option<usize>| {
        stream.schema.identity == ReplicaIdentity::Full
            || !model.iter().enumerate().any(|(at, other)| Some(at) != except && stream.key(other) == stream.key(row))
    };
    match op {
        Op::Insert { id, kind, note } => {
            let row = Row { id: *id, kind: *kind, note: note.clone() };
            if is_free(model, stream, &row, None) {
                stream.insert(&row);
                model.push(row);
            }
        }
        Op::Update { pick, kind, note, rekey, note_is_unchanged } if !model.is_empty() => {
            let at = pick % model.len();
            let old = model[at].clone();
            let note = if *note_is_unchanged { old.note.clone() } else { note.clone() };
            // NULLs are never out of line.
            let is_sent = !*note_is_unchanged || note.is_none();
            let new = Row { id: rekey.unwrap_or(old.id), kind: *kind, note };
            if is_free(model, stream, &new, Some(at)) {
                stream.update(&old, &new, !is_sent);
                model[at] = new;
            }
        }
        Op::Delete { pick } if !model.is_empty() => {
            let old = model.remove(pick % model.len());
            stream.delete(&old);
        }
        Op::Truncate => {
            stream.truncate();
            model.clear();
        }
        Op::Update { .. } | Op::Delete { .. } => {}
    }
}

pub(super) fn sorted(rows: &[Row]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    rows.sort();
    rows
}

/// What one read finds of a table, the read being asked for after a transaction or not.
struct Moment {
    rows: Vec<Row>,
    /// None: nobody asked for it in time.
    generation: Option<Generation>,
}

fn check_against_model(identity: ReplicaIdentity, transactions: &[(Vec<Op>, bool)]) -> Result<(), TestCaseError> {
    let schema = schema(7, identity);
    let mut model: Vec<Row> = (0..20).map(|id| Row { id, kind: id % 3, note: Some(format!("copied {id}")) }).collect();
    let (mirror, mut assembler) = mirror_of(&schema, &model);
    let moment_after = |number: usize| seen(100 + number as u64, &[]);
    let (mut last, mut before) = (Generation(Lsn(1000)), model.clone());
    let mut moments = vec![Moment { rows: sorted(&model), generation: Some(last) }];
    for (number, (ops, is_read)) in transactions.iter().enumerate() {
        let (xid, lsn) = (100 + number as u32, 2000 + 100 * number as u64);
        let mut stream = stream(&schema);
        for op in ops {
            perform(op, &mut model, &mut stream);
        }
        mirror.apply(transaction(&mut assembler, xid, lsn, &stream.messages));
        prop_assert_eq!(mirror.state(schema.id), Some(TableState::Mirrored));
        let mut moment = Moment { rows: sorted(&model), generation: None };
        if *is_read || number + 1 == transactions.len() {
            let now = table(&mirror, &moment_after(number + 1), 7).expect("the newest").generation;
            // Without a net change the generation may stay.
            prop_assert!(
                now == Generation(Lsn(lsn)) || now >= last && (now > last || sorted(&before) == sorted(&model))
            );
            check_log(&mirror, &schema, last, now, &before, &model)?;
            (last, before) = (now, model.clone());
            moment.generation = Some(now);
        }
        moments.push(moment);
    }
    for (number, moment) in moments.iter().enumerate() {
        let version = match table(&mirror, &moment_after(number), 7) {
            Ok(version) => version,
            Err(reason) => {
                prop_assert_eq!(reason, UpstreamReason::NotAPrefix);
                prop_assert_eq!(moment.generation, None, "nobody asked in time");
                continue;
            }
        };
        prop_assert!(moment.generation.is_none_or(|generation| generation == version.generation));
        prop_assert_eq!(&rows(&version), &moment.rows);
        for id in -1..41 {
            let found = version.find(&[0], &[Value::Int4(id)]);
            prop_assert_eq!(found.len(), moment.rows.iter().filter(|row| row.id == id).count());
        }
    }
    // The head survives the retirement of everything else.
    let all = moment_after(transactions.len());
    mirror.retire(&all);
    prop_assert_eq!(mirror.statuses()[0].versions, 1);
    prop_assert_eq!(rows(&table(&mirror, &all, 7).expect("the head")), sorted(&model));
    Ok(())
}

/// The log's images lead from the rows before to the rows after.
fn check_log(
    mirror: &Mirror,
    schema: &Arc<TableSchema>,
    after: Generation,
    through: Generation,
    before: &[Row],
    now: &[Row],
) -> Result<(), TestCaseError> {
    let Some(changes) = mirror.changes_between(schema.id, after, through) else { return Ok(()) };
    let mut counts: BTreeMap<Row, i64> = BTreeMap::new();
    let images = |chunks: &[Arc<crate::table::Chunk>]| {
        let generation = Generation::default();
        rows(&TableVersion::from_chunks(Arc::clone(schema), chunks.iter().cloned(), generation))
    };
    for row in before {
        *counts.entry(row.clone()).or_default() += 1;
    }
    for change in changes {
        for row in images(&change.old) {
            *counts.entry(row).or_default() -= 1;
        }
        for row in images(&change.new) {
            *counts.entry(row).or_default() += 1;
        }
    }
    for row in now {
        *counts.entry(row.clone()).or_default() -= 1;
    }
    prop_assert!(counts.values().all(|count| *count == 0), "left over: {counts:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_version_has_the_models_rows_by_key(
        transactions in proptest::collection::vec((proptest::collection::vec(any_op(), 1..14), any::<bool>()), 1..16),
    ) {
        check_against_model(by_id(), &transactions)?;
    }

    #[test]
    fn every_version_has_the_models_rows_by_a_key_of_two_columns(
        transactions in proptest::collection::vec((proptest::collection::vec(any_op(), 1..14), any::<bool>()), 1..16),
    ) {
        check_against_model(by_kind_and_id(), &transactions)?;
    }

    #[test]
    fn every_version_has_the_models_rows_under_full_identity(
        transactions in proptest::collection::vec((proptest::collection::vec(any_op(), 1..14), any::<bool>()), 1..16),
    ) {
        check_against_model(ReplicaIdentity::Full, &transactions)?;
    }
}
