//! tokio's traits over streams, and the parts of tokio that a kernel cannot run.

use std::io;
use std::time::Duration;

use ::tokio::io::{AsyncReadExt, AsyncWriteExt};
use ::tokio::net::TcpStream;
use ::tokio::runtime;
use ::tokio::sync::mpsc;
use net::TcpListener;
use net::interop::{Compat, ThreadBound};
use net::pipe::{PipeEnd, duplex};
use traps::{Error, Interruptible, Kind, foreign, join, run_in_thread, spawn, timeout_after};

use super::run;

/// What every part of tokio says that needs its runtime.
pub const NO_REACTOR: &str =
    "there is no reactor running, must be called from the context of a Tokio 1.x runtime";

/// Returns the message with which a future panics in a task.
#[track_caller]
pub fn panic_of<F: Future<Output: 'static> + 'static>(future: F) -> String {
    match run(async { spawn("not here", future).await.await }) {
        Err(Error::Panicked(message)) => message,
        Err(error) => panic!("expected a panic, not {error}"),
        Ok(_) => panic!("expected a panic, and the future ended"),
    }
}

#[test]
fn timers_sockets_and_tasks_of_tokio_name_the_missing_runtime() {
    assert_eq!(panic_of(async { ::tokio::time::sleep(Duration::from_secs(1)).await }), NO_REACTOR);
    assert_eq!(panic_of(TcpStream::connect("127.0.0.1:1")), NO_REACTOR);
    assert_eq!(panic_of(async { ::tokio::spawn(async {}).await }), NO_REACTOR);
    assert_eq!(panic_of(async { ::tokio::task::spawn_blocking(|| ()).await }), NO_REACTOR);
}

#[test]
fn a_runtime_of_tokio_on_a_worker_thread_runs_them() {
    let found = run(async {
        let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let job = move || {
            let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
            runtime.block_on(async { TcpStream::connect(address).await?.write_all(b"tea").await })
        };
        let serve = async {
            let mut found = Vec::new();
            let mut stream = listener.accept_stream().await?;
            net::Stream::read_to_end(&mut stream, &mut found, 100).await.map(|_| found)
        };
        let (sent, found) = join(run_in_thread(job), serve).await;
        sent.unwrap().unwrap();
        found.unwrap()
    });
    assert_eq!(found, b"tea");
}

#[test]
fn a_channel_of_tokio_joins_two_tasks_and_foreign_lets_a_cancellation_end_its_wait() {
    let ran = testing::run(async {
        let (sender, mut receiver) = mpsc::channel(1);
        let send = async move {
            for n in 0..3 {
                sender.send(n).await.unwrap();
            }
            // Waits until the receiver is dropped, or a cancellation ends the wait.
            foreign(sender.closed()).await.map_err(|interrupt| interrupt.reason())
        };
        let mut send = spawn("send", send).await;
        let mut found = Vec::new();
        while found.len() < 3 {
            found.extend(receiver.recv().await);
        }
        send.cancel_because("enough").await.unwrap();
        (found, send.join().await.unwrap())
    });
    assert_eq!(ran.output, (vec![0, 1, 2], Err("enough")));
}

/// Sends `n` bytes and reads until the end, in one task.
async fn swap(stream: PipeEnd, n: usize) -> io::Result<Vec<u8>> {
    let (mut reader, mut writer) = ::tokio::io::split(ThreadBound::new(Compat::new(stream)));
    let write = async {
        writer.write_all(&vec![7; n]).await?;
        writer.flush().await?;
        writer.shutdown().await
    };
    let mut back = Vec::new();
    let (read, written) = join(reader.read_to_end(&mut back), write).await;
    written.and(read).map(|_| back)
}

#[test]
fn both_directions_of_a_stream_wait_in_one_task_by_tokios_traits() {
    // More bytes than the pipe holds, so a writer that blocked the reader would wait forever.
    let (mut one, two) = duplex(10);
    one.set_short_reads(3);
    let ran = testing::run(async { join(swap(one, 1000), swap(two, 2000)).await });
    assert_eq!(ran.output.0.unwrap(), [7; 2000]);
    assert_eq!(ran.output.1.unwrap(), [7; 1000]);
}

#[test]
fn a_timeout_ends_a_read_by_tokios_traits_and_nothing_is_lost() {
    let ran = testing::run(async {
        let (one, mut two) = duplex(10);
        let mut one = Compat::new(one);
        let mut buf = [0; 3];
        let late = timeout_after(Duration::from_secs(1), one.read_exact(&mut buf)).await;
        net::Stream::write_all(&mut two, b"tea").await.unwrap();
        one.read_exact(&mut buf).await.unwrap();
        (late.unwrap_err().interrupt().unwrap().kind(), buf)
    });
    assert_eq!(ran.output, (Kind::TaskTimeout, *b"tea"));
}
