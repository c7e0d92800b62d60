//! Posts: what a task tells its kernel, which looks at it when the poll is over.
//!
//! Files and never waits. A post that nobody will heed is dropped here, outside of every table.

use std::mem;
use std::pin::Pin;

use super::now::Now;
use super::register::Stage;
use super::{GATE, now, refuse_outside_a_task};
use crate::limits::TOLD;
use crate::protocol::{Birth, Body, Filed, Note, Post, Site, TaskRef};

/// Tells the kernel something. Harmless outside a kernel and while a thread ends.
pub(crate) fn post(post: Post) {
    let Some(now) = now() else { return drop(post) };
    let running = now.epoch.get();
    if running != 0 && !now.any_filed.get() && post.epoch().is_none_or(|epoch| epoch == running) {
        now.any_filed.set(true);
        let earlier = now.only.replace(Some(post));
        debug_assert!(earlier.is_none(), "an empty list has no post");
        return mem::forget(earlier);
    }
    now.keep_order();
    let refused = now.tables.borrow_mut().post(running, post);
    now.any_filed.set(true);
    drop(refused);
}

/// Tells the kernel of a task that nobody will join. Gives it back where it is to be asked for: if
/// the child gets local values, as they are now, or if many were told of already.
#[inline]
pub(crate) fn post_task(body: Pin<Box<dyn Body>>, site: Site) -> Option<Pin<Box<dyn Body>>> {
    let current = now().and_then(|now| Some((now, now.task.get()?)));
    let Some((now, parent)) = current else { refuse_outside_a_task(site) };
    if now.any_locals.get() && hands_down(parent) || now.born.get() >= TOLD {
        return Some(body);
    }
    now.born.set(now.born.get() + 1);
    let is_last = now.register.stage.get() != Stage::Filed;
    let is_alone = !now.any_filed.replace(true);
    let birth = Birth { body, parent };
    let mut births = now.births.borrow_mut();
    let is_one_of_many = is_last && (is_alone || !births.is_empty());
    if is_one_of_many && births.len() < births.capacity() {
        births.push(birth);
    } else {
        drop(births);
        file_birth(now, birth, is_one_of_many);
    }
    None
}

/// Whether a child of that task gets values. What other tasks have, perhaps of other kernels,
/// changes nothing for this one.
#[cold]
fn hands_down(parent: TaskRef) -> bool {
    // While the thread ends, nobody can read values any more.
    GATE.try_with(|gate| gate.locals.hands_down(parent)).unwrap_or(false)
}

/// Files a task behind what else is filed, or among tasks for which there is no room yet.
#[inline(never)]
fn file_birth(now: &Now, birth: Birth, is_one_of_many: bool) {
    if is_one_of_many {
        return now.births.borrow_mut().push(birth);
    }
    now.keep_order();
    now.tables.borrow_mut().filed.push(Filed::Post(Post::Spawn(birth)));
}

/// A line for the log, which has its place among the arms and scopes that nobody is told of.
pub(crate) fn note(note: Note) {
    let untold = |now: &Now| now.scopes.borrow().as_ref().map(|t| t.deadlines().untold());
    let untold = now().and_then(untold).unwrap_or(0);
    post(Post::Note { note, untold });
}
