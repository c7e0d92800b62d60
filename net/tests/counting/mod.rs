//! An allocator that counts the bytes of each thread: how many live, and the most that did.

#![allow(dead_code, reason = "each test uses its part")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that live, and the most that did. Without a destructor and an allocation of its own.
    static LIVE: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

struct Counting;

fn count(bytes: isize) {
    // A thread that ends may allocate after its locals are gone.
    let _ = LIVE.try_with(|live| {
        let now = live.get().0 + bytes;
        live.set((now, live.get().1.max(now)));
    });
}

// SAFETY: every call goes to `System` with the same arguments, and what it gives is given back.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above; `place` came from `System`.
        unsafe { System.dealloc(place, layout) }
    }
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as above; `place` came from `System`.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes of this thread that live now.
pub fn live() -> isize {
    LIVE.get().0
}

/// The most bytes that lived during `work`, beyond those that lived before.
pub fn most_bytes<T>(work: impl FnOnce() -> T) -> (T, isize) {
    let before = LIVE.get().0;
    LIVE.set((before, before));
    let done = work();
    (done, LIVE.get().1 - before)
}
