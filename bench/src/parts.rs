//! The parts of a suite that `--only` may name.

use std::io;

/// An error that lists them where `only` is none of them: a run of nothing would look like a success.
pub(crate) fn check<S: AsRef<str>>(only: Option<&str>, names: impl IntoIterator<Item = S>) -> io::Result<()> {
    let Some(only) = only else { return Ok(()) };
    let mut known: Vec<String> = Vec::new();
    for name in names {
        if name.as_ref() == only {
            return Ok(());
        }
        if !known.iter().any(|other| other == name.as_ref()) {
            known.push(name.as_ref().to_owned());
        }
    }
    Err(io::Error::other(format!("no part is named {only}; there are {}", known.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_not_there_is_an_error_that_names_those_that_are() {
        assert!(check(None, ["a"]).is_ok());
        assert!(check(Some("b"), ["a", "b"]).is_ok());
        let error = check(Some("c"), ["a", "b", "a"]).expect_err("unknown");
        assert_eq!(error.to_string(), "no part is named c; there are a, b");
    }
}
