//! Answers: put into the gate before a poll, and taken back if the poll did not read them.

use std::mem;
use std::panic::Location;

use traps::protocol::{Answer, Owned, ROOT};

use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::waits::{On, Wait};

impl<M: Machine> Kernel<M> {
    /// Puts the results of a task into the gate. They stay in its record until they are read.
    #[inline]
    pub(crate) fn lay_down(&mut self, index: u32) {
        let task = &self.tasks[index];
        if let Some(first) = task.first
            && !first.on.is_parked()
        {
            self.lay_one_down(index, first);
        }
        if self.tasks[index].has_more_results() {
            self.lay_others_down(index);
        }
    }

    #[cold]
    fn lay_others_down(&mut self, index: u32) {
        for place in 0..self.tasks[index].rare().results.len() {
            let wait = self.tasks[index].rare().results[place];
            if self.longrun.from.is_none_or(|from| from.on.is_parked()) {
                self.longrun.from = Some(wait);
            }
            self.lay_one_down(index, wait);
        }
    }

    #[inline]
    fn lay_one_down(&mut self, task: u32, wait: Wait) {
        let answer = match wait.on {
            On::Slept(time) => Answer::Time(time),
            On::Closed => Answer::Closed,
            On::Signalled(signal) => Answer::Signal(signal),
            On::Interrupted | On::Joined(..) | On::Answered(_) => {
                return self.lay_owned_down(task, wait);
            }
            _ => Answer::Done,
        };
        self.gate.answer(wait.serial, answer);
    }

    #[cold]
    fn lay_owned_down(&mut self, task: u32, Wait { serial, on, .. }: Wait) {
        let (answer, owned) = match on {
            On::Joined(joined, take) => self.joined_by(task, joined, take),
            On::Answered(answer) => (answer, self.tasks[task].take_owned(serial)),
            _ => (Answer::Owned, self.tasks[task].take_owned(serial)),
        };
        match owned {
            None => self.gate.answer(serial, answer),
            Some(owned) => self.gate.answer_owned(serial, owned),
        }
    }

    /// After a poll: removes the results that were read from the record; the others are read later.
    #[inline]
    pub(crate) fn clear_away(&mut self, index: u32) {
        if self.gate.has_unread() {
            self.keep_unread(index);
        } else {
            let task = &mut self.tasks[index];
            if task.first.is_some_and(|first| !first.on.is_parked()) {
                task.first = None;
            }
            if let Some(rare) = &mut task.rare {
                rare.results.clear();
                self.forget_owned(index);
            }
        }
        self.gate.clear_offers();
    }

    /// Drops the values that belonged to waits that are gone.
    #[cold]
    fn forget_owned(&mut self, index: u32) {
        let task = &mut self.tasks[index];
        if !task.rare().owned.is_empty() {
            let mut owned = mem::take(&mut task.rare().owned);
            owned.retain(|(of, _)| task.waits().any(|wait| wait.serial == *of));
            task.rare().owned = owned;
        }
    }

    #[cold]
    fn keep_unread(&mut self, index: u32) {
        let mut unread = Vec::new();
        while let Some((serial, answer)) = self.gate.take_unread() {
            unread.push((serial, answer, self.gate.take_owned(serial)));
        }
        let task = &mut self.tasks[index];
        let is_read = |wait: &Wait| {
            !wait.on.is_parked() && !unread.iter().any(|(serial, ..)| *serial == wait.serial)
        };
        task.first.take_if(|first| is_read(first));
        task.rare().results.retain(|wait| !is_read(wait));
        for (serial, answer, owned) in unread {
            let on = match owned {
                Some(Owned::Interrupt(_)) => On::Interrupted,
                _ => On::Answered(answer),
            };
            match task.wait_mut(serial) {
                Some(Wait { on: kept @ On::Joined(..), .. }) => *kept = on,
                Some(_) => {}
                // A request that was answered and never parked. Only a parked one shows its place.
                None => task.keep(Wait { serial, scope: ROOT, on, site: Location::caller() }),
            }
            if let Some(owned) = owned {
                task.own(serial, owned);
            }
        }
        self.forget_owned(index);
    }
}
