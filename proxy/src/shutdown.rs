//! Telling every task to finish: drain first (accept no more, let statements end), then stop.

use tokio::sync::watch;

/// How far the shutdown has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Running,
    /// No new sessions; sessions end when they are idle.
    Draining,
    /// The drain time is over, or was cut short: what is still carried out upstream is cancelled.
    Cancelling,
    /// Sessions end now.
    Stopping,
}

/// The side that decides.
#[derive(Debug)]
pub struct Trigger {
    sender: watch::Sender<Phase>,
}

/// The side that listens; one clone per task.
#[derive(Clone, Debug)]
pub struct Shutdown {
    receiver: watch::Receiver<Phase>,
}

/// A new pair.
pub fn channel() -> (Trigger, Shutdown) {
    let (sender, receiver) = watch::channel(Phase::Running);
    (Trigger { sender }, Shutdown { receiver })
}

impl Trigger {
    /// Moves on to `phase`; never back.
    pub fn advance(&self, phase: Phase) {
        self.sender.send_if_modified(|current| {
            let is_later = phase > *current;
            *current = phase.max(*current);
            is_later
        });
    }

    /// Another listener.
    pub fn listen(&self) -> Shutdown {
        Shutdown { receiver: self.sender.subscribe() }
    }
}

impl Shutdown {
    pub fn phase(&self) -> Phase {
        *self.receiver.borrow()
    }

    /// Waits until at least `phase` is reached, or the deciding side is gone. Cancel safe.
    pub async fn reached(&mut self, phase: Phase) {
        let _ = self.receiver.wait_for(|current| *current >= phase).await;
    }
}
