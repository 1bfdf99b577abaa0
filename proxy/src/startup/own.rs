//! Freshet's own settings in a start-up packet: as parameters (`freshet.freshness`), which some drivers have a field for, and in `options`
//! (`-c freshet.freshness=session`), which every connection string has. Upstream gets them, too, and takes them for an extension's.

use crate::wire::startup::parameters;

/// Names without `prefix` (and the point behind it) and values, in the order in which they count: options first
/// (postinit.c, process_startup_options).
pub fn own_settings(packet: &[u8], prefix: &str) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pairs: Vec<(String, String)> = parameters(packet).map(|(name, value)| (text(name), text(value))).collect();
    let options = pairs.iter().rfind(|(name, _)| name == "options").map(|(_, value)| in_options(value));
    let all = options.unwrap_or_default().into_iter().chain(pairs);
    let own = |(name, value): (String, String)| {
        let name = name.to_ascii_lowercase();
        let own = name.strip_prefix(prefix)?.strip_prefix('.')?.to_owned();
        Some((own, value))
    };
    all.filter_map(own).collect()
}

/// `-c name=value`, `-cname=value` and `--name=value` (postgres.c, process_postgres_switches).
fn in_options(options: &str) -> Vec<(String, String)> {
    let words = words(options);
    let mut words = words.iter();
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let setting = match (word.strip_prefix("--"), word.strip_prefix("-c")) {
            (Some(setting), _) => Some(setting),
            (None, Some("")) => words.next().map(String::as_str),
            (None, setting) => setting,
        };
        // ParseLongOption
        if let Some((name, value)) = setting.and_then(|setting| setting.split_once('=')) {
            settings.push((name.replace('-', "_"), value.to_owned()));
        }
    }
    settings
}

/// Separated by white space; a backslash makes what follows it an ordinary character (postinit.c, pg_split_opts).
fn words(options: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut characters = options.chars();
    let mut is_within = false;
    while let Some(character) = characters.next() {
        let is_space = matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c');
        if is_space {
            is_within = false;
            continue;
        }
        if !std::mem::replace(&mut is_within, true) {
            words.push(String::new());
        }
        let meant = if character == '\\' { characters.next() } else { Some(character) };
        if let Some(word) = words.last_mut() {
            word.extend(meant);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::startup::write_startup;

    #[test]
    fn own_settings_are_found_wherever_postgresql_finds_settings() {
        let of = |pairs: &[(&str, &str)]| {
            let mut packet = Vec::new();
            write_startup(&mut packet, pairs);
            let found = own_settings(&packet, "freshet");
            found.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        assert_eq!(of(&[("user", "a"), ("freshet.route", "relay"), ("DateStyle", "ISO")]), ["route=relay"]);
        let options =
            "-c freshet.freshness=session -cgeqo=off  --freshet.snapshot-strict=on -c FRESHET.Route=re\\lay -e";
        assert_eq!(
            of(&[("options", options), ("freshet.freshness", "exact")]),
            ["freshness=session", "snapshot_strict=on", "route=relay", "freshness=exact"]
        );
        let nothing: [&str; 0] = [];
        for broken in
            ["", "-c", "-c freshet.route", "--", "\\", "-c freshetx.route=relay", "-- -c -c\\ freshet.route=relay"]
        {
            assert_eq!(of(&[("options", broken)]), nothing, "{broken}");
        }
    }
}
