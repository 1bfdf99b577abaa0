//! Loads the demo's Parquet files into PostgreSQL by `COPY ... FROM STDIN` in text format.

use std::fs::File;
use std::path::Path;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int16Type, Int32Type, TimeUnit, TimestampMicrosecondType};
use bytes::{BufMut, BytesMut};
use futures_util::SinkExt;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tokio_postgres::Client;

use super::DemoError;

/// Tables in an order that satisfies their foreign keys.
pub(super) const TABLES: [&str; 5] = ["airlines", "airports", "planes", "weather", "flights"];

/// Rows of a Parquet file, from its footer.
pub(super) fn row_count(folder: &Path, table: &str) -> Result<u64, DemoError> {
    let reader = open(folder, table)?;
    Ok(u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0))
}

/// Copies one file into the table of its name; `progress` is told the rows sent so far.
pub(super) async fn load(
    client: &Client,
    folder: &Path,
    table: &str,
    mut progress: impl FnMut(u64),
) -> Result<(), DemoError> {
    let reader = open(folder, table)?.with_batch_size(8192).build().map_err(|e| DemoError::data(table, e))?;
    let sink = client.copy_in(&format!("COPY {table} FROM STDIN")).await?;
    let mut sink = std::pin::pin!(sink);
    let mut rows = 0;
    for batch in reader {
        let batch = batch.map_err(|e| DemoError::data(table, e))?;
        let mut text = BytesMut::with_capacity(1 << 20);
        write_rows(&batch, &mut text).map_err(|e| DemoError::data(table, e))?;
        sink.send(text.freeze()).await?;
        rows += batch.num_rows() as u64;
        progress(rows);
    }
    sink.as_mut().finish().await?;
    Ok(())
}

fn open(folder: &Path, table: &str) -> Result<ParquetRecordBatchReaderBuilder<File>, DemoError> {
    let path = folder.join(format!("{table}.parquet"));
    let file = File::open(&path).map_err(|e| DemoError::data(path.display(), e))?;
    ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| DemoError::data(path.display(), e))
}

/// PostgreSQL: COPY, text format. The data has no backslash, tab or newline in its strings; escaped all the same.
fn write_rows(batch: &RecordBatch, text: &mut BytesMut) -> Result<(), String> {
    for row in 0..batch.num_rows() {
        for (position, column) in batch.columns().iter().enumerate() {
            if position > 0 {
                text.put_u8(b'\t');
            }
            if column.is_null(row) {
                text.put_slice(b"\\N");
                continue;
            }
            let cell = match column.data_type() {
                DataType::Int16 => column.as_primitive::<Int16Type>().value(row).to_string(),
                DataType::Int32 => column.as_primitive::<Int32Type>().value(row).to_string(),
                DataType::Float64 => column.as_primitive::<Float64Type>().value(row).to_string(),
                DataType::Utf8 => escape(column.as_string::<i32>().value(row)),
                DataType::Timestamp(TimeUnit::Microsecond, _) => {
                    let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
                    jiff::Timestamp::from_microsecond(micros).map_err(|e| e.to_string())?.to_string()
                }
                other => return Err(format!("no column of type {other} is expected")),
            };
            text.put_slice(cell.as_bytes());
        }
        text.put_u8(b'\n');
    }
    Ok(())
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}
