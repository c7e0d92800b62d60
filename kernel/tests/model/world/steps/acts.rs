//! What never blocks.

use traps::Error;

use super::{task_done, tried, try_get, try_put};
use crate::world::oracle::Model;
use crate::world::program::Act;
use crate::world::{Guard, Held, Hold, World};

pub fn act<'w>(w: &'w World, act: Act, held: &Held<'w>) {
    w.model.borrow_mut().say(|| format!("{act:?}"));
    match act {
        Act::Cancel(_) => unreachable!("taken before"),
        Act::Release => {
            let newest = held.borrow_mut().pop();
            drop(newest);
        }
        Act::ReleaseOldest => {
            let mut held = held.borrow_mut();
            let oldest = (!held.is_empty()).then(|| held.remove(0));
            drop(held);
            drop(oldest);
        }
        Act::Forget => {
            let place = held.borrow().iter().position(Hold::is_permit);
            let hold = place.map(|place| held.borrow_mut().remove(place));
            if let Some(Guard::Permit(permit)) = hold.and_then(|mut hold| hold.guard.take()) {
                permit.forget();
                w.model.borrow_mut().forget();
            }
        }
        act => {
            try_lock(w, act, held);
            change(w, act);
            pass(w, act);
            tell(w, act);
        }
    }
}

fn try_lock<'w>(w: &'w World, act: Act, held: &Held<'w>) {
    let mut model = w.model.borrow_mut();
    let guard = match act {
        Act::TryLock(lock) => {
            let guard = w.locks[lock].try_lock().map(|mut guard| {
                *guard += 1;
                guard
            });
            model.try_lock(lock, guard.as_deref().copied());
            guard.map(|guard| Guard::Lock(lock, guard))
        }
        Act::TryRead => {
            let guard = w.shared.try_read();
            model.try_read(guard.as_deref().copied());
            guard.map(Guard::Read)
        }
        Act::TryWrite => {
            let guard = w.shared.try_write().map(|mut guard| {
                *guard += 1;
                guard
            });
            model.try_write(guard.is_some());
            guard.map(Guard::Write)
        }
        Act::TryAcquire => {
            let permit = w.permits.try_acquire();
            model.try_acquire(permit.is_some());
            permit.map(Guard::Permit)
        }
        _ => None,
    };
    held.borrow_mut().extend(guard.map(|guard| Hold::of(w, guard)));
}

/// Changes a state.
fn change(w: &World, act: Act) {
    let mut model = w.model.borrow_mut();
    match act {
        Act::AddPermits(n) => model.add_permits(n, w.permits.add_permits(n).is_ok()),
        Act::Notify(n) => {
            w.condition.notify(n);
            model.notify(n);
        }
        Act::SetEvent => {
            w.event.set();
            model.set_event(true);
        }
        Act::ClearEvent => {
            w.event.clear();
            model.set_event(false);
        }
        Act::SetCell => {
            let value = w.number();
            model.set_cell(value, w.cell.set(value).is_ok());
        }
        _ => {}
    }
}

/// Passes items on.
fn pass(w: &World, act: Act) {
    let mut model = w.model.borrow_mut();
    match act {
        Act::TrySend => {
            if let Some((_, sender)) = w.senders.borrow().last() {
                let item = w.item();
                let (id, end) = (item.id, sender.try_send(item));
                model.try_send(id, end.map_err(|it| matches!(it.why, Error::ReceiversGone)));
            }
        }
        Act::TryRecv => {
            if let Some((_, receiver)) = w.receiver.borrow_mut().last_mut() {
                model.try_recv(tried(receiver.try_recv()));
            }
        }
        Act::CloneSender => {
            let clone = w.senders.borrow().last().map(|(_, sender)| sender.clone());
            clone.iter().for_each(|_| model.senders(true));
            w.senders.borrow_mut().extend(clone.map(|sender| (0, sender)));
        }
        Act::DropSender => {
            let sender = w.senders.borrow_mut().pop();
            sender.iter().for_each(|_| model.senders(false));
        }
        Act::CloseReceiver => {
            if let Some((_, receiver)) = w.receiver.borrow_mut().last_mut() {
                receiver.close();
                model.close(false);
            }
        }
        Act::DropReceiver => {
            let receiver = w.receiver.borrow_mut().pop();
            receiver.iter().for_each(|_| model.close(true));
        }
        Act::TryPut(queue) => {
            let item = w.item();
            let (id, end) = (item.id, try_put(w, queue, item));
            model.try_put(queue, id, end.is_ok());
        }
        Act::TryGet(queue) => model.try_get(queue, try_get(w, queue)),
        Act::TaskDone(queue) if model.task_done(queue) => task_done(w, queue),
        _ => {}
    }
}

/// Tells one or all.
fn tell(w: &World, act: Act) {
    let mut model = w.model.borrow_mut();
    match act {
        Act::OneshotSend => {
            let sender = w.shots.borrow_mut().pop();
            if let Some((number, sender)) = sender {
                let item = w.item();
                let (id, end) = (item.id, sender.send(item));
                model.oneshot_send(number as usize, id, end.is_ok());
            }
        }
        Act::OneshotTry => {
            if let Some((number, receiver)) = w.targets.borrow_mut().last_mut() {
                model.oneshot_try(*number as usize, tried(receiver.try_recv()));
            }
        }
        Act::OneshotDropSender => {
            let sender = w.shots.borrow_mut().pop();
            sender.iter().for_each(|(number, _)| model.oneshot_drop(*number as usize, true));
        }
        Act::OneshotDropReceiver => {
            let receiver = w.targets.borrow_mut().pop();
            receiver.iter().for_each(|(number, _)| model.oneshot_drop(*number as usize, false));
        }
        Act::BroadcastSend => {
            if let Some((_, sender)) = w.speakers.borrow().last() {
                let item = w.item();
                let (id, end) = (item.id, sender.send(item));
                model.broadcast_send(id, end.is_ok());
            }
        }
        Act::BroadcastTry => {
            if let Some((number, receiver)) = w.listeners.borrow_mut().last_mut() {
                model.broadcast_try(*number, tried(receiver.try_recv()));
            }
        }
        Act::BroadcastSubscribe => {
            let receiver = w.speakers.borrow().last().map(|(_, it)| (w.number(), it.subscribe()));
            receiver.iter().for_each(|(number, _)| model.listener(*number, true));
            w.listeners.borrow_mut().extend(receiver);
        }
        Act::BroadcastCloneSender => {
            let clone = w.speakers.borrow().last().map(|(_, sender)| sender.clone());
            clone.iter().for_each(|_| model.speakers(true));
            w.speakers.borrow_mut().extend(clone.map(|sender| (0, sender)));
        }
        Act::BroadcastDropSender => {
            let sender = w.speakers.borrow_mut().pop();
            sender.iter().for_each(|_| model.speakers(false));
        }
        Act::BroadcastDropReceiver => {
            let receiver = w.listeners.borrow_mut().pop();
            receiver.iter().for_each(|(number, _)| model.listener(*number, false));
        }
        act => watch(w, act, &mut model),
    }
}

fn watch(w: &World, act: Act, model: &mut Model) {
    match act {
        Act::WatchSend => {
            if let Some((_, sender)) = w.publisher.borrow().last() {
                model.watch_send(sender.send(model.watched + 1).is_ok(), false);
            }
        }
        Act::WatchModify => {
            if let Some((_, sender)) = w.publisher.borrow().last() {
                sender.send_modify(|value| *value += 1);
                model.watch_send(true, true);
            }
        }
        Act::WatchSubscribe => {
            let receiver = w.publisher.borrow().last().map(|(_, it)| (w.number(), it.subscribe()));
            receiver.iter().for_each(|(number, _)| model.watcher(*number, None));
            w.watchers.borrow_mut().extend(receiver);
        }
        Act::WatchClone => {
            let clone = w.watchers.borrow().last().map(|(like, it)| (*like, it.clone()));
            if let Some((like, clone)) = clone {
                let number = w.number();
                model.watcher(number, Some(like));
                w.watchers.borrow_mut().push((number, clone));
            }
        }
        Act::WatchDropSender => {
            let sender = w.publisher.borrow_mut().pop();
            sender.iter().for_each(|_| model.drop_publisher());
        }
        Act::WatchDropReceiver => {
            let receiver = w.watchers.borrow_mut().pop();
            receiver.iter().for_each(|(number, _)| model.drop_watcher(*number));
        }
        _ => {}
    }
}
