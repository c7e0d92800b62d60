//! Live bytes of a counting allocator: what an attack took is given back.

mod common;
mod counting;
mod hostile;

use std::rc::Rc;

use counting::live;
use hostile::{Enemy, comes_and_goes, idle, round, slow_body, slow_head, slow_read};
use kernel::{Kernel, Sim};
use net::http::Config;

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
            for bytes in &mut after {
                round(&config, 300, enemy).await;
                *bytes = live();
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
        let again = live();
        let mut kernel = Kernel::new(Sim::new());
        kernel.run(async { round(&Rc::new(Config::default()), 300, enemy).await }).unwrap();
        kernel.shutdown().unwrap();
        drop(kernel);
        assert_eq!(live(), again, "{name}: back at the start");
    }
}
