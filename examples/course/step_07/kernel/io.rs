//! Descriptors: the tasks that wait for them, and their registration.

use std::collections::BTreeMap;
use std::io;
use std::ops::Deref;
use std::panic::Location;
use std::rc::Rc;

use super::*;

/// The number of a handle, from 1. It is never used again, but that of a descriptor is.
pub type HandleId = u32;

/// A source that a task can wait for.
pub struct Io<S: Source> {
    source: Rc<S>,
    pub(super) handle: HandleId,
}

impl<S: Source> Io<S> {
    pub fn new(source: S) -> Io<S> {
        let source = Rc::new(source);
        let handle = gate(|gate| {
            gate.handles.set(gate.handles.get() + 1);
            gate.post(Post::Opened(gate.handles.get(), source.clone()));
            gate.handles.get()
        });
        Io { source, handle }
    }

    /// Waits until the descriptor looks ready to be read.
    #[track_caller]
    pub fn readable(&self) -> impl Future<Output = Result<(), Error>> + use<S> {
        self.ready(Direction::Read, Location::caller())
    }

    /// Waits until the descriptor looks ready.
    fn ready(
        &self,
        direction: Direction,
        site: Site,
    ) -> impl Future<Output = Result<(), Error>> + use<S> {
        let call = call_at(site, Trap::Io(self.handle, direction));
        async move {
            match call.await {
                Reply::Refused(error) => Err(error.into()),
                _ => Ok(()),
            }
        }
    }

    /// Tries an operation, and waits for the descriptor each time that it would block.
    pub(super) async fn attempt<T>(
        &self,
        direction: Direction,
        site: Site,
        mut operation: impl FnMut(&S) -> io::Result<T>,
    ) -> Result<T, Error> {
        loop {
            match operation(&self.source) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.ready(direction, site).await?;
                }
                result => return Ok(result?),
            }
        }
    }
}

impl<S: Source> Deref for Io<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.source
    }
}

impl<S: Source> Drop for Io<S> {
    fn drop(&mut self) {
        gate(|gate| gate.post(Post::Closed(self.handle)));
    }
}

pub(super) type Handles = BTreeMap<HandleId, Handle>;

/// The kernel's record of a descriptor. It keeps the source, so the descriptor stays open until it
/// is unregistered.
pub(super) struct Handle {
    source: Rc<dyn Source>,
    /// Its name in the log.
    pub(super) alias: String,
    is_registered: bool,
    /// The task that waits to read, and the task that waits to write.
    waiters: [Option<TaskId>; 2],
    /// Whether each direction became ready while no task waited for it.
    is_ready: [bool; 2],
}

impl<M: Machine> Kernel<M> {
    pub(super) fn add_handle(&mut self, handle: HandleId, source: Rc<dyn Source>) {
        let kind = source.kind();
        let number = self.aliases.entry(kind).or_default();
        *number += 1;
        let (alias, waiters, is_ready) = (format!("{kind}{number}"), [None; 2], [false; 2]);
        self.handles
            .insert(handle, Handle { source, alias, is_registered: false, waiters, is_ready });
    }

    pub(super) fn wait_for_io(
        &mut self,
        id: TaskId,
        handle: HandleId,
        direction: Direction,
    ) -> Verdict {
        let found = self.handles.get_mut(&handle).expect("rule: a handle is open while it is used");
        if std::mem::take(&mut found.is_ready[direction as usize]) {
            return Verdict::Answer(Reply::Done);
        }
        let earlier = found.waiters[direction as usize].replace(id);
        assert!(earlier.is_none(), "rule: one task waits for a direction of a descriptor");
        if found.is_registered {
            return Verdict::Block(On::Io(handle, direction), " reg=kept");
        }
        if let Err(error) = self.machine.register(found.source.descriptor(), handle) {
            found.waiters[direction as usize] = None;
            return Verdict::Answer(Reply::Refused(error));
        }
        found.is_registered = true;
        let detail = format!("{} why=first", found.alias);
        self.log(id, "register", &detail);
        Verdict::Block(On::Io(handle, direction), " reg=new")
    }

    pub(super) fn arrive(&mut self, handle: HandleId, direction: Direction) {
        // The handle may have been closed in this turn.
        let Some(found) = self.handles.get_mut(&handle) else { return };
        let shown = format!("{} {direction}", found.alias);
        match found.waiters[direction as usize].take() {
            Some(id) => {
                let line = self.log(KERNEL, "arrive", &shown);
                self.wake(id, Reply::Done, line);
            }
            None if !found.is_ready[direction as usize] => {
                found.is_ready[direction as usize] = true;
                self.log(KERNEL, "remember", &shown);
            }
            None => {}
        }
    }

    /// Closes a handle. Only this unregisters: after a wait the descriptor stays registered,
    /// because the next wait is often for the same descriptor.
    pub(super) fn close_handle(&mut self, handle: HandleId) {
        let Some(found) = self.handles.remove(&handle) else { return };
        if found.is_registered {
            self.log(KERNEL, "unregister", &format!("{} why=close", found.alias));
            // This fails only for a closed descriptor, which is no longer registered.
            _ = self.machine.unregister(found.source.descriptor());
        }
    }
}
