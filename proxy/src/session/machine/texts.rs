//! What texts do, as far as it is sure how upstream reads them.

use std::sync::Arc;

use freshet_engine::catalog::{Catalog, Restricted};
use freshet_engine::statement::hanging::quotes_hang_on_settings;
use freshet_engine::statement::skeleton::Skeleton;

use crate::session::answer::PreparedStatement;
use crate::session::effect::{Effect, Judged, Written, judge, worst};
use crate::session::machine::Machine;
use crate::session::settings::PROBED;

/// A longer text is not remembered together with its effects.
const JUDGED_BYTES_MAX: usize = 1024;

impl Machine {
    /// What a text does. None of it is sure where quotes may mean something else. A text is judged when it is decided upon
    /// and when it is relayed, and often comes again in the next unit, or with another number: the last one is remembered. In a plain relay
    /// only freshet's own settings depend on it, and what is not addressed to freshet changes them by ending a block.
    pub fn judge(&self, sql: &[u8]) -> Judged {
        if !self.limits.answers_locally && is_about_rows(sql) {
            return Judged { effects: Vec::new(), changes: None, written: Written::NOTHING };
        }
        if self.tracker.distrusts(sql) || (quotes_hang_on_settings(sql) && self.settings_of_texts_may_change()) {
            return Judged::unread();
        }
        let mut last = self.judged.borrow_mut();
        match &*last {
            Some((text, judged)) if text.fits(sql) => judged.clone(),
            _ => {
                let judged = judge(sql, self.limits.schema, self.limits.tells_keys, self.catalog.as_deref());
                // No number makes a harmless text another.
                let is_harmless = judged.changes.is_none() && judged.effects == [Effect::Neutral];
                let skeleton = if is_harmless { Skeleton::open } else { Skeleton::closed };
                *last = (sql.len() <= JUDGED_BYTES_MAX).then(|| (skeleton(sql), judged.clone()));
                judged
            }
        }
    }

    /// Upstream's catalog is another: so may be what names of functions mean.
    pub fn note_catalog(&mut self, catalog: Option<Arc<Catalog>>) {
        self.catalog = catalog;
        *self.judged.borrow_mut() = None;
    }

    /// A probe inside the block would not fail it: everybody may ask what it asks, and no time limit cuts it off.
    pub fn may_probe_inside(&self) -> bool {
        let is_everybodys = |catalog: &Arc<Catalog>| {
            let Restricted { names, is_behind_operators } = &catalog.restricted;
            !is_behind_operators && !PROBED.iter().any(|name| names.contains(*name))
        };
        self.catalog.as_ref().is_none_or(is_everybodys) && self.tracker.may_probe_inside()
    }

    /// The number of the catalog that texts are judged by.
    pub(super) fn judging_catalog(&self) -> u64 {
        self.catalog.as_ref().map_or(0, |catalog| catalog.version)
    }

    /// False: by the catalog of now the statement may do anything, by that of its Parse it did not.
    pub(super) fn is_as_judged(&self, statement: &PreparedStatement) -> bool {
        statement.judged_under == self.judging_catalog()
            || statement.effect == Effect::Opaque
            || worst(&self.judge(&statement.sql).effects) != Effect::Opaque
    }

    /// Whether something is under way upstream after which quotes, or bytes beyond ASCII, may mean something else than they do now.
    fn settings_of_texts_may_change(&self) -> bool {
        if self.expected.is_empty() {
            return false;
        }
        let mut due = self.expected.iter().filter_map(|entry| entry.due.as_ref()).flat_map(|due| due.iter());
        !self.tracker.reads_texts_alike() || due.any(|changes| changes.iter().any(|change| change.may_change_reading()))
    }
}

/// One statement about rows, by its first word.
fn is_about_rows(sql: &[u8]) -> bool {
    const WORDS: [&[u8]; 5] = [b"select ", b"insert ", b"update ", b"delete ", b"copy "];
    let text = sql.trim_ascii_start();
    let begins = |word: &&[u8]| text.get(..word.len()).is_some_and(|first| first.eq_ignore_ascii_case(word));
    WORDS.iter().any(begins) && !text.contains(&b';')
}
