//! The holders of primitives, and the warning of a deadlock when its last task begins to wait.
//! [`crate::view`] finds the deadlocks of a kernel that hangs.

use std::collections::BTreeSet;

use traps::internal::protocol::Trap;
use traps::internal::table::{Queue, TaskIndex, TaskRef, Ticket};

use crate::core::sched::Sched;
use crate::core::tasks::TaskState;
use crate::log::form::word;
use crate::machine::Machine;
use crate::parts::wakers::SpareWaker;

impl<M: Machine> Sched<M> {
    /// Returns the numbers of the tasks that hold the primitive of a queue, in order.
    pub(crate) fn holders(&self, queue: &Queue) -> Vec<u64> {
        let mut numbers = Vec::new();
        self.put_holders(queue, &mut numbers);
        numbers
    }

    /// Puts the numbers of the tasks that hold the primitive of a queue into a list, in order.
    pub(crate) fn put_holders(&self, queue: &Queue, numbers: &mut Vec<u64>) {
        let holders = queue.primitive.get().map(|primitive| primitive.holders.borrow());
        let number = |task: &TaskRef| Some(self.tasks.id(self.find(*task)?));
        numbers.clear();
        numbers.extend(holders.iter().flat_map(|tasks| tasks.iter()).filter_map(number));
        numbers.sort_unstable();
        numbers.dedup();
    }

    /// Returns what to warn of if `task` begins a wait, with the ticket `ticket`, and if the chain
    /// of holders leads back to the task. `None` unless each wait of the chain is the only one of
    /// its task and has no deadline. Unlike `circles` of the view, looks through all holders of a
    /// lock, and through no semaphore. O(holders in the chain).
    pub(crate) fn circle_at(&self, task: TaskIndex, ticket: Ticket) -> Option<String> {
        let trap = self.gate.records().waits[ticket.index].trap.clone();
        if !matches!(trap, Trap::Wait { .. } | Trap::Join { .. }) {
            return None;
        }
        let holders = self.blocked_by(ticket, &trap);
        if holders.is_empty() {
            return None;
        }
        // The holders that are still to be looked at, and the way to each.
        let mut way = vec![(task, holders)];
        let mut seen = BTreeSet::new();
        loop {
            let (_, holders) = way.last_mut()?;
            match holders.pop() {
                Some(holder) if holder == task => break,
                Some(holder) if seen.insert(holder) => {
                    let holders = self.blockers(holder);
                    way.push((holder, holders));
                }
                Some(_) => {}
                None => drop(way.pop()),
            }
        }
        let names = way.iter().map(|(index, _)| self.tasks.label(*index));
        let mut next = names.clone().cycle().skip(1);
        let links = names.zip(&way).filter_map(|((id, name), (index, _))| {
            let (holder, its_name) = next.next()?;
            let ticket = if *index == task { ticket } else { self.only_wait(*index)? };
            let (trap, _) = self.trap_of(ticket);
            let op = self.log.names.op_of(&trap);
            let (name, its_name) = (word(name), word(its_name));
            Some(format!("{id} {name} waits for {op}, held by {holder} {its_name}"))
        });
        let links: Vec<_> = links.collect();
        let plural = if links.len() == 1 { "" } else { "s" };
        Some(format!("deadlock of {} task{plural}: {}", links.len(), links.join("; ")))
    }

    /// Returns the tasks that a task waits for, if nothing else can wake it.
    fn blockers(&self, index: TaskIndex) -> Vec<TaskIndex> {
        let has_waker =
            self.tasks[index].rare.iter().flat_map(|it| &it.waker).any(SpareWaker::was_kept);
        let is_parked = self.tasks[index].state == TaskState::Parked && !has_waker;
        let wait = self.only_wait(index).filter(|_| is_parked);
        wait.map_or(Vec::new(), |ticket| {
            let trap = self.gate.records().waits[ticket.index].trap.clone();
            self.blocked_by(ticket, &trap)
        })
    }

    fn only_wait(&self, index: TaskIndex) -> Option<Ticket> {
        let waits = self.parked(index, |ticket, _| ticket);
        if let [ticket] = waits[..] { Some(ticket) } else { None }
    }

    /// Returns the tasks without which a wait cannot end.
    fn blocked_by(&self, ticket: Ticket, trap: &Trap) -> Vec<TaskIndex> {
        let records = self.gate.records();
        let scope = records.waits[ticket.index].scope;
        let is_limited = records.in_force(scope, &self.shared.deadlines).is_some();
        drop(records);
        if is_limited {
            return Vec::new();
        }
        let find = |task: &TaskRef| self.find(*task);
        match trap {
            Trap::Join { task, .. } => find(task).into_iter().collect(),
            Trap::Wait { queue, .. } => {
                let Some(primitive) = queue.primitive.get() else { return Vec::new() };
                let holders: BTreeSet<_> =
                    primitive.holders.borrow().iter().filter_map(find).collect();
                // If several tasks hold permits, any one of them may give the next.
                let needs_all = holders.len() == 1 || primitive.kind == "rwlock";
                let needs_all = needs_all && primitive.kind != "semaphore";
                holders.into_iter().filter(|_| needs_all).collect()
            }
            _ => Vec::new(),
        }
    }
}
