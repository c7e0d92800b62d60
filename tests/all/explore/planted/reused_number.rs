//! A table of connections by the numbers of their descriptors. The bug: an answer that is ready
//! after its client has left finds another client under the number.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use kernel::Sim;
use traps::io::{Io, Scripted};
use traps::{Task, run_in_thread, sleep, spawn};

use super::{MS, Version};

struct Connection {
    _descriptor: Io<Scripted>,
    /// Never the same twice.
    generation: u32,
    client: &'static str,
}

#[derive(Default)]
struct Table {
    slots: RefCell<Vec<Option<Connection>>>,
    generation: RefCell<u32>,
}

impl Table {
    /// Takes the lowest free number, as the system does.
    fn open(&self, client: &'static str) -> (usize, u32) {
        let mut slots = self.slots.borrow_mut();
        let free = slots.iter().position(Option::is_none);
        let number = free.unwrap_or_else(|| {
            slots.push(None);
            slots.len() - 1
        });
        *self.generation.borrow_mut() += 1;
        let generation = *self.generation.borrow();
        let _descriptor = Io::new(Scripted(number as u32));
        slots[number] = Some(Connection { _descriptor, generation, client });
        (number, generation)
    }

    fn close(&self, number: usize) {
        self.slots.borrow_mut()[number] = None;
    }

    fn answer(&self, (number, generation): (usize, u32), version: Version, answer: &str) {
        let slots = self.slots.borrow();
        // The client may have left.
        let Some(connection) = &slots[number] else { return };
        if version == Version::Broken || connection.generation == generation {
            assert_eq!(answer, format!("hello {}", connection.client), "for another client");
        }
    }
}

/// A client that asks and leaves after a while. Returns the task that answers.
async fn visit(
    table: &Rc<Table>,
    version: Version,
    client: &'static str,
    stays: Duration,
) -> Task<()> {
    let key = table.open(client);
    let answers = table.clone();
    let task = spawn("answer", async move {
        let answer = run_in_thread(move || format!("hello {client}")).await.unwrap();
        answers.answer(key, version, &answer);
    })
    .await;
    sleep(stays).await.unwrap();
    table.close(key.0);
    task
}

pub fn program(version: Version) -> (Sim, impl Future<Output = ()>) {
    let main = async move {
        let table = Rc::new(Table::default());
        let mut answers = Vec::new();
        for client in ["ann", "ben", "cyd"] {
            answers.push(visit(&table, version, client, 20 * MS).await);
        }
        for answer in &mut answers {
            answer.join().await.unwrap();
        }
    };
    (Sim::new().jobs_take(2 * MS), main)
}
