//! DuckDB in process, for comparison: databases in memory, statements, rows.
//!
//! Nothing is linked: the shared library is loaded when a suite asks for it ([`mod@fetch`]), so that ordinary builds need
//! neither it nor a C++ compiler. [`mod@api`] holds the functions of its C API (DuckDB documentation, Clients, C); only
//! these two files know that they are foreign.
#![expect(unsafe_code, reason = "a C API; every block says why it is sound")]

mod api;
pub mod fetch;
mod vector;

use std::ffi::{CStr, CString, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;

use crate::api::{Api, Handle, ResultStruct, SUCCESS};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library is not there, or is another one than expected.
    #[error("{0}")]
    Library(String),
    /// What DuckDB says about a statement.
    #[error("DuckDB: {0}")]
    Statement(String),
}

/// The loaded library.
#[derive(Clone)]
pub struct DuckDb(Arc<Api>);

/// A database in memory with one connection; gone when dropped.
pub struct Database {
    api: Arc<Api>,
    database: Handle,
    connection: Handle,
}

/// A prepared statement of a [`Database`].
pub struct Statement<'d> {
    database: &'d Database,
    handle: Handle,
}

/// Rows on their way into a table.
pub struct Appender<'d> {
    database: &'d Database,
    handle: Handle,
}

/// A row; None for NULL. Integers, decimals and dates in PostgreSQL's text, doubles in Rust's.
pub type Row = Vec<Option<String>>;

impl DuckDb {
    pub fn load(path: &Path) -> Result<Self, Error> {
        Ok(Self(Arc::new(Api::load(path)?)))
    }

    pub fn version(&self) -> String {
        // SAFETY: takes nothing, returns a constant string.
        let text = unsafe { CStr::from_ptr((self.0.library_version)()) };
        text.to_string_lossy().into_owned()
    }

    /// A new, empty database.
    pub fn open(&self, threads: usize) -> Result<Database, Error> {
        let api = Arc::clone(&self.0);
        let (mut database, mut connection) = (null_mut(), null_mut());
        // SAFETY: the out parameters live through the calls; no path means in memory, no configuration the default.
        let opened = unsafe {
            (api.open_ext)(std::ptr::null(), &raw mut database, null_mut(), null_mut()) == SUCCESS
                && (api.connect)(database, &raw mut connection) == SUCCESS
        };
        if !opened {
            return Err(Error::Library("DuckDB opens no database in memory".into()));
        }
        let opened = Database { api, database, connection };
        opened.set_threads(threads)?;
        Ok(opened)
    }
}

impl Database {
    pub fn set_threads(&self, threads: usize) -> Result<(), Error> {
        self.query(&format!("SET threads TO {threads}")).map(|_| ())
    }

    /// Runs a text and reads every value of its result; the number of rows.
    pub fn query(&self, sql: &str) -> Result<usize, Error> {
        self.ask(sql)?.count()
    }

    /// The rows of a text.
    pub fn rows(&self, sql: &str) -> Result<Vec<Row>, Error> {
        self.ask(sql)?.rows()
    }

    pub fn prepare(&self, sql: &str) -> Result<Statement<'_>, Error> {
        let text = c_string(sql)?;
        let mut handle = null_mut();
        // SAFETY: the connection is open while `self` lives; the text and the out parameter live through the call.
        let state = unsafe { (self.api.prepare)(self.connection, text.as_ptr(), &raw mut handle) };
        let statement = Statement { database: self, handle };
        if state == SUCCESS {
            return Ok(statement);
        }
        // SAFETY: the handle was set by the call above, also when it failed, and is destroyed with `statement`.
        let problem = unsafe { message((self.api.prepare_error)(handle)) };
        Err(Error::Statement(format!("{problem}: {sql}")))
    }

    pub fn append(&self, table: &str) -> Result<Appender<'_>, Error> {
        let name = c_string(table)?;
        let mut handle = null_mut();
        // SAFETY: as in `prepare`; no schema means the default one.
        let state =
            unsafe { (self.api.appender_create)(self.connection, std::ptr::null(), name.as_ptr(), &raw mut handle) };
        let appender = Appender { database: self, handle };
        if state == SUCCESS { Ok(appender) } else { Err(appender.problem()) }
    }

    fn ask(&self, sql: &str) -> Result<Answer<'_>, Error> {
        let text = c_string(sql)?;
        let mut answer = Answer { api: &self.api, result: ResultStruct::default() };
        // SAFETY: as in `prepare`; the result is destroyed with `answer`, as it has to be also after an error.
        let state = unsafe { (self.api.query)(self.connection, text.as_ptr(), &raw mut answer.result) };
        answer.checked(state, sql)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: both were opened in `open` and nobody else closes them; statements borrow the database.
        unsafe {
            (self.api.disconnect)(&raw mut self.connection);
            (self.api.close)(&raw mut self.database);
        }
    }
}

impl Statement<'_> {
    /// Runs it and reads every value of its result; the number of rows.
    pub fn run(&self) -> Result<usize, Error> {
        let api = &self.database.api;
        let mut answer = Answer { api, result: ResultStruct::default() };
        // SAFETY: the handle is valid while `self` lives; the result is destroyed with `answer`.
        let state = unsafe { (api.execute_prepared)(self.handle, &raw mut answer.result) };
        answer.checked(state, "a prepared statement")?.count()
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `prepare`, destroyed once.
        unsafe { (self.database.api.destroy_prepare)(&raw mut self.handle) };
    }
}

impl Appender<'_> {
    pub fn int(&mut self, value: i32) -> Result<(), Error> {
        // SAFETY: the appender is open while `self` lives; so it is in the functions below.
        let state = unsafe { (self.database.api.append_int32)(self.handle, value) };
        self.check(state)
    }

    pub fn double(&mut self, value: f64) -> Result<(), Error> {
        // SAFETY: see `int`.
        let state = unsafe { (self.database.api.append_double)(self.handle, value) };
        self.check(state)
    }

    pub fn text(&mut self, value: &str) -> Result<(), Error> {
        // SAFETY: see `int`; the bytes are copied during the call.
        let state = unsafe {
            (self.database.api.append_varchar_length)(self.handle, value.as_ptr().cast(), value.len() as u64)
        };
        self.check(state)
    }

    pub fn end_row(&mut self) -> Result<(), Error> {
        // SAFETY: see `int`.
        let state = unsafe { (self.database.api.appender_end_row)(self.handle) };
        self.check(state)
    }

    /// Everything is in the table afterwards.
    pub fn finish(self) -> Result<(), Error> {
        // SAFETY: see `int`; closing twice is allowed (it happens again in `drop`).
        let state = unsafe { (self.database.api.appender_close)(self.handle) };
        self.check(state)
    }

    fn check(&self, state: i32) -> Result<(), Error> {
        if state == SUCCESS { Ok(()) } else { Err(self.problem()) }
    }

    fn problem(&self) -> Error {
        // SAFETY: the text belongs to the appender, which lives.
        Error::Statement(unsafe { message((self.database.api.appender_error)(self.handle)) })
    }
}

impl Drop for Appender<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `append`, destroyed once.
        unsafe { (self.database.api.appender_destroy)(&raw mut self.handle) };
    }
}

/// One result, destroyed when dropped.
struct Answer<'d> {
    api: &'d Api,
    result: ResultStruct,
}

impl Answer<'_> {
    fn checked(mut self, state: i32, sql: &str) -> Result<Self, Error> {
        if state == SUCCESS {
            return Ok(self);
        }
        // SAFETY: the result was set by the call that failed; the text belongs to it.
        let problem = unsafe { message((self.api.result_error)(&raw mut self.result)) };
        Err(Error::Statement(format!("{problem}: {sql}")))
    }

    fn count(mut self) -> Result<usize, Error> {
        let columns = vector::columns(self.api, &mut self.result)?;
        let mut rows = 0;
        while let Some(chunk) = self.chunk() {
            for (at, kind) in columns.iter().enumerate() {
                std::hint::black_box(vector::checksum(self.api, chunk.handle, at, *kind, chunk.rows()));
            }
            rows += chunk.rows();
        }
        Ok(rows)
    }

    fn rows(mut self) -> Result<Vec<Row>, Error> {
        let columns = vector::columns(self.api, &mut self.result)?;
        let mut rows = Vec::new();
        while let Some(chunk) = self.chunk() {
            for row in 0..chunk.rows() {
                let cell = |(at, kind)| vector::cell(self.api, chunk.handle, at, kind, row);
                rows.push(columns.iter().copied().enumerate().map(cell).collect());
            }
        }
        Ok(rows)
    }

    fn chunk(&self) -> Option<Chunk<'_>> {
        // SAFETY: the result is a successful one and lives; a chunk is destroyed with its wrapper.
        let handle = unsafe { (self.api.fetch_chunk)(self.result) };
        (!handle.is_null()).then_some(Chunk { api: self.api, handle })
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        // SAFETY: destroyed once; a result of zeros is allowed.
        unsafe { (self.api.destroy_result)(&raw mut self.result) };
    }
}

struct Chunk<'d> {
    api: &'d Api,
    handle: Handle,
}

impl Chunk<'_> {
    fn rows(&self) -> usize {
        // SAFETY: the chunk lives.
        unsafe { (self.api.data_chunk_get_size)(self.handle) as usize }
    }
}

impl Drop for Chunk<'_> {
    fn drop(&mut self) {
        // SAFETY: fetched once, destroyed once.
        unsafe { (self.api.destroy_data_chunk)(&raw mut self.handle) };
    }
}

fn c_string(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::Statement("a text with a zero byte".into()))
}

/// The text behind a pointer that may be null.
///
/// # Safety
/// If it is not null, a string that ends with zero and lives through the call.
unsafe fn message(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return "no reason given".into();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

// SAFETY: DuckDB's connections may be used from any thread, one at a time; `Database` is not `Sync`.
unsafe impl Send for Database {}

const _: () = assert!(size_of::<*mut c_void>() == 8, "vector.rs reads DuckDB's 64-bit layout of strings");
