//! Building chunks from PostgreSQL's binary or text values: [`TableBuilder`] for a first copy.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, NullArray};

use super::{CHUNK_ROWS, Chunk, Generation, TableVersion, mirrored_columns};
use crate::catalog::{ColumnSchema, TableSchema};
use crate::types::build::ColumnBuilder;
use crate::types::text::ParseError;
use crate::types::{FormatSettings, PgType, Value};

/// A chunk is ended early at this many bytes of values: string offsets are 32 bits wide, and merging chunks copies them.
pub(super) const CHUNK_BYTES_MAX: usize = 128 << 20;

/// A value that cannot be held here (malformed, or beyond the engine's range): the table cannot be mirrored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column \"{column}\": {problem}")]
pub struct RowError {
    pub column: Arc<str>,
    pub problem: String,
}

/// Collects the rows of one range of a table's first copy. Several builders may work on several ranges;
/// [`TableVersion::of_ranges`] puts them together.
pub struct TableBuilder {
    schema: Arc<TableSchema>,
    columns: Vec<usize>,
    rows: ChunkBuilder,
    chunks: Vec<Arc<Chunk>>,
    /// Of the chunks; both are asked for again and again while a copy runs.
    chunk_rows: usize,
    chunk_bytes: usize,
}

impl TableBuilder {
    pub fn new(schema: Arc<TableSchema>) -> Self {
        let columns = mirrored_columns(&schema);
        let rows = ChunkBuilder::new(Arc::clone(&schema));
        Self { schema, columns, rows, chunks: Vec::new(), chunk_rows: 0, chunk_bytes: 0 }
    }

    /// Appends one row of `COPY ... (FORMAT binary)`: one cell per column of [`mirrored_columns`], in that order, None
    /// for NULL. After an error the builder is of no more use.
    pub fn append_copy_row<'a>(
        &mut self,
        cells: impl IntoIterator<Item = Option<&'a [u8]>, IntoIter: ExactSizeIterator>,
    ) -> Result<(), RowError> {
        let cells = cells.into_iter();
        if cells.len() != self.columns.len() {
            let problem = format!("{} cells for {} columns", cells.len(), self.columns.len());
            return Err(RowError { column: Arc::clone(&self.schema.name), problem });
        }
        for (column, cell) in self.columns.iter().zip(cells) {
            self.rows.append_binary(*column, cell)?;
        }
        if self.rows.end_row() {
            self.end_chunk();
        }
        Ok(())
    }

    /// Resident estimate, for the memory cap while the copy runs.
    pub fn bytes(&self) -> usize {
        self.rows.bytes + self.chunk_bytes
    }

    pub fn rows(&self) -> usize {
        self.rows.rows + self.chunk_rows
    }

    pub fn finish(mut self) -> Vec<Arc<Chunk>> {
        if self.rows.rows > 0 {
            self.end_chunk();
        }
        self.chunks
    }

    fn end_chunk(&mut self) {
        let full = std::mem::replace(&mut self.rows, ChunkBuilder::new(Arc::clone(&self.schema))).finish();
        self.rows = ChunkBuilder::following(Arc::clone(&self.schema), &full);
        self.chunk_rows += full.rows;
        self.chunk_bytes += full.bytes();
        self.chunks.push(Arc::new(full));
    }
}

impl TableVersion {
    /// The table of these ranges, in this order. The generation is the mirror's to give when it publishes the copy.
    pub fn of_ranges(schema: Arc<TableSchema>, ranges: impl IntoIterator<Item = TableBuilder>) -> Self {
        let chunks = ranges.into_iter().flat_map(TableBuilder::finish);
        Self::from_chunks(schema, chunks, Generation::default())
    }
}

/// One cell on its way into a column.
#[derive(Clone, Debug)]
pub(crate) enum CellValue<'a> {
    Null,
    Text(&'a [u8]),
    Binary(&'a [u8]),
    Value(Value),
}

/// Rows of one chunk, cell by cell.
pub(crate) struct ChunkBuilder {
    schema: Arc<TableSchema>,
    /// None where the column is not mirrored.
    builders: Vec<Option<ColumnBuilder>>,
    rows: usize,
    bytes: usize,
    /// How the stream writes values that have no binary form.
    settings: FormatSettings,
}

impl ChunkBuilder {
    pub(crate) fn new(schema: Arc<TableSchema>) -> Self {
        Self::for_rows(schema, 0)
    }

    /// For so many rows; 0: it is not known how many.
    pub(crate) fn for_rows(schema: Arc<TableSchema>, rows: usize) -> Self {
        let rows = rows.min(CHUNK_ROWS);
        Self::with_builders(schema, |_, column, pg_type| ColumnBuilder::with_capacity(pg_type, column.typmod, rows))
    }

    /// For the rows after a full chunk, about as many: their dictionaries are shared where they can be.
    fn following(schema: Arc<TableSchema>, previous: &Chunk) -> Self {
        Self::with_builders(schema, |number, column, pg_type| {
            ColumnBuilder::following(pg_type, column.typmod, previous.rows, &previous.columns[number])
        })
    }

    fn with_builders(
        schema: Arc<TableSchema>,
        builder: impl Fn(usize, &ColumnSchema, PgType) -> ColumnBuilder,
    ) -> Self {
        let columns = schema.columns.iter().enumerate();
        let builders = columns.map(|(number, column)| Some(builder(number, column, column.pg_type?))).collect();
        Self { schema, builders, rows: 0, bytes: 0, settings: FormatSettings::default() }
    }

    /// Appends to one mirrored column; a column that is not mirrored ignores it.
    pub(crate) fn append(&mut self, column: usize, cell: CellValue<'_>) -> Result<(), RowError> {
        let Some(builder) = &mut self.builders[column] else { return Ok(()) };
        let appended = match cell {
            CellValue::Null => return self.append_binary(column, None),
            CellValue::Text(bytes) => {
                self.bytes += bytes.len();
                builder.append_text(bytes, &self.settings)
            }
            CellValue::Binary(bytes) => return self.append_binary(column, Some(bytes)),
            CellValue::Value(value) => {
                self.bytes += value.bytes();
                builder.append_value(&value);
                Ok(())
            }
        };
        appended.map_err(|error| self.row_error(column, &error))
    }

    /// As [`ChunkBuilder::append`]; None is NULL.
    #[inline]
    fn append_binary(&mut self, column: usize, cell: Option<&[u8]>) -> Result<(), RowError> {
        let Some(builder) = &mut self.builders[column] else { return Ok(()) };
        let Some(bytes) = cell else {
            builder.append_null();
            return Ok(());
        };
        self.bytes += bytes.len();
        builder.append_binary(bytes).map_err(|error| self.row_error(column, &error))
    }

    #[cold]
    fn row_error(&self, column: usize, error: &ParseError) -> RowError {
        RowError { column: Arc::clone(&self.schema.columns[column].name), problem: format!("{error:?}") }
    }

    /// Counts a row whose cells have all been appended; true if the chunk is full.
    pub(crate) fn end_row(&mut self) -> bool {
        self.rows += 1;
        self.rows == CHUNK_ROWS || self.bytes >= CHUNK_BYTES_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub(crate) fn finish(self) -> Chunk {
        let rows = self.rows;
        let column = |builder: Option<ColumnBuilder>| -> ArrayRef {
            let Some(builder) = builder else { return Arc::new(NullArray::new(rows)) };
            let mut array = builder.finish();
            // Buffers that grew by doubling are half empty at worst.
            array.shrink_to_fit();
            array
        };
        let columns = self.builders.into_iter().map(column).collect();
        Chunk::new(&self.schema, columns, rows)
    }
}
