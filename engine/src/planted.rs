//! Mistakes that the freshness checker (`tests/checker`) or the corpus (`tests/tests/corpus.rs`) has to find: one is chosen at
//! run time, and only a build with the feature `planted-bugs` has any. In every other build [`is_planted`] is false when it is
//! compiled.

/// One mistake of each class that would break the promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    // -- of freshness
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
    /// A write that is confined to a key marks another one.
    MarkWrongKey,
    /// A kept reply outlives every change that leaves the number of its rows as it was.
    CountChanges,
    /// Groups that are kept up keep the rows that are gone.
    KeepRows,
    /// Writes to rows with a key are not entered: replies that depend on the key alone live on.
    ForgetKey,
    /// A side of a join that is extended goes without the appended rows.
    DropAppended,
    /// Reads are answered in blocks of every isolation level.
    AnswerSerializable,
    /// Mode standby goes on with what it was last told and shown, however long ago that was.
    KeepBelieving,
    /// A session at another server than the stream is answered from here.
    IgnoreServer,
    // -- of the engine
    /// A numeric quotient has a digit too many.
    WrongScale,
    /// A NULL in the list of NOT IN is overlooked.
    DropNull,
    /// A day is 24 hours, also where the clock is changed.
    DstHour,
    /// A frame of rows begins one row late.
    ShiftFrame,
    /// Integers wrap around.
    WrapInteger,
    /// Numerics are cut, not rounded.
    CutDigits,
    /// A full join forgets a row that matched none.
    LoseRow,
    /// Trailing blanks of char(n) count.
    KeepBlanks,
    /// NULLs are always last.
    NullsLast,
    /// A month after the 31st of January is the 2nd of March.
    EndOfMonth,
}

/// By the names that the checker uses.
pub const BUGS: [(&str, Bug); 13] = [
    ("skip-barrier", Bug::SkipBarrier),
    ("serve-head", Bug::ServeHead),
    ("drop-delete", Bug::DropDelete),
    ("forget-dependency", Bug::ForgetDependency),
    ("mark-early", Bug::MarkEarly),
    ("mark-wrong-key", Bug::MarkWrongKey),
    ("count-changes", Bug::CountChanges),
    ("keep-rows", Bug::KeepRows),
    ("forget-key", Bug::ForgetKey),
    ("drop-appended", Bug::DropAppended),
    ("answer-serializable", Bug::AnswerSerializable),
    ("keep-believing", Bug::KeepBelieving),
    ("ignore-server", Bug::IgnoreServer),
];

/// By the names that the corpus uses.
pub const ENGINE_BUGS: [(&str, Bug); 10] = [
    ("wrong-scale", Bug::WrongScale),
    ("drop-null", Bug::DropNull),
    ("dst-hour", Bug::DstHour),
    ("shift-frame", Bug::ShiftFrame),
    ("wrap-integer", Bug::WrapInteger),
    ("cut-digits", Bug::CutDigits),
    ("lose-row", Bug::LoseRow),
    ("keep-blanks", Bug::KeepBlanks),
    ("nulls-last", Bug::NullsLast),
    ("end-of-month", Bug::EndOfMonth),
];

#[cfg(feature = "planted-bugs")]
mod chosen {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::{BUGS, Bug, ENGINE_BUGS};

    static CHOSEN: AtomicU8 = AtomicU8::new(u8::MAX);

    /// From here on this process makes the mistake.
    pub fn plant(name: &str) -> Result<(), String> {
        let found = BUGS.iter().chain(&ENGINE_BUGS).find(|(known, _)| *known == name);
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
