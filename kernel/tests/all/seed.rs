//! The seed of the simulated machine: the order of events at one instant.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use kernel::{Options, Sim};
use support::kernels::*;
use traps::io::{Direction, Io, Scripted};
use traps::{Time, clock, run_in_thread, spawn};

const TIED: u32 = 4;

/// Returns the descriptors that are ready at one second, in the order of their tasks' wakes;
/// likewise the jobs that end at two seconds; and the trace.
fn life(seed: u64) -> (Vec<u32>, Vec<u32>, String) {
    let second = Time::ZERO + secs(1);
    let sim = Sim::new().seed(seed).jobs_take(secs(1));
    let sim = (0..TIED).fold(sim, |sim, number| sim.ready_at(second, number, Direction::Read));
    let mut kernel = Traced::new(sim, Options::new());
    let (ready, ended) = kernel.go(async {
        let heard: Rc<[RefCell<Vec<u32>>; 2]> = Rc::default();
        let mut tasks = Vec::new();
        for number in 0..TIED {
            let heard = heard.clone();
            let waits = async move {
                Io::new(Scripted(number)).readable().await.unwrap();
                heard[0].borrow_mut().push(number);
                run_in_thread(|| ()).await.unwrap();
                heard[1].borrow_mut().push(number);
            };
            tasks.push(spawn("waits", waits).await);
        }
        for task in &mut tasks {
            task.join().await.unwrap();
        }
        assert_eq!(clock().await, second + secs(1));
        (heard[0].take(), heard[1].take())
    });
    (ready, ended, kernel.end())
}

#[test]
fn without_a_seed_events_of_one_instant_happen_in_the_order_of_the_script() {
    let (ready, ended, trace) = life(0);
    assert_eq!((ready, ended), (vec![0, 1, 2, 3], vec![0, 1, 2, 3]));
    assert!(trace.starts_with("#trace v3 clock=virtual seed=0 tick=0.3s\n"), "{trace}");
}

#[test]
fn with_a_seed_it_happens_in_any_order_and_always_in_the_same() {
    let (mut ready, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for seed in 1..250 {
        let life_of_seed = life(seed);
        assert!(
            life_of_seed.2.starts_with(&format!("#trace v3 clock=virtual seed={seed} tick=0.3s\n"))
        );
        assert_eq!(life(seed), life_of_seed, "seed {seed}");
        ready.insert(life_of_seed.0);
        ended.insert(life_of_seed.1);
    }
    // Four events have 24 orders.
    assert_eq!((ready.len(), ended.len()), (24, 24));
}
