//! Wire bytes in one or more pieces: a long reply is kept as it was put together, without a copy into one allocation that was
//! made for more than it needs.

use bytes::Bytes;

/// Each piece ends where a frame does. A reply in one piece allocates nothing beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    first: Bytes,
    more: Box<[Bytes]>,
}

impl Pieces {
    pub fn iter(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.first).chain(&self.more)
    }

    /// Bytes of all pieces.
    pub fn len(&self) -> usize {
        self.iter().map(Bytes::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// With what is kept to hold them together.
    pub fn resident_bytes(&self) -> usize {
        self.len() + self.more.len() * size_of::<Bytes>()
    }
}

impl From<Bytes> for Pieces {
    fn from(first: Bytes) -> Self {
        Self { first, more: Box::default() }
    }
}

impl From<Vec<u8>> for Pieces {
    fn from(first: Vec<u8>) -> Self {
        Bytes::from(first).into()
    }
}

impl FromIterator<Bytes> for Pieces {
    fn from_iter<I: IntoIterator<Item = Bytes>>(pieces: I) -> Self {
        let mut pieces = pieces.into_iter();
        Self { first: pieces.next().unwrap_or_default(), more: pieces.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stay_in_order() {
        let made: Pieces = [&b"ab"[..], b"", b"c"].into_iter().map(Bytes::from_static).collect();
        assert_eq!(made.iter().flatten().copied().collect::<Vec<u8>>(), b"abc");
        assert_eq!((made.len(), made.is_empty()), (3, false));
        assert!(Pieces::default().is_empty() && Pieces::from(Vec::new()).is_empty());
    }
}
