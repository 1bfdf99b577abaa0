//! Mistakes that the freshness checker (`tests/checker`) has to find: one is chosen at run time, and only a build with the
//! feature `planted-bugs` has any. In every other build [`is_planted`] is false when it is compiled.

/// One mistake of each class that would break the promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Exact mode reads what the last barrier showed.
    SkipBarrier,
    /// Readers get the newest version instead of the visible one.
    ServeHead,
    /// Some deletions are not applied.
    DropDelete,
    /// A kept reply is held against the first of its relations only.
    ForgetDependency,
    /// A write counts as covered by a barrier that was sent before it was acknowledged.
    MarkEarly,
    /// A kept reply outlives every change that leaves the number of its rows as it was.
    CountChanges,
    /// A frame of rows begins one row late.
    ShiftFrame,
}

/// By the names that the checker uses.
pub const BUGS: [(&str, Bug); 7] = [
    ("skip-barrier", Bug::SkipBarrier),
    ("serve-head", Bug::ServeHead),
    ("drop-delete", Bug::DropDelete),
    ("forget-dependency", Bug::ForgetDependency),
    ("mark-early", Bug::MarkEarly),
    ("count-changes", Bug::CountChanges),
    ("shift-frame", Bug::ShiftFrame),
];

#[cfg(feature = "planted-bugs")]
mod chosen {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::{BUGS, Bug};

    static CHOSEN: AtomicU8 = AtomicU8::new(u8::MAX);

    /// From here on this process makes the mistake.
    pub fn plant(name: &str) -> Result<(), String> {
        let found = BUGS.iter().find(|(known, _)| *known == name);
        let (_, bug) = found.ok_or_else(|| format!("no planted bug {name}"))?;
        CHOSEN.store(*bug as u8, Ordering::SeqCst);
        Ok(())
    }

    pub fn is_planted(bug: Bug) -> bool {
        CHOSEN.load(Ordering::Relaxed) == bug as u8
    }
}

#[cfg(feature = "planted-bugs")]
pub use chosen::{is_planted, plant};

#[cfg(not(feature = "planted-bugs"))]
pub const fn is_planted(_bug: Bug) -> bool {
    false
}
