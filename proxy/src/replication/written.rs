//! [`WrittenTable`]: what a statement through freshet may have written, by the names that it used; and to which keys it was
//! confined, once the table is known.

use std::sync::Arc;

use freshet_engine::catalog::{Collation, ColumnSchema, RelationId, TableSchema};
use freshet_engine::statement::confined::{Cast, ConfinedWrite, Constant, ConstantValue};
use freshet_engine::types::network::Network;
use freshet_engine::types::{FormatSettings, KeyHash, PgType, Value, binary, text};

use crate::wire::extended::{Bind, format_at, oids};

/// A longer value is not kept.
const VALUE_BYTES_MAX: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenTable {
    /// `[schema, table]` or `[table]`, folded.
    pub name: Arc<[String]>,
    /// None: any of its rows.
    pub confined: Option<Confined>,
}

/// A confinement with the parameters of one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confined {
    write: Arc<ConfinedWrite>,
    parameters: Arc<[Parameter]>,
    /// The catalog's version when the statement was parsed, which gave a type to parameters that have none declared.
    parsed_under: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parameter {
    index: usize,
    /// The type that Parse declared for it; 0: none.
    declared: u32,
    format: i16,
    value: Box<[u8]>,
}

/// A table that was written.
#[derive(Clone, Debug)]
pub struct Touched {
    pub relation: RelationId,
    /// Its rows of some keys only.
    confined: Option<Keyed>,
}

#[derive(Clone, Debug)]
struct Keyed {
    schema: Arc<TableSchema>,
    /// The version of the catalog since which it has these columns.
    since: u64,
    confined: Confined,
}

impl WrittenTable {
    /// By a statement of this text; its parameters, if it has any, are not known yet.
    pub fn by(name: Arc<[String]>, confined: Option<ConfinedWrite>) -> Self {
        let confined =
            confined.map(|write| Confined { write: Arc::new(write), parameters: Arc::default(), parsed_under: 0 });
        Self { name, confined }
    }

    /// With the parameters of an execution, whose types are declared so, of a statement parsed under that version of the catalog.
    pub fn bound(&self, bind: Option<&Bind<'_>>, types: &[u8], parsed_under: u64) -> Self {
        let confined = self.confined.as_ref().map(|confined| confined.bound(bind, types, parsed_under));
        Self { name: Arc::clone(&self.name), confined }
    }

    /// Whether `other` says nothing new.
    pub fn covers(&self, other: &Self) -> bool {
        self.name == other.name && (self.confined.is_none() || self.confined == other.confined)
    }
}

impl Confined {
    /// What the text says.
    pub fn write(&self) -> &ConfinedWrite {
        &self.write
    }

    fn bound(&self, bind: Option<&Bind<'_>>, types: &[u8], parsed_under: u64) -> Self {
        let constants = self.write.columns.iter().flat_map(|column| &column.constants);
        let mut wanted: Vec<usize> = constants
            .filter_map(|constant| match constant.value {
                ConstantValue::Parameter { index, .. } => Some(index),
                ConstantValue::Integer(_) | ConstantValue::Text(_) => None,
            })
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let Some(bind) = bind.filter(|_| !wanted.is_empty()) else { return self.clone() };
        let values = bind.values().enumerate().filter(|(index, _)| wanted.binary_search(index).is_ok());
        let parameters = values.filter_map(|(index, value)| {
            let value = value.filter(|value| value.len() <= VALUE_BYTES_MAX)?.into();
            let declared = oids(types).nth(index).unwrap_or(0);
            Some(Parameter { index, declared, format: format_at(bind.parameter_formats, index), value })
        });
        Self { write: Arc::clone(&self.write), parameters: parameters.collect(), parsed_under }
    }

    /// The keys in one column of the table that the rows written have or had. None: any. It has had its columns since that version
    /// of the catalog.
    fn keys(&self, schema: &TableSchema, since: u64, attnum: i16) -> Option<Vec<KeyHash>> {
        let column = schema.columns.iter().find(|column| column.attnum == attnum)?;
        if let Some(arbiters) = &self.write.upserts_by {
            // A unique index of another collation, or bpchar's, may take other texts for equal, and any such index counts
            // (plancat.c, infer_arbiter_indexes).
            let is_arbiter = arbiters.iter().any(|name| **name == *column.name);
            if !is_arbiter || family(column)? == Cast::Text {
                return None;
            }
        }
        let mut of_column = self.write.columns.iter().filter(|confined| *confined.column == *column.name);
        let key = |constant: &Constant| self.key(constant, column, since);
        of_column.find_map(|confined| confined.constants.iter().map(key).collect())
    }

    fn key(&self, constant: &Constant, column: &ColumnSchema, since: u64) -> Option<KeyHash> {
        let family = family(column)?;
        if constant.cast.is_some_and(|cast| cast != family) {
            return None;
        }
        match &constant.value {
            ConstantValue::Integer(number) if family == Cast::Integer => {
                Some(KeyHash::of_integer(number.parse().ok()?))
            }
            ConstantValue::Integer(_) => None,
            ConstantValue::Text(value) => self.key_of_text(value, family, column),
            ConstantValue::Parameter { index, is_alone } => {
                let parameter = self.parameters.iter().find(|parameter| parameter.index == *index)?;
                // Elsewhere in the statement it may have got another type than the column's; and it keeps the type that the column
                // had when the statement was parsed.
                let is_typed = parameter.declared != 0 || (*is_alone && self.parsed_under >= since);
                if is_typed { self.key_of_parameter(parameter, family, column) } else { None }
            }
        }
    }

    /// Of a text as the type's input function reads it.
    fn key_of_text(&self, value: &str, family: Cast, column: &ColumnSchema) -> Option<KeyHash> {
        let settings = FormatSettings::default();
        match family {
            Cast::Integer => KeyHash::of(&text::parse(PgType::Int8, -1, value, &settings).ok()?),
            Cast::Uuid => KeyHash::of(&text::parse(PgType::Uuid, -1, value, &settings).ok()?),
            Cast::Network => key_of_network(text::parse(PgType::Inet, -1, value, &settings).ok()?, column),
            Cast::Text => {
                // What is stored in varchar(n) may lose blanks at its end.
                let length_max = usize::try_from(column.typmod - TYPMOD_OFFSET).unwrap_or(usize::MAX);
                let is_whole = !self.write.is_insert || value.chars().count() <= length_max;
                is_whole.then(|| KeyHash::of_text(value))
            }
        }
    }

    fn key_of_parameter(&self, parameter: &Parameter, family: Cast, column: &ColumnSchema) -> Option<KeyHash> {
        let types: &[PgType] = match family {
            Cast::Integer => &[PgType::Int2, PgType::Int4, PgType::Int8],
            Cast::Text => &[PgType::Text, PgType::Varchar],
            Cast::Uuid => &[PgType::Uuid],
            Cast::Network => &[PgType::Inet, PgType::Cidr],
        };
        if parameter.declared != 0 && !types.iter().any(|pg_type| pg_type.oid() == parameter.declared) {
            return None;
        }
        match (parameter.format, family) {
            // In another encoding than ours it may be another text; ASCII is the same in all.
            (0, _) | (1, Cast::Text) if parameter.value.is_ascii() => {
                self.key_of_text(std::str::from_utf8(&parameter.value).ok()?, family, column)
            }
            (1, Cast::Integer) => match *parameter.value {
                [a, b] => Some(KeyHash::of_integer(i64::from(i16::from_be_bytes([a, b])))),
                [a, b, c, d] => Some(KeyHash::of_integer(i64::from(i32::from_be_bytes([a, b, c, d])))),
                _ => Some(KeyHash::of_integer(i64::from_be_bytes((*parameter.value).try_into().ok()?))),
            },
            (1, Cast::Network) => key_of_network(binary::decode(PgType::Inet, -1, &parameter.value).ok()?, column),
            (1, Cast::Uuid) => KeyHash::of(&Value::Uuid((*parameter.value).try_into().ok()?)),
            _ => None,
        }
    }
}

/// Of what inet_in or inet_recv has read; cidr's make the same of it, or raise. An inet that is stored as a cidr loses what lies behind
/// its network (inet_to_cidr).
fn key_of_network(value: Value, column: &ColumnSchema) -> Option<KeyHash> {
    let Value::Network(held) = &value else { return None };
    let network = Network::of_held(held);
    let is_stored_whole = column.pg_type == Some(PgType::Inet) || network == network.network();
    is_stored_whole.then(|| KeyHash::of_network(held))
}

/// VARHDRSZ: what is added to the length in a typmod of varchar.
const TYPMOD_OFFSET: i32 = 4;

/// Types whose equality is that of their representation, and whose constants read alike under all settings.
fn family(column: &ColumnSchema) -> Option<Cast> {
    match column.pg_type? {
        PgType::Int2 | PgType::Int4 | PgType::Int8 => Some(Cast::Integer),
        PgType::Text | PgType::Varchar if !matches!(column.collation, Collation::NonDeterministic(_)) => {
            Some(Cast::Text)
        }
        PgType::Uuid => Some(Cast::Uuid),
        PgType::Inet | PgType::Cidr => Some(Cast::Network),
        _ => None,
    }
}

impl Touched {
    /// Any of its rows.
    pub fn whole(relation: RelationId) -> Self {
        Self { relation, confined: None }
    }

    /// `schema`: the table's, with the version of the catalog since which it has these columns.
    pub fn confined(schema: &Arc<TableSchema>, confined: &Confined, since: u64) -> Self {
        let keyed = Keyed { schema: Arc::clone(schema), since, confined: confined.clone() };
        Self { relation: schema.id, confined: Some(keyed) }
    }

    /// By some column.
    pub fn is_confined(&self) -> bool {
        self.confined.is_some()
    }

    /// The keys in this column that the rows written have or had. None: any.
    pub fn keys(&self, attnum: i16) -> Option<Vec<KeyHash>> {
        let Keyed { schema, since, confined } = self.confined.as_ref()?;
        confined.keys(schema, *since, attnum)
    }
}

#[cfg(test)]
mod tests {
    use freshet_engine::catalog::ReplicaIdentity;
    use freshet_engine::statement::{confined::confined, lexer};
    use freshet_engine::types::network::Kind;

    use super::*;

    fn column(name: &str, attnum: i16, pg_type: PgType) -> ColumnSchema {
        let collation = if pg_type == PgType::Text { Collation::C } else { Collation::None };
        let name = name.into();
        ColumnSchema {
            name,
            attnum,
            type_oid: pg_type.oid(),
            typmod: -1,
            pg_type: Some(pg_type),
            not_null: true,
            collation,
        }
    }

    fn schema() -> TableSchema {
        let short = ColumnSchema { typmod: 3 + TYPMOD_OFFSET, ..column("short", 5, PgType::Varchar) };
        let other = ColumnSchema { collation: Collation::NonDeterministic(9), ..column("other", 6, PgType::Text) };
        TableSchema {
            id: RelationId(1),
            schema: "public".into(),
            name: "t".into(),
            columns: vec![
                column("id", 1, PgType::Int4),
                column("name", 3, PgType::Text),
                column("u", 4, PgType::Uuid),
                short,
                other,
                column("price", 7, PgType::Numeric),
                column("ip", 9, PgType::Inet),
                column("net", 10, PgType::Cidr),
                ColumnSchema { pg_type: None, ..column("made", 8, PgType::Int4) },
            ],
            primary_key: vec![0],
            identity: ReplicaIdentity::Key(vec![0]),
        }
    }

    const PARSED: u64 = 7;

    fn written(sql: &str) -> WrittenTable {
        WrittenTable::by(["t".to_owned()].into(), confined(&lexer::tokens(sql).expect("lexes")))
    }

    fn keys(written: &WrittenTable, attnum: i16) -> Option<Vec<KeyHash>> {
        written.confined.as_ref()?.keys(&schema(), PARSED, attnum)
    }

    /// The body of a Bind of the unnamed statement; formats for all.
    fn bind(format: i16, values: &[&[u8]]) -> Vec<u8> {
        let mut body = b"\0\0\0\x01".to_vec();
        body.extend(format.to_be_bytes());
        body.extend((values.len() as u16).to_be_bytes());
        for value in values {
            body.extend((value.len() as u32).to_be_bytes());
            body.extend_from_slice(value);
        }
        body.extend([0, 0]);
        body
    }

    fn bound(sql: &str, types: &[u32], format: i16, values: &[&[u8]], attnum: i16) -> Option<Vec<KeyHash>> {
        let types: Vec<u8> = types.iter().flat_map(|oid| oid.to_be_bytes()).collect();
        let body = bind(format, values);
        keys(&written(sql).bound(Some(&Bind::view(&body).expect("a Bind")), &types, PARSED), attnum)
    }

    #[test]
    fn constants_are_keys_of_the_columns_type() {
        let integers = |numbers: &[i64]| Some(numbers.iter().map(|n| KeyHash::of_integer(*n)).collect::<Vec<_>>());
        let texts = |text: &str| Some(vec![KeyHash::of_text(text)]);
        let zero = Some(vec![KeyHash::of_uuid(&[0; 16])]);
        let network =
            |text| Network::parse(Kind::Inet, text).map(|network| vec![KeyHash::of_network(&network.held())]).ok();
        for (sql, attnum, expected) in [
            ("UPDATE t SET x = 1 WHERE id = 5", 1, integers(&[5])),
            ("UPDATE t SET x = 1 WHERE id = ' 5 '", 1, integers(&[5])),
            ("UPDATE t SET x = 1 WHERE id = '-5'::int8", 1, integers(&[-5])),
            ("UPDATE t SET x = 1 WHERE id IN (5, '6')", 1, integers(&[5, 6])),
            ("UPDATE t SET x = 1 WHERE id = '5.0'", 1, None),
            ("UPDATE t SET x = 1 WHERE id = 99999999999999999999", 1, None),
            ("UPDATE t SET x = 1 WHERE id = '5'::text", 1, None),
            ("UPDATE t SET x = 1 WHERE id = $1", 1, None),
            ("UPDATE t SET x = 1 WHERE id = 5", 3, None),
            ("UPDATE t SET x = 1 WHERE name = ' a '", 3, texts(" a ")),
            ("UPDATE t SET x = 1 WHERE name = 5", 3, None),
            ("UPDATE t SET x = 1 WHERE u = '{00000000-0000-0000-0000-000000000000}'", 4, zero.clone()),
            ("UPDATE t SET x = 1 WHERE short = 'abcd  '", 5, texts("abcd  ")),
            ("UPDATE t SET x = 1 WHERE other = 'a'", 6, None),
            ("UPDATE t SET x = 1 WHERE price = 5", 7, None),
            ("UPDATE t SET x = 1 WHERE ip = '10.1.2.3/8'", 9, network("10.1.2.3/8")),
            ("UPDATE t SET x = 1 WHERE ip = '2001:DB8::0/32'::inet", 9, network("2001:db8::/32")),
            ("UPDATE t SET x = 1 WHERE ip = '10.0/16'::cidr", 9, network("10.0.0.0/16")),
            // Only cidr_in reads it.
            ("UPDATE t SET x = 1 WHERE ip = '10.1'::cidr", 9, None),
            ("UPDATE t SET x = 1 WHERE ip = ' 10.1.2.3'", 9, None),
            ("UPDATE t SET x = 1 WHERE net = '10.0.0.0/8'", 10, network("10.0.0.0/8")),
            ("INSERT INTO t (net) VALUES ('10/8')", 10, network("10.0.0.0/8")),
            ("INSERT INTO t (net) VALUES ('10')", 10, None),
            // Stored as 10.0.0.0/8.
            ("INSERT INTO t (net) VALUES ('10.1.2.3/8'::inet)", 10, None),
            ("UPDATE t SET x = 1 WHERE made = 5", 8, None),
            ("INSERT INTO t (id, name) VALUES (5, 'x')", 1, integers(&[5])),
            ("INSERT INTO t (id, name) VALUES (5, 'x')", 3, texts("x")),
            ("INSERT INTO t (short, id) VALUES ('abc', '5'), ('d', 6)", 1, integers(&[5, 6])),
            ("INSERT INTO t (short) VALUES ('abc')", 5, texts("abc")),
            // Stored without its blanks.
            ("INSERT INTO t (short) VALUES ('abc ')", 5, None),
            ("INSERT INTO t (id, name) VALUES (5, 'x') ON CONFLICT (id) DO UPDATE SET name = 'y'", 1, integers(&[5])),
            ("INSERT INTO t (id, name) VALUES (5, 'x') ON CONFLICT (id) DO UPDATE SET name = 'y'", 3, None),
            // The index may be of another collation.
            ("INSERT INTO t (id, name) VALUES (5, 'x') ON CONFLICT (name) DO UPDATE SET id = 6", 3, None),
            ("INSERT INTO t (id, name) VALUES (5, 'x') ON CONFLICT (id, name) DO UPDATE SET x = 6", 3, None),
            ("INSERT INTO t (id, name) VALUES (5, 'x') ON CONFLICT (id, name) DO UPDATE SET x = 6", 1, integers(&[5])),
            ("INSERT INTO t (id, name) VALUES (5, 'x') ON CONFLICT (name) DO NOTHING", 3, texts("x")),
        ] {
            assert_eq!(keys(&written(sql), attnum), expected, "{sql}");
        }
    }

    #[test]
    fn parameters_are_keys_as_they_are_bound() {
        const BY_ID: &str = "UPDATE t SET x = $1 WHERE id = $2";
        let five = Some(vec![KeyHash::of_integer(5)]);
        assert_eq!(bound(BY_ID, &[], 0, &[b"1", b"5"], 1), five);
        assert_eq!(bound(BY_ID, &[23, 20], 1, &[b"\0\0\0\x01", b"\0\0\0\0\0\0\0\x05"], 1), five);
        assert_eq!(bound(BY_ID, &[], 1, &[b"\0\0\0\x01", b"\0\0\0\x05"], 1), five);
        assert_eq!(bound(BY_ID, &[0, 21], 1, &[b"\0\0\0\x01", b"\0\x05"], 1), five);
        assert_eq!(bound(BY_ID, &[0, 1700], 0, &[b"1", b"5"], 1), None, "a numeric");
        assert_eq!(bound(BY_ID, &[], 1, &[b"\0\0\0\x01", b"\x05"], 1), None);
        assert_eq!(bound(BY_ID, &[], 2, &[b"1", b"5"], 1), None);
        const TWICE: &str = "UPDATE t SET x = $1 WHERE id = $1";
        assert_eq!(bound(TWICE, &[], 0, &[b"5"], 1), None, "the type may be another");
        assert_eq!(bound(TWICE, &[23], 0, &[b"5"], 1), five);
        assert_eq!(bound("UPDATE t SET x = 1 WHERE id = $1::int4", &[], 0, &[b"5"], 1), five);
        // The first use that is analysed decides the type, and not the cast here.
        assert_eq!(bound("UPDATE t SET x = $1 WHERE id = $1::int4", &[], 0, &[b"5"], 1), None);
        assert_eq!(bound("UPDATE t SET x = $1 WHERE id = $1::int4", &[], 1, &[b"\0\0\0\x05"], 1), None);
        assert_eq!(bound("UPDATE t SET x = $1 WHERE id = $1::int4", &[25], 0, &[b"5"], 1), None);
        assert_eq!(bound("UPDATE t SET x = $1::int4 WHERE id = $2", &[], 1, &[b"\0\0\0\x01", b"\0\0\0\x05"], 1), five);
        const BY_NAME: &str = "DELETE FROM t WHERE name = $1";
        assert_eq!(bound(BY_NAME, &[], 1, &[b"a"], 3), Some(vec![KeyHash::of_text("a")]));
        assert_eq!(bound(BY_NAME, &[1042], 0, &[b"a"], 3), None, "blanks do not count");
        assert_eq!(bound(BY_NAME, &[25], 0, &["ä".as_bytes()], 3), None, "in which encoding?");
        assert_eq!(bound("DELETE FROM t WHERE u = $1", &[], 1, &[&[0; 16]], 4), Some(vec![KeyHash::of_uuid(&[0; 16])]));
        const BY_IP: &str = "DELETE FROM t WHERE ip = $1";
        let ten =
            Network::parse(Kind::Inet, "10.0.0.0/8").map(|network| vec![KeyHash::of_network(&network.held())]).ok();
        assert_eq!(bound(BY_IP, &[], 0, &[b"10.0.0.0/8"], 9), ten);
        assert_eq!(bound(BY_IP, &[869], 1, &[&[2, 8, 0, 4, 10, 0, 0, 0]], 9), ten);
        assert_eq!(bound(BY_IP, &[650], 1, &[&[2, 8, 1, 4, 10, 0, 0, 0]], 9), ten);
        assert_eq!(bound(BY_IP, &[25], 0, &[b"10.0.0.0/8"], 9), None);
        assert_eq!(bound(BY_IP, &[650], 0, &[b"10"], 9), None);
        // Parsed before the column was of its type: a parameter without a declared type keeps the one that it got.
        let body = bind(1, &[b"\0\0\0\x01", b"\0\0\0\x05"]);
        let of = |types: &[u8], since| {
            let written = written(BY_ID).bound(Some(&Bind::view(&body).expect("a Bind")), types, PARSED);
            written.confined.and_then(|confined| confined.keys(&schema(), since, 1))
        };
        assert_eq!(of(&[], PARSED), five);
        assert_eq!(of(&[], PARSED + 1), None);
        assert_eq!(of(&[0, 0, 0, 23, 0, 0, 0, 23], PARSED + 1), five);
        let without = written(BY_ID).bound(None, &[], PARSED);
        assert_eq!(keys(&without, 1), None);
    }

    #[test]
    fn what_says_nothing_new_is_covered() {
        let (one, two) = (written("DELETE FROM t WHERE id = 1"), written("DELETE FROM t WHERE id = 2"));
        let any = written("DELETE FROM t");
        assert!(one.covers(&one.clone()) && !one.covers(&two));
        assert!(any.covers(&one) && !one.covers(&any));
        let other = WrittenTable { name: ["u".to_owned()].into(), ..any.clone() };
        assert!(!any.covers(&other));
    }
}
