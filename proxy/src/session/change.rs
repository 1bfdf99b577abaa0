//! What a statement does to the session's settings and transaction, read from its text: exactly, or as
//! [`Change::Opaque`] with the reason.
//!
//! A [`Change`] takes effect when upstream acknowledges the statement, see [`crate::session::tracker`].

use std::sync::Arc;

use freshet_engine::statement::classify::{
    Argument, Classification, SetConfig, SettingScope, SettingValue, StatementKind, TransactionModes,
};
use freshet_engine::statement::lexer::{NAME_BYTES_MAX, Token};

use crate::session::state::Isolation;
use crate::session::variables::{CLIENT_ENCODING, CONFORMING_STRINGS, Given, Meaning, NAMES, ROLE, canonical, meaning};
use crate::wire::extended::{Bind, format_at, oids};

/// A savepoint's name as upstream keeps it.
pub type Name = Box<str>;

/// One step of what a statement does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// None: at the default isolation level, or the one that the transaction already has.
    Begin(Option<Isolation>),
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(Name),
    Release(Name),
    RollbackTo(Name),
    /// None: not known which.
    Isolation(Option<Isolation>),
    Set {
        slot: usize,
        value: NewValue,
        is_local: bool,
    },
    /// A setting that is not known here; None for its value: back to the default.
    SetUnlisted {
        name: Arc<str>,
        is_reset: bool,
        is_local: bool,
    },
    /// One of an application's own, by its name in lower case: what it is now upstream tells, when somebody asks.
    SetCustom(Arc<str>),
    /// One of freshet's own, by its name without the prefix; None: back to the default.
    SetOwn {
        name: Arc<str>,
        value: Option<Arc<str>>,
        is_local: bool,
    },
    ResetAll,
    DiscardAll,
    DiscardTemporary,
    SessionAuthorization,
    /// Temporary objects may have come or gone.
    Temporary,
    /// From the end of the transaction on, if it commits (PostgreSQL: async.c).
    Listen,
    /// From one channel; there may be others.
    Unlisten,
    UnlistenAll,
    /// A call of set_config with parameters, before they are known.
    Call(SetConfig),
    /// Every setting may have changed. The kind of statement, for the operator.
    Opaque(Arc<str>),
    /// A text that is not understood: transactions may have ended and begun in it.
    Unread,
}

/// What of the values in rows upstream prints otherwise after a change: it does so as it sends them (printtup.c), rows of open portals
/// among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reprinted {
    #[default]
    Nothing,
    /// Texts of times, floats and the like.
    SomeTypes,
    All,
}

/// What values are printed by this setting.
pub fn printed_by(slot: usize) -> Reprinted {
    const SOME: [&str; 6] =
        ["TimeZone", "DateStyle", "IntervalStyle", "extra_float_digits", "bytea_output", "lc_monetary"];
    match NAMES.get(slot) {
        _ if slot == CLIENT_ENCODING => Reprinted::All,
        Some(name) if SOME.contains(name) => Reprinted::SomeTypes,
        _ => Reprinted::Nothing,
    }
}

impl Change {
    /// What runs anything unknown hardly changes how values are printed; it is taken not to.
    pub fn reprints(&self) -> Reprinted {
        match self {
            Self::ResetAll => Reprinted::All,
            Self::Set { slot, .. } => printed_by(*slot),
            _ => Reprinted::Nothing,
        }
    }

    /// Whether it comes of a statement that does nothing but change settings that it names, or the transaction.
    pub fn is_control(&self) -> bool {
        match self {
            Self::Begin(_)
            | Self::Commit { .. }
            | Self::Rollback { .. }
            | Self::Savepoint(_)
            | Self::Release(_)
            | Self::RollbackTo(_)
            | Self::Isolation(_)
            | Self::Set { .. }
            | Self::SetUnlisted { .. }
            | Self::SetCustom(_)
            | Self::SetOwn { .. } => true,
            Self::ResetAll
            | Self::DiscardAll
            | Self::DiscardTemporary
            | Self::SessionAuthorization
            | Self::Temporary
            | Self::Listen
            | Self::Unlisten
            | Self::UnlistenAll
            | Self::Call(_)
            | Self::Opaque(_)
            | Self::Unread => false,
        }
    }

    /// Whether quotes and bytes beyond ASCII may be read otherwise after it, beside what the end of a transaction takes back.
    pub fn may_change_reading(&self) -> bool {
        match self {
            Self::Set { slot, .. } => matches!(*slot, CONFORMING_STRINGS | CLIENT_ENCODING),
            Self::ResetAll
            | Self::DiscardAll
            | Self::SessionAuthorization
            | Self::Call(_)
            | Self::Opaque(_)
            | Self::Unread => true,
            Self::Begin(_)
            | Self::Commit { .. }
            | Self::Rollback { .. }
            | Self::RollbackTo(_)
            | Self::Savepoint(_)
            | Self::Release(_)
            | Self::Isolation(_)
            | Self::SetUnlisted { .. }
            | Self::SetCustom(_)
            | Self::SetOwn { .. }
            | Self::DiscardTemporary
            | Self::Temporary
            | Self::Listen
            | Self::Unlisten
            | Self::UnlistenAll => false,
        }
    }
}

/// The value that a setting gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewValue {
    /// What RESET sets.
    Default,
    Known(Arc<str>),
    /// `SET ROLE NONE`.
    SessionUser,
    /// Upstream makes something of the text that is not foreseen here.
    Unknown,
}

/// What the statements of one text do, statement by statement; None if nothing.
pub type Changes = Option<Arc<[Box<[Change]>]>>;

/// What one classified statement does. `schema` is the prefix of freshet's own settings.
pub fn of(tokens: &[Token<'_>], classification: &Classification, schema: &str) -> Box<[Change]> {
    if let Some(reason) = &classification.opaque {
        let is_temporary = reason == "temporary objects" && !has_calls(tokens);
        return Box::new([if is_temporary { Change::Temporary } else { Change::Opaque(reason.as_str().into()) }]);
    }
    let one = |change| Box::new([change]) as Box<[Change]>;
    use StatementKind as K;
    match &classification.kind {
        K::Begin(modes) => one(Change::Begin(isolation(modes))),
        K::Commit | K::PrepareTransaction => one(Change::Commit { chain: false }),
        K::CommitAndChain => one(Change::Commit { chain: true }),
        K::Rollback => one(Change::Rollback { chain: false }),
        K::RollbackAndChain => one(Change::Rollback { chain: true }),
        K::Savepoint => one(named(tokens, Change::Savepoint)),
        K::ReleaseSavepoint => one(named(tokens, Change::Release)),
        K::RollbackToSavepoint => one(named(tokens, Change::RollbackTo)),
        K::SetTransaction(modes) => {
            isolation(modes).map_or_else(Box::default, |isolation| one(Change::Isolation(Some(isolation))))
        }
        K::SetSessionCharacteristics(modes) => {
            let change =
                |level: Isolation| setting("default_transaction_isolation", Given::Text(level.name()), false, schema);
            isolation(modes).map_or_else(Box::default, change)
        }
        K::Set { scope, name, value } => {
            let is_local = *scope == SettingScope::Local;
            match value {
                SettingValue::Default => reset(name, is_local, schema),
                SettingValue::Items(_) | SettingValue::Unknown => setting(name, Given::Items(value), is_local, schema),
            }
        }
        K::Reset { name: Some(name) } => reset(name, false, schema),
        K::Reset { name: None } => one(Change::ResetAll),
        K::SetSessionAuthorization => one(Change::SessionAuthorization),
        K::DiscardAll => one(Change::DiscardAll),
        K::Listen => one(Change::Listen),
        K::Unlisten if tokens.last().is_some_and(|last| last.is_symbol("*")) => one(Change::UnlistenAll),
        K::Unlisten => one(Change::Unlisten),
        K::DiscardSome if tokens.last().is_some_and(|t| t.is_word("temp") || t.is_word("temporary")) => {
            one(Change::DiscardTemporary)
        }
        K::Query if !classification.set_configs.is_empty() => {
            classification.set_configs.iter().cloned().map(Change::Call).collect()
        }
        K::Ddl => ddl(tokens),
        K::Explain { analyze: true, .. } => one(Change::Opaque("EXPLAIN ANALYZE".into())),
        _ => Box::default(),
    }
}

/// The kind of a [`Change::Opaque`], for a metric: few and known beforehand.
pub fn opaque_label(reason: &str) -> &'static str {
    match reason {
        "DO" => "do",
        "CALL" => "call",
        "LOAD" => "load",
        "EXECUTE" => "execute",
        "EXPLAIN ANALYZE" => "explain_analyze",
        "calls set_config" => "set_config",
        "temporary objects" => "temporary_objects",
        "a definition" => "definition",
        "a function call" => "function_call",
        UNREAD => "unread",
        _ if reason.starts_with("calls ") => "function",
        _ => "other",
    }
}

/// The reason of [`Change::Unread`].
pub const UNREAD: &str = "text that was not read";

/// Definitions run expressions (defaults, USING, indexes, queries), and drop what may be a temporary object. The query of a
/// REFRESH runs, too, but in a restricted operation that leaves neither settings nor temporary objects (matview.c).
fn ddl(tokens: &[Token<'_>]) -> Box<[Change]> {
    let is_inert = tokens.first().is_some_and(|first| {
        ["truncate", "grant", "revoke", "comment", "security", "reassign", "refresh"]
            .iter()
            .any(|word| first.is_word(word))
    });
    let drops = tokens.first().is_some_and(|first| first.is_word("drop"));
    match () {
        () if is_inert => Box::default(),
        () if drops => Box::new([Change::Temporary]),
        () => Box::new([Change::Opaque("a definition".into())]),
    }
}

fn has_calls(tokens: &[Token<'_>]) -> bool {
    tokens.iter().any(|token| ["as", "select", "using", "default", "execute"].iter().any(|word| token.is_word(word)))
}

fn isolation(modes: &TransactionModes) -> Option<Isolation> {
    modes.isolation.map(Isolation::from)
}

/// The name that ends SAVEPOINT, RELEASE and ROLLBACK TO.
fn named(tokens: &[Token<'_>], change: impl FnOnce(Name) -> Change) -> Change {
    match tokens.last().and_then(Token::name) {
        Some(name) if name.len() <= NAME_BYTES_MAX => change(name.as_ref().into()),
        _ => Change::Opaque("a savepoint's name".into()),
    }
}

fn setting(name: &str, given: Given<'_>, is_local: bool, schema: &str) -> Box<[Change]> {
    let is_session_user = |text: &str| text == "none";
    let change = match meaning(name, schema) {
        Meaning::Harmless => return Box::default(),
        Meaning::Custom => Change::SetCustom(name.into()),
        Meaning::Unlisted => Change::SetUnlisted { name: name.into(), is_reset: false, is_local },
        Meaning::SessionAuthorization => Change::SessionAuthorization,
        Meaning::Isolation => Change::Isolation(text_of(given).and_then(Isolation::parse)),
        Meaning::Own => {
            let name = name.split_once('.').map_or(name, |(_, name)| name);
            Change::SetOwn { name: name.into(), value: text_of(given).map(Arc::from), is_local }
        }
        Meaning::Followed(slot) => {
            let value = match text_of(given) {
                Some(text) if slot == ROLE && is_session_user(text) => NewValue::SessionUser,
                _ => canonical(slot, given).map_or(NewValue::Unknown, NewValue::Known),
            };
            Change::Set { slot, value, is_local }
        }
    };
    Box::new([change])
}

fn text_of(given: Given<'_>) -> Option<&str> {
    match given {
        Given::Text(text) => Some(text),
        Given::Items(SettingValue::Items(items)) if items.len() == 1 => items.first().map(String::as_str),
        Given::Items(_) => None,
    }
}

fn reset(name: &str, is_local: bool, schema: &str) -> Box<[Change]> {
    let change = match meaning(name, schema) {
        Meaning::Harmless => return Box::default(),
        Meaning::Custom => Change::SetCustom(name.into()),
        Meaning::Unlisted => Change::SetUnlisted { name: name.into(), is_reset: true, is_local },
        Meaning::SessionAuthorization => Change::SessionAuthorization,
        Meaning::Isolation => Change::Isolation(None),
        Meaning::Own => {
            let name = name.split_once('.').map_or(name, |(_, name)| name);
            Change::SetOwn { name: name.into(), value: None, is_local }
        }
        Meaning::Followed(slot) => Change::Set { slot, value: NewValue::Default, is_local },
    };
    Box::new([change])
}

/// The values of a Bind that a call of set_config may refer to.
pub struct Parameters<'a> {
    bind: Option<Bind<'a>>,
    types: &'a [u8],
}

impl<'a> Parameters<'a> {
    /// `types` as declared in Parse, see [`oids`].
    pub fn new(bind: Option<Bind<'a>>, types: &'a [u8]) -> Self {
        Self { bind, types }
    }

    /// The text of an argument; outer None: not known here.
    fn text(&self, argument: &Argument) -> Option<Option<String>> {
        // Their binary form is their text. 0 is inferred from the function: text.
        const TEXTS: [u32; 4] = [0, 25, 1043, 705];
        match argument {
            Argument::Text(text) => Some(Some(text.clone())),
            Argument::Null => Some(None),
            Argument::Parameter(index) => {
                let declared = oids(self.types).nth(*index).unwrap_or(0);
                let value = self.bind.as_ref()?.values().nth(*index)?;
                match value {
                    None => Some(None),
                    Some(bytes) if TEXTS.contains(&declared) => {
                        Some(Some(std::str::from_utf8(bytes).ok()?.to_string()))
                    }
                    Some(_) => None,
                }
            }
        }
    }

    fn flag(&self, argument: &Argument) -> Option<bool> {
        let of_text = |text: &str| match text.to_ascii_lowercase().as_str() {
            "t" | "true" | "on" | "1" | "yes" => Some(true),
            "f" | "false" | "off" | "0" | "no" => Some(false),
            _ => None,
        };
        match argument {
            Argument::Text(text) => of_text(text),
            Argument::Null => Some(false),
            Argument::Parameter(index) => {
                let bind = self.bind.as_ref()?;
                match (bind.values().nth(*index)?, format_at(bind.parameter_formats, *index)) {
                    (None, _) => Some(false),
                    (Some([byte]), 1) => Some(*byte != 0),
                    (Some(bytes), 0) => of_text(std::str::from_utf8(bytes).ok()?),
                    (Some(_), _) => None,
                }
            }
        }
    }
}

/// What a call of set_config does, now that its parameters are known.
pub fn of_call(call: &SetConfig, parameters: &Parameters<'_>, schema: &str) -> Box<[Change]> {
    let opaque = || Box::new([Change::Opaque("calls set_config".into())]) as Box<[Change]>;
    let name = parameters.text(&call.name).flatten();
    let (Some(name), Some(value), Some(is_local)) =
        (name, parameters.text(&call.value), parameters.flag(&call.is_local))
    else {
        return opaque();
    };
    let name = name.to_ascii_lowercase();
    match value {
        Some(value) => setting(&name, Given::Text(&value), is_local, schema),
        None => reset(&name, is_local, schema),
    }
}
