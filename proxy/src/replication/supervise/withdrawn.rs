//! Tables that an application's writes want out of the publication.
//!
//! A migration that drops a table's key, writes the table and gives it another key, all in one transaction, fails as long as the table
//! is published, and leaves nothing behind that anybody could see (PostgreSQL: execReplication.c, CheckCmdReplicaIdentity). Its session
//! gets the error; through freshet that is seen, so that it succeeds when it is run again.

use std::time::Duration;

use tokio::time::Instant;

use crate::replication::supervise::{Replication, Wanted};

/// Migrations are run again within this time, by people or programs.
const WITHDRAWN_FOR: Duration = Duration::from_secs(600);

impl Replication {
    /// Takes the tables that `message` names, PostgreSQL's in whatever language, out of the publication for a while.
    pub fn make_way(&self, message: &[u8]) {
        let shared = &self.shared;
        let loaded = self.loaded();
        let mut withdrawn = Vec::new();
        let mut tables = shared.tables.lock();
        for (relation, entry) in tables.iter_mut().filter(|(_, entry)| entry.is_watched()) {
            if loaded.tables.get(relation).is_some_and(|facts| is_named(message, facts.schema.name.as_bytes())) {
                entry.attempt += 1;
                let why = "a write failed because it is published and lost its replica identity within a transaction";
                entry.state = Wanted::Due(Instant::now() + WITHDRAWN_FOR, why.into());
                withdrawn.push(*relation);
            }
        }
        drop(tables);
        if withdrawn.is_empty() {
            return;
        }
        tracing::warn!(
            message = %String::from_utf8_lossy(message),
            "a table is taken out of the publication for ten minutes, so that what failed can be run again"
        );
        self.free(shared.mirror.forget(&withdrawn));
        shared.strays.lock().extend(withdrawn);
    }
}

/// Whether the name stands there in quotes, of whichever language.
fn is_named(message: &[u8], name: &[u8]) -> bool {
    let is_of_name =
        |byte: Option<&u8>| byte.is_none_or(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b' '));
    message.windows(name.len().max(1)).enumerate().any(|(at, found)| {
        found == name && !is_of_name(message[..at].last()) && !is_of_name(message.get(at + name.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_found_in_the_message_whatever_the_language() {
        let english = b"cannot update table \"s1\" because it does not have a replica identity and publishes updates";
        assert!(is_named(english, b"s1"));
        assert!(!is_named(english, b"table") && !is_named(english, b"publishes"));
        assert!(!is_named(english, b"s") && !is_named(english, b"s12") && !is_named(english, b""));
        assert!(is_named("kann Tabelle „große Maße“ nicht".as_bytes(), "große Maße".as_bytes()));
    }
}
