//! The functions of DuckDB's C API that the bench calls, found by name in the loaded library (duckdb.h).

use std::ffi::{c_char, c_void};
use std::path::Path;

use libloading::Library;

use crate::Error;

/// `duckdb_database`, `duckdb_connection` and the like: pointers to what only DuckDB knows.
pub(crate) type Handle = *mut c_void;

/// `duckdb_state`.
pub(crate) const SUCCESS: i32 = 0;

/// `duckdb_result`, passed by value to some functions.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ResultStruct {
    column_count: u64,
    row_count: u64,
    rows_changed: u64,
    columns: *mut c_void,
    error_message: *mut c_char,
    internal: *mut c_void,
}

impl Default for ResultStruct {
    fn default() -> Self {
        let nothing = std::ptr::null_mut();
        Self {
            column_count: 0,
            row_count: 0,
            rows_changed: 0,
            columns: nothing,
            error_message: nothing.cast(),
            internal: nothing,
        }
    }
}

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        pub(crate) struct Api {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// The functions are valid as long as it is loaded.
            _library: Library,
        }

        impl Api {
            pub(crate) fn load(path: &Path) -> Result<Self, Error> {
                let problem = |error: libloading::Error| Error::Library(format!("{}: {error}", path.display()));
                // SAFETY: the library is DuckDB's, whose initialisers have no preconditions; the types are those of duckdb.h.
                unsafe {
                    let library = Library::new(path).map_err(problem)?;
                    Ok(Self {
                        $($name: *library.get(concat!("duckdb_", stringify!($name)).as_bytes()).map_err(problem)?,)*
                        _library: library,
                    })
                }
            }
        }
    };
}

functions! {
    library_version: fn() -> *const c_char;
    open_ext: fn(*const c_char, *mut Handle, Handle, *mut *mut c_char) -> i32;
    connect: fn(Handle, *mut Handle) -> i32;
    disconnect: fn(*mut Handle);
    close: fn(*mut Handle);
    query: fn(Handle, *const c_char, *mut ResultStruct) -> i32;
    prepare: fn(Handle, *const c_char, *mut Handle) -> i32;
    prepare_error: fn(Handle) -> *const c_char;
    execute_prepared: fn(Handle, *mut ResultStruct) -> i32;
    destroy_prepare: fn(*mut Handle);
    result_error: fn(*mut ResultStruct) -> *const c_char;
    destroy_result: fn(*mut ResultStruct);
    column_count: fn(*mut ResultStruct) -> u64;
    column_type: fn(*mut ResultStruct, u64) -> u32;
    column_logical_type: fn(*mut ResultStruct, u64) -> Handle;
    destroy_logical_type: fn(*mut Handle);
    decimal_scale: fn(Handle) -> u8;
    decimal_internal_type: fn(Handle) -> u32;
    fetch_chunk: fn(ResultStruct) -> Handle;
    destroy_data_chunk: fn(*mut Handle);
    data_chunk_get_size: fn(Handle) -> u64;
    data_chunk_get_vector: fn(Handle, u64) -> Handle;
    vector_get_data: fn(Handle) -> *mut c_void;
    vector_get_validity: fn(Handle) -> *mut u64;
    appender_create: fn(Handle, *const c_char, *const c_char, *mut Handle) -> i32;
    appender_error: fn(Handle) -> *const c_char;
    append_int32: fn(Handle, i32) -> i32;
    append_double: fn(Handle, f64) -> i32;
    append_varchar_length: fn(Handle, *const c_char, u64) -> i32;
    appender_end_row: fn(Handle) -> i32;
    appender_close: fn(Handle) -> i32;
    appender_destroy: fn(*mut Handle) -> i32;
}
