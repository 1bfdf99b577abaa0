//! What collations do, by their providers and names.

use std::collections::HashMap;
use std::sync::Arc;

use freshet_engine::catalog::Collation;
use freshet_engine::types::Oid;
use tokio_postgres::Transaction;

use crate::upstream::UpstreamError;

/// `pg_collation.dat`: the collation that stands for the database's own.
const DEFAULT_COLLATION: Oid = 100;
/// "C", as opposed to "POSIX".
const C_COLLATION: Oid = 950;

pub(super) struct Collations {
    pub(super) default: Collation,
    others: HashMap<Oid, Collation>,
    pub(super) named: HashMap<Arc<str>, HashMap<Arc<str>, Collation>>,
}

impl Collations {
    pub(super) fn of(&self, oid: Oid) -> Collation {
        match oid {
            0 => Collation::None,
            DEFAULT_COLLATION => self.default,
            other => self.others.get(&other).copied().unwrap_or(Collation::NonDeterministic(other)),
        }
    }
}

/// What a collation or database locale does, by provider and name (PostgreSQL: pg_locale.c lc_collate_is_c).
fn collation(oid: Oid, provider: &str, is_deterministic: bool, collate: &str, ctype: &str, locale: &str) -> Collation {
    let is_c = |name: &str| matches!(name, "C" | "POSIX");
    match provider {
        _ if !is_deterministic => Collation::NonDeterministic(oid),
        // Order and character classes must both be C: upper() under C touches ASCII only.
        "c" if is_c(collate) && is_c(ctype) => Collation::C,
        "b" if locale == "C" => Collation::C,
        // Code points in order, whatever the characters' case (pg_locale_builtin.c).
        "b" => Collation::Bytewise(oid),
        "i" if has_own_letters(locale) => Collation::OwnCase(oid),
        // ICU's titles begin at its own word boundaries ("It's" where C says "It'S").
        "i" => Collation::OwnTitles(oid),
        _ if has_own_letters(ctype) => Collation::OwnCase(oid),
        _ if is_c(collate) => Collation::Bytewise(oid),
        _ => Collation::Deterministic(oid),
    }
}

/// Languages in which I is not the upper case of i (Turkish and its relatives), or where a letter's case depends on its
/// neighbours (Lithuanian and Greek in ICU).
fn has_own_letters(locale: &str) -> bool {
    let name = locale.to_ascii_lowercase();
    let language = name.split(['_', '-', '.', '@']).next().unwrap_or_default();
    ["tr", "tur", "az", "aze", "ku", "kur", "crh", "tt", "tat", "lt", "lit", "el", "ell", "gre"].contains(&language)
        || name.starts_with("turkish")
        || name.starts_with("azer")
}

pub(super) async fn load_collations(transaction: &Transaction<'_>) -> Result<Collations, UpstreamError> {
    // Through JSON because the columns differ between major versions: daticulocale (15), datlocale (17).
    let database = transaction
        .query_one(
            "SELECT coalesce(j->>'datlocprovider', 'c'), j->>'datcollate', j->>'datctype',
                    coalesce(j->>'datlocale', j->>'daticulocale', '')
               FROM pg_database d, to_jsonb(d) j WHERE datname = current_database()",
            &[],
        )
        .await?;
    let default =
        collation(DEFAULT_COLLATION, database.get(0), true, database.get(1), database.get(2), database.get(3));
    let rows = transaction
        .query(
            "SELECT c.oid, j->>'collprovider', collisdeterministic, coalesce(j->>'collcollate', ''),
                    coalesce(j->>'collctype', ''), coalesce(j->>'colllocale', j->>'colliculocale', ''),
                    nspname::text, collname::text, collencoding IN (-1, encoding) AND nspname !~ '^pg_(toast_)?temp_'
               FROM pg_collation c JOIN pg_namespace n ON n.oid = collnamespace, to_jsonb(c) j, pg_database
              WHERE datname = current_database() ORDER BY collencoding",
            &[],
        )
        .await?;
    let mut collations = Collations { default, others: HashMap::new(), named: HashMap::new() };
    for row in rows {
        let oid: Oid = row.get(0);
        let found = match oid {
            DEFAULT_COLLATION => default,
            _ => collation(oid, row.get(1), row.get(2), row.get(3), row.get(4), row.get(5)),
        };
        // "POSIX" and "C" compare alike, but to combine them is an error: only one of them may be the engine's C, the database's
        // default if that is one.
        let own = if default == Collation::C { DEFAULT_COLLATION } else { C_COLLATION };
        let found = if found == Collation::C && oid != own { Collation::Bytewise(oid) } else { found };
        collations.others.insert(oid, found);
        // One of the database's own encoding comes before one of any (namespace.c, lookup_collation): it is the later row.
        if row.get(8) {
            let (schema, name): (String, String) = (row.get(6), row.get(7));
            collations.named.entry(schema.into()).or_default().insert(name.into(), found);
        }
    }
    Ok(collations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_c_in_order_and_in_classes_counts_as_c() {
        assert_eq!(collation(950, "c", true, "C", "C", ""), Collation::C);
        assert_eq!(collation(100, "c", true, "POSIX", "POSIX", ""), Collation::C);
        assert_eq!(collation(1, "c", true, "C", "en_US.utf8", ""), Collation::Bytewise(1));
        assert_eq!(collation(1, "b", true, "", "", "C.UTF-8"), Collation::Bytewise(1));
        assert_eq!(collation(1, "c", true, "C.UTF-8", "C.UTF-8", ""), Collation::Deterministic(1));
        assert_eq!(collation(1, "i", true, "", "", "en-US"), Collation::OwnTitles(1));
        assert_eq!(collation(1, "i", true, "", "", "tr-x-icu"), Collation::OwnCase(1));
        assert_eq!(collation(1, "c", true, "C", "tr_TR.utf8", ""), Collation::OwnCase(1));
        assert_eq!(collation(1, "c", true, "en_US.utf8", "en_US.utf8", ""), Collation::Deterministic(1));
        assert_eq!(collation(1, "i", false, "", "", "en"), Collation::NonDeterministic(1));
        assert_eq!(collation(1, "b", true, "", "", "C"), Collation::C);
    }
}
