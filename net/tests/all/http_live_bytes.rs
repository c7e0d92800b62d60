//! Live bytes of a counting allocator: the memory that an attack took is released.

use std::rc::Rc;

use allocation_counter::measure;
use http_support::hostile::{Enemy, comes_and_goes, idle, round, slow_body, slow_head, slow_read};
use kernel::{Kernel, Sim};
use net::http::Config;

const ENEMIES: [(&str, Enemy); 5] = [
    ("slow heads", slow_head),
    ("slow bodies", slow_body),
    ("slow readers", slow_read),
    ("idle", idle),
    ("comes and goes", comes_and_goes),
];

/// How many bytes more live after `work` than before it.
fn left_by(work: impl FnOnce()) -> i64 {
    measure(work).bytes_current
}

#[test]
fn a_later_round_of_an_attack_takes_nothing_that_the_first_two_did_not() {
    for (name, enemy) in ENEMIES {
        let mut kernel = Kernel::new(Sim::new());
        let config = Rc::new(Config::default());
        let mut again = || kernel.run(round(&config, 300, enemy)).unwrap();
        // The tables of the kernel have the size of the most entries alive at once, and are used
        // again. They may still be a little too small for the second round.
        let [first, _, third, fourth] = [(); 4].map(|()| left_by(&mut again));
        assert!(first > 0, "{name}: {first} bytes of tables");
        assert_eq!((third, fourth), (0, 0), "{name}");
        kernel.shutdown().unwrap();
        drop(kernel);
        let whole = || {
            let mut kernel = Kernel::new(Sim::new());
            kernel.run(async { round(&Rc::new(Config::default()), 300, enemy).await }).unwrap();
            kernel.shutdown().unwrap();
        };
        // The gate of this thread keeps its tables for the next kernel.
        whole();
        assert_eq!(left_by(whole), 0, "{name}: back at the start");
    }
}
