//! Frames: type byte, int32 length (which counts itself), body.

/// What begins at the head of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Fewer than five bytes so far.
    Incomplete,
    /// A length below four: nothing after it can be made sense of.
    Malformed,
    /// `length` counts the whole frame, type byte included.
    Frame { tag: u8, length: usize },
}

/// Bytes before a frame's body.
pub const HEADER_LENGTH: usize = 5;

/// Looks at the next frame without needing all of it.
pub fn head(bytes: &[u8]) -> Head {
    let Some((&[tag, a, b, c, d], _)) = bytes.split_first_chunk::<HEADER_LENGTH>() else {
        return Head::Incomplete;
    };
    match usize::try_from(i32::from_be_bytes([a, b, c, d])) {
        Ok(length) if length >= 4 => Head::Frame { tag, length: length.saturating_add(1) },
        Ok(_) | Err(_) => Head::Malformed,
    }
}

/// One whole frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub tag: u8,
    pub body: &'a [u8],
    /// Header and body.
    pub bytes: &'a [u8],
}

/// The complete frames at the head of some bytes; ends at the first incomplete or malformed one.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    rest: &'a [u8],
}

impl<'a> Frames<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What is left after the frames taken so far.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let Head::Frame { tag, length } = head(self.rest) else {
            return None;
        };
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(Frame { tag, body: bytes.get(HEADER_LENGTH..)?, bytes })
    }
}

/// Takes a message body apart; every method answers `None` past the end.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub fn u8(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub fn i16(&mut self) -> Option<i16> {
        let (chunk, rest) = self.rest.split_first_chunk::<2>()?;
        self.rest = rest;
        Some(i16::from_be_bytes(*chunk))
    }

    pub fn i32(&mut self) -> Option<i32> {
        let (chunk, rest) = self.rest.split_first_chunk::<4>()?;
        self.rest = rest;
        Some(i32::from_be_bytes(*chunk))
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.i32().map(i32::cast_unsigned)
    }

    /// An int16 used as a count: PostgreSQL takes it as unsigned, up to 65,535 parameters.
    pub fn count(&mut self) -> Option<usize> {
        self.i16().map(|count| usize::from(count.cast_unsigned()))
    }

    /// Up to the next NUL, which is consumed.
    pub fn c_string(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|byte| *byte == 0)?;
        let text = self.bytes(end)?;
        self.u8()?;
        Some(text)
    }

    /// An int32 length (-1: NULL) and that many bytes.
    pub fn value(&mut self) -> Option<Option<&'a [u8]>> {
        match self.i32()? {
            -1 => Some(None),
            length => self.bytes(usize::try_from(length).ok()?).map(Some),
        }
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Appends a frame whose body `write` appends.
pub fn write_frame(out: &mut Vec<u8>, tag: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    write_counted(out, write);
}

/// Appends an int32 that counts itself and what `write` appends after it. A body beyond 2 GiB cannot be said in the
/// protocol; its length saturates, and the callers' limits are far below.
pub fn write_counted(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = i32::try_from(out.len().saturating_sub(start)).unwrap_or(i32::MAX);
    if let Some(chunk) = out.get_mut(start..).and_then(|tail| tail.first_chunk_mut::<4>()) {
        *chunk = length.to_be_bytes();
    }
}

/// Appends a NUL-terminated string; a NUL inside would end it early, so it ends there.
pub fn write_c_string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(text.iter().copied().take_while(|byte| *byte != 0));
    out.push(0);
}
