//! The tests of all crates together: the pages, the architecture, the examples as a user runs them,
//! the logs, and replays.

mod arrows;
mod chat_and_proxy;
mod curio_table;
mod echoes;
mod explore;
mod getting_started;
mod golden;
mod guide;
mod harness;
mod kernel_page;
mod lessons;
mod limits;
mod pages;
mod published;
mod redis;
mod replay;
mod replay_bug;
mod replay_ends;
mod replay_tells;
mod rows;
mod servers;
mod size;
mod sweep;
