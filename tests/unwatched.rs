//! What tasks do, and how often they run, does not depend on whether anybody listens.

use std::cell::RefCell;
use std::rc::Rc;

use kernel::{Kernel, Sim};
use traps::{clock, yield_now};

type Notes = Rc<RefCell<Vec<&'static str>>>;

/// Runs a program with an observer and without one: what it notes is the same, and the numbers
/// that the log would have had.
fn same_unwatched<F: Future<Output = ()>>(program: impl Fn(Notes) -> F) -> Vec<&'static str> {
    let run = |watched: bool| {
        let notes = Notes::default();
        let mut kernel = Kernel::new(Sim::new());
        if watched {
            kernel.observe(|_: &kernel::trace::Line<'_>| {});
        }
        kernel.run(program(notes.clone())).unwrap();
        // Whoever comes now learns the number of the next event.
        let next = Rc::new(RefCell::new(0));
        let seen = next.clone();
        kernel.observe(move |line: &kernel::trace::Line<'_>| *seen.borrow_mut() = line.seq);
        kernel.run(async {}).unwrap();
        let next = *next.borrow();
        (notes.take(), next)
    };
    let (watched, unwatched) = (run(true), run(false));
    assert_eq!(watched, unwatched);
    unwatched.0
}

#[test]
fn two_branches_that_give_way_in_one_run_both_go_on() {
    let notes = same_unwatched(|notes| async move {
        let first = async {
            clock().await;
            for _ in 0..3 {
                yield_now().await.unwrap();
                notes.borrow_mut().push("first");
            }
        };
        let second = async {
            yield_now().await.unwrap();
            notes.borrow_mut().push("second");
        };
        futures_util::join!(first, second);
    });
    assert_eq!(notes, ["first", "second", "first", "first"]);
}
