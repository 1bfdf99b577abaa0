//! What is fuzzed: each takes any bytes, and panics where a promise is broken.

use freshet::session::control;
use freshet::session::effect::judge;
use freshet::session::intercept;
use freshet::session::machine::{Machine, MachineLimits, Step};
use freshet::session::settings::{Question, read_probe, read_time};
use freshet::session::state::{Login, SessionState};
use freshet::startup::cancel::key_of;
use freshet::wire::error::{field, is_fatal};
use freshet::wire::extended::{Bind, Execute, Parse, SYNC, Target, format_at, oids, parameter_description};
use freshet::wire::frame::{Frames, HEADER_LENGTH, Head, head};
use freshet::wire::query::{TransactionStatus, command_tag, data_row, query, row_description};
use freshet::wire::startup::{authentication, opening, parameter_status, parameters};
use freshet_config::FreshnessMode;
use freshet_engine::catalog::Catalog;
use freshet_engine::mirror::pgoutput::{LogicalMessage, OldTuple, TupleBytes, decode};
use freshet_engine::statement::{dependencies, fingerprint, lexer, normal, parse, second_reading};

use crate::fuzz::fold;
use crate::model::compare::differ;
use crate::model::play::Play;
use crate::model::script::{STEP_LENGTH, steps};

/// Frames and what is behind them are the input, whole.
pub fn framer(input: &[u8]) -> u64 {
    let mut frames = Frames::new(input);
    let mut joined = Vec::new();
    let mut tags = Vec::new();
    for frame in frames.by_ref() {
        assert_eq!(frame.bytes.len(), HEADER_LENGTH + frame.body.len());
        assert_eq!(head(frame.bytes), Head::Frame { tag: frame.tag, length: frame.bytes.len() });
        joined.extend_from_slice(frame.bytes);
        tags.push(u64::from(frame.tag) | (frame.body.len().min(8) as u64) << 8);
    }
    joined.extend_from_slice(frames.rest());
    assert_eq!(joined, input);
    fold(tags.into_iter().take(4))
}

/// The packets before log-in.
pub fn startup(input: &[u8]) -> u64 {
    let opening = opening(input);
    assert!(opening.length() <= input.len());
    let pairs = parameters(input).take(1_000).map(|(name, value)| (name.len() + value.len()) as u64);
    let authentication = authentication(input).map(|asked| format!("{asked:?}").len() as u64);
    let told = parameter_status(input).map(|(name, value)| (name.len() * 8 + value.len()) as u64);
    let kind = format!("{opening:?}").len().min(20) as u64;
    fold(
        [kind, fold(pairs), authentication.unwrap_or(0), told.unwrap_or(0), key_of(input).len().min(9) as u64]
            .into_iter(),
    )
}

/// Views of the bodies of messages.
pub fn views(input: &[u8]) -> u64 {
    let mut seen = Vec::new();
    if let Some(bind) = Bind::view(input) {
        let values = bind.values().take(bind.parameter_count).map(|value| value.map_or(0, <[u8]>::len) as u64 + 1);
        let formats =
            (0..4).map(|at| format_at(bind.result_formats, at) as u64 ^ format_at(bind.parameter_formats, at) as u64);
        seen.push(fold(values.chain(formats)));
    }
    if let Some(parse) = Parse::view(input) {
        assert!(parse.sql.len() < input.len());
        seen.push(fold(oids(parse.parameter_types).map(u64::from)));
    }
    seen.push(Execute::view(input).map_or(0, |execute| execute.rows_max as u64 | 1));
    seen.push(match Target::view(input) {
        Some(Target::Statement(name)) => 2 * name.len() as u64 + 2,
        Some(Target::Portal(name)) => 2 * name.len() as u64 + 3,
        None => 0,
    });
    seen.push(query(input).map_or(0, |sql| sql.len() as u64 + 1));
    seen.push(row_description(input).map_or(0, |fields| fields.len() as u64 + 1));
    seen.push(fold(data_row(input).map(|value| value.map_or(0, <[u8]>::len) as u64 + 1)));
    seen.push(parameter_description(input).map_or(0, |types| types.len() as u64 + 1));
    seen.push(field(input, b'C').map_or(0, |text| text.len() as u64 + 1) << 1 | u64::from(is_fatal(input)));
    seen.push(command_tag(input).map_or(0, |tag| tag.len() as u64 + 1));
    seen.push(
        u64::from(TransactionStatus::view(input).is_some())
            | u64::from(read_probe(input).is_some()) << 1
            | u64::from(read_time(input).is_some()) << 2,
    );
    fold(seen.into_iter())
}

const LIMITS: MachineLimits = MachineLimits {
    statement_bytes_max: 512,
    group_bytes_max: 1024,
    prepared_statements_max: 10,
    answers_locally: true,
    tells_keys: true,
    schema: "freshet",
};

/// A session's machine between any bytes from both sides: pieces of a byte for the side, one for the length, and the bytes.
pub fn machine(mut input: &[u8]) -> u64 {
    let mut machine = Machine::new(SessionState::new(Login::default(), FreshnessMode::Exact), LIMITS, None);
    let (mut sent, mut forwarded, mut is_altered) = (Vec::new(), Vec::new(), false);
    let mut seen = Vec::new();
    while let [side, length, rest @ ..] = input {
        let (piece, behind) = rest.split_at(usize::from(*length).min(rest.len()));
        input = behind;
        match side % 8 {
            0..=3 => {
                sent.extend_from_slice(piece);
                machine.receive_client(piece);
            }
            4 | 5 => {
                if !machine.receive_upstream(piece) {
                    return fold(seen.into_iter());
                }
            }
            6 => machine.release(),
            _ if machine.is_settled() && !machine.is_probing() => {
                is_altered = true;
                machine.keep_alive();
            }
            _ => machine.client_closed(),
        }
        loop {
            let step = machine.advance();
            if step != Step::Decide {
                break;
            }
            match side / 8 % 8 {
                0 if machine.is_settled() && machine.state.status != TransactionStatus::Failed => {
                    is_altered = true;
                    machine.cancel_unread();
                }
                1 => {
                    is_altered = true;
                    machine.ask(match side / 64 % 3 {
                        0 => Question::Settings,
                        1 => Question::Time,
                        _ => Question::Custom(["app.user".into(), "app.tenant".into()].into()),
                    });
                }
                _ => machine.relay_unit(None),
            }
        }
        assert!(machine.held_bytes() <= sent.len());
        forwarded.extend(machine.to_upstream.take());
        machine.to_client.take();
        seen.push(
            machine.take_events().len() as u64
                | u64::from(machine.lost().is_some()) << 8
                | u64::from(machine.is_settled()) << 9,
        );
    }
    assert!(is_altered || sent.starts_with(&forwarded), "upstream gets what the client sent, in its order");
    fold(seen.into_iter())
}

/// A script's conversation with a model of PostgreSQL, alone and with a session's machine in between.
pub fn script(input: &[u8]) -> u64 {
    let answered = differ(&input[..input.len().min(30 * STEP_LENGTH)]).unwrap_or_else(|error| panic!("{error}"));
    fold([answered.min(6) as u64].into_iter().chain(kinds(input)))
}

/// The same with cancel requests and signs of life in between: in the end all sides agree about where they are.
pub fn cancelled(input: &[u8]) -> u64 {
    let mut play = Play::default();
    play.is_disturbed = true;
    let (mut syncs, mut queries) = (0, 0);
    for step in steps(&input[..input.len().min(30 * STEP_LENGTH)]) {
        let messages = step.messages.concat();
        syncs += Frames::new(&messages).filter(|frame| frame.tag == b'S').count();
        queries += Frames::new(&messages).filter(|frame| frame.tag == b'Q').count();
        play.send(&messages, step.chance);
    }
    play.send(SYNC, 0);
    play.settle();
    let got = play.client_got();
    let readies: Vec<_> = Frames::new(&got).filter(|frame| frame.tag == b'Z').collect();
    let status = play.machine.state.status;
    assert_eq!(play.machine.lost(), None);
    assert!(play.machine.is_settled() && play.machine.held_bytes() == 0, "not at rest");
    assert_eq!(play.backend.status(), status);
    assert_eq!(readies.last().and_then(|frame| TransactionStatus::view(frame.body)), Some(status));
    assert!((syncs + 1..=syncs + 1 + queries).contains(&readies.len()), "{} for {syncs} and {queries}", readies.len());
    let own = play.backend.statement_names().into_iter().find(|name| name.starts_with(b"freshet"));
    assert_eq!(own, None, "left behind");
    fold([play.cancelled.min(4) as u64].into_iter().chain(kinds(input)))
}

/// Some of a script's kinds of messages.
fn kinds(input: &[u8]) -> impl Iterator<Item = u64> {
    input.chunks(STEP_LENGTH).take(3).map(|step| u64::from(step[0] % 24))
}

/// Everything that reads a statement's text.
pub fn sql(input: &[u8]) -> u64 {
    let judged = judge(input, "freshet", true, None);
    let _ = (control::read(input), intercept::read(input, "freshet"));
    let Ok(text) = std::str::from_utf8(input) else { return 0 };
    let shape = fingerprint::shape(text);
    let normal = normal::normalise(text);
    let read = dependencies::dependencies(text, &Catalog::default(), &[]);
    let Ok(tokens) = lexer::tokens(text) else { return 1 };
    let again = lexer::tokens(&normal).expect("a normal text lexes as the text does");
    assert!(again.iter().map(|token| token.text).eq(tokens.iter().map(|token| token.text)), "{text:?} and {normal:?}");
    assert_eq!(normal::normalise(&normal), normal, "a normal text is its own");
    let mut at = 0;
    for token in &tokens {
        assert!(token.start >= at && token.end() <= text.len(), "tokens are in their order: {token:?}");
        assert_eq!(&text[token.start..token.end()], token.text);
        at = token.end();
    }
    let parsed = parse::parse_query(&tokens);
    let _ = second_reading::confirm(text, std::iter::empty());
    let kinds = tokens.iter().take(6).map(|token| token.kind as u64);
    let effects = judged.effects.iter().map(|effect| format!("{effect:?}").len() as u64);
    let _ = shape;
    fold(kinds.chain(effects).chain([u64::from(parsed.is_ok()), u64::from(read.is_ok())]))
}

/// The replication stream's messages.
pub fn pgoutput(input: &[u8]) -> u64 {
    let cells = |tuple: TupleBytes<'_>| {
        let again = TupleBytes::from_checked(tuple.columns(), tuple.as_bytes());
        assert_eq!(again, tuple);
        assert_eq!(tuple.cells().count(), tuple.columns(), "a checked tuple is whole");
        fold(tuple.cells().take(6).map(|cell| format!("{cell:?}").len().min(12) as u64))
    };
    let old = |old: OldTuple<'_>| match old {
        OldTuple::Key(tuple) => cells(tuple),
        OldTuple::Full(tuple) => cells(tuple) + 1,
    };
    match decode(input) {
        Ok(LogicalMessage::Insert { new, .. }) => cells(new),
        Ok(LogicalMessage::Update { old: before, new, .. }) => fold([cells(new), before.map_or(0, old)].into_iter()),
        Ok(LogicalMessage::Delete { old: before, .. }) => old(before) + 7,
        Ok(LogicalMessage::Relation(relation)) => 100 + relation.columns.len() as u64,
        Ok(LogicalMessage::Truncate { relations }) => 200 + relations.len() as u64,
        Ok(other) => 300 + format!("{other:?}").len() as u64,
        Err(error) => 400 + error.to_string().len() as u64,
    }
}
