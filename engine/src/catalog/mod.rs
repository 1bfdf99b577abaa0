//! What the binder must know of upstream's catalog: relations by name, column types, what could shadow a built-in.
//!
//! Filled by the proxy from upstream's system catalogs; immutable once made. [`functions`] is the one table of the
//! operators, functions, casts and aggregates that are known to be reproduced exactly.

pub mod functions;
pub mod hidden;
pub mod order;
pub mod overloads;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::catalog::hidden::HiddenCalls;
use crate::catalog::overloads::Overloads;
use crate::types::{EnumType, Oid, PgType};

/// `pg_class.oid` of a table in the mirrored database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelationId(pub Oid);

/// How text of a column or expression compares (PostgreSQL: Collation Support).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collation {
    /// Not a collatable type.
    None,
    /// Bytewise: "C", and the database default where that is C or POSIX, `name`.
    C,
    /// Order and equality are bytewise; ASCII letters change case as in C, others go upstream ("C" with another ctype).
    Bytewise(Oid),
    /// Deterministic: equality and grouping are bytewise, the order is learnt from upstream ([`order`]). ASCII letters
    /// change case as in C; others go upstream.
    Deterministic(Oid),
    /// Likewise, but words begin elsewhere than in C (ICU): initcap goes upstream.
    OwnTitles(Oid),
    /// Likewise, and ASCII letters may change case in a way of their own (Turkish).
    OwnCase(Oid),
    /// Even equality is not bytewise: everything but carrying the value goes upstream.
    NonDeterministic(Oid),
}

impl Collation {
    /// The collation whose order upstream has to tell.
    pub fn learnt_order(self) -> Option<Oid> {
        match self {
            Self::Deterministic(oid) | Self::OwnTitles(oid) | Self::OwnCase(oid) => Some(oid),
            Self::None | Self::C | Self::Bytewise(_) | Self::NonDeterministic(_) => None,
        }
    }

    /// The collation that says how letters beyond ASCII change case; under C they do not.
    pub fn letters(self) -> Option<Oid> {
        match self {
            Self::Bytewise(oid) | Self::Deterministic(oid) | Self::OwnTitles(oid) | Self::OwnCase(oid) => Some(oid),
            Self::None | Self::C | Self::NonDeterministic(_) => None,
        }
    }
}

/// One live column of a table, in attribute order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSchema {
    pub name: Arc<str>,
    /// `pg_attribute.attnum`, as RowDescription carries it.
    pub attnum: i16,
    /// `pg_attribute.atttypid`: a domain's own.
    pub type_oid: Oid,
    /// Of a domain that is held, what the type below it has, as RowDescription tells it.
    pub typmod: i32,
    /// Of a domain, the type below it. None: a type the engine does not hold (or a generated column...); the column is not
    /// mirrored and a statement that uses it goes upstream.
    pub pg_type: Option<PgType>,
    pub not_null: bool,
    pub collation: Collation,
}

impl ColumnSchema {
    /// Whether its type is a domain over one that is held.
    pub fn is_of_domain(&self) -> bool {
        self.pg_type.is_some_and(|pg_type| pg_type.oid() != self.type_oid)
    }

    /// `pg_attribute.atttypmod`. A column of a domain has none of its own (parse_type.c, typenameTypeMod).
    pub fn own_typmod(&self) -> i32 {
        if self.is_of_domain() { -1 } else { self.typmod }
    }
}

/// A generated column, which the stream does not carry: what it is computed of is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// `pg_attribute.attnum`.
    pub attnum: i16,
    pub pg_type: PgType,
    /// As pg_get_expr writes it where only pg_catalog is in the search path.
    pub expression: Arc<str>,
    /// Computed when the row was written; else when it is read.
    pub is_stored: bool,
}

/// How upstream identifies the old row of an UPDATE or DELETE (`pg_class.relreplident`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaIdentity {
    /// Indexes into [`TableSchema::columns`] of the primary key or of the identity index.
    Key(Vec<usize>),
    /// REPLICA IDENTITY FULL: the whole old row; equal rows are interchangeable.
    Full,
    /// None usable: the table is not mirrored.
    Nothing,
}

/// A table as mirrored. Two schemas that compare equal have the same layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSchema {
    pub id: RelationId,
    pub schema: Arc<str>,
    pub name: Arc<str>,
    pub columns: Vec<ColumnSchema>,
    /// Indexes into `columns` of the primary key, in key order; empty if there is none.
    /// (GROUP BY the primary key makes the other columns functionally dependent.)
    pub primary_key: Vec<usize>,
    pub identity: ReplicaIdentity,
}

/// A partitioned table: its rows are those of its leaves, in whatever order their columns are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitioned {
    pub schema: Arc<TableSchema>,
    /// The ordinary tables at the bottom.
    pub leaves: Vec<Leaf>,
    /// Itself and the partitioned tables between it and its leaves: what decides which leaves there are.
    pub levels: Vec<RelationId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    pub table: RelationId,
    /// For each column of the partitioned table (or the one inherited from), the leaf's.
    pub columns: Vec<usize>,
}

/// A view: a stored query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its name and columns, as a table has them.
    pub schema: Arc<TableSchema>,
    /// Its query, as pg_get_viewdef writes it where only pg_catalog is in the search path: other names have their schema.
    pub definition: Arc<str>,
    /// Whose rights count for what it reads; None: those of whoever reads it (security_invoker).
    pub owner: Option<Arc<str>>,
    /// It is computed before what is asked of its rows (security_barrier).
    pub is_barrier: bool,
}

/// A materialized view: a query whose rows upstream keeps. They are not here; what tells whether they are the same is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Materialized {
    /// Its name and columns, as a table has them.
    pub schema: Arc<TableSchema>,
    /// Another number, and a larger one, after each REFRESH.
    pub contents: u64,
}

/// One of the functions of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionEntry {
    pub schema: Arc<str>,
    pub oid: Oid,
    /// The types that it takes.
    pub arguments: Vec<Oid>,
    /// A call may leave some out, or give more.
    pub is_flexible: bool,
    /// Everybody may look it up by a name with its schema.
    pub is_schema_public: bool,
    /// A type has the same name.
    pub is_type_name: bool,
    /// None: what it computes is upstream's affair.
    pub definition: Option<Arc<SqlFunction>>,
}

/// A function written in SQL that everybody may call, with the rights of who calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlFunction {
    pub name: Arc<str>,
    pub arguments: Vec<PgType>,
    /// Of the arguments; empty where they have none.
    pub names: Vec<Arc<str>>,
    pub result: PgType,
    pub body: Arc<str>,
    /// The body was stored parsed (BEGIN ATOMIC, RETURN): its text has names as a view's has.
    pub is_resolved: bool,
    /// Else it is STABLE.
    pub is_immutable: bool,
    pub is_strict: bool,
}

/// Built-in functions that not everybody may execute: whoever calls one, upstream judges it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restricted {
    /// Beside `pg_class` and `pg_type`, where not everybody may read them.
    pub names: HashSet<Arc<str>>,
    /// One of them is behind an operator or a cast, where no name shows it.
    pub is_behind_operators: bool,
}

/// What a relation name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelationEntry {
    /// An ordinary or partitioned table (mirrored or not; that is the snapshot's affair).
    Table(Arc<TableSchema>),
    View(Arc<View>),
    /// A materialized view. Upstream answers; its replies can be kept.
    Materialized(Arc<TableSchema>),
    /// A sequence, foreign table, a table with row security...: `kind` says what, for the operator. Statements over it go
    /// upstream.
    Other {
        id: RelationId,
        kind: &'static str,
    },
}

/// A kind of relation in a sentence: `an unlogged table`.
pub fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {kind}")
}

/// Upstream's catalog at one moment, as far as binding needs it.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Counts the catalogs that this freshet has loaded; plans and verified shapes are bound to it.
    pub version: u64,
    pub database: String,
    /// Of upstream, as `server_version_num` has it; 0: not known.
    pub server_version: u32,
    /// Tells whether upstream's rows that count for every statement (schemas, roles, functions...) are still the same.
    pub digest: i64,
    /// Schema name → relation name → entry; `pg_catalog` included (its relations are `Other`), so that
    /// resolution along the search path ends where PostgreSQL's does.
    pub schemas: HashMap<Arc<str>, HashMap<Arc<str>, RelationEntry>>,
    /// By OID, the tables of `schemas` again.
    pub tables: HashMap<RelationId, Arc<TableSchema>>,
    /// Those of them that are partitioned.
    pub partitioned: HashMap<RelationId, Arc<Partitioned>>,
    /// Ordinary tables that others inherit from: whose rows count as theirs where ONLY does not say otherwise. An error: what
    /// there is that has no rows here; for people.
    pub heirs: HashMap<RelationId, Result<Vec<Leaf>, &'static str>>,
    /// Of tables with generated columns, those that may be computed here.
    pub computed: HashMap<RelationId, Vec<Computed>>,
    /// By OID, the views of `schemas` again.
    pub views: HashMap<RelationId, Arc<View>>,
    /// By OID, the materialized views of `schemas` again.
    pub materialized: HashMap<RelationId, Materialized>,
    /// Functions defined outside pg_catalog, in any schema. A call that may mean one goes upstream: a better match there would
    /// win (PostgreSQL: Type Conversion, Functions).
    pub user_functions: Overloads,
    /// Those that users and extensions have put into pg_catalog itself: what names that schema, as SQL's own forms do, may mean them.
    pub added_functions: Overloads,
    /// Names of users' functions that may be written as a column of a row that they take (`t.name`: parse_func.c,
    /// ParseFuncOrColumn), and whose result or effect is not decided by the row alone.
    pub row_functions: HashSet<Arc<str>>,
    /// Likewise operators, in any schema.
    pub user_operators: Overloads,
    pub restricted: Restricted,
    /// Relations whose use runs functions of users that no text shows.
    pub hidden_calls: HiddenCalls,
    /// All functions of the names that functions in SQL have, in any schema.
    pub sql_functions: HashMap<Arc<str>, Vec<FunctionEntry>>,
    /// Names of types defined outside pg_catalog that are those of built-in types or, but for composite types, built-in functions.
    pub user_types: HashSet<Arc<str>>,
    /// Those and types named like a built-in function: a call of one argument may mean a cast (parse_func.c, FuncNameAsType).
    pub user_casts: HashSet<Arc<str>>,
    /// Names of which every function in pg_catalog is immutable.
    pub immutable_functions: HashSet<Arc<str>>,
    /// Types of well-known extensions, and arrays of them, whose text hangs on the value alone.
    pub plain_types: HashSet<Oid>,
    /// Casts between built-in types that are not in a fresh database, or classes by which one is ordered or hashed: varchar and cidr,
    /// which go by those of text and inet, may be given some of their own.
    pub changes_builtin_types: bool,
    /// Casts of rows, or of arrays, to built-in types by a function of the database's own, which may read anything.
    pub has_row_casts: bool,
    /// There are security labels: modules that give them (masks of columns, SELinux) rewrite or refuse statements by role.
    pub has_security_labels: bool,
    /// Enum types, and arrays of them, with what tells whether their labels are the same; without those that have casts or operator
    /// classes of their own. Values of these change with their labels alone.
    pub enums: HashMap<Oid, i64>,
    /// Of them, those that values are held of.
    pub enum_types: Arc<HashMap<Oid, EnumEntry>>,
    /// Collations by schema and name, those that the database's encoding can use.
    pub collations: HashMap<Arc<str>, HashMap<Arc<str>, Collation>>,
    /// The database's default collation.
    pub default_collation: Option<Collation>,
    /// What upstream has told of the order of text; shared by the catalogs of one life of upstream.
    pub orders: Arc<order::Orders>,
}

/// An enum type by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumEntry {
    pub schema: Arc<str>,
    pub labels: EnumType,
    /// `pg_enum.oid` of each label, in their order: what a constant means that has been parsed.
    pub label_oids: Arc<[Oid]>,
    /// Everybody may look into its schema.
    pub is_schema_public: bool,
    /// No other type has its name, in any schema.
    pub is_only: bool,
}

impl RelationEntry {
    pub fn id(&self) -> RelationId {
        match self {
            Self::Table(table) | Self::Materialized(table) => table.id,
            Self::View(view) => view.schema.id,
            Self::Other { id, .. } => *id,
        }
    }
}

impl Catalog {
    /// The entry that an unqualified or qualified name stands for under `search_path` (effective, in order, pg_catalog
    /// first unless it is listed; temporary schemas are the session's affair). None: no such relation here.
    pub fn relation(&self, schema: Option<&str>, name: &str, search_path: &[Arc<str>]) -> Option<&RelationEntry> {
        if let Some(schema) = schema {
            return self.schemas.get(schema)?.get(name);
        }
        search_path.iter().find_map(|schema| self.schemas.get(schema)?.get(name))
    }

    /// The type of this OID, if values of it are held.
    pub fn pg_type(&self, oid: Oid) -> Option<PgType> {
        PgType::from_oid(oid).or_else(|| Some(PgType::Enum(self.enum_types.get(&oid)?.labels)))
    }

    /// Whether the relation has no rows here that are its own: it is made of others, by its name or by a REFRESH.
    pub fn is_derived(&self, relation: RelationId) -> bool {
        self.partitioned.contains_key(&relation)
            || self.views.contains_key(&relation)
            || self.materialized.contains_key(&relation)
    }

    /// Names and columns of a table or view.
    pub fn described(&self, relation: RelationId) -> Option<&Arc<TableSchema>> {
        self.tables
            .get(&relation)
            .or_else(|| Some(&self.views.get(&relation)?.schema))
            .or_else(|| Some(&self.materialized.get(&relation)?.schema))
    }

    /// Whether every statement means the same by both, and may be run by the same roles: all is equal but the number of the catalog and the rows that
    /// materialized views have.
    pub fn means_the_same_as(&self, other: &Self) -> bool {
        // Named one by one, so that a new part is not forgotten. The schemas of materialized views are in `schemas`, too.
        let Self {
            version: _,
            database,
            server_version,
            digest,
            schemas,
            tables,
            partitioned,
            heirs,
            computed,
            views,
            materialized: _,
            user_functions,
            added_functions,
            row_functions,
            user_operators,
            restricted,
            hidden_calls,
            sql_functions,
            user_types,
            user_casts,
            immutable_functions,
            plain_types,
            changes_builtin_types,
            has_row_casts,
            has_security_labels,
            enums,
            enum_types,
            collations,
            default_collation,
            orders,
        } = self;
        *database == other.database
            && *server_version == other.server_version
            && *digest == other.digest
            && *schemas == other.schemas
            && *tables == other.tables
            && *partitioned == other.partitioned
            && *heirs == other.heirs
            && *computed == other.computed
            && *views == other.views
            && *user_functions == other.user_functions
            && *added_functions == other.added_functions
            && *row_functions == other.row_functions
            && *user_operators == other.user_operators
            && *restricted == other.restricted
            && *hidden_calls == other.hidden_calls
            && *sql_functions == other.sql_functions
            && *user_types == other.user_types
            && *user_casts == other.user_casts
            && *immutable_functions == other.immutable_functions
            && *plain_types == other.plain_types
            && *changes_builtin_types == other.changes_builtin_types
            && *has_row_casts == other.has_row_casts
            && *has_security_labels == other.has_security_labels
            && *enums == other.enums
            && *enum_types == other.enum_types
            && *collations == other.collations
            && *default_collation == other.default_collation
            && Arc::ptr_eq(orders, &other.orders)
    }

    /// The tables whose rows a table's name stands for without ONLY: its own and those that inherit from it. An error says what
    /// prevents it.
    pub fn with_heirs(&self, table: RelationId) -> Result<Vec<RelationId>, &'static str> {
        let heirs = match self.heirs.get(&table) {
            Some(heirs) => heirs.as_deref().map_err(|why| *why)?,
            None => &[],
        };
        Ok(std::iter::once(table).chain(heirs.iter().map(|heir| heir.table)).collect())
    }

    /// What answers from these relations depend on: the tables that have rows, and the relations made of them.
    pub fn expand(&self, relations: &[RelationId]) -> Vec<RelationId> {
        let mut expanded = Vec::with_capacity(relations.len());
        for relation in relations {
            match self.partitioned.get(relation) {
                Some(partitioned) => {
                    expanded.extend(partitioned.leaves.iter().map(|leaf| leaf.table));
                    expanded.extend_from_slice(&partitioned.levels);
                }
                None => expanded.push(*relation),
            }
        }
        expanded.sort_unstable();
        expanded.dedup();
        expanded
    }
}

impl TableSchema {
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| &*column.name == name)
    }
}
