//! PostgreSQL's keywords and what each may be used as (kwlist.h; SQL Key Words appendix).
//!
//! A word that is only a name here but a keyword in gram.y would parse differently upstream, so the classes are kept whole.

use std::collections::HashMap;
use std::sync::LazyLock;

/// kwlist.h's category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeywordClass {
    Unreserved,
    /// May name a column or table, not a function or type.
    ColumnName,
    /// May name a function or type, not a column or table.
    TypeOrFunction,
    Reserved,
}

/// One keyword's properties.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keyword {
    pub(super) class: KeywordClass,
    /// May stand as a column label without AS.
    pub(super) is_bare_label: bool,
}

/// Whether a folded word is a keyword of any class.
pub fn is_keyword(word: &str) -> bool {
    look_up(word).is_some()
}

/// Whether a folded word may name what a statement is about (gram.y: ColId), prepared statements among them.
pub fn may_be_name(word: &str) -> bool {
    look_up(word).is_none_or(|keyword| matches!(keyword.class, KeywordClass::Unreserved | KeywordClass::ColumnName))
}

/// The keyword that a folded unquoted word is, if it is one.
pub(super) fn look_up(word: &str) -> Option<Keyword> {
    KEYWORDS.get(word).copied()
}

static KEYWORDS: LazyLock<HashMap<&'static str, Keyword>> = LazyLock::new(|| {
    let classes = [
        (KeywordClass::Unreserved, UNRESERVED),
        (KeywordClass::ColumnName, COLUMN_NAME),
        (KeywordClass::TypeOrFunction, TYPE_OR_FUNCTION),
        (KeywordClass::Reserved, RESERVED),
    ];
    let mut keywords = HashMap::new();
    for (class, words) in classes {
        for word in words.split_ascii_whitespace() {
            let (word, is_bare_label) = word.strip_suffix('!').map_or((word, true), |word| (word, false));
            keywords.insert(word, Keyword { class, is_bare_label });
        }
    }
    keywords
});

// `!` marks a word that needs AS to be a column label.
const UNRESERVED: &str = "\
    abort absolute access action add admin after aggregate also alter always asensitive assertion assignment at \
    atomic attach attribute backward before begin breadth by cache call called cascade cascaded catalog chain \
    characteristics checkpoint class close cluster columns comment comments commit committed compression \
    configuration conflict connection constraints content continue conversion copy cost csv cube current cursor \
    cycle data database day! deallocate declare defaults deferred definer delete delimiter delimiters depends \
    depth detach dictionary disable discard document domain double drop each enable encoding encrypted enum \
    escape event exclude excluding exclusive execute explain expression extension external family filter! \
    finalize first following force forward function functions generated global granted groups handler header hold \
    hour! identity if immediate immutable implicit import include including increment index indexes inherit \
    inherits inline input insensitive insert instead invoker isolation key label language large last leakproof \
    level listen load local location lock locked logged mapping match matched materialized maxvalue merge method \
    minute! minvalue mode month! move name names new next nfc nfd nfkc nfkd no normalized nothing notify nowait \
    nulls object of off oids old operator option options ordinality others over! overriding owned owner parallel \
    parameter parser partial partition passing password plans policy preceding prepare prepared preserve prior \
    privileges procedural procedure procedures program publication quote range read reassign recheck recursive \
    ref referencing refresh reindex relative release rename repeatable replace replica reset restart restrict \
    return returns revoke role rollback rollup routine routines rows rule savepoint schema schemas scroll search \
    second! security sequence sequences serializable server session set sets share show simple skip snapshot sql \
    stable standalone start statement statistics stdin stdout storage stored strict strip subscription support \
    sysid system tables tablespace temp template temporary text ties transaction transform trigger truncate \
    trusted type types uescape unbounded uncommitted unencrypted unknown unlisten unlogged until update vacuum \
    valid validate validator value varying! version view views volatile whitespace within! without! work wrapper \
    write xml year! yes zone \
    ";

const COLUMN_NAME: &str = "\
    between bigint bit boolean char! character! coalesce dec decimal exists extract float greatest grouping inout \
    int integer interval least national nchar none normalize nullif numeric out overlay position precision! real \
    row setof smallint substring time timestamp treat trim values varchar xmlattributes xmlconcat xmlelement \
    xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable \
    ";

const TYPE_OR_FUNCTION: &str = "\
    authorization binary collation concurrently cross current_schema freeze full ilike inner is isnull! join left \
    like natural notnull! outer overlaps! right similar tablesample verbose \
    ";

// system_user is a word as others before PostgreSQL 16: a column of that name, unquoted, is upstream's.
const RESERVED: &str = "\
    all analyse analyze and any array! as! asc asymmetric both case cast check collate column constraint create! \
    current_catalog current_date current_role current_time current_timestamp current_user default deferrable desc \
    distinct do else end except! false fetch! for! foreign from! grant! group! having! in initially intersect! \
    into! lateral leading limit! localtime localtimestamp not null offset! on! only or order! placing primary \
    references returning! select session_user some symmetric system_user table then to! trailing true union! unique user \
    using variadic when where! window! with! \
    ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_gram_y() {
        let class = |word| look_up(word).map(|keyword| keyword.class);
        assert_eq!(class("select"), Some(KeywordClass::Reserved));
        assert_eq!(class("left"), Some(KeywordClass::TypeOrFunction));
        assert_eq!(class("coalesce"), Some(KeywordClass::ColumnName));
        assert_eq!(class("month"), Some(KeywordClass::Unreserved));
        assert_eq!(class("flights"), None);
        assert!(!look_up("month").expect("a keyword").is_bare_label);
        assert!(look_up("rows").expect("a keyword").is_bare_label);
    }
}
