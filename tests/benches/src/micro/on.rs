//! A runtime of each kind, for the duration of one future.

use std::future::Future;
use std::rc::Rc;

use async_executor::LocalExecutor;
use kernel::{Kernel, Real};

/// The kernel over the operating system, as a program gets it.
pub fn trapline<F: Future>(main: F) -> F::Output {
    let mut kernel = Kernel::new(Real::new().expect("the system gives a poller"));
    kernel.run(main).expect("main ends")
}

/// tokio on this thread alone, with its clock and its poller, as a program gets it.
pub fn tokio<F: Future>(main: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("the system gives a poller").block_on(main)
}

/// tokio with tasks that stay on this thread: `tokio::task::spawn_local`.
pub fn tokio_local<F: Future>(main: F) -> F::Output {
    tokio(tokio::task::LocalSet::new().run_until(main))
}

/// smol's executor of one thread, over its reactor; `main` gets it to spawn on.
pub fn smol<F: Future>(main: impl FnOnce(Rc<LocalExecutor<'static>>) -> F) -> F::Output {
    let executor = Rc::new(LocalExecutor::new());
    async_io::block_on(executor.run(main(executor.clone())))
}

/// monoio over epoll, with its clock.
pub fn monoio<F: Future>(main: F) -> F::Output {
    let runtime = monoio::RuntimeBuilder::<monoio::LegacyDriver>::new().enable_timer().build();
    runtime.expect("the system gives a poller").block_on(main)
}
