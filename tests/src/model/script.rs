//! Random conversations: messages out of bytes, four for each step, so that shrinking and coverage-guided mutation keep
//! most of a script as it is.

use freshet::wire::extended::{FLUSH, SYNC};

use crate::client::{close, describe, execute, message, parse, query};
use crate::model::statement::TEXTS;

/// Bytes of one [`Step`].
pub const STEP_LENGTH: usize = 4;

const STATEMENTS: [&str; 4] = ["", "s1", "s2", ""];
const PORTALS: [&str; 4] = ["", "p1", "p2", ""];
const LIMITS: [i32; 8] = [0, 1, 2, 3, 0, 5, 0, 0];

/// What a client sends at once, and what happens before the next.
#[derive(Clone, Debug)]
pub struct Step {
    /// One frame each.
    pub messages: Vec<Vec<u8>>,
    /// What delays, portions and decisions are made from; 0: everything at once, answered locally where it can be.
    pub chance: u8,
}

/// The steps in `bytes`.
pub fn steps(bytes: &[u8]) -> Vec<Step> {
    let step = |[kind, a, b, chance]: [u8; STEP_LENGTH]| Step { messages: messages(kind, a, b), chance };
    bytes.as_chunks::<STEP_LENGTH>().0.iter().copied().map(step).collect()
}

fn messages(kind: u8, a: u8, b: u8) -> Vec<Vec<u8>> {
    let text = TEXTS[usize::from(b) % TEXTS.len()];
    let statement = STATEMENTS[usize::from(a) % 4];
    let portal = PORTALS[usize::from(a >> 2) % 4];
    let rows_max = LIMITS[usize::from(a >> 4) % 8];
    match kind % 24 {
        0 => vec![SYNC.to_vec()],
        1 => vec![query(text)],
        2 => vec![parse(statement, text)],
        3 | 4 => vec![bind_message(portal, statement, b)],
        5 | 6 => vec![execute(portal, rows_max)],
        7 => vec![describe('S', statement)],
        8 => vec![describe('P', portal)],
        9 => vec![close('S', statement)],
        10 => vec![close('P', portal)],
        11 => vec![FLUSH.to_vec()],
        12 => {
            let second = TEXTS[usize::from(a) % TEXTS.len()];
            vec![query(&format!("{text}; {second};"))]
        }
        13 | 14 => vec![
            parse("", text),
            bind_message("", "", parameter_of(text)),
            describe('P', ""),
            execute("", rows_max),
            SYNC.to_vec(),
        ],
        15 => vec![parse(statement, text), describe('S', statement), SYNC.to_vec()],
        16 => vec![bind_message(portal, statement, b), execute(portal, rows_max), SYNC.to_vec()],
        17 => vec![
            parse("", text),
            bind_message(portal, "", parameter_of(text)),
            describe('P', portal),
            execute(portal, rows_max),
            SYNC.to_vec(),
        ],
        18 => vec![execute(portal, rows_max), SYNC.to_vec()],
        19 => vec![execute(portal, rows_max), FLUSH.to_vec()],
        20 => vec![
            parse("", text),
            bind_message(portal, "", parameter_of(text)),
            execute(portal, rows_max),
            FLUSH.to_vec(),
        ],
        21 => vec![close('P', portal), SYNC.to_vec()],
        22 => vec![query(text)],
        // A body that is not there.
        _ => vec![message(b"PBDECQ"[usize::from(a) % 6], b"")],
    }
}

/// How a statement with this text is bound without an error.
fn parameter_of(text: &str) -> u8 {
    if text.contains('$') { 1 } else { 0 }
}

/// `variant`: with or without a parameter, which may be wrong; formats of results, which may be too many.
fn bind_message(portal: &str, statement: &str, variant: u8) -> Vec<u8> {
    let mut body = format!("{portal}\0{statement}\0").into_bytes();
    match variant % 4 {
        1 => body.extend(b"\0\0\0\x01\0\0\0\x0242"),
        2 => body.extend(b"\0\x01\0\x01\0\x01\0\0\0\x04\0\0\0\x07"),
        3 if variant > 200 => body.extend(b"\0\0\0\x01\0\0\0\x01x"),
        _ => body.extend(b"\0\0\0\0"),
    }
    match variant >> 2 & 7 {
        1 | 2 => body.extend(b"\0\x01\0\x01"),
        3 => body.extend(b"\0\x02\0\0\0\x01"),
        _ => body.extend(b"\0\0"),
    }
    message(b'B', &body)
}
