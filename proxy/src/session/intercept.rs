//! What a client says to freshet itself: `SHOW freshet...`, `SET freshet...`, `SELECT ... FROM freshet...`.

/// Whether a query string may be addressed to freshet. Quick to say no.
pub fn is_for_freshet(_sql: &[u8]) -> bool {
    false
}
