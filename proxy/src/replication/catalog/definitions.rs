//! The texts of views. `pg_get_viewdef` costs about a millisecond each, so a text is read again only where something that it
//! is made of has changed: the view's stored query, or a row of what that refers to (PostgreSQL: ruleutils.c prints names as
//! they are now, also of a table that was renamed since). Everything is compared by `xmin`, as in the fingerprint.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use freshet_engine::catalog::RelationId;
use freshet_engine::types::Oid;
use tokio_postgres::Transaction;

use crate::replication::catalog::texts;
use crate::upstream::UpstreamError;

/// A view's text, and the digest of what it is made of; None: it refers to something that has no part in the digest.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    made_of: Option<i64>,
    pub(super) text: Arc<str>,
}

pub(super) type Definitions = HashMap<RelationId, Definition>;

/// Per view the digest of its text's parts. Salt: what may decide whether a name needs its schema, and the labels of enums, which constants in it
/// (of arrays and composites, too) are printed with.
const DIGESTS: &str = "\
    WITH refs AS MATERIALIZED (
        SELECT DISTINCT w.ev_class AS v, d.refclassid AS c, d.refobjid AS o
          FROM pg_class k JOIN pg_rewrite w ON w.ev_class = k.oid
          JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
         WHERE k.relkind = 'v' AND k.oid >= 16384),
    salt AS MATERIALIZED (
        SELECT coalesce(bit_xor(h), 0) AS s FROM (
            SELECT hashint8extended(xmin::text::int8, oid::int8) AS h
              FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp_'
            UNION ALL SELECT hashint8extended(xmin::text::int8, 1::int8 << 32 | oid::int8)
              FROM pg_proc WHERE oid >= 16384 AND pronamespace = 'pg_catalog'::regnamespace
            UNION ALL SELECT hashint8extended(xmin::text::int8, 2::int8 << 32 | oid::int8)
              FROM pg_operator WHERE oid >= 16384 AND oprnamespace = 'pg_catalog'::regnamespace
            UNION ALL SELECT hashint8extended(xmin::text::int8, 3::int8 << 32 | oid::int8) FROM pg_enum) AS rows)
    SELECT v, bit_xor(h) # (SELECT s FROM salt),
           v IN (SELECT v FROM refs WHERE c NOT IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass,
                                                    'pg_operator'::regclass, 'pg_collation'::regclass))
      FROM (
        SELECT ev_class AS v, hashint8extended(xmin::text::int8, oid::int8) AS h
          FROM pg_rewrite WHERE ev_class IN (SELECT oid FROM pg_class WHERE relkind = 'v' AND oid >= 16384)
        UNION ALL SELECT v, hashint8extended(t.xmin::text::int8, 1::int8 << 32 | o::int8)
          FROM refs JOIN pg_class t ON t.oid = o WHERE c = 'pg_class'::regclass
        UNION ALL SELECT v, hashint8extended(t.xmin::text::int8, o::int8 << 16 | t.attnum::int8)
          FROM refs JOIN pg_attribute t ON t.attrelid = o WHERE c = 'pg_class'::regclass AND t.attnum > 0
        UNION ALL SELECT v, hashint8extended(t.xmin::text::int8, 2::int8 << 32 | o::int8)
          FROM refs JOIN pg_proc t ON t.oid = o WHERE c = 'pg_proc'::regclass
        UNION ALL SELECT v, hashint8extended(t.xmin::text::int8, 3::int8 << 32 | o::int8)
          FROM refs JOIN pg_type t ON t.oid = o WHERE c = 'pg_type'::regclass
        UNION ALL SELECT v, hashint8extended(t.xmin::text::int8, 4::int8 << 32 | o::int8)
          FROM refs JOIN pg_operator t ON t.oid = o WHERE c = 'pg_operator'::regclass
        UNION ALL SELECT v, hashint8extended(t.xmin::text::int8, 5::int8 << 32 | o::int8)
          FROM refs JOIN pg_collation t ON t.oid = o WHERE c = 'pg_collation'::regclass) AS rows
     GROUP BY v";

/// The texts of all views of users; those of `known` that are as they were are not asked for. Beside them the views whose texts
/// could not be read: somebody holds a table that they name.
pub(super) async fn load(
    transaction: &Transaction<'_>,
    known: &Definitions,
) -> Result<(Definitions, HashSet<Oid>), UpstreamError> {
    let mut definitions = Definitions::new();
    let mut unknown: HashMap<Oid, Option<i64>> = HashMap::new();
    for row in transaction.query(DIGESTS, &[]).await? {
        let id: Oid = row.get(0);
        let made_of = (!row.get::<_, bool>(2)).then(|| row.get(1));
        match known.get(&RelationId(id)) {
            Some(known) if made_of.is_some() && known.made_of == made_of => {
                definitions.insert(RelationId(id), known.clone());
            }
            _ => drop(unknown.insert(id, made_of)),
        }
    }
    let oids: Vec<Oid> = unknown.keys().copied().collect();
    let texts = texts::read(transaction, "pg_get_viewdef($)", &oids).await?;
    for (id, text) in texts.read {
        let made_of = unknown.get(&id).copied().flatten();
        definitions.insert(RelationId(id), Definition { made_of, text: text.into() });
    }
    Ok((definitions, texts.locked))
}
