//! COPY in and out of a large table, and what freshet keeps in memory meanwhile.

use std::io::{self, Read, Write};
use std::time::Instant;

use freshet_tests::client::message;

use crate::process::{memory_kb, reset_memory_peak};
use crate::relay::rates::{Round, Series, used_each};
use crate::relay::servers::Line;
use crate::turns::turns;
use crate::wire::{Client, query_message};

/// What a line's COPYs took: `peak_kb` is the largest resident memory of its process while one ran.
pub(crate) struct Copied<'a> {
    pub(crate) into: Series<'a>,
    pub(crate) out: Series<'a>,
    pub(crate) peak_kb: u64,
}

/// psql sends pieces of this size.
const PIECE_BYTES: usize = 8 * 1024;
const READ_BYTES: usize = 256 * 1024;

/// `bytes` in each direction and round. Rates are bytes per second.
pub(crate) fn measure(lines: &[Line], bytes: usize, rounds: usize) -> io::Result<Vec<Copied<'_>>> {
    let data = Data::new(bytes);
    let mut copied: Vec<Copied<'_>> =
        lines.iter().map(|line| Copied { into: Series::new(line), out: Series::new(line), peak_kb: 0 }).collect();
    for round in 0..rounds {
        for at in turns(round, lines.len()) {
            let (line, copied) = (&lines[at], &mut copied[at]);
            let named = |error: io::Error| io::Error::other(format!("{}: {error}", line.name()));
            if let Some(process) = line.process {
                reset_memory_peak(process);
            }
            let mut client = line.connect().map_err(named)?;
            client.query(&query_message("TRUNCATE copied")).map_err(named)?;
            copied.into.rounds.push(timed(line, bytes, || data.copy_in(&mut client)).map_err(named)?);
            copied.out.rounds.push(timed(line, bytes, || data.copy_out(&mut client)).map_err(named)?);
            if let Some(process) = line.process {
                copied.peak_kb = copied.peak_kb.max(memory_kb(process, "VmHWM"));
            }
        }
    }
    Ok(copied)
}

fn timed(line: &Line, bytes: usize, copy: impl FnOnce() -> io::Result<()>) -> io::Result<Round> {
    let (before, began) = (line.used(), Instant::now());
    copy()?;
    let elapsed = began.elapsed();
    Ok(Round {
        rate: bytes as f64 / elapsed.as_secs_f64(),
        // Per MB here.
        processor_us: used_each(line, before, bytes as f64 / 1e6),
        ..Round::default()
    })
}

/// Rows of about 100 bytes, in a block that is sent again and again.
struct Data {
    /// Whole CopyData frames.
    block: Vec<u8>,
    /// The rows in one block.
    block_rows: usize,
    block_text_bytes: usize,
    block_sum: u64,
    blocks: usize,
}

impl Data {
    fn new(bytes: usize) -> Self {
        let (mut text, mut rows) = (Vec::new(), 0);
        while text.len() < 1024 * 1024 {
            let _ = writeln!(
                text,
                "{}\t{}\t{}",
                rows % 1000,
                rows * 7919,
                "some text that is copied in and out ".repeat(2)
            );
            rows += 1;
        }
        Self {
            block: text.chunks(PIECE_BYTES).flat_map(|piece| message(b'd', piece)).collect(),
            block_rows: rows,
            block_text_bytes: text.len(),
            block_sum: text.iter().map(|byte| u64::from(*byte)).sum(),
            blocks: bytes.div_ceil(text.len()),
        }
    }

    fn copy_in(&self, client: &mut Client) -> io::Result<()> {
        client.send(&query_message("COPY copied FROM STDIN"))?;
        client.read_frame_of(b'G')?;
        for _ in 0..self.blocks {
            client.send(&self.block)?;
        }
        let reply = client.query(&message(b'c', b""))?;
        let tag = format!("COPY {}", self.blocks * self.block_rows);
        let is_whole = reply.windows(tag.len()).any(|part| part == tag.as_bytes());
        if is_whole { Ok(()) } else { Err(io::Error::other("COPY did not take every row")) }
    }

    /// Checks the number of rows, their bytes and a sum over them.
    fn copy_out(&self, client: &mut Client) -> io::Result<()> {
        client.send(&query_message("COPY copied TO STDOUT"))?;
        client.read_frame_of(b'H')?;
        let mut seen = Seen::default();
        let mut buffer = vec![0; READ_BYTES];
        while !seen.is_over {
            let read = client.stream().read(&mut buffer)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            seen.take(&buffer[..read])?;
        }
        let expected =
            (self.blocks * self.block_rows, self.blocks * self.block_text_bytes, self.blocks as u64 * self.block_sum);
        if (seen.rows, seen.bytes, seen.sum) == expected {
            Ok(())
        } else {
            Err(io::Error::other("other rows came out than went in"))
        }
    }
}

/// The stream of a COPY out, frame by frame, however it is cut.
#[derive(Default)]
struct Seen {
    header: Vec<u8>,
    /// Of the current frame.
    body_left: usize,
    rows: usize,
    bytes: usize,
    sum: u64,
    is_over: bool,
}

impl Seen {
    fn take(&mut self, mut input: &[u8]) -> io::Result<()> {
        while !input.is_empty() {
            if self.body_left == 0 {
                let missing = (5 - self.header.len()).min(input.len());
                self.header.extend_from_slice(&input[..missing]);
                input = &input[missing..];
                let [tag, a, b, c, d] = self.header[..] else { return Ok(()) };
                self.body_left = u32::from_be_bytes([a, b, c, d]) as usize - 4;
                match tag {
                    b'd' => self.rows += 1,
                    b'c' | b'C' => {}
                    b'Z' => self.is_over = true,
                    _ => return Err(io::Error::other(format!("message {tag} in a COPY"))),
                }
                if self.body_left == 0 {
                    self.header.clear();
                }
                continue;
            }
            let count = self.body_left.min(input.len());
            if self.header[0] == b'd' {
                self.bytes += count;
                self.sum += input[..count].iter().map(|byte| u64::from(*byte)).sum::<u64>();
            }
            self.body_left -= count;
            input = &input[count..];
            if self.body_left == 0 {
                self.header.clear();
            }
        }
        Ok(())
    }
}
