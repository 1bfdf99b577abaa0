//! Can this upstream be mirrored by this role? Facts are gathered once; [`assess`] is pure.
//!
//! Shared by the start of mirroring (anything that blocks makes freshet a plain relay) and by `freshet check`.

use tokio_postgres::Client;

use crate::upstream::UpstreamError;

/// What of upstream decides whether it can be mirrored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// `server_version_num`.
    pub version: i32,
    pub wal_level: String,
    pub encoding: String,
    pub in_recovery: bool,
    pub role: String,
    pub database: String,
    pub may_replicate: bool,
    pub may_create_publication: bool,
    pub slots_max: i64,
    pub slots_used: i64,
    pub walsenders_max: i64,
    /// Without those of [`Needs::standby`].
    pub walsenders_used: i64,
}

/// What the mirror takes of upstream's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs<'a> {
    /// Mode `standby`: the name that freshet's walsenders have.
    pub standby: Option<&'a str>,
    /// What the names of slots and walsenders begin with that are not in the way: a freshet's that runs already.
    pub own: Option<&'a str>,
}

impl Needs<'_> {
    /// Always a temporary one: a physical walsender keeps nothing.
    const SLOTS: i64 = 1;

    /// In mode `standby` one acknowledges commits while the other's slot is made ([`crate::replication::release`]).
    fn walsenders(self) -> i64 {
        if self.standby.is_some() { 2 } else { 1 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// No mirror until this is mended; freshet relays everything.
    Blocks,
    Warns,
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    pub what: String,
    pub why: String,
    /// SQL for a superuser, or what to do otherwise.
    pub remedy: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}. To mend: {}", self.what, self.why, self.remedy)
    }
}

/// Asks upstream.
pub async fn gather(client: &Client, needs: Needs<'_>) -> Result<ServerFacts, UpstreamError> {
    let row = client
        .query_one(
            "SELECT current_setting('server_version_num')::int4, current_setting('wal_level'),
                    pg_encoding_to_char(d.encoding)::text, pg_is_in_recovery(), quote_ident(current_user),
                    quote_ident(datname), rolsuper OR rolreplication
                      -- Amazon RDS grants replication by a role.
                      OR EXISTS (SELECT FROM pg_roles g WHERE g.rolname = 'rds_replication'
                                                          AND pg_has_role(g.oid, 'MEMBER')),
                    has_database_privilege(d.oid, 'CREATE'),
                    current_setting('max_replication_slots')::int8,
                    (SELECT count(*) FROM pg_replication_slots WHERE NOT coalesce(starts_with(slot_name, $2), false)),
                    current_setting('max_wal_senders')::int8,
                    (SELECT count(*) FROM pg_stat_replication
                      WHERE lower(application_name) IS DISTINCT FROM lower($1)
                        AND NOT coalesce(starts_with(application_name, $2), false))
               FROM pg_database d, pg_roles r WHERE datname = current_database() AND rolname = current_user",
            &[&needs.standby, &needs.own],
        )
        .await?;
    Ok(ServerFacts {
        version: row.get(0),
        wal_level: row.get(1),
        encoding: row.get(2),
        in_recovery: row.get(3),
        role: row.get(4),
        database: row.get(5),
        may_replicate: row.get(6),
        may_create_publication: row.get(7),
        slots_max: row.get(8),
        slots_used: row.get(9),
        walsenders_max: row.get(10),
        walsenders_used: row.get(11),
    })
}

/// The first release of each major version without the known losses of logical decoding. Before PostgreSQL's commit 4909b38af0 (the
/// release before each of these, which could use up the memory instead), ALTER PUBLICATION ... ADD TABLE did not reach transactions that were
/// running, and changes of later ones were lost with theirs.
const FLOORS: [(i32, i32); 4] = [(14, 19), (15, 14), (16, 10), (17, 6)];

/// Everything that is wrong, what blocks first.
pub fn assess(facts: &ServerFacts, needs: Needs<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |severity, what: String, why: &str, remedy: String| {
        findings.push(Finding { severity, what, why: why.into(), remedy });
    };
    let (major, minor) = (facts.version / 10_000, facts.version % 10_000);
    if major < 14 {
        let why =
            "changes made while a table is being published can be lost, and snapshots cannot be copied in parallel";
        find(Severity::Blocks, format!("PostgreSQL {major}.{minor}"), why, "upgrade to 15.14 or later".into());
    }
    if let Some((_, floor)) = FLOORS.iter().find(|(floor_major, floor)| *floor_major == major && minor < *floor) {
        let why = "earlier minor releases can lose changes of transactions that run while a table is published";
        let remedy = format!("upgrade to {major}.{floor} or later");
        find(Severity::Blocks, format!("PostgreSQL {major}.{minor}"), why, remedy);
    }
    if facts.in_recovery {
        let why = "a standby's snapshots do not show which transactions are running";
        find(Severity::Blocks, "upstream is a standby".into(), why, "connect freshet to the primary".into());
    }
    if facts.wal_level != "logical" {
        find(
            Severity::Blocks,
            format!("wal_level is {}", facts.wal_level),
            "row changes are not in the write-ahead log",
            "ALTER SYSTEM SET wal_level = 'logical'; then restart PostgreSQL".into(),
        );
    }
    if facts.encoding != "UTF8" {
        let why = "only UTF8 text can be compared and measured exactly";
        let what = format!("the database's encoding is {}", facts.encoding);
        find(Severity::Blocks, what, why, "dump the database and restore it with ENCODING 'UTF8'".into());
    }
    if !facts.may_replicate {
        let what = format!("role {} may not replicate", facts.role);
        find(Severity::Blocks, what, "streaming needs it", format!("ALTER ROLE {} REPLICATION;", facts.role));
    }
    if !facts.may_create_publication {
        let what = format!("role {} may not create a publication", facts.role);
        let remedy = format!("GRANT CREATE ON DATABASE {} TO {};", facts.database, facts.role);
        find(Severity::Blocks, what, "freshet keeps a publication of the tables it mirrors", remedy);
    }
    if facts.slots_max - facts.slots_used < Needs::SLOTS {
        let what = format!("all {} replication slots are in use", facts.slots_max);
        let remedy = format!("ALTER SYSTEM SET max_replication_slots = {}; then restart", facts.slots_max + 5);
        find(Severity::Blocks, what, "the mirror needs one (temporary)", remedy);
    }
    if facts.walsenders_max - facts.walsenders_used < needs.walsenders() {
        let what = format!("{} of {} walsenders are in use", facts.walsenders_used, facts.walsenders_max);
        let remedy = format!("ALTER SYSTEM SET max_wal_senders = {}; then restart", facts.walsenders_max + 5);
        let why = match needs.standby {
            Some(_) => "mode standby needs two: one acknowledges commits while the other begins",
            None => "the mirror needs one",
        };
        find(Severity::Blocks, what, why, remedy);
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready() -> ServerFacts {
        ServerFacts {
            version: 150_018,
            wal_level: "logical".into(),
            encoding: "UTF8".into(),
            in_recovery: false,
            role: "freshet".into(),
            database: "shop".into(),
            may_replicate: true,
            may_create_publication: true,
            slots_max: 10,
            slots_used: 0,
            walsenders_max: 10,
            walsenders_used: 0,
        }
    }

    const PLAIN: Needs<'_> = Needs { standby: None, own: None };
    const STANDBY: Needs<'_> = Needs { standby: Some("freshet"), own: None };

    #[test]
    fn a_server_that_is_ready_has_no_findings() {
        assert_eq!(assess(&ready(), PLAIN), []);
        assert_eq!(assess(&ready(), STANDBY), []);
    }

    #[test]
    fn a_standby_needs_two_walsenders() {
        let last = ServerFacts { walsenders_used: 9, slots_used: 9, ..ready() };
        assert_eq!(assess(&last, PLAIN), []);
        let findings = assess(&last, STANDBY);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].what, "9 of 10 walsenders are in use");
        assert!(findings[0].severity == Severity::Blocks && findings[0].why.contains("needs two"));
    }

    #[test]
    fn each_shortcoming_is_named_with_its_remedy() {
        let findings = assess(&ServerFacts { wal_level: "replica".into(), may_replicate: false, ..ready() }, PLAIN);
        assert_eq!(findings.len(), 2);
        assert!(findings.iter().all(|finding| finding.severity == Severity::Blocks));
        assert_eq!(findings[1].remedy, "ALTER ROLE freshet REPLICATION;");

        let full = assess(&ServerFacts { slots_used: 10, walsenders_used: 10, ..ready() }, PLAIN);
        assert!(full[0].remedy.contains("max_replication_slots = 15"));
        assert!(full[1].remedy.contains("max_wal_senders = 15"));
    }

    #[test]
    fn old_releases_block() {
        for (version, remedy) in [
            (130_022, "upgrade to 15.14 or later"),
            (140_018, "upgrade to 14.19 or later"),
            (150_013, "upgrade to 15.14 or later"),
            (160_009, "upgrade to 16.10 or later"),
            (170_005, "upgrade to 17.6 or later"),
        ] {
            let findings = assess(&ServerFacts { version, ..ready() }, PLAIN);
            assert_eq!((findings[0].severity, &*findings[0].remedy), (Severity::Blocks, remedy), "{version}");
        }
        for version in [140_019, 150_014, 160_010, 170_006, 180_000] {
            assert_eq!(assess(&ServerFacts { version, ..ready() }, PLAIN), [], "{version}");
        }
    }
}
