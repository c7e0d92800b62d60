//! The tests of the kernel: turns, wakes, registrations, threads, shutdown, and the rewritten tests
//! of Curio.

mod allocations;
mod chaos;
mod curio_cases;
mod curio_kernel;
mod curio_queue;
mod curio_rules;
mod curio_sync;
mod curio_task;
mod deadlock;
mod fleet;
mod flight;
mod interrupts;
mod longrun;
mod many_kernels;
mod outside;
mod outside_world;
mod real_time;
mod recipes;
mod registrations;
mod regressions;
mod remote;
mod seed;
mod shutdown;
mod tick;
mod timer_slack;
mod unwatched;
