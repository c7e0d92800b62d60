//! Many kernels in one process: each has its thread, its tasks and its trace, and nothing of
//! another kernel's. Servers with several workers are in `servers.rs`.

use std::cell::RefCell;
use std::panic::catch_unwind;
use std::rc::Rc;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use kernel::{Kernel, Sim};
use testing::Setup;
use traps::internal::panic_message;
use traps::{
    TaskGroup, WaitQueue, connection_deadline, current_task, run_in_thread, sleep, spawn,
    timeout_after, yield_now,
};

const MS: Duration = Duration::from_millis(1);

/// A little of everything: tasks, queues, timers, scopes, jobs, in an order that `salt` changes.
async fn program(salt: u64) -> Vec<u64> {
    let log = Rc::new(RefCell::new(Vec::new()));
    let queue = Rc::new(WaitQueue::new());
    let mut tasks = Vec::new();
    for n in 0..20 {
        let (log, queue) = (log.clone(), queue.clone());
        let task = async move {
            let span = MS * u32::try_from((n * 7 + salt) % 11).unwrap();
            let _ = timeout_after(5 * MS, sleep(span)).await;
            let own = current_task().0;
            log.borrow_mut().push(own);
            let _ = timeout_after(20 * MS, queue.wait()).await;
            run_in_thread(move || n).await.unwrap()
        };
        tasks.push(spawn("task", task).await);
    }
    let deadline = connection_deadline().await;
    deadline.guard(3 * MS, sleep(600 * MS)).await.unwrap_err();
    queue.wake(salt % 7);
    let mut group = TaskGroup::<_, traps::Error>::new();
    group.spawn("member", async { Ok(sleep(MS).await?) }).await;
    group.join().await.unwrap();
    for task in &mut tasks {
        yield_now().await.unwrap();
        let n = task.join().await.unwrap();
        log.borrow_mut().push(n);
    }
    log.take()
}

fn trace(salt: u64) -> String {
    let sim = Sim::new().jobs_take(2 * MS);
    let ran = Setup::new().sim(sim).run(program(salt));
    assert_eq!(ran.output.len(), 40);
    ran.trace
}

#[test]
fn a_second_kernel_on_a_thread_panics_by_rule_and_harms_the_first_in_nothing() {
    let refused = || {
        let second = catch_unwind(|| drop(Kernel::new(Sim::new())));
        panic_message(&*second.unwrap_err()).to_owned()
    };
    let rule = "rule: a thread has one kernel at a time, and this thread has one already";
    let mut first = Kernel::new(Sim::new());
    assert_eq!(refused(), rule);
    let ran = first.run(async {
        let slept = timeout_after(50 * MS, sleep(10 * MS));
        let (slept, text) = futures_util::join!(slept, async { refused() });
        // In a task the refusal is a panic, which ends the task.
        let mut child = spawn("child", async { drop(kernel::run(async {})) }).await;
        let Err(traps::Error::Panicked(childs)) = child.join().await else { panic!("it ran") };
        (slept.is_ok(), text, childs)
    });
    assert_eq!(ran.unwrap(), (true, rule.to_owned(), rule.to_owned()));
    assert_eq!(refused(), rule, "between two runs");
    assert!(first.run(sleep(MS)).unwrap().is_ok());
    first.shutdown().unwrap();
    assert_eq!(refused(), rule, "it is shut down, and not dropped");
    drop(first);
    assert!(Kernel::new(Sim::new()).run(sleep(MS)).unwrap().is_ok());
}

#[test]
fn d18_kernels_in_two_threads_have_the_traces_that_they_have_alone() {
    let alone = [trace(1), trace(2)];
    assert_ne!(alone[0], alone[1], "the programs differ");
    for _ in 0..20 {
        let together = Arc::new(Barrier::new(2));
        let both = [1, 2].map(|salt| {
            let together = together.clone();
            thread::spawn(move || {
                together.wait();
                // Two kernels, one after the other, on this thread.
                [trace(salt), trace(salt)]
            })
        });
        for (thread, alone) in both.into_iter().zip(&alone) {
            assert!(thread.join().unwrap().iter().all(|trace| trace == alone));
        }
    }
}
