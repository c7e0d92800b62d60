//! Posts at the gate: which kernel each is for.

use super::gate::{Filed, GATE, Gate};
use super::names::{TaskRef, Ticket};
use super::protocol::Post;

/// Posts a message to the kernel that knows what it names; if that is gone, the message is dropped.
/// Harmless outside a kernel and while a thread ends.
pub(crate) fn post(post: Post) {
    if let Some(gate) = GATE.get()
        && let Some(epoch) = gate.home_of(&post)
    {
        gate.post_to(epoch, post);
    }
}

/// Posts a message to that kernel of this thread, for now or for its next run.
pub(crate) fn post_to(epoch: u32, post: Post) {
    if let Some(gate) = GATE.get() {
        gate.post_to(epoch, post);
    }
}

impl Gate {
    /// Posts a message to that kernel, now or before its next run.
    pub fn post_to(&self, epoch: u32, post: Post) {
        if epoch == self.epoch.get() && epoch != 0 {
            if let Some(older) = self.newest.take() {
                self.push(Filed::Trap(older));
            }
            self.push(Filed::Post(post));
        } else if self.kernels.borrow().contains(&epoch) {
            self.later.borrow_mut().push((epoch, post));
        } else {
            self.discard(post);
        }
    }

    /// A post that no kernel will handle.
    pub(super) fn discard(&self, post: Post) {
        if let Post::Release { handle, .. } = &post {
            self.handles.borrow_mut().remove(*handle);
        }
        if let Post::Spawn(new) = &post {
            self.records.borrow_mut().close(new.root);
        }
        if let Post::Permit(queue, true) = &post {
            queue.keep_permit();
        }
        drop(post);
    }

    /// The kernel that a post is for; `None` if what it names is gone.
    fn home_of(&self, post: &Post) -> Option<u32> {
        let running = self.epoch.get();
        let records = self.records.borrow();
        let of_task = |task: TaskRef| Some(records.scopes.get(task)?.epoch);
        let of_wait = |ticket: Ticket| {
            let wait = records.waits.get(ticket)?;
            Some(records.scopes[records.root_of(wait)].epoch)
        };
        match post {
            Post::Withdraw(ticket) => of_wait(*ticket),
            // A kernel counts those that come too late.
            Post::Unpark(ticket) => of_wait(*ticket).or(Some(running)),
            Post::Cancel(task, _) | Post::Drop(task) | Post::Woken(task) => of_task(*task),
            Post::Wake(queue, _) | Post::Permit(queue, _) if queue.len.get() > 0 => {
                Some(queue.home.get())
            }
            Post::Permit(queue, true) if running == 0 => {
                queue.keep_permit();
                None
            }
            Post::Close(handle) | Post::Release { handle, .. } => {
                // A handle that no kernel has heard of may own a descriptor.
                self.handles.borrow().get(*handle).copied()
            }
            Post::Spawn(_)
            | Post::Wake(..)
            | Post::Permit(..)
            | Post::Set(_)
            | Post::Opened(_)
            | Post::Unset(..)
            | Post::Closed(_)
            | Post::Register { .. }
            | Post::Service(_)
            | Post::Note(_) => Some(running),
        }
    }
}
