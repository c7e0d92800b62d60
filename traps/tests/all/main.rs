//! The tests of what a task may call. Each runs on a kernel, most of them on a virtual clock.

mod cancellation;
mod channels;
mod combinators;
mod contextual;
mod deadlines;
mod errors;
mod foreign;
mod gate;
mod group_waits;
mod groups;
mod interval;
mod iterate;
mod locals;
mod moves;
mod notes;
mod overload;
mod precedence;
mod scope_programs;
mod sync;
mod task_guard;
mod tasks;
mod token_bucket;
mod universal;
mod workers;
