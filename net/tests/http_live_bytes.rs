//! Live bytes of a counting allocator: what an attack took is given back.

mod common;
mod hostile;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::rc::Rc;

use hostile::{Enemy, comes_and_goes, idle, round, slow_body, slow_head, slow_read};
use kernel::{Kernel, Sim};
use net::http::Config;

thread_local! {
    /// Of this thread. Without a destructor and without an allocation of its own.
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

impl Counting {
    fn count(bytes: isize) {
        // A thread that ends may allocate after its locals are gone.
        let _ = LIVE.try_with(|live| live.set(live.get() + bytes));
    }
}

// SAFETY: every call goes to `System` with the same arguments, and what it gives is given back.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::count(layout.size() as isize);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        Counting::count(-(layout.size() as isize));
        // SAFETY: as above; `place` came from `System`.
        unsafe { System.dealloc(place, layout) }
    }
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Counting::count(size as isize - layout.size() as isize);
        // SAFETY: as above; `place` came from `System`.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ENEMIES: [(&str, Enemy); 5] = [
    ("slow heads", slow_head),
    ("slow bodies", slow_body),
    ("slow readers", slow_read),
    ("idle", idle),
    ("comes and goes", comes_and_goes),
];

#[test]
fn a_second_round_of_an_attack_takes_nothing_that_the_first_did_not() {
    for (name, enemy) in ENEMIES {
        let mut kernel = Kernel::new(Sim::new());
        let after = kernel.run(async {
            let config = Rc::new(Config::default());
            let mut after = [0; 3];
            for live in &mut after {
                round(&config, 300, enemy).await;
                *live = LIVE.get();
            }
            after
        });
        let [first, second, third] = after.unwrap();
        // The tables of the kernel have the size of what was alive at once, and are used again.
        assert_eq!((second - first, third - first), (0, 0), "{name}");
        kernel.shutdown().unwrap();
        drop(kernel);
        // The gate of this thread keeps its tables for the next kernel.
        let mut kernel = Kernel::new(Sim::new());
        kernel.run(async { round(&Rc::new(Config::default()), 300, enemy).await }).unwrap();
        kernel.shutdown().unwrap();
        drop(kernel);
        let again = LIVE.get();
        let mut kernel = Kernel::new(Sim::new());
        kernel.run(async { round(&Rc::new(Config::default()), 300, enemy).await }).unwrap();
        kernel.shutdown().unwrap();
        drop(kernel);
        assert_eq!(LIVE.get(), again, "{name}: back at the start");
    }
}
