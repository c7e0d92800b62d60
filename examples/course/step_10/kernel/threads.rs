//! Jobs on other threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::*;

/// The work of a thread. It stores its result for its caller.
pub struct Job(Box<dyn FnOnce() + Send>);

/// Runs `f` on a new thread, and waits for its result. A thread cannot be stopped, so after an
/// interrupt it runs on, and its result is dropped.
#[track_caller]
pub fn run_in_thread<T: Send + 'static>(
    f: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, Interrupt>> {
    let result = Arc::new(Mutex::new(None));
    let slot = result.clone();
    let work = move || {
        let value = f();
        *slot.lock().expect("nobody panics here") = Some(value);
    };
    let call = call(Trap::Offload(Job(Box::new(work))));
    async move {
        call.await.interrupted()?;
        let value = result.lock().expect("nobody panics here").take();
        Ok(value.expect("the job has panicked"))
    }
}

/// The jobs of a kernel.
#[derive(Default)]
pub(super) struct Jobs {
    pub(super) started: u32,
    /// Threads that have not ended.
    pub(super) running: u32,
    /// The caller of each job.
    callers: BTreeMap<u32, TaskId>,
}

/// Sends the message that a job has ended, even if the job has panicked.
struct Ending(Arc<WakeQueue>, u32);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.push(Message::Done(self.1));
    }
}

impl<M: Machine> Kernel<M> {
    pub(super) fn offload(&mut self, id: TaskId, job: Job, words: &str, site: Site) {
        self.jobs.started += 1;
        self.jobs.running += 1;
        let (number, running) = (self.jobs.started, self.jobs.running);
        self.jobs.callers.insert(number, id);
        self.park(id, On::Job(number), words, "", site);
        self.log(id, "offload", &format!("o{number} running={running} queued=0"));
        let ending = Ending(self.wake_queue.clone(), number);
        std::thread::spawn(move || {
            let _ending = ending;
            (job.0)();
        });
    }

    /// Ends a job, and wakes its caller.
    pub(super) fn end_job(&mut self, job: u32, by: TaskId) {
        self.jobs.running -= 1;
        match self.jobs.callers.remove(&job) {
            Some(id) => {
                let line = self.log(by, "done", &format!("o{job}"));
                self.wake(id, Reply::Done, line);
            }
            None => _ = self.log(by, "orphan", &format!("o{job}")),
        }
    }

    /// Forgets the caller of a job, because the caller no longer waits.
    pub(super) fn abandon(&mut self, id: TaskId, job: u32) {
        self.jobs.callers.remove(&job);
        self.log(id, "abandon", &format!("o{job}"));
    }
}
