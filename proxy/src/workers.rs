//! Threads that serve sessions, each with an event loop of its own.
//!
//! A session lives on one thread from its first byte to its last, so that waking it is a push onto a queue that nobody
//! shares. A pool that steals work wakes a second thread for nearly every unit, which costs more than the unit does.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use freshet_engine::STACK_BYTES;
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The threads; they end when this is dropped, and so does what still runs on them.
#[derive(Debug)]
pub struct Workers {
    workers: Vec<Worker>,
    /// Where the next one goes among equally busy ones.
    turn: AtomicUsize,
    _stop: DropGuard,
}

#[derive(Debug)]
struct Worker {
    handle: Handle,
    /// Tasks that have not ended.
    tasks: Arc<AtomicUsize>,
}

impl Workers {
    /// `count` threads; 0: one for every processor. With fewer, one that relays is busy while upstream and clients, which
    /// wait for it, leave a processor idle; and a client, a thread and upstream's process that share a processor wake
    /// each other for less than across processors.
    pub fn start(count: usize) -> io::Result<Self> {
        let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let stop = CancellationToken::new();
        let workers = (0..if count > 0 { count } else { processors() }).map(|at| Worker::start(at, stop.clone()));
        Ok(Self { workers: workers.collect::<io::Result<_>>()?, turn: AtomicUsize::new(0), _stop: stop.drop_guard() })
    }

    /// Where a task runs that few sessions at once wait for.
    pub fn first(&self) -> &Handle {
        &self.workers[0].handle
    }

    /// Each in turn, for several of that kind.
    pub fn next(&self) -> &Handle {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        &self.workers[turn % self.workers.len()].handle
    }

    /// Starts a task, of `tasks`, on the thread with the fewest.
    pub fn spawn(&self, tasks: &mut JoinSet<()>, task: impl Future<Output = ()> + Send + 'static) {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let order = (0..self.workers.len()).map(|at| &self.workers[(turn + at) % self.workers.len()]);
        let Some(worker) = order.min_by_key(|worker| worker.tasks.load(Ordering::Relaxed)) else { return };
        let place = Place::take(&worker.tasks);
        let task = async move {
            let _place = place;
            task.await;
        };
        tasks.spawn_on(task, &worker.handle);
    }
}

impl Worker {
    fn start(at: usize, stop: CancellationToken) -> io::Result<Self> {
        // Those for blocking work, too.
        let runtime = Builder::new_current_thread().thread_stack_size(STACK_BYTES).enable_all().build()?;
        let handle = runtime.handle().clone();
        std::thread::Builder::new().name(format!("freshet-{at}")).stack_size(STACK_BYTES).spawn(move || {
            runtime.block_on(stop.cancelled());
            // A computation that is still running on a thread for blocking work is not waited for.
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, tasks: Arc::default() })
    }
}

/// Counts a task until it ends, however that comes about.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(tasks: &Arc<AtomicUsize>) -> Self {
        tasks.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(tasks))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tokio::sync::{Semaphore, mpsc};

    use super::*;

    #[tokio::test]
    async fn tasks_are_spread_and_their_places_are_given_back() {
        let workers = Workers::start(3).unwrap();
        let mut tasks = JoinSet::new();
        let (gate, (sender, mut names)) = (Arc::new(Semaphore::new(0)), mpsc::unbounded_channel());
        for _ in 0..6 {
            let (gate, sender) = (Arc::clone(&gate), sender.clone());
            workers.spawn(&mut tasks, async move {
                sender.send(std::thread::current().name().unwrap().to_string()).unwrap();
                let _permit = gate.acquire().await;
            });
        }
        let mut seen = Vec::new();
        for _ in 0..6 {
            seen.push(names.recv().await.unwrap());
        }
        assert_eq!(seen.iter().collect::<HashSet<_>>().len(), 3, "{seen:?}");
        assert!(workers.workers.iter().all(|worker| worker.tasks.load(Ordering::Relaxed) == 2));
        gate.add_permits(6);
        while tasks.join_next().await.is_some() {}
        assert!(workers.workers.iter().all(|worker| worker.tasks.load(Ordering::Relaxed) == 0));
        workers.spawn(&mut tasks, async { panic!("on purpose") });
        assert!(tasks.join_next().await.unwrap().is_err());
        assert!(workers.workers.iter().all(|worker| worker.tasks.load(Ordering::Relaxed) == 0));
    }
}
