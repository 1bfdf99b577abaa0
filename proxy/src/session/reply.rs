//! Row batches → wire bytes: DataRow frames with CommandComplete, and the descriptions of a plan's result.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use bytes::Bytes;
use freshet_engine::Engine;
use freshet_engine::catalog::functions::{EvalContext, EvalError};
use freshet_engine::executor::RowBatch;
use freshet_engine::executor::upkeep::KeptGroups;
use freshet_engine::planner::Plan;
use freshet_engine::result_cache::{Course, Done};
use freshet_engine::snapshot::Snapshot;
use freshet_engine::types::encode::{ColumnEncoder, Format, write_rows};
use freshet_engine::types::{FormatSettings, Value};

use crate::wire::extended::write_parameter_description;
use crate::wire::query::{Field, write_command_complete, write_row_description};

/// The rows of an answer on the wire.
pub(super) struct Rows {
    /// DataRow frames and CommandComplete.
    pub(super) frames: Bytes,
    pub(super) count: u64,
    /// To be kept beside the reply, and how they came about.
    pub(super) groups: Option<KeptGroups>,
    pub(super) done: Done,
    /// What the engine took, in microseconds.
    pub(super) run_us: u64,
}

/// What is executed, and how its rows are sent.
pub(super) struct Run<'a> {
    pub(super) plan: &'a Plan,
    pub(super) snapshot: &'a Snapshot,
    pub(super) parameters: &'a [Value],
    pub(super) eval: EvalContext<'a>,
    pub(super) formats: &'a [Format],
}

impl Run<'_> {
    /// Executes and encodes. Ends soon once `is_abandoned`.
    pub(super) fn rows(&self, engine: &Engine, course: &Course, is_abandoned: &AtomicBool) -> Result<Rows, EvalError> {
        let Self { plan, snapshot, parameters, eval, formats } = self;
        let started = Instant::now();
        let (batches, groups, done) = engine.run_course(course, plan, snapshot, parameters, eval, is_abandoned)?;
        let run_us = started.elapsed().as_micros() as u64;
        let count: usize = batches.iter().map(|batch| batch.rows).sum();
        let mut out = Vec::with_capacity(64 + count * (8 + 12 * plan.output.len()));
        for batch in &batches {
            encode(batch, plan, eval.settings, formats, &mut out);
        }
        write_command_complete(&mut out, &format!("SELECT {count}"));
        Ok(Rows { frames: out.into(), count: count as u64, groups, done, run_us })
    }
}

fn encode(batch: &RowBatch, plan: &Plan, settings: &FormatSettings, formats: &[Format], out: &mut Vec<u8>) {
    let described = batch.columns.iter().zip(&plan.output).zip(formats);
    let mut encoders: Vec<ColumnEncoder<'_>> = described
        .map(|((column, output), format)| ColumnEncoder::new(column, output.expr_type.pg_type, *format, settings))
        .collect();
    write_rows(&mut encoders, batch.rows, out);
}

/// A RowDescription frame with the given formats.
pub(super) fn row_description(plan: &Plan, formats: &[Format]) -> Bytes {
    let mut out = Vec::new();
    let fields: Vec<Field<'_>> = fields(plan, formats);
    write_row_description(&mut out, fields.into_iter());
    out.into()
}

/// The result's columns as RowDescription carries them.
pub(super) fn fields<'a>(plan: &'a Plan, formats: &[Format]) -> Vec<Field<'a>> {
    let columns = plan.output.iter().zip(formats);
    columns
        .map(|(column, format)| Field {
            name: column.name.as_bytes(),
            table_oid: column.table_oid,
            attnum: column.attnum,
            type_oid: column.expr_type.pg_type.oid(),
            type_length: column.expr_type.pg_type.type_length(),
            typmod: column.expr_type.typmod,
            format: i16::from(*format == Format::Binary),
        })
        .collect()
}

/// ParameterDescription and RowDescription frames, as Describe of a statement yields them (formats not known yet: 0).
pub(super) fn describe_statement(plan: &Plan) -> (Bytes, Bytes) {
    let mut parameters = Vec::new();
    let types: Vec<u32> = plan.parameters.iter().map(|pg_type| pg_type.oid()).collect();
    write_parameter_description(&mut parameters, &types);
    (parameters.into(), row_description(plan, &vec![Format::Text; plan.output.len()]))
}
