//! A producer and two consumers over a channel of two places: the faster side waits for the other.

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use common::Lesson;
use kernel::Sim;
use traps::channel::mpsc::{self, Receiver};
use traps::sync::Mutex;
use traps::{Error, note, sleep, span, spawn};

const MS: Duration = Duration::from_millis(1);

/// Takes items until the producer is gone. There is one receiver, so the consumers share it.
async fn consume(jobs: Rc<Mutex<Receiver<u32>>>, done: Rc<RefCell<Vec<u32>>>) -> Result<(), Error> {
    loop {
        let job = match jobs.lock().await?.recv().await {
            Err(Error::SendersGone) => return Ok(()),
            job => job?,
        };
        span(format!("job {job}"), sleep(10 * MS)).await?;
        done.borrow_mut().push(job);
    }
}

pub async fn producer() -> Result<(), Error> {
    let (sender, receiver) = mpsc::named("jobs", 2);
    let (jobs, done) = (Rc::new(Mutex::named("receiver", receiver)), Rc::default());
    let mut consumers = Vec::new();
    for name in ["first", "second"] {
        let work = consume(Rc::clone(&jobs), Rc::clone(&done));
        consumers.push(spawn(name, work).await);
    }
    for job in 1..=6 {
        sender.send(job).await?;
    }
    note("all jobs are sent");
    drop(sender);
    for consumer in &mut consumers {
        consumer.join().await??;
    }
    assert_eq!(*done.borrow(), [1, 2, 3, 4, 5, 6]);
    Ok(())
}

fn main() -> ExitCode {
    let about = "A producer and two consumers over a bounded channel";
    Lesson::parse("producer", about).run(Sim::new(), producer())
}
