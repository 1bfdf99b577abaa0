//! What is wrong with a URL that cannot be used, in words: which part or parameter, and what would be right.
//!
//! Never a value, and no part that may be a piece of a password: where an `@`, `/`, `?` or `&` of one seems to have been taken for
//! the end of a part, that is all that is said.

use freshet_config::error::nearest;

use crate::upstream::security;

/// The parameters that tokio-postgres reads (config.rs), beside those of [`security`].
const OTHERS: &[&str] = &[
    "user",
    "password",
    "dbname",
    "options",
    "application_name",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "load_balance_hosts",
];

const ESCAPES: &str = "in a user's name or password, write @ as %40, / as %2F, ? as %3F, # as %23, & as %26, % as %25";

/// Whether a password with a sign that ends a part seems to have been cut: what is left of it would be taken for the host.
pub(super) fn unescaped(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let (before, behind) = rest.split_once('@')?;
    let host_end = behind.find(['/', '?']).unwrap_or(behind.len());
    let (host, path) = behind.split_at(host_end);
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let is_cut = host.contains('@') || path.rsplit_once('@').is_some_and(|(_, host)| host.contains('/'));
    // libpq takes no @ behind a / for the end of the credentials, tokio-postgres takes the first: what looks like a query may be a
    // password, and what it asks of TLS would be lost.
    let is_ambiguous = before.split_once('/').is_some_and(|(_, behind)| behind.contains('?'));
    (is_cut || is_ambiguous).then(|| format!("there is an @ too many before or behind the host; {ESCAPES}"))
}

/// Why tokio-postgres does not read it; None: for a reason that is not known here.
pub(super) fn what_is_wrong(url: &str) -> Option<String> {
    let Some(rest) = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://")) else {
        return Some("it takes postgres://user[:password]@host[:port]/database".into());
    };
    let behind = rest.split_once('@').map_or(rest, |(_, behind)| behind);
    let (place, query) = behind.split_once('?').map_or((behind, ""), |(place, query)| (place, query));
    let host = place.split_once('/').map_or(place, |(host, _)| host);
    wrong_host(host, rest.contains('@')).or_else(|| wrong_query(query))
}

fn wrong_host(text: &str, has_credentials: bool) -> Option<String> {
    let port = match text.strip_prefix('[') {
        Some(address) => match address.split_once(']') {
            Some((_, "")) => return None,
            Some((_, port)) => port.strip_prefix(':'),
            None => None,
        },
        None => text.split_once(':').map_or(Some("5432"), |(_, port)| Some(port)),
    };
    let Some(port) = port else {
        return Some("the host is a name or an address, an IPv6 one in brackets: [::1]:5432".into());
    };
    if port.is_empty() || port.split(',').next().is_some_and(|first| first.parse::<u16>().is_ok()) {
        return None;
    }
    // `user:password` without a host behind it looks the same.
    let of_port = "the port behind the host is a number from 1 to 65535";
    Some(match has_credentials {
        true => of_port.into(),
        false => format!("{of_port}; a user and a password end with an @"),
    })
}

fn wrong_query(query: &str) -> Option<String> {
    let mut is_behind_password = false;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').map_or((pair, None), |(key, value)| (key, Some(value)));
        let value = value.map(security::percent_decode);
        let wrong = match value {
            _ if !is_known(key) && pair.contains('@') => Some(format!("there is an @ behind the host; {ESCAPES}")),
            _ if !is_known(key) && is_behind_password => {
                Some(format!("what stands behind the parameter password is none; {ESCAPES}"))
            }
            _ if !is_known(key) => Some(unknown(key)),
            None => Some(format!("the parameter {key} has no value: {key}=...")),
            Some(value) => wrong_value(key, &value),
        };
        if wrong.is_some() {
            return wrong;
        }
        is_behind_password |= key == "password";
    }
    None
}

fn is_known(key: &str) -> bool {
    OTHERS.contains(&key) || security::KEYS.contains(&key)
}

fn unknown(key: &str) -> String {
    let known = || OTHERS.iter().chain(security::KEYS).copied();
    let remedy = match nearest(&key.to_ascii_lowercase(), known()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("the parameters are {}", known().collect::<Vec<_>>().join(", ")),
    };
    format!("{key:?} is no parameter of the URL; {remedy}")
}

fn wrong_value(key: &str, value: &str) -> Option<String> {
    let is_each = |fits: fn(&str) -> bool| value.split(',').all(fits);
    let (is_right, takes) = match key {
        "port" => (is_each(|port| port.is_empty() || port.parse::<u16>().is_ok()), "a number from 1 to 65535"),
        "hostaddr" => (is_each(|at| at.parse::<std::net::IpAddr>().is_ok()), "an IP address"),
        "connect_timeout" | "tcp_user_timeout" | "keepalives_idle" | "keepalives_interval" => {
            (value.parse::<i64>().is_ok(), "a whole number of seconds")
        }
        "keepalives" => (value.parse::<u64>().is_ok(), "0 or 1"),
        "keepalives_retries" => (value.parse::<u32>().is_ok(), "a whole number"),
        "target_session_attrs" => (matches!(value, "any" | "read-write" | "read-only"), "any or read-write"),
        "load_balance_hosts" => (matches!(value, "disable" | "random"), "disable"),
        _ => return None,
    };
    (!is_right).then(|| format!("{key} takes {takes}"))
}

#[cfg(test)]
mod tests {
    use crate::upstream::address::UpstreamAddress;

    fn told(url: &str) -> String {
        UpstreamAddress::parse(url).expect_err(url).to_string()
    }

    #[test]
    fn the_part_that_is_wrong_is_named_and_what_would_be_right() {
        for (url, words) in [
            ("postgres://u@h/d?sslmod=require", &["\"sslmod\" is no parameter", "did you mean sslmode?"][..]),
            ("postgres://u@h/d?ssl_mode=require", &["did you mean sslmode?"]),
            ("postgres://u@h/d?SSLMODE=require", &["did you mean sslmode?"]),
            ("postgres://u@h/d?foo=1", &["\"foo\" is no parameter", "the parameters are user,", "sslmode"]),
            ("postgres://u@h/d?application_name=x&port=abc", &["port takes a number from 1 to 65535"]),
            ("postgres://u@h:99999/d", &["port behind the host is a number from 1 to 65535"]),
            ("postgres://u@h:abc/d", &["port behind the host is a number"]),
            ("postgres://u@[::1]:x/d", &["port behind the host is a number"]),
            ("postgres://u@[::1/d", &["brackets"]),
            ("postgres://u@h/d?connect_timeout=soon", &["connect_timeout takes a whole number"]),
            ("postgres://u@h/d?hostaddr=h", &["hostaddr takes an IP address"]),
            ("postgres://u@h/d?application_name", &["the parameter application_name has no value"]),
            ("mysql://u@h/d", &["it takes postgres://"]),
        ] {
            let told = told(url);
            assert!(words.iter().all(|word| told.contains(word)), "{url}: {told}");
        }
    }

    #[test]
    fn a_password_that_is_not_escaped_is_told_and_not_shown() {
        for url in [
            "postgres://ann:hush@hush@h/d",
            "postgres://ann:hush@hush/hush@h/d",
            "postgres://ann:hush@hush:hush@h:6000/d",
            "postgres://ann:hush@hush?hush@h/d",
            "postgres://ann:hush@h?hush=hush@h/d",
            "postgres://ann:hush/hush?hush@h/d?sslmode=require",
            "postgres://h/d?user=ann&password=hush&hush=hush",
        ] {
            let told = told(url);
            assert!(!told.contains("hush"), "{url}: {told}");
            assert!(told.contains("%40") && told.contains("%3F"), "{url}: {told}");
        }
        // A user and a password without a host.
        let told = told("postgres://ann:hush/d");
        assert!(!told.contains("hush") && told.contains("end with an @"), "{told}");
        for right in ["postgres://ann:h%40%2F%3F%23sh@h/d", "postgres://ann:h#sh@h/d", "postgres://ann@h/a@b"] {
            assert!(UpstreamAddress::parse(right).is_ok(), "{right}");
        }
    }
}
