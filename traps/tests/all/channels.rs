//! Channels and queues between tasks: the order of service, the items that an interrupt must not
//! lose, and the errors of a closed channel.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use futures_util::{FutureExt, StreamExt};
use kernel::Sim;
use support::{Notes, check_quietly, ms, short};
use testing::sweep;
use traps::channel::queue::{Discipline, FifoQueue, LifoQueue, OrderedQueue, PriorityQueue};
use traps::channel::{broadcast, mpsc, oneshot, watch};
use traps::{
    Either, Error, Interruptible, Task, clock, race, sleep, spawn, timeout_after, yield_now,
};

/// Runs on the virtual clock.
#[track_caller]
fn on_sim<F: Future>(main: F) -> F::Output {
    check_quietly("channels", Sim::new(), main).output
}

/// Lets the other tasks run until they wait.
async fn settle() {
    for _ in 0..4 {
        yield_now().await.unwrap();
    }
}

/// Makes attempts until one is not interrupted.
async fn insist<T, E: Interruptible, F: Future<Output = Result<T, E>>>(
    mut attempt: impl FnMut() -> F,
) -> Result<T, E> {
    loop {
        match attempt().await {
            Err(error) if error.interrupt().is_some() => {}
            done => return done,
        }
    }
}

async fn join<T: 'static>(mut task: Task<T>) -> T {
    loop {
        match task.join().await {
            Err(Error::Interrupt(_)) => {}
            output => return output.unwrap(),
        }
    }
}

/// Items, as `(sender, number)`, that were sent and that were received.
type Ledger = (Vec<(u32, u32)>, Vec<(u32, u32)>);

/// Asserts that each sent item was received once, in the order of its sender.
#[track_caller]
fn assert_settled((sent, received): Ledger) {
    let of = |list: &[(u32, u32)], who| -> Vec<u32> {
        list.iter().filter(|item| item.0 == who).map(|item| item.1).collect()
    };
    for who in 0..3 {
        assert_eq!(of(&received, who), of(&sent, who), "of sender {who}");
    }
    assert_eq!(received.len(), sent.len());
}

/// Sends three items. Returns the items that were sent.
async fn send_three(who: u32, sender: mpsc::Sender<(u32, u32)>) -> Vec<(u32, u32)> {
    let mut sent = Vec::new();
    for n in 0..3 {
        match sender.send((who, n)).await {
            Ok(()) => sent.push((who, n)),
            Err(rejected) => {
                assert_eq!(rejected.item, Some((who, n)));
                assert!(rejected.interrupt().is_some(), "{rejected:?}");
            }
        }
    }
    sent
}

// ---- mpsc --------------------------------------------------------------------------------------

#[test]
fn interrupts_anywhere_lose_no_item_of_an_mpsc_channel_and_no_room() {
    let program = || async {
        let (sender, mut receiver) = mpsc::channel(2);
        let reader = spawn("reader", async move {
            let mut received = Vec::new();
            loop {
                match receiver.recv().await {
                    Ok(item) => received.push(item),
                    Err(Error::Interrupt(_)) => {}
                    Err(why) => return (received, receiver, why),
                }
            }
        })
        .await;
        let mut writers = Vec::new();
        for who in 0..3 {
            writers.push(spawn("writer", send_three(who, sender.clone())).await);
        }
        drop(sender);
        let mut sent = Vec::new();
        for writer in writers {
            sent.extend(join(writer).await);
        }
        let (received, receiver, why) = join(reader).await;
        assert_eq!((why, receiver.len()), (Error::SendersGone, 0));
        (sent, received)
    };
    let swept = sweep(|| (Sim::new(), program())).check(|_, ran| assert_settled(ran.output));
    assert_eq!(swept.plain.output.1.len(), 9);
    assert_settled(swept.plain.output);
}

#[test]
fn a_receive_that_is_given_up_when_its_item_comes_loses_nothing() {
    let (got, timeouts) = on_sim(async {
        let (sender, mut receiver) = mpsc::channel(1);
        spawn("writer", async move {
            for n in 0..6 {
                sleep(ms(1)).await.unwrap();
                sender.send(n).await.unwrap();
            }
        })
        .await;
        let (mut got, mut timeouts) = (Vec::new(), 0);
        loop {
            // Both ends of the race happen in the same turn.
            match timeout_after(ms(1), receiver.recv()).await {
                Ok(n) => got.push(n),
                Err(Error::SendersGone) => return (got, timeouts),
                Err(why) => {
                    assert_eq!(short(&Err::<(), _>(why)), "TT");
                    timeouts += 1;
                }
            }
            // A future that is dropped while it waits.
            let _ = receiver.recv().now_or_never().inspect(|item| got.extend(item));
        }
    });
    assert_eq!(got, [0, 1, 2, 3, 4, 5]);
    assert!(timeouts > 0);
}

#[test]
fn waiting_senders_get_room_in_the_order_in_which_they_came() {
    let got = on_sim(async {
        let (sender, mut receiver) = mpsc::channel(1);
        sender.try_send(0).unwrap();
        for n in 1..=3 {
            let sender = sender.clone();
            spawn("writer", async move { sender.send(n).await.unwrap() }).await;
        }
        settle().await;
        let mut got = Vec::new();
        while got.len() < 4 {
            got.push(receiver.recv().await.unwrap());
            if got.len() < 4 {
                let refused = sender.try_send(9).unwrap_err();
                assert_eq!((refused.item, refused.why), (Some(9), Error::Full));
            }
        }
        assert_eq!(receiver.try_recv(), Err(Error::Empty));
        got
    });
    assert_eq!(got, [0, 1, 2, 3]);
}

#[test]
fn the_end_of_the_receiver_wakes_each_sender_and_drops_the_items() {
    on_sim(async {
        let inside = Rc::new(());
        let (sender, receiver) = mpsc::channel(1);
        sender.try_send(inside.clone()).unwrap();
        let mut writers = Vec::new();
        for _ in 0..3 {
            let (sender, item) = (sender.clone(), inside.clone());
            writers.push(spawn("writer", async move { sender.send(item).await }).await);
        }
        settle().await;
        assert!(!sender.is_closed());
        drop(receiver);
        for writer in writers {
            let rejected = join(writer).await.unwrap_err();
            assert_eq!(rejected.why, Error::ReceiversGone);
            assert!(rejected.item.is_some());
        }
        assert_eq!(Rc::strong_count(&inside), 1);
        assert!(sender.is_closed());
        assert_eq!(sender.try_send(inside.clone()).unwrap_err().why, Error::ReceiversGone);
        assert_eq!(sender.send(inside).await.unwrap_err().why, Error::ReceiversGone);
    });
}

#[test]
fn the_end_of_the_last_sender_wakes_the_receiver_after_the_sent_items() {
    on_sim(async {
        let (sender, mut receiver) = mpsc::unbounded();
        let other = sender.clone();
        let mut reader = spawn("reader", async move {
            let first = receiver.recv().await.unwrap();
            (first, receiver.recv().await, receiver.recv().await, receiver.try_recv())
        })
        .await;
        settle().await;
        drop(sender);
        settle().await;
        (1..=2).for_each(|n| other.try_send(n).unwrap());
        drop(other);
        let gone = || Err(Error::SendersGone);
        assert_eq!(reader.join().await.unwrap(), (1, Ok(2), gone(), gone()));
    });
}

#[test]
fn the_end_of_the_senders_wakes_the_waiting_receivers() {
    on_sim(async {
        let (items, mut mpsc) = mpsc::channel::<()>(1);
        let (news, mut broadcast) = broadcast::channel::<()>(1);
        let (level, mut watch) = watch::channel(0);
        let (stream, mut streamed) = mpsc::channel::<()>(1);
        let readers = [
            spawn("mpsc", async move { mpsc.recv().await }).await,
            spawn("broadcast", async move { broadcast.recv().await }).await,
            spawn("watch", async move { watch.changed().await }).await,
            spawn(
                "stream",
                async move { streamed.next().await.unwrap_or(Err(Error::SendersGone)) },
            )
            .await,
        ];
        settle().await;
        drop((items, news, level, stream));
        for reader in readers {
            assert_eq!(join(reader).await, Err(Error::SendersGone));
        }
    });
}

#[test]
fn a_closed_receiver_gets_the_sent_items_and_refuses_later_ones() {
    on_sim(async {
        let (sender, mut receiver) = mpsc::channel(1);
        sender.try_send(1).unwrap();
        let theirs = sender.clone();
        let waiting = spawn("writer", async move { theirs.send(2).await }).await;
        settle().await;
        receiver.close();
        assert!(receiver.is_closed() && sender.is_closed());
        let rejected = join(waiting).await.unwrap_err();
        assert_eq!((rejected.item, rejected.why), (Some(2), Error::ReceiversGone));
        assert_eq!(sender.try_send(3).unwrap_err().why, Error::ReceiversGone);
        assert_eq!(receiver.recv().await, Ok(1));
        assert_eq!(receiver.recv().await, Err(Error::Closed));
        drop(receiver);
        assert_eq!(sender.try_send(4).unwrap_err().why, Error::ReceiversGone);

        let (inside, (sender, mut receiver)) = (Rc::new(()), mpsc::channel(1));
        sender.try_send(inside.clone()).unwrap();
        receiver.close();
        drop(receiver);
        assert!(sender.is_closed());
        assert_eq!(Rc::strong_count(&inside), 1, "what was not received is dropped");
    });
}

#[test]
fn a_close_ends_a_receive_that_was_polled_before() {
    on_sim(async {
        // The receiver is in the queue: it lost a race against the stop signal.
        let (sender, mut receiver) = mpsc::channel(4);
        sender.try_send(1).unwrap();
        assert_eq!(receiver.next().await, Some(Ok(1)));
        let stop = sleep(ms(1));
        assert!(matches!(race(receiver.next(), stop).await, Either::Right(Ok(_))));
        assert!(receiver.next().now_or_never().is_none());
        sender.try_send(2).unwrap();
        receiver.close();
        assert_eq!(receiver.next().now_or_never(), Some(Some(Ok(2))), "what was sent, at once");
        assert_eq!(receiver.next().now_or_never(), Some(None), "and the end, at once");
        assert_eq!(receiver.recv().await, Err(Error::Closed));

        // A close alone also ends the stream.
        let (_sender, mut receiver) = mpsc::channel::<()>(4);
        assert!(matches!(race(receiver.next(), sleep(ms(1))).await, Either::Right(Ok(_))));
        receiver.close();
        assert_eq!(receiver.next().now_or_never(), Some(None));

        // And if another task waits, in a receiver that two tasks share.
        let (_sender, receiver) = mpsc::channel::<()>(4);
        let shared = Rc::new(RefCell::new(receiver));
        let theirs = shared.clone();
        let received = poll_fn(move |cx| theirs.borrow_mut().poll_recv(cx));
        let waiting = spawn("reader", received).await;
        settle().await;
        shared.borrow_mut().close();
        assert_eq!(join(waiting).await, Err(Error::Closed));
    });
}

#[test]
fn the_other_side_ends_a_receive_that_was_polled_before_at_once() {
    on_sim(async {
        let (items, mut mpsc) = mpsc::channel::<()>(1);
        let (news, mut broadcast) = broadcast::channel::<()>(1);
        let (level, mut watch) = watch::channel(0);
        let (promise, mut oneshot) = oneshot::channel();
        assert!(mpsc.next().now_or_never().is_none());
        assert!(broadcast.next().now_or_never().is_none());
        assert!(watch.next().now_or_never().is_none());
        assert!((&mut oneshot).now_or_never().is_none());
        settle().await;
        drop((items, news, level));
        promise.send(7).unwrap();
        assert_eq!(mpsc.next().now_or_never(), Some(None));
        assert_eq!(broadcast.next().now_or_never(), Some(None));
        assert_eq!(watch.next().now_or_never(), Some(None));
        assert_eq!((&mut oneshot).now_or_never(), Some(Ok(7)));
    });
}

#[test]
fn a_bound_is_exact_and_no_bound_is_none() {
    let (sender, mut receiver) = mpsc::named("jobs", 2);
    assert_eq!((sender.capacity(), sender.try_send(1).is_ok()), (2, true));
    assert!(!sender.is_full() && sender.try_send(2).is_ok() && sender.is_full());
    assert_eq!(sender.try_send(3).unwrap_err().why, Error::Full);
    assert_eq!((receiver.try_recv(), receiver.len()), (Ok(1), 1));
    assert!(sender.try_send(4).is_ok());
    let (sender, receiver) = mpsc::unbounded();
    (0..1000).for_each(|n| sender.try_send(n).unwrap());
    assert_eq!((receiver.len(), sender.capacity()), (1000, usize::MAX));
    assert!(catch_unwind(|| mpsc::channel::<()>(0)).is_err());
    assert!(catch_unwind(|| FifoQueue::<()>::new(0)).is_err());
    assert!(catch_unwind(|| broadcast::channel::<()>(0)).is_err());
}

// ---- Streams -----------------------------------------------------------------------------------

#[test]
fn a_stream_continues_after_an_interrupt_and_ends_with_the_senders() {
    let told = on_sim(async {
        let (sender, mut receiver) = mpsc::channel(4);
        let told = Notes::default();
        let theirs = told.clone();
        let mut reader =
            spawn("reader", async move {
                while let Some(item) = receiver.next().await {
                    theirs.add(item.map_or_else(
                        |why| short(&Err::<(), _>(why)).into(),
                        |n: u32| n.to_string(),
                    ));
                }
            })
            .await;
        sender.send(1).await.unwrap();
        settle().await;
        reader.cancel_now("not so soon");
        settle().await;
        sender.send(2).await.unwrap();
        sender.send(3).await.unwrap();
        drop(sender);
        reader.join().await.unwrap();
        told.text()
    });
    assert_eq!(told, "1 CAN 2 3");
}

#[test]
fn a_stream_that_is_left_alone_takes_no_wake_from_a_receive() {
    on_sim(async {
        let (sender, mut receiver) = mpsc::channel(4);
        // The receiver is in the queue now.
        assert!(receiver.next().now_or_never().is_none());
        settle().await;
        let mut reader = spawn("reader", async move {
            let first = receiver.recv().await.unwrap();
            assert!(receiver.next().now_or_never().is_none());
            yield_now().await.unwrap();
            sleep(ms(2)).await.unwrap();
            // Its item has arrived in the meantime.
            (first, receiver.try_recv(), receiver.recv().await, receiver.next().await)
        })
        .await;
        settle().await;
        sender.send(1).await.unwrap();
        sleep(ms(1)).await.unwrap();
        sender.send(2).await.unwrap();
        sleep(ms(5)).await.unwrap();
        sender.send(3).await.unwrap();
        sender.send(4).await.unwrap();
        assert_eq!(reader.join().await.unwrap(), (1, Ok(2), Ok(3), Some(Ok(4))));
    });
}

#[test]
fn the_streams_of_broadcast_and_watch_return_what_their_receivers_return() {
    on_sim(async {
        let (sender, receiver) = broadcast::channel(2);
        (1..=3).for_each(|n| sender.send(n).unwrap());
        drop(sender);
        assert_eq!(receiver.collect::<Vec<_>>().await, [Err(Error::Lagged(1)), Ok(2), Ok(3)]);
        let (sender, mut receiver) = watch::channel(0);
        sender.send(1).unwrap();
        assert_eq!((receiver.next().await, *receiver.borrow()), (Some(Ok(())), 1));
        drop(sender);
        assert_eq!(receiver.next().await, None);
    });
}

#[test]
fn the_log_shows_the_users_place_of_each_wait() {
    let ran = testing::run(async {
        let (sender, mut receiver) = mpsc::channel::<()>(1);
        let (_kept, mut once) = oneshot::channel::<()>();
        let (_level, mut level) = watch::channel(0);
        let (_news, mut news) = broadcast::channel::<()>(1);
        let (queue, full) = (FifoQueue::<()>::new(1), FifoQueue::new(1));
        full.try_put(()).unwrap();
        sender.try_send(()).unwrap();
        let soon = ms(1);
        timeout_after(soon, sender.send(())).await.unwrap_err();
        receiver.try_recv().unwrap();
        timeout_after(soon, receiver.recv()).await.unwrap_err();
        timeout_after(soon, async { receiver.next().await.unwrap() }).await.unwrap_err();
        timeout_after(soon, once.recv()).await.unwrap_err();
        timeout_after(soon, _kept.closed()).await.unwrap_err();
        timeout_after(soon, &mut once).await.unwrap_err();
        timeout_after(soon, level.changed()).await.unwrap_err();
        timeout_after(soon, async { level.wait_for(|n| *n > 0).await.map(drop) })
            .await
            .unwrap_err();
        timeout_after(soon, news.recv()).await.unwrap_err();
        timeout_after(soon, queue.get()).await.unwrap_err();
        timeout_after(soon, full.put(())).await.unwrap_err();
        timeout_after(soon, full.join()).await.unwrap_err();
    });
    let waits: Vec<&str> =
        ran.trace.lines().filter(|line| line.contains(" block ") && line.contains(" q")).collect();
    assert_eq!(waits.len(), 12, "{}", ran.trace);
    assert!(
        waits.iter().all(|line| line.contains("at=traps/tests/all/channels.rs:")),
        "{waits:#?}"
    );
}

// ---- oneshot -----------------------------------------------------------------------------------

#[test]
fn a_oneshot_value_survives_interrupts_anywhere() {
    let program = || async {
        let (sender, mut receiver) = oneshot::channel();
        let reader = spawn("reader", async move {
            loop {
                match receiver.recv().await {
                    Err(Error::Interrupt(_)) => {}
                    done => return (done, receiver.recv().await),
                }
            }
        })
        .await;
        let _ = sleep(ms(1)).await;
        sender.send(7).unwrap();
        join(reader).await
    };
    let expected = || (Ok(7), Err(Error::SendersGone));
    let swept =
        sweep(|| (Sim::new(), program())).check(|_, ran| assert_eq!(ran.output, expected()));
    assert_eq!(swept.plain.output, expected());
}

#[test]
fn each_end_of_a_oneshot_channel_learns_that_the_other_end_is_gone() {
    on_sim(async {
        let (sender, receiver) = oneshot::channel::<u32>();
        let mut reader = spawn("reader", receiver).await;
        settle().await;
        drop(sender);
        assert_eq!(reader.join().await.unwrap(), Err(Error::SendersGone));

        let (sender, mut receiver) = oneshot::named::<u32>("answer");
        assert_eq!((receiver.try_recv(), sender.is_closed()), (Err(Error::Empty), false));
        let mut writer = spawn("writer", async move {
            sender.closed().await.unwrap();
            sender.send(7)
        })
        .await;
        settle().await;
        drop(receiver);
        assert_eq!(writer.join().await.unwrap(), Err(7));

        let (sender, receiver) = oneshot::channel();
        sender.send(7).unwrap();
        assert_eq!(timeout_after(ms(1), receiver).await, Ok(7));
    });
}

// ---- broadcast ---------------------------------------------------------------------------------

#[test]
fn each_receiver_gets_the_items_sent_after_it_subscribed() {
    let program = || async {
        let (sender, first) = broadcast::named("news", 8);
        let read = |mut receiver: broadcast::Receiver<u32>| async move {
            let mut got = Vec::new();
            loop {
                match receiver.recv().await {
                    Ok(n) => got.push(n),
                    Err(Error::Interrupt(_)) => {}
                    Err(why) => return (got, why),
                }
            }
        };
        let mut readers = vec![spawn("first", read(first)).await];
        for n in 1..=3 {
            sender.send(n).unwrap();
            let _ = yield_now().await;
            readers.push(spawn("later", read(sender.subscribe())).await);
        }
        sender.clone().send(4).unwrap();
        drop(sender);
        let mut got = Vec::new();
        for reader in readers {
            got.push(join(reader).await);
        }
        got
    };
    let gone = |items: &[u32]| (items.to_vec(), Error::SendersGone);
    let expected = || [gone(&[1, 2, 3, 4]), gone(&[2, 3, 4]), gone(&[3, 4]), gone(&[4])];
    let swept =
        sweep(|| (Sim::new(), program())).check(|_, ran| assert_eq!(ran.output, expected()));
    assert_eq!(swept.plain.output, expected());
}

#[test]
fn one_send_wakes_all_receivers_that_wait() {
    on_sim(async {
        let (sender, first) = broadcast::channel(1);
        let mut readers = Vec::new();
        for mut receiver in [first, sender.subscribe(), sender.subscribe()] {
            readers.push(spawn("reader", async move { receiver.recv().await }).await);
        }
        settle().await;
        sender.send(7).unwrap();
        for reader in readers {
            assert_eq!(join(reader).await, Ok(7));
        }
        drop(sender);
    });
}

#[test]
fn a_receiver_that_lags_gets_the_number_of_missed_items_and_then_the_oldest() {
    let (sender, mut slow) = broadcast::channel(3);
    let mut quick = sender.subscribe();
    for n in 1..=5 {
        sender.send(n).unwrap();
        assert_eq!(quick.try_recv(), Ok(n));
    }
    assert_eq!(slow.try_recv(), Err(Error::Lagged(2)));
    assert_eq!([(); 3].map(|()| slow.try_recv().unwrap()), [3, 4, 5]);
    assert_eq!((slow.try_recv(), quick.try_recv()), (Err(Error::Empty), Err(Error::Empty)));
    drop((slow, quick));
    let rejected = sender.send(6).unwrap_err();
    assert_eq!((rejected.item, rejected.why), (Some(6), Error::ReceiversGone));
    let mut later = sender.subscribe();
    sender.send(7).unwrap();
    assert_eq!(later.try_recv(), Ok(7));
}

/// An item that uses its channel when it is cloned, and when it is dropped.
struct Busybody {
    channel: Rc<RefCell<Option<broadcast::Sender<Busybody>>>>,
    calls: Rc<Cell<u32>>,
}

impl Busybody {
    fn call(&self) {
        if let Some(sender) = self.channel.take() {
            self.calls.set(self.calls.get() + 1);
            let item = Busybody { channel: Rc::default(), calls: self.calls.clone() };
            assert!(sender.send(item).is_ok());
            self.channel.replace(Some(sender));
        }
    }
}

impl Clone for Busybody {
    fn clone(&self) -> Busybody {
        self.call();
        Busybody { channel: self.channel.clone(), calls: self.calls.clone() }
    }
}

impl Drop for Busybody {
    fn drop(&mut self) {
        self.call();
    }
}

#[test]
fn an_item_may_use_its_broadcast_channel_while_it_is_cloned_or_dropped() {
    let (sender, mut receiver) = broadcast::channel(2);
    let (channel, calls) = (Rc::new(RefCell::new(Some(sender.clone()))), Rc::new(Cell::new(0)));
    let item = || Busybody { channel: channel.clone(), calls: calls.clone() };
    assert!(sender.send(item()).is_ok());
    let got = receiver.try_recv();
    assert_eq!((got.is_ok(), calls.get()), (true, 1), "the clone has sent");
    assert!(sender.send(item()).is_ok());
    assert_eq!(calls.get(), 2, "what was pushed out has sent");
    channel.take();
}

// ---- watch -------------------------------------------------------------------------------------

#[test]
fn a_watch_receiver_sees_the_newest_value_and_each_change_once() {
    let program = || async {
        let (sender, mut receiver) = watch::named("level", 0);
        let reader = spawn("reader", async move {
            let mut seen = Vec::new();
            loop {
                match receiver.changed().await {
                    Ok(()) => seen.push(*receiver.borrow()),
                    Err(Error::Interrupt(_)) => {}
                    Err(why) => return (seen, why),
                }
            }
        })
        .await;
        insist(yield_now).await.unwrap();
        insist(yield_now).await.unwrap();
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        // Even if one of these is interrupted, the reader has run.
        insist(|| sleep(ms(1))).await.unwrap();
        sender.send_modify(|level| *level += 1);
        drop(sender);
        join(reader).await
    };
    let expected = || (vec![2, 3], Error::SendersGone);
    let swept =
        sweep(|| (Sim::new(), program())).check(|_, ran| assert_eq!(ran.output, expected()));
    assert_eq!(swept.plain.output, expected());
}

#[test]
fn wait_for_looks_at_the_value_now_and_at_each_change_and_ends_with_the_sender() {
    on_sim(async {
        let (sender, mut receiver) = watch::channel(4);
        sender.send(5).unwrap();
        assert_eq!(*receiver.wait_for(|n| *n == 5).await.unwrap(), 5);
        assert!(receiver.changed().now_or_never().is_none(), "it has seen that");
        let mut clone = receiver.clone();
        let mut waiter = spawn("waiter", async move {
            let found = *receiver.wait_for(|n| *n > 6).await?;
            receiver.wait_for(|n| *n > 100).await.map(|_| found)
        })
        .await;
        for n in [6, 7] {
            settle().await;
            sender.send(n).unwrap();
        }
        settle().await;
        sender.send_modify(|n| *n = 8);
        let mut late = sender.subscribe();
        assert_eq!(*sender.borrow(), 8);
        assert!(late.changed().now_or_never().is_none(), "it has seen the value as it is");
        drop(sender);
        // The last change is seen before the end.
        assert_eq!(waiter.join().await.unwrap(), Err(Error::SendersGone));
        assert_eq!(
            (clone.changed().await, clone.changed().await),
            (Ok(()), Err(Error::SendersGone))
        );
        assert_eq!(late.changed().await, Err(Error::SendersGone));
        assert_eq!(late.wait_for(|n| *n == 8).await.map(|n| *n), Ok(8));
    });
}

#[test]
fn a_value_without_receivers_is_given_back_or_changed_in_place() {
    let (sender, receiver) = watch::channel(1);
    drop(receiver);
    let rejected = sender.send(2).unwrap_err();
    assert_eq!((rejected.item, rejected.why, *sender.borrow()), (Some(2), Error::ReceiversGone, 1));
    sender.send_modify(|n| *n = 3);
    let receiver = sender.subscribe();
    assert_eq!(*receiver.borrow(), 3);
    assert!(sender.send(4).is_ok());
    assert_eq!(*receiver.borrow(), 4);
}

// ---- Queues ------------------------------------------------------------------------------------

#[test]
fn interrupts_anywhere_lose_no_item_of_a_queue_and_no_room() {
    let program = || async {
        let queue = FifoQueue::new(1);
        let received = Rc::new(RefCell::new(Vec::new()));
        let mut readers = Vec::new();
        for name in ["one", "two"] {
            let (queue, received) = (queue.clone(), received.clone());
            readers.push(
                spawn(name, async move {
                    // Half of the gets are dropped while they wait, some with an item.
                    loop {
                        let got = race(queue.get(), sleep(ms(1))).await;
                        if let traps::Either::Left(Ok(item)) = got {
                            if item == (9, 9) {
                                return;
                            }
                            received.borrow_mut().push(item);
                            queue.task_done();
                        }
                    }
                })
                .await,
            );
        }
        let mut writers = Vec::new();
        for who in 0..2 {
            let queue = queue.clone();
            let write = async move {
                let mut sent = Vec::new();
                for n in 0..3 {
                    let _ = sleep(ms(1)).await;
                    match queue.put((who, n)).await {
                        Ok(()) => sent.push((who, n)),
                        Err(rejected) => assert_eq!(rejected.item, Some((who, n))),
                    }
                }
                sent
            };
            writers.push(spawn("writer", write).await);
        }
        let mut sent = Vec::new();
        for writer in writers {
            sent.extend(join(writer).await);
        }
        insist(|| queue.join()).await.unwrap();
        for _ in 0..2 {
            insist(|| queue.put((9, 9))).await.unwrap();
        }
        for reader in readers {
            join(reader).await;
        }
        // No permit is left over, and none is missing.
        assert_eq!((queue.try_get(), queue.len()), (Err(Error::Empty), 0));
        queue.try_put((8, 8)).unwrap();
        assert_eq!(queue.try_put((8, 8)).unwrap_err().why, Error::Full);
        assert_eq!((queue.try_get(), queue.try_get()), (Ok((8, 8)), Err(Error::Empty)));
        (sent, received.take())
    };
    // Two readers may note what they got in either order: only the sets are compared.
    let sorted = |(mut sent, mut received): Ledger| {
        sent.sort_unstable();
        received.sort_unstable();
        (sent, received)
    };
    let swept =
        sweep(|| (Sim::new(), program())).check(|_, ran| assert_settled(sorted(ran.output)));
    assert_eq!(swept.plain.output.1.len(), 6);
}

#[test]
fn waiting_gets_are_served_first_in_first_out() {
    let notes = Notes::default();
    let theirs = notes.clone();
    on_sim(async move {
        let queue = FifoQueue::named("jobs", 4);
        for name in ["a", "b", "c"] {
            let (queue, notes) = (queue.clone(), theirs.clone());
            spawn(name, async move {
                let n: u32 = queue.get().await.unwrap();
                notes.add(format!("{name}{n}"));
            })
            .await;
        }
        settle().await;
        queue.try_put(1).unwrap();
        queue.try_put(2).unwrap();
        // The items are for `a` and `b`, which have not run yet.
        assert!(queue.get().now_or_never().is_none());
        assert_eq!((queue.try_get(), queue.len()), (Err(Error::Empty), 2));
        let late = spawn("late", async move { (queue.get().await, queue) }).await;
        settle().await;
        let (_, queue) = (late.cancel_now("enough"), join(late).await.1);
        queue.try_put(3).unwrap();
        settle().await;
        assert!(queue.is_empty());
    });
    assert_eq!(notes.text(), "a1 b2 c3");
}

#[test]
fn an_item_for_a_get_that_is_cancelled_goes_to_the_next() {
    let got = on_sim(async {
        let queue = FifoQueue::unbounded();
        let mut gets = Vec::new();
        for name in ["first", "second"] {
            let queue = queue.clone();
            gets.push(spawn(name, async move { queue.get().await }).await);
        }
        settle().await;
        gets[0].cancel_now("too many");
        queue.try_put(7).unwrap();
        let second = gets.pop().unwrap();
        (join(gets.pop().unwrap()).await.is_err(), join(second).await)
    });
    assert_eq!(got, (true, Ok(7)));
}

#[test]
fn an_unread_item_or_room_of_a_task_that_gives_up_goes_to_the_next() {
    on_sim(async {
        let queue = FifoQueue::new(1);
        let theirs = queue.clone();
        // Main sleeps first, so it acts first when both wake.
        let get = async move { race(sleep(ms(1)), theirs.get()).await };
        let reader = spawn("reader", get).await;
        sleep(ms(1)).await.unwrap();
        queue.try_put(1).unwrap();
        assert!(matches!(join(reader).await, traps::Either::Left(Ok(_))));
        assert_eq!(queue.try_get(), Ok(1));

        queue.try_put(2).unwrap();
        let theirs = queue.clone();
        let put = async move { race(sleep(ms(1)), theirs.put(3)).await };
        let writer = spawn("writer", put).await;
        sleep(ms(1)).await.unwrap();
        assert_eq!(queue.try_get(), Ok(2));
        assert!(matches!(join(writer).await, traps::Either::Left(Ok(_))));
        queue.try_put(4).unwrap();
        assert_eq!((queue.try_get(), queue.try_get()), (Ok(4), Err(Error::Empty)));
    });
}

fn drain<O: Discipline<T>, T>(queue: &OrderedQueue<T, O>) -> Vec<T> {
    std::iter::from_fn(|| queue.try_get().ok()).collect()
}

#[test]
fn each_queue_returns_items_in_its_order_and_equal_items_first_in_first_out() {
    /// Compares by the first letter only.
    #[derive(Debug)]
    struct Named(&'static str);
    impl PartialEq for Named {
        fn eq(&self, other: &Named) -> bool {
            self.cmp(other).is_eq()
        }
    }
    impl Eq for Named {}
    impl PartialOrd for Named {
        fn partial_cmp(&self, other: &Named) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for Named {
        fn cmp(&self, other: &Named) -> std::cmp::Ordering {
            self.0[..1].cmp(&other.0[..1])
        }
    }
    let words = ["b1", "c1", "a1", "b2", "a2", "b3"];
    let priority = PriorityQueue::new(6);
    words.iter().for_each(|word| priority.try_put(Named(word)).unwrap());
    assert!(priority.is_full());
    let names: Vec<&str> = drain(&priority).into_iter().map(|item| item.0).collect();
    assert_eq!(names, ["a1", "a2", "b1", "b2", "b3", "c1"]);
    let (queue, stack) = (FifoQueue::unbounded(), LifoQueue::unbounded());
    for n in 1..=3 {
        queue.try_put(n).unwrap();
        stack.try_put(n).unwrap();
    }
    assert_eq!((drain(&queue), drain(&stack)), (vec![1, 2, 3], vec![3, 2, 1]));
}

#[test]
fn join_waits_until_all_items_are_done_and_an_interrupt_of_it_changes_nothing() {
    on_sim(async {
        let queue = FifoQueue::new(2);
        queue.join().await.unwrap();
        let theirs = queue.clone();
        spawn("worker", async move {
            while theirs.get().await.unwrap() != 0 {
                sleep(ms(10)).await.unwrap();
                theirs.task_done();
            }
        })
        .await;
        for n in [1, 2, 3] {
            queue.put(n).await.unwrap();
        }
        assert_eq!(short(&timeout_after(ms(5), queue.join()).await), "TT");
        queue.join().await.unwrap();
        assert_eq!(clock().await, traps::Time::ZERO + ms(30));
        queue.put(0).await.unwrap();
    });
}

#[test]
fn a_join_ends_when_all_items_were_done_though_another_is_put_at_once() {
    on_sim(async {
        let queue = FifoQueue::unbounded();
        queue.try_put(1).unwrap();
        let theirs = queue.clone();
        let mut joiner = spawn("joiner", async move { theirs.join().await }).await;
        settle().await;
        queue.task_done();
        queue.try_put(2).unwrap();
        assert_eq!(joiner.join().await.unwrap(), Ok(()));
        // A later caller waits for that item.
        assert_eq!(short(&timeout_after(ms(1), queue.join()).await), "TT");
        queue.task_done();
        queue.join().await.unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| queue.task_done())).is_err());
    });
}

// ---- User code that panics ---------------------------------------------------------------------

/// An item that panics at one of its uses.
#[derive(Debug)]
struct Bomb {
    n: u32,
    at: Use,
}

#[derive(Debug, PartialEq)]
enum Use {
    None,
    Compare,
    Clone,
    Drop,
}

impl PartialEq for Bomb {
    fn eq(&self, other: &Bomb) -> bool {
        self.n == other.n
    }
}

impl Eq for Bomb {}

impl PartialOrd for Bomb {
    fn partial_cmp(&self, other: &Bomb) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bomb {
    fn cmp(&self, other: &Bomb) -> std::cmp::Ordering {
        assert!(self.at != Use::Compare && other.at != Use::Compare, "compared");
        self.n.cmp(&other.n)
    }
}

impl Clone for Bomb {
    fn clone(&self) -> Bomb {
        assert!(self.at != Use::Clone, "cloned");
        safe(self.n)
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(self.at != Use::Drop, "dropped");
    }
}

fn safe(n: u32) -> Bomb {
    Bomb { n, at: Use::None }
}

/// Returns whether `code` panics.
fn panics<T>(code: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(code)).is_err()
}

#[test]
fn a_comparison_that_panics_costs_a_queue_neither_room_nor_items() {
    on_sim(async {
        let wild = |n| Bomb { n, at: Use::Compare };
        let queue = PriorityQueue::new(2);
        queue.try_put(safe(1)).unwrap();
        for _ in 0..3 {
            assert!(panics(|| queue.try_put(wild(2))));
            let theirs = queue.clone();
            let put = async move { theirs.put(wild(2)).await };
            let end = spawn("put", put).await.join().await;
            assert!(matches!(end, Err(Error::Panicked(_))), "{end:?}");
        }
        queue.try_put(safe(0)).unwrap();
        assert!(queue.is_full());
        // The room that a waiting put was handed goes to the next put.
        let (first, second) = (queue.clone(), queue.clone());
        let first = spawn("first", async move { first.put(wild(2)).await }).await;
        let second = spawn("second", async move { second.put(safe(3)).await }).await;
        settle().await;
        assert_eq!(queue.get().await.unwrap().n, 0);
        { first }.join().await.unwrap_err();
        join(second).await.unwrap();
        for n in [1, 3] {
            assert_eq!(queue.get().await.unwrap().n, n);
            queue.task_done();
        }
        queue.task_done();
        queue.join().await.unwrap();
        assert_eq!((queue.len(), queue.try_get().unwrap_err()), (0, Error::Empty));
    });
}

#[test]
fn a_drop_that_panics_keeps_no_item_from_a_receiver_or_from_its_drop() {
    on_sim(async {
        // The item that must go is one that its receiver has not seen.
        let (news, mut receiver) = broadcast::channel::<Bomb>(1);
        let reader = spawn("reader", async move {
            let first = receiver.recv().await;
            (first.map(|item| item.n), receiver.recv().await.map(|item| item.n))
        })
        .await;
        settle().await;
        let _slow = news.subscribe();
        news.send(Bomb { n: 1, at: Use::Drop }).unwrap();
        settle().await;
        assert!(panics(|| news.send(safe(2))));
        assert_eq!(join(reader).await, (Ok(1), Ok(2)));

        let inside = Rc::new(());
        let (sender, receiver) = mpsc::channel(2);
        let wild = Bomb { n: 1, at: Use::Drop };
        sender.try_send((Some(wild), inside.clone())).unwrap();
        sender.try_send((None, inside.clone())).unwrap();
        let theirs = sender.clone();
        let waiting = spawn("writer", async move { theirs.send((None, Rc::new(()))).await }).await;
        settle().await;
        assert!(panics(|| drop(receiver)));
        assert_eq!(Rc::strong_count(&inside), 1, "each item is dropped");
        assert_eq!(join(waiting).await.unwrap_err().why, Error::ReceiversGone);
    });
}

#[test]
fn a_clone_that_panics_costs_its_receiver_that_item_alone() {
    on_sim(async {
        let (news, mut receiver) = broadcast::channel(4);
        let mut other = news.subscribe();
        news.send(Bomb { n: 1, at: Use::Clone }).unwrap();
        news.send(safe(2)).unwrap();
        assert!(panics(|| receiver.try_recv()));
        assert_eq!(receiver.recv().await.unwrap().n, 2);
        assert!(panics(|| other.try_recv()));
        assert_eq!(other.recv().await.unwrap().n, 2);
    });
}

#[test]
fn a_change_that_panics_is_reported_and_a_predicate_that_panics_changes_nothing() {
    on_sim(async {
        let (level, receiver) = watch::channel(0);
        let mut theirs = receiver.clone();
        let waiting =
            spawn("reader", async move { theirs.wait_for(|n| *n == 7).await.map(|n| *n) });
        let waiting = waiting.await;
        settle().await;
        let modify = |n: &mut u32| {
            *n = 7;
            panic!("after the change")
        };
        assert!(panics(|| level.send_modify(modify)));
        assert_eq!(join(waiting).await, Ok(7));

        let mut theirs = receiver.clone();
        let choosy = async move { theirs.wait_for(|_| panic!("of no use")).await.map(drop) };
        spawn("choosy", choosy).await.join().await.unwrap_err();
        level.send(8).unwrap();
        assert_eq!(*receiver.borrow(), 8);
    });
}
