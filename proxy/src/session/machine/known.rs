//! Units that are answered by their bytes: as many as the client has sent one after the other and the answerer knows, without
//! going back to the session's loop in between, and with one account of what they leave behind.

use std::ops::Range;

use crate::session::answer::{Arrival, Known, PreparedStatement, RawUnit};
use crate::session::machine::Machine;
use crate::session::machine::local::find_prepared;
use crate::wire::frame::{HEADER_LENGTH, Head, head};
use crate::wire::query::write_ready_for_query;

/// So much is written at least now and then.
const WRITTEN_BYTES_MAX: usize = 1 << 20;

/// Of the units that were answered, those whose traces count in the end: each takes the place of the one before.
#[derive(Default)]
struct Traces {
    /// The last unit that says what the unnamed statement is, if that is not noted yet.
    text: Option<Range<usize>>,
    last: Option<Range<usize>>,
}

impl Machine {
    /// Answers the unit at hand, and those behind it, up to the first that is not known. How many.
    pub fn answer_known(&mut self, known: &mut impl Known) -> u64 {
        let incoming = std::mem::take(&mut self.incoming);
        let received = self.given_up + incoming.len() as u64;
        let (status, mut count, mut traces) = (self.state.status, 0, Traces::default());
        // Bursts mostly bind one statement.
        let mut bound: Option<(&[u8], &PreparedStatement)> = None;
        while let Some((length, text)) = plain_unit(&incoming[self.taken..]) {
            if self.to_client.len() >= WRITTEN_BYTES_MAX {
                break;
            }
            let place = self.taken..self.taken + length;
            let statement = match text {
                Text::Own => None,
                Text::Prepared(name) => {
                    if name.is_empty()
                        && let Some(text) = traces.text.take()
                    {
                        bound = None;
                        self.leave_behind(&incoming[text]);
                    }
                    if bound.is_none_or(|(last, _)| last != name) {
                        let found = find_prepared(&self.virtual_statements, &self.statements, &self.unnamed, name);
                        bound = found.map(|statement| (name, &**statement));
                    }
                    let Some((_, statement)) = bound else { break };
                    Some(statement)
                }
            };
            let arrival = Arrival { end: self.given_up + place.end as u64, received };
            let unit = RawUnit { bytes: &incoming[place.clone()], statement, arrival };
            if !known.answer(&unit, &mut self.to_client) {
                break;
            }
            self.to_client.write(|out| write_ready_for_query(out, status));
            self.taken = place.end;
            if matches!(text, Text::Own) {
                traces.text = Some(place.clone());
            }
            traces.last = Some(place);
            count += 1;
        }
        if count > 0 {
            self.scanned = self.taken;
            self.state.note_answer();
            self.leave_traces(&incoming, traces);
        }
        self.incoming = incoming;
        count
    }

    /// The unit at hand, if it may be a plain one.
    pub fn raw_unit(&self) -> Option<RawUnit<'_>> {
        let (length, text) = plain_unit(&self.incoming[self.taken..])?;
        let end = self.taken + length;
        let statement = match text {
            Text::Own => None,
            Text::Prepared(name) => {
                Some(&**find_prepared(&self.virtual_statements, &self.statements, &self.unnamed, name)?)
            }
        };
        let received = self.given_up + self.incoming.len() as u64;
        let arrival = Arrival { end: self.given_up + end as u64, received };
        Some(RawUnit { bytes: &self.incoming[self.taken..end], statement, arrival })
    }

    fn leave_traces(&mut self, incoming: &[u8], traces: Traces) {
        if let Some(text) = traces.text.filter(|text| traces.last.as_ref() != Some(text)) {
            self.leave_behind(&incoming[text]);
        }
        if let Some(last) = traces.last {
            self.leave_behind(&incoming[last]);
        }
        self.end_unit();
    }
}

/// Where a unit has its statement from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text<'a> {
    Own,
    Prepared(&'a [u8]),
}

/// The length of the unit at the head of some bytes, if it is all there and may be a plain one: a Query, or messages that begin
/// with Parse or a Bind to the unnamed portal and end with Sync. Whether it is one, is not looked at: who knows its reply has
/// seen it before.
fn plain_unit(bytes: &[u8]) -> Option<(usize, Text<'_>)> {
    let mut at = 0;
    loop {
        let Head::Frame { tag, length } = head(bytes.get(at..)?) else { return None };
        match tag {
            b'Q' | b'P' | b'B' if at == 0 => {}
            b'B' | b'D' | b'E' | b'C' | b'S' if at > 0 => {}
            _ => return None,
        }
        at += length;
        if at > bytes.len() {
            return None;
        }
        if matches!(tag, b'Q' | b'S') {
            break;
        }
    }
    let text = match bytes.first()? {
        b'B' => Text::Prepared(bound_statement(bytes)?),
        _ => Text::Own,
    };
    Some((at, text))
}

/// The statement's name in the Bind at the head of the bytes, if its portal is the unnamed one.
fn bound_statement(bytes: &[u8]) -> Option<&[u8]> {
    let (portal, rest) = bytes.get(HEADER_LENGTH..)?.split_first()?;
    let end = memchr::memchr(0, rest)?;
    if *portal == 0 { rest.get(..end) } else { None }
}

#[cfg(test)]
mod tests {
    use freshet_config::FreshnessMode;
    use proptest::prelude::*;

    use super::*;
    use crate::session::answer::{Account, Reply};
    use crate::session::buffer::OutBuffer;
    use crate::session::machine::local::write_reply;
    use crate::session::machine::{MachineLimits, Step};
    use crate::session::state::{Isolation, Login, SessionState};
    use crate::wire::extended::{SYNC, Target, write_bind, write_close, write_execute, write_parse};
    use crate::wire::query::{TransactionStatus, write_query};

    fn bytes(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    fn execution(has_close: bool) -> Vec<u8> {
        bytes(|out| {
            write_bind(out, b"", b"");
            write_execute(out, b"");
            if has_close {
                write_close(out, Target::Portal(b""));
            }
            out.extend_from_slice(SYNC);
        })
    }

    fn own_text(text: &str, has_close: bool) -> Vec<u8> {
        [bytes(|out| write_parse(out, b"", text.as_bytes())), execution(has_close)].concat()
    }

    #[test]
    fn a_unit_is_found_once_all_of_it_is_there() {
        let query = bytes(|out| write_query(out, b"SELECT 1"));
        let prepared = bytes(|out| {
            write_bind(out, b"", b"name");
            write_execute(out, b"");
            out.extend_from_slice(SYNC);
        });
        let own = own_text("SELECT 1", false);
        let cases = [(&query, Text::Own), (&prepared, Text::Prepared(b"name")), (&own, Text::Own)];
        for (unit, text) in cases {
            let burst = [unit.as_slice(), &query].concat();
            assert_eq!(plain_unit(&burst), Some((unit.len(), text)));
            for cut in 0..unit.len() {
                assert_eq!(plain_unit(&unit[..cut]), None, "{cut} of {unit:?}");
            }
        }
    }

    #[test]
    fn what_is_no_plain_unit_is_left_alone() {
        let named = bytes(|out| {
            write_bind(out, b"portal", b"name");
            out.extend_from_slice(SYNC);
        });
        let query_within = bytes(|out| {
            write_bind(out, b"", b"");
            write_query(out, b"SELECT 1");
        });
        let malformed = [b"B\0\0\0\x03".as_slice(), SYNC].concat();
        for other in [&named[..], &query_within, &malformed, SYNC, b"", b"X\0\0\0\x04"] {
            assert_eq!(plain_unit(other), None, "{other:?}");
        }
    }

    /// Knows every unit but some.
    struct Most {
        units: usize,
        unknown_each: usize,
    }

    fn reply() -> Reply {
        let rows = bytes(|out| crate::wire::query::write_command_complete(out, "SELECT 0"));
        Reply { rows: vec![rows.into()], ..Reply::default() }
    }

    impl Known for Most {
        fn answer(&mut self, unit: &RawUnit<'_>, out: &mut OutBuffer) -> bool {
            self.units += 1;
            assert!(unit.arrival.end <= unit.arrival.received);
            if self.units.is_multiple_of(self.unknown_each) {
                return false;
            }
            write_reply(out, unit.bytes, &reply());
            true
        }

        fn finish(self) -> Account {
            Account::default()
        }
    }

    fn machine(is_block: bool) -> Machine {
        let limits = MachineLimits {
            statement_bytes_max: 4096,
            group_bytes_max: 4096,
            prepared_statements_max: 100,
            answers_locally: true,
            tells_keys: true,
            schema: "freshet",
        };
        let mut machine = Machine::new(SessionState::new(Login::default(), FreshnessMode::Exact), limits, None);
        if is_block {
            machine.begin(Some(Isolation::ReadCommitted));
            machine.state.status = TransactionStatus::InTransaction;
        }
        machine
    }

    proptest! {
        /// What upstream is sent afterwards, for messages that use the unnamed statement or portal, tells what was left.
        #[test]
        fn a_burst_leaves_what_its_units_leave_one_by_one(
            kinds in proptest::collection::vec(0_usize..5, 1..8),
            unknown_each in 2_usize..6,
            is_block in any::<bool>(),
            uses_portal in any::<bool>(),
        ) {
            let mut has_text = false;
            let mut units = Vec::new();
            for (at, kind) in kinds.into_iter().enumerate() {
                let text = format!("SELECT {at}");
                units.push(match kind {
                    0 => bytes(|out| write_query(out, text.as_bytes())),
                    1 | 2 if has_text => execution(kind == 1),
                    _ => own_text(&text, kind == 3),
                });
                has_text = kind != 0;
            }
            let (mut together, mut apart) = (machine(is_block), machine(is_block));
            let mut known = Most { units: 0, unknown_each };
            together.receive_client(&units.concat());
            while together.advance() == Step::Decide {
                if together.answer_known(&mut known) == 0 {
                    together.answer_locally(&reply());
                }
            }
            for unit in &units {
                apart.receive_client(unit);
                assert_eq!(apart.advance(), Step::Decide);
                apart.answer_locally(&reply());
                assert_eq!(apart.advance(), Step::Wait);
            }
            prop_assert_eq!(together.to_client.take(), apart.to_client.take());
            let next = if uses_portal {
                bytes(|out| {
                    write_execute(out, b"");
                    out.extend_from_slice(SYNC);
                })
            } else {
                execution(false)
            };
            for machine in [&mut together, &mut apart] {
                machine.receive_client(&next);
                while machine.advance() == Step::Decide {
                    machine.relay_unit(None);
                }
            }
            prop_assert_eq!(together.to_upstream.take(), apart.to_upstream.take());
        }
    }
}
