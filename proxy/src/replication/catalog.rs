//! Reads upstream's catalog: what the binder needs ([`Catalog`]), and per table whether it can be mirrored.
//!
//! Everything comes from one REPEATABLE READ transaction, together with digests of the catalog rows it was read
//! from. The freshness barrier evaluates the same digests under its own snapshot: equal means that this catalog
//! is still in force there, including every look-up that found nothing.

mod collations;
mod computed;
mod contents;
mod definitions;
mod functions;
mod hidden;
mod inherited;
mod keyed;
mod partitioned;
mod texts;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use freshet_engine::catalog::functions::called_with_one_argument;
use freshet_engine::catalog::order::Orders;
use freshet_engine::catalog::overloads::{Overload, Overloads, Taken};
use freshet_engine::catalog::{
    Catalog, ColumnSchema, EnumEntry, Materialized, RelationEntry, RelationId, ReplicaIdentity, Restricted,
    TableSchema, View,
};
use freshet_engine::types::{EnumType, Oid, PgType};
use tokio_postgres::{Client, IsolationLevel, Row, Transaction};

use crate::replication::catalog::collations::{Collations, load_collations};
use crate::replication::catalog::definitions::Definitions;
use crate::replication::catalog::keyed::Lookalikes;
use crate::replication::catalog::partitioned::{Roots, Special};
use crate::upstream::UpstreamError;

/// First OID of objects that are not part of a fresh database (PostgreSQL: transam.h, FirstNormalObjectId).
const FIRST_USER_OID: Oid = 16384;
/// The rows that decide what relation `r` of `$1` is: every relation of its name in any schema (a new one earlier in
/// a search path would win), its columns, its key and identity indexes, its triggers, its partitions, its stored query. One
/// hash per row; a change of any of them gives it another `xmin`. In-place updates (ANALYZE, VACUUM) do not, and change nothing that counts here. Temporary
/// relations are the affair of the session that made them. `r` is part of the hash so that a row that counts for two
/// relations does not cancel itself out, and rows of different catalogs are kept apart by large numbers: neighbouring OIDs
/// that changed in one transaction would else hash alike and cancel each other out. The relations of one name are looked at once,
/// however many of them are asked for, as where each tenant has a schema: what they are together but for `r` is 64 bits, which
/// are all in its hash as its seed. `r`'s own row is a hash by itself (`materialized` takes it out).
const RELATION_ROWS: &str = "\
    SELECT r, hashint8extended(own_xmin, r::int8 << 32 | r::int8)
              # hashint8extended(r::int8, namesakes # hashint8extended(own_xmin, r::int8)) AS h, false AS is_column
      FROM (SELECT array_agg(c.oid) AS oids, array_agg(c.xmin::text::int8) AS xmins,
                   (SELECT bit_xor(hashint8extended(n.xmin::text::int8, n.oid::int8))
                      FROM pg_class n WHERE n.relname = c.relname AND n.relpersistence <> 't') AS namesakes
              FROM unnest($1::oid[]) r JOIN pg_class c ON c.oid = r GROUP BY c.relname) AS asked,
           unnest(oids, xmins) AS own (r, own_xmin)
    UNION ALL
    SELECT r, hashint8extended(a.xmin::text::int8, r::int8 << 32 | a.attnum::int8), true
      FROM unnest($1::oid[]) r JOIN pg_attribute a ON a.attrelid = r WHERE a.attnum > 0
    UNION ALL
    SELECT r, hashint8extended(i.xmin::text::int8, ~(r::int8 << 32 | i.indexrelid::int8)), false
      FROM unnest($1::oid[]) r JOIN pg_index i ON i.indrelid = r WHERE i.indisprimary OR i.indisreplident
    UNION ALL
    SELECT r, hashint8extended(t.xmin::text::int8, (r::int8 << 32 | t.oid::int8) # 4294967296000000001), false
      FROM unnest($1::oid[]) r JOIN pg_trigger t ON t.tgrelid = r
    UNION ALL
    SELECT r, hashint8extended(p.xmin::text::int8, (r::int8 << 32 | p.inhrelid::int8) # 6148914691236517205), false
      FROM unnest($1::oid[]) r JOIN pg_inherits p ON p.inhparent = r
    UNION ALL
    SELECT r, hashint8extended(w.xmin::text::int8, (r::int8 << 32 | w.oid::int8) # 3689348814741910323), false
      FROM unnest($1::oid[]) r JOIN pg_rewrite w ON w.ev_class = r";

/// The rows that count for every statement: schemas and their privileges, role membership and attributes, the database's owner (a member of
/// pg_database_owner, of whom no row says so: acl.c, roles_is_member_of), all functions with what uses them,
/// operators, their classes, casts and collations that are not part of a fresh database, labels of enums, security labels, and types named like one that the
/// engine knows, like an enum, or like a function of one argument in SQL, a call of which may mean a cast. Of built-in functions see
/// [`namesakes_digest_sql`].
const COMMON_ROWS: &str = "\
    SELECT hashint8extended(xmin::text::int8, oid::int8) AS h FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp_'
    UNION ALL SELECT hashint8extended(xmin::text::int8 << 32 | grantor::int8, roleid::int8 << 32 | member::int8) FROM pg_auth_members
    UNION ALL SELECT hashtextextended(concat(rolname, rolsuper, rolinherit, rolbypassrls), oid::int8) FROM pg_roles
    UNION ALL SELECT hashint8extended(datdba::int8, 9::int8 << 32 | oid::int8) FROM pg_database WHERE datname = current_database()
    UNION ALL SELECT hashint8extended(xmin::text::int8, 1::int8 << 32 | oid::int8) FROM pg_proc
      WHERE oid >= 16384 AND pronamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname ~ '^pg_temp_')
    -- What uses them: triggers, defaults, checks, policies, views, of relations that nobody reads, too.
    UNION ALL SELECT hashint8extended(xmin::text::int8 << 32 | refobjid::int8, (classid::int8 << 32 | objid::int8) # 1234567890123456789)
      FROM pg_depend WHERE refclassid IN ('pg_proc'::regclass, 'pg_opclass'::regclass) AND refobjid >= 16384 AND deptype = 'n'
    UNION ALL SELECT hashint8extended(xmin::text::int8, 2::int8 << 32 | oid::int8) FROM pg_operator WHERE oid >= 16384
    UNION ALL SELECT hashint8extended(xmin::text::int8, 3::int8 << 32 | oid::int8) FROM pg_cast WHERE oid >= 16384
    UNION ALL SELECT hashint8extended(xmin::text::int8, 4::int8 << 32 | oid::int8) FROM pg_collation WHERE oid >= 16384
    UNION ALL SELECT hashint8extended(xmin::text::int8, 6::int8 << 32 | oid::int8) FROM pg_opclass WHERE oid >= 16384
    UNION ALL SELECT hashint8extended(xmin::text::int8, 7::int8 << 32 | oid::int8) FROM pg_enum
    UNION ALL SELECT hashint8extended(xmin::text::int8 << 32 | objoid::int8, objsubid + 11) FROM pg_seclabel
    UNION ALL SELECT hashint8extended(xmin::text::int8 << 32 | objoid::int8, 10) FROM pg_shseclabel
    -- freshet's own may be disabled.
    UNION ALL SELECT hashint8extended(xmin::text::int8, 10::int8 << 32 | oid::int8) FROM pg_event_trigger
    UNION ALL SELECT hashint8extended(t.xmin::text::int8, 5::int8 << 32 | t.oid::int8)
      FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace
      WHERE t.oid >= 16384 AND nspname !~ '^pg_(toast_)?temp_' AND typname = ANY ('{KNOWN_TYPES}'::name[])
    UNION ALL SELECT hashint8extended(t.xmin::text::int8, 8::int8 << 32 | t.oid::int8)
      FROM (SELECT DISTINCT typname FROM (SELECT DISTINCT enumtypid FROM pg_enum) e,
                   -- OFFSET 0: by the indexes, also where the planner would rather read all of pg_type, for each barrier.
                   LATERAL (SELECT typname FROM pg_type WHERE oid = enumtypid OFFSET 0) n) AS names,
           LATERAL (SELECT xmin, oid FROM pg_type WHERE pg_type.typname = names.typname OFFSET 0) AS t
    UNION ALL SELECT hashint8extended(t.xmin::text::int8, p.oid::int8 << 32 | t.oid::int8)
      FROM pg_proc p JOIN pg_type t ON t.typname = p.proname JOIN pg_namespace n ON n.oid = typnamespace
      WHERE p.oid >= 16384 AND prolang = 14 AND pronargs = 1 AND nspname !~ '^pg_(toast_)?temp_'";

/// SQL for whether UPDATE and DELETE of table `pg_class c` fail as long as it is published (PostgreSQL: execReplication.c,
/// CheckCmdReplicaIdentity): it has no identity or, since PostgreSQL 18, one with a generated column in it, which freshet's publication
/// leaves out (publicationcmds.c, pub_contains_invalid_column). Before 18 a key of a generated column is of no use to the mirror.
pub const UNFIT_IDENTITY: &str = "\
    CASE c.relreplident WHEN 'f' THEN
        current_setting('server_version_num')::int >= 180000
        AND EXISTS (SELECT FROM pg_attribute g WHERE g.attrelid = c.oid AND g.attgenerated <> '')
    ELSE NOT EXISTS (
        SELECT FROM pg_index i
         WHERE i.indrelid = c.oid AND i.indisvalid AND i.indimmediate
           AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END
           AND NOT EXISTS (
               SELECT FROM pg_attribute g
                WHERE g.attrelid = c.oid AND g.attgenerated <> ''
                  AND g.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])))
    END";

/// SQL for one int8: the digest of the relations `$1`, equal to the exclusive or of [`TableFacts::digest`] over them.
pub fn relations_digest_sql() -> String {
    format!("(SELECT coalesce(bit_xor(h), 0) FROM ({RELATION_ROWS}) AS rows)")
}

/// SQL for oid[]: those of the relations `$1` of which the digest is not the one in `$2`.
pub fn differing_relations_sql() -> String {
    format!(
        "ARRAY (SELECT known.relation FROM unnest($1::oid[], $2::int8[]) AS known (relation, digest)
                  LEFT JOIN (SELECT r, bit_xor(h) AS digest FROM ({RELATION_ROWS}) AS rows GROUP BY r) AS now ON r = relation
                 WHERE now.digest IS DISTINCT FROM known.digest)"
    )
}

/// SQL for one int8: [`Catalog::digest`].
pub fn common_digest_sql() -> String {
    let rows = COMMON_ROWS.replace("KNOWN_TYPES", &PgType::ALL.map(PgType::typname).join(","));
    format!("(SELECT coalesce(bit_xor(h), 0) FROM ({rows}) AS rows)")
}

/// SQL for one int8: the digest of types named like a function of one argument, a call of which may mean a cast to the type
/// (parse_func.c, func_get_detail: FuncNameAsType). Too dear for every barrier.
pub fn namesakes_digest_sql() -> String {
    let names: Vec<&str> = called_with_one_argument().into_iter().collect();
    format!(
        "SELECT coalesce(bit_xor(hashint8extended(t.xmin::text::int8, t.oid::int8)), 0)
           FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace
          WHERE t.oid >= 16384 AND nspname !~ '^pg_(toast_)?temp_' AND typrelid = 0 AND typname = ANY ('{{{}}}'::name[])",
        names.join(",")
    )
}

/// SQL for one int8: the digest of the publication `$2` and its membership of the relations `$1`. A table that was
/// taken out, or taken out and put back, has lost changes without a word in the stream.
pub fn membership_digest_sql() -> String {
    "(SELECT coalesce(bit_xor(hashint8extended(xmin::text::int8, oid::int8)), 0)
        FROM pg_publication_rel WHERE prpubid = $2::oid AND prrelid = ANY ($1::oid[]))"
        .to_string()
}

/// SQL for one int8: the publication `$parameter` and the list of its tables.
pub fn whole_publication_sql(parameter: usize) -> String {
    format!(
        "(SELECT coalesce(bit_xor(h), 0) FROM (
            SELECT hashint8extended(xmin::text::int8, oid::int8) AS h FROM pg_publication_rel
             WHERE prpubid = ${parameter}::oid
            UNION ALL
            SELECT hashint8extended(xmin::text::int8, ~oid::int8) FROM pg_publication
             WHERE oid = ${parameter}::oid) AS rows)"
    )
}

/// SQL for one int8: the digest of the publication `$2` itself, 0 if it is gone.
pub fn publication_digest_sql() -> &'static str {
    "coalesce((SELECT hashint8extended(xmin::text::int8, oid::int8) FROM pg_publication WHERE oid = $2::oid), 0)"
}

/// Upstream's catalog with what is known beside it.
#[derive(Debug, Default)]
pub struct LoadedCatalog {
    pub catalog: Arc<Catalog>,
    pub tables: HashMap<RelationId, TableFacts>,
    /// Digests of the relations that are made of others ([`Catalog::is_derived`]).
    pub derived: HashMap<RelationId, i64>,
    /// Of those of them that are materialized views, digests that a REFRESH does not change.
    pub materialized: HashMap<RelationId, i64>,
    /// Of relations that are not answered from, what tells a change of them (see [`versions_sql`]).
    pub others: HashMap<RelationId, i64>,
    /// The texts of views, with what tells whether they are still the same.
    definitions: Definitions,
    /// Partitioned tables of which [`TableFacts::writes_stay`] is true, their leaves aside.
    pub quiet_roots: HashSet<RelationId>,
    /// What texts of writes may mean by their names.
    pub lookalikes: Lookalikes,
    /// Of tables with stored columns that are computed here, SQL for whether a row's are others than its expressions give.
    pub stored_columns: HashMap<RelationId, String>,
    /// Somebody held tables that views, functions or generated columns name; these are taken for unknown until the catalog is read
    /// again.
    pub lacks_texts: bool,
}

/// An ordinary table, and what the catalog says of it beyond its schema.
#[derive(Clone, Debug)]
pub struct TableFacts {
    pub schema: Arc<TableSchema>,
    /// Of its own catalog rows.
    pub digest: i64,
    /// Likewise, but for what TRUNCATE, VACUUM FULL and CLUSTER change.
    pub definition: i64,
    /// Of its columns only, any change of them.
    pub layout: i64,
    /// The file that has its rows: another one after each rewrite.
    pub filenode: Oid,
    /// The version of the catalog since which it has been that, and no relation of its name has come or gone.
    pub layout_since: u64,
    /// Size of its heap.
    pub heap_bytes: i64,
    /// Why it cannot be mirrored.
    pub refusal: Option<Refusal>,
    /// A statement that writes it changes no other relation's rows by the way: no trigger but those that check foreign
    /// keys, no function of users' in defaults and constraints, no type with a domain in it (which may have such).
    pub writes_stay: bool,
}

impl TableFacts {
    /// Whether what was mirrored by these facts is the table still by those of now. Of what changes columns, what rewrites rows gives
    /// them another file (tablecmds.c, ATRewriteTables), and of all this there may not be a word in the stream. Defaults, statistics
    /// and privileges change columns, too, and a new file alone (TRUNCATE, VACUUM FULL, CLUSTER) is none of it.
    pub fn has_same_rows(&self, now: &Self) -> bool {
        self.schema == now.schema && (self.layout == now.layout || self.filenode == now.filenode)
    }

    /// What its rows would take here, about: mostly more than half of its heap.
    pub fn estimated_bytes(&self) -> usize {
        usize::try_from(self.heap_bytes).unwrap_or(usize::MAX) / 2
    }

    /// These columns, and this file, are what the next facts are compared with.
    pub fn take_layout(&mut self, now: &Self) {
        (self.layout, self.filenode, self.heap_bytes) = (now.layout, now.filenode, now.heap_bytes);
    }
}

/// Why a table is not mirrored, and the SQL that would change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub why: String,
    pub remedy: Option<String>,
    /// REPLICA IDENTITY FULL alone would do, and freshet's role may set it.
    pub wants_full_identity: bool,
}

impl Refusal {
    /// Whether it stands where freshet may set REPLICA IDENTITY FULL, or may not.
    pub fn stands(&self, may_set_full_identity: bool) -> bool {
        !(self.wants_full_identity && may_set_full_identity)
    }
}

impl LoadedCatalog {
    /// The digest that a barrier over these relations must return. None: one of them is unknown.
    pub fn relations_digest(&self, relations: &[RelationId]) -> Option<i64> {
        let of = |relation| match self.derived.get(relation) {
            Some(digest) => Some(*digest),
            None => Some(self.tables.get(relation)?.digest),
        };
        relations.iter().try_fold(0, |digest, relation| Some(digest ^ of(relation)?))
    }
}

/// Reads the catalog of the connection's database. `version`: the number of this reading, the catalog's if it is not as it was;
/// `orders`: what is known of the order of text in this life of upstream; `before`: what was read last, of which unchanged texts
/// of views are kept; `otherwise`: tables with stored columns that are not what their expressions give.
pub async fn load(
    client: &mut Client,
    version: u64,
    orders: Arc<Orders>,
    before: &LoadedCatalog,
    otherwise: &HashSet<RelationId>,
) -> Result<LoadedCatalog, UpstreamError> {
    let transaction = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    let transaction = transaction.start().await?;
    // For the text of views: names and literals that mean the same to everybody.
    transaction
        .batch_execute(
            "SET LOCAL search_path = pg_catalog; SET LOCAL DateStyle = 'ISO, YMD'; SET LOCAL IntervalStyle = postgres;
                        SET LOCAL TimeZone = 'UTC'; SET LOCAL extra_float_digits = 1; SET LOCAL bytea_output = hex",
        )
        .await?;
    let common = transaction
        .query_one(
            &format!(
                "SELECT {}, current_database()::text, current_setting('server_version_num')::int8",
                common_digest_sql()
            ),
            &[],
        )
        .await?;
    let mut collations = load_collations(&transaction).await?;
    let bodies = texts::of_functions(&transaction).await?;
    let (expressions, is_expression_locked) = computed::load_expressions(&transaction).await?;
    let mut catalog = Catalog {
        version,
        database: common.get(1),
        server_version: u32::try_from(common.get::<_, i64>(2)).unwrap_or_default(),
        digest: common.get(0),
        default_collation: Some(collations.default),
        collations: std::mem::take(&mut collations.named),
        orders,
        sql_functions: functions::load(&transaction, &bodies).await?,
        ..load_names(&transaction).await?
    };
    let columns = load_columns(&transaction, &collations, &catalog).await?;
    let indexes = load_indexes(&transaction).await?;
    let (definitions, locked_views) = definitions::load(&transaction, &before.definitions).await?;
    let Relations { mut tables, roots, quiet_roots, mut others } =
        load_relations(&transaction, &mut catalog, columns, &indexes, &definitions).await?;
    let children = partitioned::load_children(&transaction).await?;
    others.extend(roots.keys());
    partitioned::place(&mut catalog, roots, &children);
    inherited::place(&mut catalog, &children);
    computed::place(&mut catalog, &expressions);
    let stored_columns = computed::comparisons(&catalog, &expressions);
    computed::withhold(&mut catalog, otherwise);
    others.extend(catalog.heirs.iter().filter(|(_, heirs)| heirs.is_err()).map(|(parent, _)| parent));
    others.retain(|relation| !catalog.partitioned.contains_key(relation));
    // They may get a key.
    others.extend(tables.iter().filter(|(_, facts)| facts.refusal.is_some()).map(|(relation, _)| relation));
    let others = load_versions(&transaction, &others).await?;
    let mut derived: Vec<RelationId> =
        catalog.partitioned.values().flat_map(|partitioned| &partitioned.levels).copied().collect();
    derived.extend(catalog.views.keys().chain(catalog.materialized.keys()));
    derived.sort_unstable();
    derived.dedup();
    let derived = load_digests(&transaction, &mut tables, derived).await?;
    let materialized = contents::load(&transaction, &catalog, &derived, &mut tables, before).await?;
    let is_unread = |(_, entry): &(_, &RelationEntry)| matches!(entry, RelationEntry::Other { id, .. } if locked_views.contains(&id.0));
    let unread = catalog.schemas.values().flatten().filter(is_unread).map(|(name, _)| Arc::clone(name)).collect();
    catalog.hidden_calls = hidden::load(&transaction, &catalog, unread, &bodies).await?;
    let lookalikes = keyed::load(&transaction).await?;
    transaction.commit().await?;
    contents::carry_over(&mut catalog, &derived, before);
    keyed::date_layouts(&mut tables, &catalog, before);
    let catalog = Arc::new(catalog);
    let mut loaded = LoadedCatalog {
        catalog,
        tables,
        derived,
        materialized,
        others,
        definitions,
        quiet_roots,
        lookalikes,
        stored_columns,
        lacks_texts: !bodies.locked.is_empty() || !locked_views.is_empty() || is_expression_locked,
    };
    if loaded.differs_in_contents_only(before) {
        Arc::make_mut(&mut loaded.catalog).version = before.catalog.version;
    }
    Ok(loaded)
}

/// Microseconds since 2000, as the wire carries a timestamptz.
pub fn micros(time: std::time::SystemTime) -> i64 {
    const EPOCH: u64 = 946_684_800;
    let epoch = std::time::UNIX_EPOCH + std::time::Duration::from_secs(EPOCH);
    match time.duration_since(epoch) {
        Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
    }
}

/// The built-in types and enums (of those only such as have no casts are held), by OID, whose values an argument of type `t` takes: itself, and what is converted implicitly (parse_coerce.c,
/// can_coerce_type); `*` where that is not told by casts alone (pseudo-types, domains, arrays).
const TAKEN: &str = "SELECT CASE WHEN EXISTS (SELECT FROM pg_type y WHERE y.oid = t
                                              AND typtype IN ('b', 'c', 'e', 'r', 'm') AND typcategory <> 'A')
    THEN concat_ws(' ', CASE WHEN t < 16384 OR EXISTS (SELECT FROM pg_type y WHERE y.oid = t AND typtype = 'e') THEN t END,
                   (SELECT string_agg(castsource::text, ' ') FROM pg_cast
                     WHERE casttarget = t AND castcontext = 'i' AND castsource < 16384))
    ELSE '*' END";

/// Rows of a name, what each argument takes, and whether the result depends on them alone.
fn overloads<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Overloads {
    let mut overloads = Overloads::default();
    for row in rows {
        let takes: Option<Vec<String>> = row.get(1);
        let takes = takes.map(|takes| takes.iter().map(|types| taken(types)).collect());
        overloads.add(row.get(0), Overload { takes, is_pure: row.get(2) });
    }
    overloads
}

/// As [`TAKEN`] tells it.
fn taken(types: &str) -> Taken {
    let types: Result<Vec<u32>, _> = types.split_whitespace().map(str::parse).collect();
    types.map_or(Taken::Any, Taken::Of)
}

/// SQL for what [`restricted`] reads: functions, and relations that a session's probe reads. initdb restricts some functions, none of
/// which is computed here.
pub const RESTRICTED: &str = "\
    SELECT relname, false
      FROM pg_class
     WHERE oid IN ('pg_class'::regclass, 'pg_type'::regclass) AND relacl IS NOT NULL
       AND NOT EXISTS (SELECT FROM aclexplode(relacl) WHERE grantee = 0 AND privilege_type = 'SELECT')
    UNION ALL
    SELECT proname, oid IN (SELECT oprcode::oid FROM pg_operator) OR oid IN (SELECT castfunc FROM pg_cast)
      FROM pg_proc
     WHERE oid < 16384 AND proacl IS NOT NULL
       AND NOT EXISTS (SELECT FROM aclexplode(proacl) WHERE grantee = 0 AND privilege_type = 'EXECUTE')";

/// What is built in and not everybody's.
pub fn restricted(rows: &[Row]) -> Restricted {
    Restricted {
        names: rows.iter().map(|row| row.get::<_, &str>(0).into()).collect(),
        is_behind_operators: rows.iter().any(|row| row.get(1)),
    }
}

/// What of casts, operator classes and labels concerns every statement: [`Catalog::changes_builtin_types`], [`Catalog::has_row_casts`],
/// [`Catalog::has_security_labels`].
const CHANGES: &str = "SELECT EXISTS (SELECT FROM pg_cast WHERE oid >= 16384 AND castsource < 16384 AND casttarget < 16384)
         OR EXISTS (SELECT FROM pg_opclass WHERE oid >= 16384 AND opcdefault AND opcintype < 16384 AND opcmethod IN (403, 405)),
            EXISTS (SELECT FROM pg_cast k JOIN pg_type s ON s.oid = castsource
                     WHERE k.oid >= 16384 AND casttarget < 16384 AND castfunc <> 0 AND castsource >= 16384
                       AND (s.typtype = 'c' OR s.typcategory = 'A')),
            EXISTS (SELECT FROM pg_seclabel) OR EXISTS (SELECT FROM pg_shseclabel)";

/// Names that could win over a built-in function, operator or type.
async fn load_names(transaction: &Transaction<'_>) -> Result<Catalog, UpstreamError> {
    // Beside functions outside pg_catalog: those that an extension put into it, and built-ins that not everyone
    // may execute any more.
    let functions = format!(
        "SELECT DISTINCT proname, CASE WHEN p.oid >= 16384 AND provariadic = 0 AND pronargdefaults = 0 AND prokind <> 'p'
                                  THEN ARRAY (SELECT ({TAKEN}) FROM unnest(proargtypes::oid[]) WITH ORDINALITY u (t, n) ORDER BY n) END,
                -- PostgreSQL's own extensions, as citext has a replace(); what others declare immutable may be anything.
                provolatile = 'i' AND p.oid >= 16384 AND prokind <> 'p' AND EXISTS (
                    SELECT FROM pg_depend d JOIN pg_extension x ON x.oid = d.refobjid
                     WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
                       AND extname IN ('btree_gin', 'btree_gist', 'citext', 'cube', 'fuzzystrmatch', 'hstore', 'intarray', 'ltree',
                                       'pg_trgm', 'pgcrypto', 'seg')),
                pronamespace = 'pg_catalog'::regnamespace AND p.oid >= 16384,
                prokind <> 'p' AND pronargs > 0 AND pronargs - pronargdefaults <= 1 AND (provariadic <> 0 OR EXISTS (
                    SELECT FROM pg_type y WHERE y.oid = proargtypes[0]
                       AND (typtype IN ('c', 'p')
                            OR typtype = 'd' AND EXISTS (SELECT FROM pg_type b WHERE b.oid = y.typbasetype AND b.typtype IN ('c', 'd')))))
           FROM pg_proc p
          WHERE pronamespace <> 'pg_catalog'::regnamespace OR oid >= 16384
             OR (proacl IS NOT NULL
                 AND NOT EXISTS (SELECT FROM aclexplode(proacl) WHERE grantee = 0 AND privilege_type = 'EXECUTE'))"
    );
    let operators = format!(
        "SELECT DISTINCT oprname, ARRAY (SELECT ({TAKEN}) FROM unnest(ARRAY[oprleft, oprright]) WITH ORDINALITY u (t, n)
                                          WHERE t <> 0 ORDER BY n),
                -- What makes a row reads texts as its columns' types (hstore's #=), for which 'now' is a time.
                coalesce(provolatile = 'i' AND lanname IN ('c', 'internal') AND prorettype <> 'anyelement'::regtype, false)
           FROM pg_operator LEFT JOIN pg_proc p ON p.oid = oprcode::oid LEFT JOIN pg_language l ON l.oid = prolang
          WHERE oprnamespace <> 'pg_catalog'::regnamespace OR pg_operator.oid >= 16384"
    );
    let (functions, operators) = (transaction.query(&functions, &[]).await?, transaction.query(&operators, &[]).await?);
    let types = transaction
        .query(
            "SELECT DISTINCT typname, typname IN (SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace)
               FROM pg_type t
              WHERE typnamespace <> 'pg_catalog'::regnamespace AND (
                    typname IN (SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace)
                    OR typrelid = 0 AND EXISTS (SELECT FROM pg_proc WHERE proname = t.typname
                                                                      AND pronamespace = 'pg_catalog'::regnamespace))",
            &[],
        )
        .await?;
    let changes = transaction.query_one(CHANGES, &[]).await?;
    let enums = transaction
        .query(
            "SELECT t.oid, typarray, coalesce(changes, 0), nspname, typname, coalesce(labels, '{}') AS labels,
                    coalesce(label_oids, '{}') AS label_oids,
                    EXISTS (SELECT FROM aclexplode(nspacl) WHERE grantee = 0 AND privilege_type = 'USAGE') AS is_schema_public,
                    NOT EXISTS (SELECT FROM pg_type o WHERE o.typname = t.typname AND o.oid <> t.oid) AS is_only
               FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace,
                    LATERAL (SELECT bit_xor(hashint8extended(xmin::text::int8, oid::int8)) AS changes,
                                    array_agg(enumlabel ORDER BY enumsortorder) AS labels,
                                    array_agg(oid ORDER BY enumsortorder) AS label_oids
                               FROM pg_enum WHERE enumtypid = t.oid) AS e
              WHERE typtype = 'e' AND NOT EXISTS (SELECT FROM pg_cast WHERE t.oid IN (castsource, casttarget))
                AND NOT EXISTS (SELECT FROM pg_opclass WHERE opcintype = t.oid)",
            &[],
        )
        .await?;
    let enum_types = Arc::new(enums.iter().filter_map(enum_entry).collect());
    let enums = enums.iter().flat_map(|row| [0, 1].map(|of| (row.get::<_, Oid>(of), row.get::<_, i64>(2))));
    let immutable = transaction
        .query(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND oid < 16384
              GROUP BY proname HAVING bool_and(provolatile = 'i' AND prokind <> 'p')",
            &[],
        )
        .await?;
    // Types of PostgreSQL's own and the best known extensions, and arrays of them.
    let plain = transaction
        .query(
            "WITH RECURSIVE plain AS (
             SELECT t.oid, typarray
               FROM pg_type t JOIN pg_depend d ON d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e'
                    JOIN pg_extension x ON x.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
                    JOIN pg_proc p ON p.oid = typoutput
              WHERE typtype = 'b' AND typelem = 0 AND prolang IN (12, 13) AND provolatile = 'i'
                -- Not isn: what it takes for a number hangs on a switch of the session's.
                AND extname IN ('citext', 'cube', 'hstore', 'ltree', 'postgis', 'seg', 'vector')
                -- A cast that others made is asked where JSON is made (json.c, json_categorize_type).
                AND NOT EXISTS (SELECT FROM pg_cast k
                                 WHERE t.oid IN (castsource, casttarget)
                                   AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_cast'::regclass AND objid = k.oid
                                                                           AND refobjid = x.oid AND deptype = 'e'))
             UNION SELECT t.oid, t.typarray FROM plain JOIN pg_type t ON typbasetype = plain.oid AND typtype = 'd')
             SELECT unnest(ARRAY[oid, typarray]) FROM plain",
            &[],
        )
        .await?;
    let names = |rows: Vec<Row>| rows.into_iter().map(|row| Arc::from(row.get::<_, &str>(0)));
    Ok(Catalog {
        user_functions: overloads(&functions),
        added_functions: overloads(functions.iter().filter(|row| row.get(3))),
        row_functions: functions
            .iter()
            .filter(|row| !row.get::<_, bool>(2) && row.get(4))
            .map(|row| row.get::<_, &str>(0).into())
            .collect(),
        user_operators: overloads(&operators),
        restricted: restricted(&transaction.query(RESTRICTED, &[]).await?),
        user_types: types.iter().filter(|row| row.get(1)).map(|row| row.get::<_, &str>(0).into()).collect(),
        user_casts: names(types).collect(),
        immutable_functions: names(immutable).collect(),
        plain_types: plain.iter().map(|row| row.get::<_, Oid>(0)).collect(),
        changes_builtin_types: changes.get(0),
        has_row_casts: changes.get(1),
        has_security_labels: changes.get(2),
        enums: enums.collect(),
        enum_types,
        ..Catalog::default()
    })
}

/// None: more types than are held, or one without labels, whose changes are not in the fingerprint.
fn enum_entry(row: &Row) -> Option<(Oid, EnumEntry)> {
    let oid = row.get(0);
    let labels: Vec<&str> = row.get("labels");
    let entry = EnumEntry {
        schema: row.get::<_, &str>("nspname").into(),
        labels: EnumType::of(oid, row.get(2), row.get("typname"), &labels)?,
        label_oids: row.get::<_, Vec<Oid>>("label_oids").into(),
        is_schema_public: row.get("is_schema_public"),
        is_only: row.get("is_only"),
    };
    (!labels.is_empty()).then_some((oid, entry))
}

/// The live columns of every table and view that is not part of a fresh database.
async fn load_columns(
    transaction: &Transaction<'_>,
    collations: &Collations,
    catalog: &Catalog,
) -> Result<HashMap<RelationId, Vec<ColumnSchema>>, UpstreamError> {
    // A domain's values are those of the type below it, with that type's modifier (lsyscache.c, getBaseTypeAndTypmod). What
    // is below a domain stays as long as it is there. Those over enums and arrays are upstream's (operators on any enum take
    // none), and those that a function or operator is declared with, which is a better match than the type below.
    let rows = transaction
        .query(
            "WITH RECURSIVE domains (oid, base, typmod) AS (
                 SELECT oid, typbasetype, typtypmod FROM pg_type WHERE typtype = 'd'
                 UNION ALL SELECT d.oid, t.typbasetype, t.typtypmod
                   FROM domains d JOIN pg_type t ON t.oid = d.base WHERE t.typtype = 'd'),
             declared (t) AS MATERIALIZED (
                 SELECT unnest(proargtypes::oid[]) FROM pg_proc WHERE oid >= 16384
                 UNION SELECT unnest(ARRAY[oprleft, oprright]) FROM pg_operator WHERE oid >= 16384)
             SELECT attrelid, attname, attnum, atttypid, atttypmod, attnotnull, attcollation, attgenerated <> '', d.base, d.typmod
               FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid LEFT JOIN (
                    SELECT d.* FROM domains d JOIN pg_type b ON b.oid = base
                     WHERE typtype NOT IN ('d', 'e') AND typcategory <> 'A' AND NOT EXISTS (
                           SELECT FROM domains m JOIN pg_type o ON o.oid IN (m.oid, m.base) AND o.typtype = 'd'
                                  JOIN declared ON t IN (o.oid, o.typarray)
                            WHERE m.oid = d.oid)
                    ) d ON d.oid = atttypid
              WHERE relkind IN ('r', 'p', 'v', 'm') AND c.oid >= 16384 AND attnum > 0 AND NOT attisdropped
              ORDER BY attrelid, attnum",
            &[],
        )
        .await?;
    let mut columns: HashMap<RelationId, Vec<ColumnSchema>> = HashMap::new();
    for row in rows {
        let type_oid: Oid = row.get(3);
        let base: Option<(Oid, i32)> = row.get::<_, Option<Oid>>(8).zip(row.get(9));
        // A generated column is not in the stream (nor, since PostgreSQL 18, in freshet's publication).
        let is_generated: bool = row.get(7);
        let held = catalog.pg_type(base.map_or(type_oid, |(oid, _)| oid));
        let held = held.filter(|pg_type| *pg_type != PgType::Unknown && !is_generated);
        columns.entry(RelationId(row.get(0))).or_default().push(ColumnSchema {
            name: row.get::<_, &str>(1).into(),
            attnum: row.get(2),
            type_oid,
            typmod: base.filter(|_| held.is_some()).map_or(row.get(4), |(_, typmod)| typmod),
            pg_type: held,
            not_null: row.get(5),
            collation: collations.of(row.get(6)),
        });
    }
    Ok(columns)
}

/// Types with a function to send them in binary that fails, because something in them has none (42883: array_send, record_send,
/// range_send), as aclitem[]. One of them in a published table ends the stream at every change of it. A type without the function
/// itself is streamed as text (proto.c, logicalrep_write_tuple). Row types of PostgreSQL's own relations count: a column may have one. All
/// parts are found once, not in each round of the recursion.
const UNSENT: &str = "\
    WITH RECURSIVE parts (whole, part) AS MATERIALIZED (
        SELECT oid, typelem FROM pg_type WHERE typelem <> 0
        UNION ALL SELECT oid, typbasetype FROM pg_type WHERE typtype = 'd'
        UNION ALL SELECT rngtypid, rngsubtype FROM pg_range
        UNION ALL SELECT rngmultitypid, rngsubtype FROM pg_range
        UNION ALL SELECT reltype, atttypid FROM pg_class c JOIN pg_attribute ON attrelid = c.oid
                   WHERE reltype <> 0 AND attnum > 0 AND NOT attisdropped),
    unsent (oid) AS (
        SELECT oid FROM pg_type WHERE typsend = 0
        UNION SELECT whole FROM unsent JOIN parts ON part = unsent.oid)
    SELECT t.oid FROM unsent JOIN pg_type t ON t.oid = unsent.oid WHERE typsend <> 0";

async fn load_unsent(transaction: &Transaction<'_>) -> Result<HashSet<Oid>, UpstreamError> {
    Ok(transaction.query(UNSENT, &[]).await?.iter().map(|row| row.get(0)).collect())
}

/// The key columns (`attnum`) of a table's primary key and of its replica identity index.
#[derive(Default)]
struct Indexes {
    primary: Option<Vec<i16>>,
    identity: Option<Vec<i16>>,
}

async fn load_indexes(transaction: &Transaction<'_>) -> Result<HashMap<RelationId, Indexes>, UpstreamError> {
    // A deferrable key is neither an identity (relcache.c) nor a ground for functional dependency (pg_constraint.c).
    let rows = transaction
        .query(
            "SELECT indrelid, indisprimary, indisreplident, (indkey::int2[])[0:indnkeyatts - 1]
               FROM pg_index
              WHERE (indisprimary OR indisreplident) AND indisvalid AND indimmediate AND indrelid >= 16384",
            &[],
        )
        .await?;
    let mut indexes: HashMap<RelationId, Indexes> = HashMap::new();
    for row in rows {
        let entry = indexes.entry(RelationId(row.get(0))).or_default();
        let keys: Vec<i16> = row.get(3);
        if row.get(2) {
            entry.identity = Some(keys.clone());
        }
        if row.get(1) {
            entry.primary = Some(keys);
        }
    }
    Ok(indexes)
}

/// SQL for relations that satisfy a condition on `pg_class c`: OID, name, and an int8 that is another after every change of
/// them or of what inherits from them, and of their keys: the first index of a table is told to its `pg_class` row in place
/// (index.c, index_update_stats), which leaves `xmin` as it was.
pub fn versions_sql(condition: &str) -> String {
    format!(
        "WITH RECURSIVE below (root, member) AS (
             SELECT c.oid, c.oid FROM pg_class c WHERE {condition}
             UNION SELECT root, inhrelid FROM below JOIN pg_inherits ON inhparent = member)
         SELECT root, r.relname::text, bit_xor(hashint8extended(m.xmin::text::int8, m.oid::int8) # keys)
           FROM below JOIN pg_class m ON m.oid = member JOIN pg_class r ON r.oid = root,
                LATERAL (SELECT coalesce(bit_xor(hashint8extended(i.xmin::text::int8, ~i.indexrelid::int8)), 0) AS keys
                           FROM pg_index i WHERE i.indrelid = member AND (i.indisprimary OR i.indisreplident)) AS of_index
          GROUP BY 1, 2"
    )
}

async fn load_versions(
    transaction: &Transaction<'_>,
    relations: &[RelationId],
) -> Result<HashMap<RelationId, i64>, UpstreamError> {
    let oids: Vec<Oid> = relations.iter().map(|relation| relation.0).collect();
    let rows = transaction.query(&versions_sql("c.oid = ANY ($1::oid[])"), &[&oids]).await?;
    Ok(rows.iter().map(|row| (RelationId(row.get(0)), row.get(2))).collect())
}

/// What [`load_relations`] finds beside the catalog's entries.
struct Relations {
    tables: HashMap<RelationId, TableFacts>,
    roots: Roots,
    quiet_roots: HashSet<RelationId>,
    /// Not answered from, but might be one day.
    others: Vec<RelationId>,
}

/// All relations but temporary ones and those of TOAST, with what decides how they are taken.
const RELATIONS: &str =
    "SELECT c.oid, nspname, relname, relkind::text, relpersistence::text, relreplident::text, relrowsecurity,
        EXISTS (SELECT FROM unnest(reloptions) o WHERE o ~* '^security_invoker=(t|y|on|1)') AS is_invoker,
        EXISTS (SELECT FROM unnest(reloptions) o WHERE o ~* '^security_barrier=(t|y|on|1)') AS is_barrier,
        pg_get_userbyid(relowner)::text AS owner_name, relhasrules, relfilenode, coalesce(amname, '') AS access_method,
        format('%I.%I', nspname, relname) AS quoted, quote_ident(pg_get_userbyid(relowner)) AS owner,
        quote_ident(current_user) AS me, pg_has_role(relowner, 'USAGE') AS is_owned,
        EXISTS (SELECT FROM pg_roles WHERE oid = relowner AND rolsuper) AS is_owner_superuser,
        -- NULL for a table that was dropped since the snapshot.
        relkind = 'r' AND coalesce(has_table_privilege(c.oid, 'SELECT'), false) AS is_readable,
        coalesce(has_schema_privilege(relnamespace, 'USAGE'), false) AS is_reachable, quote_ident(nspname) AS quoted_schema,
        greatest(relpages, 0)::int8 * current_setting('block_size')::int8 AS heap_bytes,
        EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attgenerated <> '') AS has_generated,
        relkind IN ('r', 'p') AND NOT EXISTS (
            SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = tgfoid
             WHERE tgrelid = c.oid AND NOT (tgisinternal AND proname IN (
                   'RI_FKey_check_ins', 'RI_FKey_check_upd', 'RI_FKey_noaction_del', 'RI_FKey_noaction_upd',
                   'RI_FKey_restrict_del', 'RI_FKey_restrict_upd', 'unique_key_recheck'))
        ) AND NOT EXISTS (
            SELECT FROM pg_depend
             WHERE refclassid = 'pg_proc'::regclass
               AND (classid = 'pg_attrdef'::regclass
                    AND objid IN (SELECT oid FROM pg_attrdef WHERE adrelid = c.oid)
                    OR classid = 'pg_constraint'::regclass
                    AND objid IN (SELECT oid FROM pg_constraint WHERE conrelid = c.oid)
                    -- A generated column's, before PostgreSQL 15.
                    OR classid = 'pg_class'::regclass AND objid = c.oid)
        ) AND NOT EXISTS (
            SELECT FROM pg_attribute JOIN pg_type t ON t.oid = atttypid LEFT JOIN pg_type e ON e.oid = t.typelem
             WHERE attrelid = c.oid AND t.oid >= 16384 AND t.typtype <> 'e'
               AND NOT (t.typtype = 'b' AND (e.oid IS NULL OR e.typtype IN ('b', 'e')))
        ) AND NOT EXISTS (
            SELECT FROM pg_operator o JOIN pg_proc p ON p.oid = oprcode
             WHERE o.oid >= 16384 AND provolatile = 'v' AND prolang NOT IN (12, 13)
        ) AND NOT EXISTS (
            SELECT FROM pg_cast k JOIN pg_proc p ON p.oid = castfunc
             WHERE k.oid >= 16384 AND provolatile = 'v' AND prolang NOT IN (12, 13)
        ) AS writes_stay
   FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace LEFT JOIN pg_am a ON a.oid = relam
  WHERE nspname !~ '^pg_(toast|temp_)' AND relpersistence <> 't'";

/// Fills [`Catalog::schemas`] and [`Catalog::tables`], but for the partitioned tables, which it returns.
async fn load_relations(
    transaction: &Transaction<'_>,
    catalog: &mut Catalog,
    mut columns: HashMap<RelationId, Vec<ColumnSchema>>,
    indexes: &HashMap<RelationId, Indexes>,
    definitions: &Definitions,
) -> Result<Relations, UpstreamError> {
    let schemas =
        transaction.query("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_(toast|temp_)'", &[]).await?;
    for row in schemas {
        catalog.schemas.insert(row.get::<_, &str>(0).into(), HashMap::new());
    }
    let rows = transaction.query(RELATIONS, &[]).await?;
    let unsent = load_unsent(transaction).await?;
    let mut tables = HashMap::new();
    let (mut roots, mut quiet_roots, mut others) = (Roots::new(), HashSet::new(), Vec::new());
    for row in rows {
        let id = RelationId(row.get(0));
        let (schema, name): (Arc<str>, Arc<str>) = (row.get::<_, &str>(1).into(), row.get::<_, &str>(2).into());
        if row.get::<_, &str>("relkind") == "p" {
            let columns = columns.remove(&id).unwrap_or_default();
            let root = match special_traits(&row) {
                Some(kind) => Err(Special { schema, name, kind }),
                None => Ok(table_schema(id, &schema, &name, columns, indexes.get(&id), "f")),
            };
            roots.insert(id, root);
            if row.get("writes_stay") {
                quiet_roots.insert(id);
            }
            continue;
        }
        if let Some(definition) = definitions.get(&id).filter(|_| row.get::<_, &str>("relkind") == "v") {
            let columns = columns.remove(&id).unwrap_or_default();
            let owner = (!row.get::<_, bool>("is_invoker")).then(|| row.get::<_, &str>("owner_name").into());
            let table = Arc::new(table_schema(id, &schema, &name, columns, None, "n"));
            let (definition, is_barrier) = (Arc::clone(&definition.text), row.get("is_barrier"));
            let view = Arc::new(View { schema: table, definition, owner, is_barrier });
            catalog.views.insert(id, Arc::clone(&view));
            catalog.schemas.entry(schema).or_default().insert(name, RelationEntry::View(view));
            continue;
        }
        let is_materialized = row.get::<_, &str>("relkind") == "m" && row.get::<_, &str>("access_method") == "heap";
        if is_materialized && id.0 >= FIRST_USER_OID {
            let columns = columns.remove(&id).unwrap_or_default();
            let view = Arc::new(table_schema(id, &schema, &name, columns, None, "n"));
            let contents = catalog.version;
            catalog.materialized.insert(id, Materialized { schema: Arc::clone(&view), contents });
            catalog.schemas.entry(schema).or_default().insert(name, RelationEntry::Materialized(view));
            continue;
        }
        let entry = match special_kind(&row) {
            Some(kind) => {
                if matches!(row.get("relkind"), "r" | "v" | "m") && id.0 >= FIRST_USER_OID {
                    others.push(id);
                }
                RelationEntry::Other { id, kind }
            }
            None => {
                let columns = columns.remove(&id).unwrap_or_default();
                let table = table_schema(id, &schema, &name, columns, indexes.get(&id), row.get("relreplident"));
                let refusal = refusal(&table, &row, &unsent, catalog.server_version);
                let table = Arc::new(table);
                catalog.tables.insert(id, Arc::clone(&table));
                let heap_bytes = row.get::<_, Option<i64>>("heap_bytes").unwrap_or(0);
                let writes_stay = row.get("writes_stay");
                let facts = TableFacts {
                    schema: Arc::clone(&table),
                    digest: 0,
                    definition: 0,
                    layout: 0,
                    filenode: row.get("relfilenode"),
                    layout_since: 0,
                    heap_bytes,
                    refusal,
                    writes_stay,
                };
                tables.insert(id, facts);
                RelationEntry::Table(table)
            }
        };
        catalog.schemas.entry(schema).or_default().insert(name, entry);
    }
    Ok(Relations { tables, roots, quiet_roots, others })
}

/// What makes a relation something else than an ordinary table that stands for its own rows.
fn special_kind(row: &Row) -> Option<&'static str> {
    match row.get("relkind") {
        "r" => {}
        "v" => return Some("view"),
        "m" => return Some("materialized view"),
        "f" => return Some("foreign table"),
        "S" => return Some("sequence"),
        "i" | "I" => return Some("index"),
        "c" => return Some("composite type"),
        _ => return Some("relation of an unknown kind"),
    }
    if row.get::<_, Oid>(0) < FIRST_USER_OID {
        return Some("system catalog");
    }
    if row.get::<_, &str>("access_method") != "heap" {
        return Some("table of another access method");
    }
    special_traits(row)
}

/// The same for tables of both kinds.
fn special_traits(row: &Row) -> Option<&'static str> {
    let traits = [
        (row.get::<_, &str>("relpersistence") != "p", "unlogged table"),
        (row.get("relrowsecurity"), "table with row security"),
        (row.get("relhasrules"), "table with rules"),
    ];
    traits.into_iter().find_map(|(applies, kind)| applies.then_some(kind))
}

fn table_schema(
    id: RelationId,
    schema: &Arc<str>,
    name: &Arc<str>,
    columns: Vec<ColumnSchema>,
    indexes: Option<&Indexes>,
    identity: &str,
) -> TableSchema {
    let positions = |keys: &Vec<i16>| -> Option<Vec<usize>> {
        keys.iter().map(|key| columns.iter().position(|column| column.attnum == *key)).collect()
    };
    let primary_key = indexes.and_then(|i| i.primary.as_ref()).and_then(positions);
    let identity_index = indexes.and_then(|i| i.identity.as_ref()).and_then(positions);
    let by_key = |key: Option<Vec<usize>>| key.map_or(ReplicaIdentity::Nothing, ReplicaIdentity::Key);
    let identity = match identity {
        "f" => ReplicaIdentity::Full,
        "i" => by_key(identity_index),
        "d" => by_key(primary_key.clone()),
        _ => ReplicaIdentity::Nothing,
    };
    let primary_key = primary_key.unwrap_or_default();
    TableSchema { id, schema: Arc::clone(schema), name: Arc::clone(name), columns, primary_key, identity }
}

/// Whether publishing the table would be useless or do harm. Publishing a table without a usable identity makes the
/// application's UPDATE and DELETE fail (PostgreSQL: Logical Replication, Publication).
fn refusal(table: &TableSchema, row: &Row, unsent: &HashSet<Oid>, server_version: u32) -> Option<Refusal> {
    let (quoted, owner, me): (&str, &str, &str) = (row.get("quoted"), row.get("owner"), row.get("me"));
    let refuse = |why: String, remedy| Some(Refusal { why, remedy, wants_full_identity: false });
    if !row.get::<_, bool>("is_owned") {
        let why = format!("only its owner {owner} may publish it");
        // Who is a member of a superuser may become one.
        let remedy = match row.get("is_owner_superuser") {
            true => format!("ALTER TABLE {quoted} OWNER TO {me}; -- or give freshet the URL of {owner}"),
            false => format!("GRANT {owner} TO {me};"),
        };
        return refuse(why, Some(remedy));
    }
    if !row.get::<_, bool>("is_readable") {
        return refuse("no SELECT privilege".into(), Some(format!("GRANT SELECT ON {quoted} TO {me};")));
    }
    if !row.get::<_, bool>("is_reachable") {
        let schema: &str = row.get("quoted_schema");
        return refuse(
            "no USAGE privilege on its schema".into(),
            Some(format!("GRANT USAGE ON SCHEMA {schema} TO {me};")),
        );
    }
    if let Some(column) = table.columns.iter().find(|column| unsent.contains(&column.type_oid)) {
        return refuse(format!("column {} has a type that PostgreSQL cannot send in binary", column.name), None);
    }
    // See [`UNFIT_IDENTITY`].
    let forbids_full = server_version >= 180_000 && row.get::<_, bool>("has_generated");
    let why = match &table.identity {
        ReplicaIdentity::Nothing => "no usable replica identity (a primary key, valid and not deferrable)".to_string(),
        ReplicaIdentity::Key(key) => {
            let unknown = key.iter().map(|column| &table.columns[*column]).find(|column| column.pg_type.is_none())?;
            format!("column {} of its identity has a type that is not mirrored", unknown.name)
        }
        ReplicaIdentity::Full if forbids_full => {
            "REPLICA IDENTITY FULL and a generated column: published, it could not be updated in PostgreSQL 18"
                .to_string()
        }
        ReplicaIdentity::Full => return None,
    };
    let has_held_key =
        !table.primary_key.is_empty() && table.primary_key.iter().all(|key| table.columns[*key].pg_type.is_some());
    let remedy = match forbids_full {
        false => format!("ALTER TABLE {quoted} REPLICA IDENTITY FULL;"),
        true if has_held_key => format!("ALTER TABLE {quoted} REPLICA IDENTITY DEFAULT;"),
        true => format!(
            "ALTER TABLE {quoted} REPLICA IDENTITY DEFAULT; -- once it has a primary key of columns that are mirrored"
        ),
    };
    Some(Refusal { why, remedy: Some(remedy), wants_full_identity: !forbids_full })
}

async fn load_digests(
    transaction: &Transaction<'_>,
    tables: &mut HashMap<RelationId, TableFacts>,
    derived: Vec<RelationId>,
) -> Result<HashMap<RelationId, i64>, UpstreamError> {
    let oids: Vec<Oid> = tables.keys().chain(&derived).map(|relation| relation.0).collect();
    let mut derived: HashMap<RelationId, i64> = derived.into_iter().map(|relation| (relation, 0)).collect();
    let sql = format!(
        "SELECT r, bit_xor(h), coalesce(bit_xor(h) FILTER (WHERE is_column), 0) FROM ({RELATION_ROWS}) AS rows GROUP BY r"
    );
    for row in transaction.query(&sql, &[&oids]).await? {
        if let Some(facts) = tables.get_mut(&RelationId(row.get(0))) {
            facts.digest = row.get(1);
            facts.layout = row.get(2);
        } else if let Some(digest) = derived.get_mut(&RelationId(row.get(0))) {
            *digest = row.get(1);
        }
    }
    Ok(derived)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micros_count_from_2000() {
        assert_eq!(micros(std::time::UNIX_EPOCH), -946_684_800_000_000);
    }
}
