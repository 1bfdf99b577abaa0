//! What a session goes on doing while its statement is being worked for.

use std::io;
use std::pin::pin;
use std::time::Duration;

use crate::session::KEEP_ALIVE;
use crate::session::answer::early::{EarlyPiece, EarlyRows};
use crate::session::lines::{Lines, Turn};
use crate::session::machine::Machine;
use crate::startup::cancel::CancelGuard;

/// How work for a statement came to an end.
pub(super) enum Ended<T> {
    Done(T),
    /// It took longer than it may.
    OverTime,
    /// The client's cancel request came first.
    Cancelled,
}

/// A session whose statement is being worked for.
pub(super) struct Serving<'a> {
    pub(super) lines: &'a mut Lines,
    pub(super) machine: &'a mut Machine,
    pub(super) cancel: Option<&'a CancelGuard>,
}

impl Serving<'_> {
    /// Does `work` for the statement at hand, for at most `limit`, while both lines are served. Of its reply, the client gets what
    /// comes `early` at once.
    pub(super) async fn during<T>(
        self,
        work: impl Future<Output = T>,
        limit: Option<Duration>,
        early: Option<&EarlyRows>,
    ) -> io::Result<Ended<T>> {
        let Self { lines, machine, cancel } = self;
        let mut work = pin!(work);
        let mut cancelled = pin!(async {
            match cancel {
                Some(cancel) => cancel.cancelled().await,
                None => std::future::pending().await,
            }
        });
        let mut over = pin!(async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        });
        let until_use =
            |machine: &Machine| tokio::time::sleep(machine.tracker.idle_pause(KEEP_ALIVE).unwrap_or(KEEP_ALIVE));
        let mut pause = pin!(until_use(machine));
        loop {
            tokio::select! {
                biased;
                done = &mut work => break Ok(Ended::Done(done)),
                // A statement at work is no idle session.
                () = &mut pause => {
                    machine.keep_alive();
                    pause.set(until_use(machine));
                }
                // What has begun here must end here.
                () = &mut over, if !machine.has_begun_answer() => break Ok(Ended::OverTime),
                () = &mut cancelled => break Ok(Ended::Cancelled),
                pieces = taken(early) => pieces.iter().for_each(|piece| machine.begin_answer(piece)),
                turn = lines.turn(machine) => match turn? {
                    // A client that has only closed its own direction still wants the answer.
                    Turn::Received => {}
                    Turn::Over | Turn::Broken => break Err(io::ErrorKind::ConnectionAborted.into()),
                },
            }
        }
    }
}

async fn taken(early: Option<&EarlyRows>) -> Vec<EarlyPiece> {
    match early {
        Some(early) => early.take().await,
        None => std::future::pending().await,
    }
}
