//! Errors of `anyhow` and `eyre` carry interrupts through timeouts and groups.

use std::io;
use std::time::Duration;

use anyhow::Context;
use traps::{Error, Interruptible, Kind, TaskGroup, ignore_after, sleep, timeout_after};

const SECOND: Duration = Duration::from_secs(1);

fn run<F: Future>(program: F) -> F::Output {
    testing::run(program).output
}

async fn slow() -> anyhow::Result<()> {
    sleep(9 * SECOND).await.context("while it waited")?;
    Ok(())
}

#[test]
fn a_timeout_knows_its_own_interrupt_below_a_context_of_anyhow() {
    run(async {
        assert!(ignore_after(SECOND, slow()).await.unwrap().is_none());
        let error = timeout_after(SECOND, slow()).await.unwrap_err();
        assert_eq!(error.interrupt().unwrap().kind(), Kind::TaskTimeout);
        assert_eq!(error.to_string(), "while it waited");
        let inner = timeout_after(2 * SECOND, slow());
        let error = timeout_after(SECOND, inner).await.unwrap_err();
        assert_eq!(error.interrupt().unwrap().kind(), Kind::TaskTimeout);
    });
}

#[test]
fn a_report_of_eyre_carries_an_interrupt_inside_an_io_error() {
    run(async {
        let slow = async {
            sleep(9 * SECOND).await.map_err(io::Error::from)?;
            Ok::<(), eyre::Report>(())
        };
        let error = timeout_after(SECOND, slow).await.unwrap_err();
        assert_eq!(error.interrupt().unwrap().kind(), Kind::TaskTimeout);
    });
}

#[test]
fn a_group_returns_the_error_of_its_member_and_no_cancellation() {
    run(async {
        let mut group = TaskGroup::<(), anyhow::Error>::new();
        group.spawn("slow", slow()).await;
        group.spawn("fails", async { anyhow::bail!("out of paper") }).await;
        assert_eq!(group.join().await.unwrap_err().to_string(), "out of paper");
    });
}

#[test]
fn an_error_that_was_an_io_error_for_a_while_is_itself_again() {
    assert_eq!(Error::from(io::Error::from(Error::Busy)), Error::Busy);
    let other = io::Error::from(io::ErrorKind::NotFound);
    assert!(
        matches!(Error::from(other), Error::Io(error) if error.kind() == io::ErrorKind::NotFound)
    );
}
