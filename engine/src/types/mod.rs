//! PostgreSQL's types as the engine holds them: [`PgType`] (which), [`Value`] (one), arrow arrays (many).
//!
//! A column of values is an arrow array plus its `PgType`; which arrow type stands for which PostgreSQL type:
//!
//! | PgType | arrow `DataType` | meaning of the number |
//! |---|---|---|
//! | Bool | Boolean | |
//! | Int2, Int4, Int8 | Int16, Int32, Int64 | |
//! | Float4, Float8 | Float32, Float64 | |
//! | Numeric, fixed scale ≤ 18 digits | Decimal64(18, s) | mantissa at scale s; every value has dscale s |
//! | Numeric, fixed scale ≤ 38 digits | Decimal128(38, s) | mantissa at scale s; every value has dscale s |
//! | Numeric, scale per value | Struct{mantissa: Decimal128(38,0), scale: Int16} | see [`numeric`]; scale < 0 codes NaN and ±infinity |
//! | Numeric, more digits | Struct{mantissa: Decimal256(76,0), scale: Int16} | likewise |
//! | Text, Varchar, Bpchar, Json, Jsonb, Name, Unknown | Utf8, or Dictionary(Int32, Utf8) | bpchar as PostgreSQL prints it, padded |
//! | Enum | Utf8, or Dictionary(Int32, Utf8) | the label, see [`labels`] |
//! | Date | Int32 | days since 2000-01-01; i32::MAX / MIN are ±infinity |
//! | Time | Int64 | microseconds since midnight |
//! | Timestamp, Timestamptz | Int64 | microseconds since 2000-01-01 (UTC); i64::MAX / MIN are ±infinity |
//! | Interval | Interval(MonthDayNano) | the third field holds **microseconds**, not nanoseconds |
//! | Uuid | FixedSizeBinary(16) | |
//! | Bytea | Binary | |
//! | Inet, Cidr | Binary | see [`network`] |
//! | Bit, Varbit | Utf8, or Dictionary(Int32, Utf8) | a digit for each bit, see [`bits`] |
//! | Array | Binary | as array_send writes it, see [`mod@array`] |
//!
//! Any Numeric array may arrive in any of its four forms, any text array in either of its two: kernels accept all.

pub mod access;
pub mod array;
pub mod binary;
pub mod bits;
pub mod build;
pub mod datetime;
pub mod encode;
pub mod float;
pub mod interval;
pub mod json;
pub mod key_hash;
pub mod labels;
pub mod network;
pub mod numeric;
pub mod plain_json;
pub mod text;
mod text_column;
pub mod value;

pub use array::Element;
pub use key_hash::KeyHash;
pub use labels::EnumType;
pub use value::{Interval, Numeric, Value};

/// PostgreSQL object identifier.
pub type Oid = u32;

/// A type the engine knows. Anything else is "another type": its columns are not mirrored and
/// statements that use them go upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PgType {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Text,
    Varchar,
    Bpchar,
    /// `name`, the type of catalog identifiers (current_user and the like).
    Name,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    Bytea,
    Inet,
    Cidr,
    Bit,
    /// bit varying.
    Varbit,
    Json,
    Jsonb,
    Array(Element),
    /// Not built in: the catalog tells which there are.
    Enum(EnumType),
    /// The type of an untyped literal or parameter before coercion; pseudo-type in the end (text on output).
    Unknown,
}

/// `pg_type.typcategory` of the types above (PostgreSQL: catalogs, pg_type).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeCategory {
    Boolean,
    Numeric,
    String,
    BitString,
    Network,
    DateTime,
    Timespan,
    UserDefined,
    Array,
    Enum,
    Unknown,
}

impl PgType {
    /// smallint, integer or bigint: they compare by value.
    pub fn is_integer(self) -> bool {
        matches!(self, Self::Int2 | Self::Int4 | Self::Int8)
    }

    /// Whether values are integers inside, ordered as those are.
    pub fn is_ordinal(self) -> bool {
        self.is_integer() || matches!(self, Self::Date | Self::Time | Self::Timestamp | Self::Timestamptz)
    }

    /// Whether equal values are the same: equality is that of the representation (text: of the collations that are mirrored, which are
    /// deterministic).
    pub fn is_plainly_equal(self) -> bool {
        self.is_ordinal()
            || matches!(self, Self::Text | Self::Varchar | Self::Uuid | Self::Inet | Self::Cidr | Self::Enum(_))
    }

    /// Those that are built in.
    pub const ALL: [Self; 42] = [
        Self::Bool,
        Self::Int2,
        Self::Int4,
        Self::Int8,
        Self::Float4,
        Self::Float8,
        Self::Numeric,
        Self::Text,
        Self::Varchar,
        Self::Bpchar,
        Self::Name,
        Self::Date,
        Self::Time,
        Self::Timestamp,
        Self::Timestamptz,
        Self::Interval,
        Self::Uuid,
        Self::Bytea,
        Self::Inet,
        Self::Cidr,
        Self::Bit,
        Self::Varbit,
        Self::Json,
        Self::Jsonb,
        Self::Array(Element::Bool),
        Self::Array(Element::Int2),
        Self::Array(Element::Int4),
        Self::Array(Element::Int8),
        Self::Array(Element::Float4),
        Self::Array(Element::Float8),
        Self::Array(Element::Numeric),
        Self::Array(Element::Text),
        Self::Array(Element::Varchar),
        Self::Array(Element::Date),
        Self::Array(Element::Timestamp),
        Self::Array(Element::Timestamptz),
        Self::Array(Element::Uuid),
        Self::Array(Element::Inet),
        Self::Array(Element::Cidr),
        Self::Array(Element::Json),
        Self::Array(Element::Jsonb),
        Self::Unknown,
    ];

    /// `pg_type.oid`.
    pub fn oid(self) -> Oid {
        match self {
            Self::Bool => 16,
            Self::Bytea => 17,
            Self::Name => 19,
            Self::Int8 => 20,
            Self::Int2 => 21,
            Self::Int4 => 23,
            Self::Text => 25,
            Self::Json => 114,
            Self::Cidr => 650,
            Self::Float4 => 700,
            Self::Float8 => 701,
            Self::Unknown => 705,
            Self::Inet => 869,
            Self::Bpchar => 1042,
            Self::Varchar => 1043,
            Self::Date => 1082,
            Self::Time => 1083,
            Self::Timestamp => 1114,
            Self::Timestamptz => 1184,
            Self::Interval => 1186,
            Self::Bit => 1560,
            Self::Varbit => 1562,
            Self::Numeric => 1700,
            Self::Uuid => 2950,
            Self::Jsonb => 3802,
            Self::Array(element) => element.array_oid(),
            Self::Enum(labels) => labels.oid(),
        }
    }

    /// The built-in type.
    pub fn from_oid(oid: Oid) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.oid() == oid)
    }

    /// The name as `format_type` prints it without a modifier.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "boolean",
            Self::Bytea => "bytea",
            Self::Inet => "inet",
            Self::Cidr => "cidr",
            Self::Bit => "bit",
            Self::Varbit => "bit varying",
            Self::Name => "name",
            Self::Int8 => "bigint",
            Self::Int2 => "smallint",
            Self::Int4 => "integer",
            Self::Text => "text",
            Self::Json => "json",
            Self::Float4 => "real",
            Self::Float8 => "double precision",
            Self::Unknown => "unknown",
            Self::Bpchar => "character",
            Self::Varchar => "character varying",
            Self::Date => "date",
            Self::Time => "time without time zone",
            Self::Timestamp => "timestamp without time zone",
            Self::Timestamptz => "timestamp with time zone",
            Self::Interval => "interval",
            Self::Numeric => "numeric",
            Self::Uuid => "uuid",
            Self::Jsonb => "jsonb",
            Self::Array(element) => element.array_name(),
            Self::Enum(labels) => labels.name(),
        }
    }

    /// `pg_type.typname`, which is also the default output column name of a cast.
    pub fn typname(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Bytea => "bytea",
            Self::Inet => "inet",
            Self::Cidr => "cidr",
            Self::Bit => "bit",
            Self::Varbit => "varbit",
            Self::Name => "name",
            Self::Int8 => "int8",
            Self::Int2 => "int2",
            Self::Int4 => "int4",
            Self::Text => "text",
            Self::Json => "json",
            Self::Float4 => "float4",
            Self::Float8 => "float8",
            Self::Unknown => "unknown",
            Self::Bpchar => "bpchar",
            Self::Varchar => "varchar",
            Self::Date => "date",
            Self::Time => "time",
            Self::Timestamp => "timestamp",
            Self::Timestamptz => "timestamptz",
            Self::Interval => "interval",
            Self::Numeric => "numeric",
            Self::Uuid => "uuid",
            Self::Jsonb => "jsonb",
            Self::Array(element) => element.array_typname(),
            Self::Enum(labels) => labels.name(),
        }
    }

    /// `pg_type.typlen`, as RowDescription carries it (-1: variable, -2: C string).
    pub fn type_length(self) -> i16 {
        match self {
            Self::Bool => 1,
            Self::Int2 => 2,
            Self::Int4 | Self::Float4 | Self::Date | Self::Enum(_) => 4,
            Self::Int8 | Self::Float8 | Self::Time | Self::Timestamp | Self::Timestamptz => 8,
            Self::Interval | Self::Uuid => 16,
            Self::Name => 64,
            Self::Unknown => -2,
            Self::Numeric | Self::Text | Self::Varchar | Self::Bpchar | Self::Bytea | Self::Json | Self::Jsonb => -1,
            Self::Array(_) | Self::Bit | Self::Varbit | Self::Inet | Self::Cidr => -1,
        }
    }

    pub fn category(self) -> TypeCategory {
        match self {
            Self::Bool => TypeCategory::Boolean,
            Self::Int2 | Self::Int4 | Self::Int8 | Self::Float4 | Self::Float8 | Self::Numeric => TypeCategory::Numeric,
            Self::Text | Self::Varchar | Self::Bpchar | Self::Name => TypeCategory::String,
            Self::Date | Self::Time | Self::Timestamp | Self::Timestamptz => TypeCategory::DateTime,
            Self::Bit | Self::Varbit => TypeCategory::BitString,
            Self::Interval => TypeCategory::Timespan,
            Self::Inet | Self::Cidr => TypeCategory::Network,
            Self::Uuid | Self::Bytea | Self::Json | Self::Jsonb => TypeCategory::UserDefined,
            Self::Array(_) => TypeCategory::Array,
            Self::Enum(_) => TypeCategory::Enum,
            Self::Unknown => TypeCategory::Unknown,
        }
    }

    /// `pg_type.typispreferred`.
    pub fn is_preferred(self) -> bool {
        matches!(
            self,
            Self::Bool | Self::Float8 | Self::Text | Self::Timestamptz | Self::Interval | Self::Varbit | Self::Inet
        )
    }

    /// Whether the array form is Utf8 (or a dictionary of it).
    pub fn is_text_like(self) -> bool {
        matches!(
            self,
            Self::Text
                | Self::Varchar
                | Self::Bpchar
                | Self::Name
                | Self::Bit
                | Self::Varbit
                | Self::Json
                | Self::Jsonb
                | Self::Enum(_)
                | Self::Unknown
        )
    }
}

/// A position in upstream's write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Lsn(pub u64);

impl std::fmt::Display for Lsn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

impl std::str::FromStr for Lsn {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (high, low) = text.split_once('/').ok_or(())?;
        let high = u32::from_str_radix(high, 16).map_err(|_| ())?;
        let low = u32::from_str_radix(low, 16).map_err(|_| ())?;
        Ok(Self(u64::from(high) << 32 | u64::from(low)))
    }
}

/// `DateStyle`'s output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DateStyle {
    Iso,
    Sql,
    Postgres,
    German,
}

/// `DateStyle`'s field order on input, and on output outside ISO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DateOrder {
    Mdy,
    Dmy,
    Ymd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntervalStyle {
    Postgres,
    PostgresVerbose,
    SqlStandard,
    Iso8601,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteaOutput {
    Hex,
    Escape,
}

/// Settings whose names have a point in them, in lower case, as `current_setting(name, true)` shows them: None where there is none.
pub type CustomSettings = std::collections::BTreeMap<std::sync::Arc<str>, Option<std::sync::Arc<str>>>;

/// The session settings that input, output and date arithmetic depend on.
#[derive(Clone, Debug)]
pub struct FormatSettings {
    pub date_style: DateStyle,
    pub date_order: DateOrder,
    pub interval_style: IntervalStyle,
    pub time_zone: jiff::tz::TimeZone,
    pub extra_float_digits: i32,
    pub bytea_output: ByteaOutput,
    /// By upstream's version. None: not known.
    pub power_scale: Option<numeric::PowerScale>,
    /// As far as they were asked for.
    pub custom: std::sync::Arc<CustomSettings>,
}

impl Default for FormatSettings {
    /// PostgreSQL's compiled-in defaults, in UTC.
    fn default() -> Self {
        Self {
            date_style: DateStyle::Iso,
            date_order: DateOrder::Mdy,
            interval_style: IntervalStyle::Postgres,
            time_zone: jiff::tz::TimeZone::UTC,
            extra_float_digits: 1,
            bytea_output: ByteaOutput::Hex,
            power_scale: None,
            custom: std::sync::Arc::default(),
        }
    }
}
