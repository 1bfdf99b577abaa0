//! A failure as a file: tables, rows, settings, one statement. What the generator finds is written into
//! `differential/regressions`, and asked again with the corpus from then on.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::check::{Asked, Bound, Mode, Pair, Verdict};
use super::grammar::Choice;
use super::sentence::Constants;
use crate::cluster::Cluster;
use crate::freshet::Freshet;
use crate::raw::RawClient;

#[derive(Clone, Debug)]
pub struct Script {
    /// How it was found, for people.
    pub head: String,
    /// Options of CREATE DATABASE.
    pub database: String,
    /// Statements that make tables and rows.
    pub setup: Vec<String>,
    /// Of the session.
    pub settings: Vec<String>,
    pub asked: Asked,
}

/// Where the scripts are.
pub fn folder() -> PathBuf {
    crate::folder().join("differential/regressions")
}

/// The names of the tables that a set-up makes.
pub fn tables_of(setup: &[String]) -> Vec<String> {
    let created = setup.iter().filter_map(|sql| sql.strip_prefix("CREATE TABLE "));
    created.filter_map(|rest| rest.split([' ', '(']).next()).map(|name| format!("public.{name}")).collect()
}

/// Runs statements directly; psql would take only so long an argument.
pub fn execute(cluster: &Cluster, database: &str, statements: &[String]) {
    let direct = cluster.address();
    let mut client = RawClient::connect(direct, "postgres", database).expect("connects");
    for sql in statements {
        assert_eq!(client.simple(sql).expect("answers").error(), None, "{sql}");
    }
}

impl Script {
    /// In a database and with a freshet of its own.
    pub fn verdict(&self, cluster: &Cluster) -> Verdict {
        let database = cluster.database_with(&self.database);
        execute(cluster, &database, &self.setup);
        let freshet = Freshet::start(&cluster.url(&database), |_| {});
        let direct = cluster.address();
        freshet.read_until_mirrored(&database, &tables_of(&self.setup));
        let settings: Vec<&str> = self.settings.iter().map(String::as_str).collect();
        let mut pair = Pair::new(direct, freshet.address(), &database, &settings);
        let verdict = pair.verdict(&self.asked);
        drop((pair, freshet));
        cluster.drop_database(&database);
        verdict
    }

    /// Writes it into [`folder`]; where.
    pub fn save(&self) -> PathBuf {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        (&self.setup, &self.asked.sql, &self.settings).hash(&mut hasher);
        let path = folder().join(format!("{:08x}.sql", hasher.finish() as u32));
        std::fs::create_dir_all(folder())
            .and_then(|()| std::fs::write(&path, self.text()))
            .expect("a folder to write to");
        path
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in self.head.lines() {
            let _ = writeln!(text, "-- {}", line.trim_start_matches("--").trim_start());
        }
        let Asked { sql, parameters, mode, bound } = &self.asked;
        let _ = writeln!(text, "--! database {}", self.database);
        for setting in &self.settings {
            let _ = writeln!(text, "--! setting {setting}");
        }
        let words = [(mode.is_extended, "extended"), (mode.is_binary, "binary")];
        let words: Vec<&str> = words.iter().filter(|(holds, _)| *holds).map(|(_, word)| *word).collect();
        let _ = writeln!(text, "--! protocol {}", words.join(" "));
        for (oid, value) in parameters {
            let _ = writeln!(text, "--! parameter {oid} {}", value.as_deref().unwrap_or("\\N"));
        }
        for (word, columns) in [("order", &bound.order), ("free", &bound.free)] {
            let columns: Vec<String> = columns.iter().map(usize::to_string).collect();
            let _ = writeln!(text, "--! {word} {}", columns.join(" "));
        }
        if bound.choice == Choice::Rows {
            let _ = writeln!(text, "--! choice");
        }
        for statement in &self.setup {
            let _ = writeln!(text, "{statement};");
        }
        let _ = writeln!(text, "--! statement\n{sql}");
        text
    }

    /// The reverse of [`Script::text`]. Statements of the set-up are one line each.
    pub fn parse(text: &str) -> Self {
        let mode = Mode { is_extended: false, is_binary: false, constants: Constants::Written };
        let bound = Bound { order: Vec::new(), free: Vec::new(), choice: Choice::Nothing };
        let asked = Asked { sql: String::new(), parameters: Vec::new(), mode, bound };
        let mut script =
            Self { head: String::new(), database: String::new(), setup: Vec::new(), settings: Vec::new(), asked };
        let (before, sql) = text.split_once("--! statement\n").unwrap_or_else(|| panic!("no statement in {text}"));
        script.asked.sql = sql.trim_end().to_owned();
        for line in before.lines() {
            let Some(told) = line.strip_prefix("--! ") else {
                if let Some(head) = line.strip_prefix("-- ") {
                    let _ = writeln!(script.head, "{head}");
                } else {
                    script.setup.push(line.trim_end_matches(';').to_owned());
                }
                continue;
            };
            let (word, rest) = told.split_once(' ').unwrap_or((told, ""));
            let numbers = || rest.split_whitespace().map(|number| number.parse().expect("a number")).collect();
            match word {
                "database" => script.database = rest.to_owned(),
                "setting" => script.settings.push(rest.to_owned()),
                "protocol" => {
                    script.asked.mode.is_extended = rest.contains("extended");
                    script.asked.mode.is_binary = rest.contains("binary");
                }
                "parameter" => {
                    let (oid, value) = rest.split_once(' ').unwrap_or((rest, ""));
                    let value = (value != "\\N").then(|| value.to_owned());
                    script.asked.parameters.push((oid.parse().expect("an OID"), value));
                }
                "order" => script.asked.bound.order = numbers(),
                "free" => script.asked.bound.free = numbers(),
                "choice" => script.asked.bound.choice = Choice::Rows,
                other => panic!("{other} is not known"),
            }
        }
        script
    }
}

/// All scripts there are, by file.
pub fn all() -> Vec<(PathBuf, Script)> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder()).into_iter().flatten().flatten().map(|e| e.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    paths.sort();
    let read = |path: PathBuf| {
        let script = Script::parse(&std::fs::read_to_string(&path).expect("readable"));
        (path, script)
    };
    paths.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_as_it_was_written() {
        let script = Script {
            head: "found by seed 1\n".to_owned(),
            database: "LOCALE_PROVIDER icu ICU_LOCALE 'en-US'".to_owned(),
            setup: vec!["CREATE TABLE t0 (id int)".to_owned(), "INSERT INTO t0 VALUES ('1;-- no')".to_owned()],
            settings: vec!["SET TimeZone = 'UTC'".to_owned()],
            asked: Asked {
                sql: "SELECT $1\n, $2".to_owned(),
                parameters: vec![(23, Some("1".to_owned())), (0, None), (25, Some(String::new()))],
                mode: Mode { is_extended: true, is_binary: true, constants: Constants::Written },
                bound: Bound { order: vec![0, 2], free: vec![1], choice: Choice::Rows },
            },
        };
        assert_eq!(Script::parse(&script.text()).text(), script.text());
        assert_eq!(tables_of(&script.setup), ["public.t0"]);
    }
}
