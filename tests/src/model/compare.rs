//! A script's conversation with a backend alone and with a machine in between: what the client gets must be the same.

use freshet::wire::error::field;
use freshet::wire::extended::SYNC;
use freshet::wire::frame::{Frame, Frames};

use crate::client::{describe, execute};
use crate::model::Backend;
use crate::model::play::Play;
use crate::model::script::{Step, steps};

/// The script through a machine and to a backend alone; then everything that may exist is asked for.
pub fn differ(bytes: &[u8]) -> Result<usize, String> {
    let script = steps(bytes);
    let (mut play, mut direct) = (Play::default(), Backend::default());
    let mut expected = Vec::new();
    for step in &script {
        let messages = step.messages.concat();
        expected.extend(alone(&mut direct, &messages));
        if direct.is_undefined() || direct.is_unusual() {
            return Ok(0);
        }
        play.send(&messages, step.chance);
    }
    let report = |error: String| format!("{error}\n{}", readable(&script));
    for messages in epilogue() {
        expected.extend(alone(&mut direct, &messages));
        if direct.is_undefined() || direct.is_unusual() {
            return Ok(0);
        }
        play.send(&messages, 0);
        let got = play.client_got();
        if got != expected && refusals(&got) != refusals(&expected) {
            let (expected, got) = (essence(&expected), essence(&got));
            return Err(report(format!("direct: {}\nthrough: {}", expected.join("; "), got.join("; "))));
        }
        play.check(&direct).map_err(report)?;
    }
    Ok(play.answered)
}

/// A portal that has done its work, or that a failed block took with it, is refused as one that cannot be run, or as one that
/// does not exist: where it was answered here, upstream does not have it.
fn refusals(bytes: &[u8]) -> Vec<String> {
    essence(bytes).into_iter().map(|frame| frame.replace("E 55000", "E 34000").replace("E 25P02", "E 34000")).collect()
}

/// Finds out what exists.
fn epilogue() -> Vec<Vec<u8>> {
    let mut units = vec![SYNC.to_vec()];
    for name in ["", "p1", "p2"] {
        units.push([execute(name, 1), SYNC.to_vec()].concat());
    }
    for name in ["", "s1", "s2"] {
        units.push([describe('S', name), SYNC.to_vec()].concat());
    }
    units
}

/// Frames as far as they must be equal: of errors and warnings the SQLSTATE. Without PostgreSQL's remarks about itself
/// ("plancache reference leak", where several portals of a failed block would end it).
pub fn essence(bytes: &[u8]) -> Vec<String> {
    let is_remark = |frame: &Frame<'_>| frame.tag == b'N' && field(frame.body, b'C') == Some(b"01000");
    let frames = Frames::new(bytes).filter(|frame| !b"SK".contains(&frame.tag) && !is_remark(frame));
    frames
        .map(|frame| {
            let body =
                if b"EN".contains(&frame.tag) { field(frame.body, b'C').unwrap_or_default() } else { frame.body };
            format!("{} {}", char::from(frame.tag), body.escape_ascii())
        })
        .collect()
}

/// What a backend alone answers.
pub fn alone(backend: &mut Backend, messages: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Frames::new(messages).for_each(|frame| backend.receive(frame, &mut out));
    out
}

/// The messages of a script, for a failure's report.
pub fn readable(steps: &[Step]) -> String {
    let line = |step: &Step| {
        let frames: Vec<String> = step
            .messages
            .iter()
            .map(|bytes| format!("{}({})", char::from(bytes[0]), bytes[5..].escape_ascii()))
            .collect();
        format!("{:3}  {}", step.chance, frames.join("  "))
    };
    steps.iter().map(line).collect::<Vec<_>>().join("\n")
}
