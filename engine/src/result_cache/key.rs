//! [`ResultKey`]: everything that decides a reply's bytes, as one byte string that is reused from look-up to look-up.

/// The parts of a key, borrowed from the session's buffers.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyParts<'a> {
    /// Stands for database, effective role and every setting that can change an answer (interned by full comparison).
    pub settings_id: u64,
    /// The snapshot that the session is pinned to: its replies would only drive out those of others. Zero: none.
    pub snapshot: [u8; 16],
    /// Simple and extended replies differ in framing and formats.
    pub is_extended: bool,
    pub sql: &'a [u8],
    /// The declared parameter type OIDs, as sent in Parse.
    pub parameter_types: &'a [u8],
    /// As sent in Bind, all three.
    pub parameter_formats: &'a [u8],
    pub parameters: &'a [u8],
    pub result_formats: &'a [u8],
}

/// A key as bytes; parts carry their lengths, so that they cannot run into each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResultKey {
    bytes: Vec<u8>,
}

impl ResultKey {
    /// Rewrites the key in place; allocates only while the buffer still grows.
    pub fn set(&mut self, parts: &KeyParts<'_>) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&parts.settings_id.to_le_bytes());
        self.bytes.push(u8::from(parts.is_extended));
        self.bytes.extend_from_slice(&parts.snapshot);
        let pieces =
            [parts.sql, parts.parameter_types, parts.parameter_formats, parts.parameters, parts.result_formats];
        for part in pieces {
            self.bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            self.bytes.extend_from_slice(part);
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}
