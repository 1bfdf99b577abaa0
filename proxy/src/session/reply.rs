//! Row batches → wire bytes: DataRow frames with CommandComplete, and the descriptions of a plan's result.

use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use freshet_engine::Engine;
use freshet_engine::catalog::functions::{EvalContext, EvalError};
use freshet_engine::executor::RowBatch;
use freshet_engine::planner::Plan;
use freshet_engine::snapshot::Snapshot;
use freshet_engine::types::encode::{ColumnEncoder, Format, write_rows};
use freshet_engine::types::{FormatSettings, Value};

use crate::wire::extended::write_parameter_description;
use crate::wire::query::{Field, write_command_complete, write_row_description};

/// Executes and encodes: DataRow frames and CommandComplete, and the number of rows. Ends soon once `is_abandoned`.
pub(super) fn run(
    engine: &Engine,
    plan: &Plan,
    snapshot: &Snapshot,
    parameters: &[Value],
    eval: &EvalContext<'_>,
    formats: &[Format],
    is_abandoned: &AtomicBool,
) -> Result<(Bytes, u64), EvalError> {
    let batches = engine.run(plan, snapshot, parameters, eval, is_abandoned)?;
    let row_count: usize = batches.iter().map(|batch| batch.rows).sum();
    let mut out = Vec::with_capacity(64 + row_count * (8 + 12 * plan.output.len()));
    for batch in &batches {
        encode(batch, plan, eval.settings, formats, &mut out);
    }
    write_command_complete(&mut out, &format!("SELECT {row_count}"));
    Ok((out.into(), row_count as u64))
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
