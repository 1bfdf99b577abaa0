//! Which relations run functions of users that may change the session, or write although they are read, and which functions do
//! neither: see [`HiddenCalls`].
//!
//! Operators, casts and domains run functions that have no name in a statement either.
//!
//! A function is taken to leave the session alone if its body shows that ([`Body`]), and so do the functions and relations that it
//! names. In C only those of well-known extensions are trusted, and those that are declared not to be volatile by an extension.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use freshet_engine::catalog::hidden::HiddenCalls;
use freshet_engine::catalog::{Catalog, View};
use freshet_engine::statement::classify::is_harmless;
use freshet_engine::statement::quiet::Body;
use freshet_engine::types::Oid;
use tokio_postgres::Transaction;

use crate::replication::catalog::texts::Texts;
use crate::upstream::UpstreamError;

/// Stands for something that is not looked into: a rule, set_config (pg_proc.dat: 2078) as a default.
const OPEN: Oid = 0;

/// Relations by name, with the functions that a write of their rows runs, and, second, a read (row security).
const RUN_BY: &str = "\
    -- What is computed of a row that is written: expressions and predicates of indexes, keys of partitions, which are checked
    -- in all below them, too, and what compares by operator classes of users.
    WITH RECURSIVE keyed (r, f) AS (
        SELECT coalesce(indrelid, d.objid), refobjid FROM pg_depend d LEFT JOIN pg_index ON indexrelid = d.objid
         WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_proc'::regclass
        UNION
        SELECT coalesce(indrelid, d.objid), amproc::oid
          FROM pg_depend d JOIN pg_opclass o ON o.oid = d.refobjid AND o.oid >= 16384
               JOIN pg_amproc ON amprocfamily = opcfamily LEFT JOIN pg_index ON indexrelid = d.objid
         WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_opclass'::regclass
        UNION
        SELECT inhrelid, f FROM keyed JOIN pg_inherits ON inhparent = r)
    SELECT relname::text, f, is_read
      FROM (SELECT r, f, false AS is_read FROM keyed
            UNION ALL
            SELECT tgrelid AS r, tgfoid AS f, false AS is_read FROM pg_trigger WHERE NOT tgisinternal
            UNION ALL
            -- WHEN.
            SELECT tgrelid, refobjid, false FROM pg_trigger t JOIN pg_depend d
                ON d.classid = 'pg_trigger'::regclass AND d.objid = t.oid AND d.refclassid = 'pg_proc'::regclass
            UNION ALL
            SELECT adrelid, refobjid, false FROM pg_attrdef a JOIN pg_depend d
                ON d.classid = 'pg_attrdef'::regclass AND d.objid = a.oid AND d.refclassid = 'pg_proc'::regclass
            UNION ALL
            SELECT adrelid, 0, false FROM pg_attrdef WHERE adbin::text LIKE '%:funcid 2078 %'
            UNION ALL
            SELECT conrelid, refobjid, false FROM pg_constraint c JOIN pg_depend d
                ON d.classid = 'pg_constraint'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_proc'::regclass
             WHERE conrelid <> 0
            UNION ALL
            SELECT conrelid, 0, false FROM pg_constraint WHERE conrelid <> 0 AND conbin::text LIKE '%:funcid 2078 %'
            UNION ALL
            -- Checks and defaults of domains, of whichever.
            SELECT attrelid, refobjid, false
              FROM (SELECT DISTINCT attrelid FROM pg_attribute a JOIN pg_type t ON t.oid = atttypid AND t.typtype = 'd') AS a,
                   (SELECT refobjid FROM pg_constraint c JOIN pg_depend d
                        ON d.classid = 'pg_constraint'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_proc'::regclass
                     WHERE contypid <> 0
                    UNION ALL
                    SELECT refobjid FROM pg_type t JOIN pg_depend d
                        ON d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.refclassid = 'pg_proc'::regclass
                     WHERE t.typtype = 'd') AS d
            UNION ALL
            SELECT ev_class, 0, false FROM pg_rewrite WHERE ev_type <> '1'
            UNION ALL
            SELECT polrelid, refobjid, true FROM pg_policy p JOIN pg_depend d
                ON d.classid = 'pg_policy'::regclass AND d.objid = p.oid AND d.refclassid = 'pg_proc'::regclass) AS run
      JOIN pg_class c ON c.oid = r
     WHERE c.oid >= 16384 AND (f = 0 OR f >= 16384)";

/// Functions of event triggers that fire for users' definitions; freshet's own is in the schema of its name.
const FIRED: &str = "\
    SELECT evtfoid FROM pg_event_trigger JOIN pg_proc p ON p.oid = evtfoid JOIN pg_namespace n ON n.oid = pronamespace
     WHERE evtenabled <> 'D' AND evtevent <> 'login' AND NOT (nspname = evtname AND proname = 'note')";

/// Whose rows a write of the first may write, too: TRUNCATE CASCADE follows every foreign key.
const FOLLOWED_BY: &str = "\
    SELECT p.relname::text, c.relname::text
      FROM (SELECT confrelid AS parent, conrelid AS child FROM pg_constraint
             WHERE contype = 'f'
            UNION SELECT inhparent, inhrelid FROM pg_inherits) AS e
      JOIN pg_class p ON p.oid = parent JOIN pg_class c ON c.oid = child
     WHERE p.relname <> c.relname";

/// Operators and casts with their functions: the operator, or the type that is cast to, if that has to be written.
const COMPUTED_BY: &str = "\
    SELECT oprname::text, NULL, oprcode::oid FROM pg_operator WHERE oid >= 16384 AND oprcode::oid >= 16384
    UNION ALL
    SELECT NULL, CASE castcontext WHEN 'e' THEN typname::text END, castfunc::oid
      FROM pg_cast JOIN pg_type t ON t.oid = casttarget WHERE castfunc::oid >= 16384";

/// Names of domains, and of what is made of them, with the functions of their checks and defaults.
const MADE_BY: &str = "\
    WITH RECURSIVE made (type, f) AS (
        SELECT contypid, refobjid FROM pg_constraint c JOIN pg_depend d
            ON d.classid = 'pg_constraint'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_proc'::regclass
         WHERE contypid <> 0
        UNION
        SELECT t.oid, refobjid FROM pg_type t JOIN pg_depend d
            ON d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.refclassid = 'pg_proc'::regclass
         WHERE t.typtype = 'd'
        UNION
        SELECT of.type, f FROM made, LATERAL (
            SELECT oid FROM pg_type WHERE typbasetype = made.type
            UNION ALL SELECT oid FROM pg_type WHERE typelem = made.type AND typlen = -1
            UNION ALL SELECT rngtypid FROM pg_range WHERE rngsubtype = made.type
            UNION ALL SELECT t.oid FROM pg_attribute a JOIN pg_type t ON t.typrelid = a.attrelid
                       WHERE a.atttypid = made.type AND NOT a.attisdropped) AS of (type))
    SELECT typname::text, f FROM made JOIN pg_type t ON t.oid = made.type WHERE f >= 16384";

/// What keywords and clauses compare by (gram.y; ORDER BY and DISTINCT by an operator class).
const UNWRITTEN: [&str; 12] = ["=", "<>", "<", "<=", ">", ">=", "~~", "!~~", "~~*", "!~~*", "~", "!~"];

/// Functions of users. NULL: a body that is not read.
const FUNCTIONS: &str = "\
    SELECT p.oid, proname::text,
           CASE WHEN lanname IN ('sql', 'plpgsql') AND prokind IN ('f', 'p') AND length(prosrc) <= 65536
                THEN prosrc END AS body,
           lanname IN ('c', 'internal') AND EXISTS (
               SELECT FROM pg_depend d JOIN pg_extension x ON x.oid = d.refobjid
                WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
                  -- These run what they are given as text.
                  AND extname NOT IN ('tablefunc', 'xml2')
                  AND (provolatile <> 'v' OR extname IN ('citext', 'hstore', 'insert_username', 'moddatetime', 'pg_trgm', 'pgcrypto',
                       'postgis', 'tsm_system_rows', 'unaccent', 'uuid-ossp', 'vector'))) AS is_trusted,
           -- What is left out in a call is computed at its place.
           coalesce(proargdefaults::text LIKE '%{FUNCEXPR %', false) AS is_open_by_default,
           EXISTS (SELECT FROM pg_proc b WHERE b.pronamespace = 'pg_catalog'::regnamespace AND b.proname = p.proname) AS is_namesake,
           lanname = 'sql' AS is_sql,
           (SELECT array_agg(typname::text) FROM pg_type t
             WHERE t.oid = ANY (prorettype || proargtypes::oid[] || coalesce(proallargtypes, '{}')) AND t.oid >= 16384) AS types,
           prosqlbody IS NOT NULL AS is_resolved
      FROM pg_proc p JOIN pg_language l ON l.oid = prolang
     WHERE p.oid >= 16384";

/// `unread`: views without a text, which may run anything; so may functions without one of the `bodies`.
pub(super) async fn load(
    transaction: &Transaction<'_>,
    catalog: &Catalog,
    unread: Vec<Arc<str>>,
    bodies: &Texts,
) -> Result<HiddenCalls, UpstreamError> {
    let mut used = Used { unread, ..Used::default() };
    for row in transaction.query(RUN_BY, &[]).await? {
        used.run_by.push((row.get::<_, &str>(0).into(), row.get(1), row.get(2)));
    }
    for view in catalog.views.values() {
        used.add_view(view);
    }
    // Many databases have nothing to look into.
    if catalog.user_functions.is_empty()
        && used.run_by.is_empty()
        && used.unread.is_empty()
        && used.views.iter().all(|(_, body)| body.calls.is_empty() && !body.is_open)
    {
        return Ok(HiddenCalls::default());
    }
    used.fired = transaction.query(FIRED, &[]).await?.iter().map(|row| row.get(0)).collect();
    for row in transaction.query(FOLLOWED_BY, &[]).await? {
        used.followed_by.push((row.get::<_, &str>(0).into(), row.get::<_, &str>(1).into()));
    }
    for row in transaction.query(COMPUTED_BY, &[]).await? {
        used.computed_by.push((
            row.get::<_, Option<&str>>(0).map(Arc::from),
            row.get::<_, Option<&str>>(1).map(Arc::from),
            row.get(2),
        ));
    }
    for row in transaction.query(MADE_BY, &[]).await? {
        used.computed_by.push((None, Some(row.get::<_, &str>(0).into()), row.get(1)));
    }
    for row in transaction.query(FUNCTIONS, &[]).await? {
        let text: Option<&str> = match row.get("is_resolved") {
            true => bodies.read.get(&row.get(0)).map(String::as_str),
            false => row.get(2),
        };
        let mut body = match (text, row.get(3)) {
            (Some(text), _) if row.get(6) => Body::of_sql(text),
            (Some(text), _) => Body::of(text),
            (None, true) => Body::default(),
            (None, false) => Body { is_open: true, ..Body::default() },
        };
        // By a name of PostgreSQL's own its function may be meant.
        if row.get(5) && !is_harmless(row.get(1)) {
            used.namesakes.push(row.get(1));
        }
        body.is_open |= row.get::<_, bool>(4);
        body.names.extend(row.get::<_, Option<Vec<String>>>(7).unwrap_or_default());
        used.functions.insert(row.get(0), (row.get(1), body));
    }
    Ok(used.hidden())
}

/// What runs what.
#[derive(Default)]
struct Used {
    /// Relation, function, whether reading is enough.
    run_by: Vec<(Arc<str>, Oid, bool)>,
    followed_by: Vec<(Arc<str>, Arc<str>)>,
    /// Functions of event triggers.
    fired: Vec<Oid>,
    views: Vec<(Arc<str>, Body)>,
    /// Views of which nothing is known.
    unread: Vec<Arc<str>>,
    functions: HashMap<Oid, (String, Body)>,
    /// Names of functions by which another one may be called that is not trusted; who is called by OID is not concerned.
    namesakes: Vec<String>,
    /// Operator, or else type if it has to be written, and function.
    computed_by: Vec<(Option<Arc<str>>, Option<Arc<str>>, Oid)>,
}

impl Used {
    fn add_view(&mut self, view: &View) {
        self.views.push((Arc::clone(&view.schema.name), Body::of(&view.definition)));
    }

    /// Everything is closed until something open is found that it uses. Who reads a view does not expect that it writes, either:
    /// of these, what writes rows counts as open.
    fn hidden(&self) -> HiddenCalls {
        let mut hidden = HiddenCalls::default();
        let names: HashSet<&str> = self.functions.values().map(|(name, _)| &**name).collect();
        let (mut open, mut writing) = (Found::default(), Found::default());
        hidden.read.extend(self.unread.iter().cloned());
        hidden.written.extend(self.unread.iter().cloned());
        open.oids.insert(OPEN);
        writing.oids.insert(OPEN);
        for name in &self.namesakes {
            open.names.insert(name);
            writing.names.insert(name);
        }
        loop {
            let before =
                (open.oids.len(), writing.oids.len(), hidden.read.len(), hidden.written.len(), hidden.unnamed_count());
            for (operator, type_name, function) in &self.computed_by {
                if !writing.oids.contains(function) {
                    continue;
                }
                match (operator, type_name) {
                    (Some(operator), _) if !UNWRITTEN.contains(&&**operator) => {
                        hidden.operators.insert(Arc::clone(operator));
                    }
                    (None, Some(name)) => _ = hidden.types.insert(Arc::clone(name)),
                    _ => hidden.is_unseen = true,
                }
            }
            for (oid, (name, body)) in &self.functions {
                let uses_hidden = hidden.first(body.names.iter().map(|name| &**name), body.writes).is_some()
                    || body.uses_unnamed(&hidden);
                if body.is_open || open.is_called(body, &names) || uses_hidden {
                    open.add(*oid, name);
                }
                if body.is_open || body.writes || writing.is_called(body, &names) || uses_hidden {
                    writing.add(*oid, name);
                }
            }
            for (relation, function, is_read) in &self.run_by {
                match is_read {
                    true if writing.oids.contains(function) => drop(hidden.read.insert(Arc::clone(relation))),
                    false if open.oids.contains(function) => drop(hidden.written.insert(Arc::clone(relation))),
                    _ => {}
                }
            }
            for (parent, child) in &self.followed_by {
                if hidden.written.contains(child) {
                    hidden.written.insert(Arc::clone(parent));
                }
            }
            for (view, body) in &self.views {
                let used = || body.names.iter().map(|name| &**name);
                if body.is_open
                    || writing.is_called(body, &names)
                    || body.uses_unnamed(&hidden)
                    || hidden.first(used(), false).is_some()
                {
                    hidden.read.insert(Arc::clone(view));
                }
                // It may be updatable.
                if hidden.first(used(), true).is_some() {
                    hidden.written.insert(Arc::clone(view));
                }
            }
            if (open.oids.len(), writing.oids.len(), hidden.read.len(), hidden.written.len(), hidden.unnamed_count())
                == before
            {
                // A name with a point in it looks like one behind a schema.
                let others: HashSet<&str> =
                    writing.names.iter().flat_map(|name| [*name, name.rsplit('.').next().unwrap_or(name)]).collect();
                let is_open = |function: &Oid| open.oids.contains(function) || !self.functions.contains_key(function);
                hidden.fires = self.fired.iter().any(is_open);
                hidden.quiet = names.difference(&others).map(|name| Arc::from(*name)).collect();
                return hidden;
            }
        }
    }
}

/// Functions of a kind.
#[derive(Default)]
struct Found<'a> {
    oids: HashSet<Oid>,
    names: HashSet<&'a str>,
}

impl<'a> Found<'a> {
    fn add(&mut self, oid: Oid, name: &'a str) {
        self.oids.insert(oid);
        self.names.insert(name);
    }

    /// A function of pg_catalog that is not known to be harmless has none of users' names.
    fn is_called(&self, body: &Body, of_users: &HashSet<&str>) -> bool {
        body.calls.iter().any(|call| !of_users.contains(&**call))
            || body.names.iter().any(|name| self.names.contains(&**name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> HashSet<Arc<str>> {
        names.iter().map(|name| Arc::from(*name)).collect()
    }

    #[test]
    fn what_is_open_is_followed_to_whatever_uses_it() {
        let mut used = Used::default();
        for (oid, name, body) in [
            (1, "touch", "BEGIN NEW.at = now(); RETURN NEW; END"),
            (2, "leave", "BEGIN PERFORM set_config('role', 'x', false); RETURN NEW; END"),
            (3, "by_way", "BEGIN PERFORM leave(); RETURN NEW; END"),
            (4, "log", "BEGIN INSERT INTO audit (id) VALUES (NEW.id); RETURN NEW; END"),
            (5, "bump", "BEGIN UPDATE plain SET v = v + 1; RETURN 1; END"),
            (6, "grade", "BEGIN RETURN lower($1); END"),
            (10, "mark", "SELECT 1"),
            (7, "x.mark", "BEGIN RETURN leave(); END"),
            (8, "twice", "SELECT 2 * $1"),
            (9, "twice", "SELECT nextval($1)"),
        ] {
            used.functions.insert(oid, (name.to_owned(), Body::of(body)));
        }
        for (relation, function) in
            [("plain", 1), ("audit", 3), ("logged", 4), ("child", 2), ("ruled", OPEN), ("fine", 1), ("quiet", 5)]
        {
            used.run_by.push((relation.into(), function, false));
        }
        used.run_by.push(("secured".into(), 2, true));
        // An operator's own function is none of its name's.
        used.functions.insert(11, ("texticregexeq".to_owned(), Body::default()));
        used.functions.insert(12, ("by_name".to_owned(), Body::of("SELECT texticregexeq($1, $2)")));
        used.namesakes.push("texticregexeq".to_owned());
        used.computed_by.extend([(Some("~".into()), None, 11), (Some("@#@".into()), None, 12)]);
        used.followed_by.push(("parent".into(), "child".into()));
        for (view, text) in [
            ("over_parent", "SELECT id FROM parent"),
            ("calls", "SELECT leave() AS v"),
            ("of_view", "SELECT v FROM calls"),
            ("of_secured", "SELECT v FROM secured"),
            ("closed", "SELECT lower(v) FROM plain"),
            ("bumping", "SELECT bump() AS v"),
        ] {
            used.views.push((view.into(), Body::of(text)));
        }
        let hidden = used.hidden();
        assert_eq!(hidden.read, set(&["calls", "of_view", "secured", "of_secured", "bumping"]));
        let written = ["audit", "logged", "child", "ruled", "parent", "over_parent", "of_view", "of_secured"];
        assert_eq!(hidden.written, set(&written));
        assert_eq!(hidden.quiet, set(&["touch", "grade"]));
        assert_eq!((hidden.operators, hidden.is_unseen), (set(&["@#@"]), false));
    }
}
