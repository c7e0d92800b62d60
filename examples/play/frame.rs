//! The frame of a task of a program: its variables, and the locks that it holds.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use traps::sync::MutexGuard;

use super::program::{Piece, Term, Test, Value, pieces};
use super::world::World;

/// Variables and their values.
pub type Variables = BTreeMap<String, i64>;

/// The longest time in milliseconds, although a product can be larger. A clock has room for as
/// many of these times as a program has statements.
const LONGEST: i64 = 999_999_999;

/// What a task has for itself.
pub struct Frame<'w> {
    /// What it shares with the other tasks.
    pub world: &'w Rc<World>,
    name: String,
    variables: RefCell<Variables>,
    /// The guards of the locks that the task holds, of outer blocks first. An `unlock` leaves a
    /// `None`, so that each block still finds its own guards.
    held: RefCell<Vec<Option<MutexGuard<'w, String>>>>,
}

impl<'w> Frame<'w> {
    /// The frame of a task of that name.
    pub fn new(name: String, variables: Variables, world: &'w Rc<World>) -> Frame<'w> {
        Frame { world, name, variables: RefCell::new(variables), held: RefCell::default() }
    }

    /// A copy of the variables, for a task that this one spawns.
    pub fn variables(&self) -> Variables {
        self.variables.borrow().clone()
    }

    /// Keeps the guard of a lock until an `unlock` or the end of the block.
    pub fn hold(&self, guard: MutexGuard<'w, String>) {
        self.held.borrow_mut().push(Some(guard));
    }

    /// Drops the guard of the lock with this name.
    pub fn unlock(&self, name: &str) -> Result<(), String> {
        let mut held = self.held.borrow_mut();
        let place = held.iter().rposition(|guard| guard.as_deref().is_some_and(|it| it == name));
        let place = place.ok_or_else(|| format!("{} does not hold {name}", self.name))?;
        held[place] = None;
        Ok(())
    }

    /// Returns a guard that unlocks, when it is dropped, what was locked after this call.
    pub fn locks_of_a_block(&self) -> LocksOfABlock<'_, 'w> {
        LocksOfABlock { frame: self, outer: self.held.borrow().len() }
    }

    /// Sets a variable: the shared one of this name, if there is one.
    pub fn set(&self, name: &str, value: i64) {
        match self.world.shared.borrow_mut().get_mut(name) {
            Some(shared) => *shared = value,
            None => drop(self.variables.borrow_mut().insert(name.to_owned(), value)),
        }
    }

    fn variable(&self, name: &str) -> Result<i64, String> {
        let shared = self.world.shared.borrow().get(name).copied();
        let value = shared.or_else(|| self.variables.borrow().get(name).copied());
        value.ok_or_else(|| format!("{} has no {name} yet", self.name))
    }

    fn term(&self, term: &Term) -> Result<i64, String> {
        match term {
            Term::Number(number) => Ok(*number),
            Term::Variable(name) => self.variable(name),
        }
    }

    /// Computes a value.
    pub fn value(&self, Value { first, rest }: &Value) -> Result<i64, String> {
        rest.iter().try_fold(self.term(first)?, |left, (operator, right)| {
            Ok(operator(left, self.term(right)?))
        })
    }

    /// Computes a time in milliseconds. A negative one is zero.
    pub fn duration(&self, value: &Value) -> Result<Duration, String> {
        let millis = self.value(value)?.clamp(0, LONGEST);
        Ok(Duration::from_millis(millis.unsigned_abs()))
    }

    /// Compares the values of a test.
    pub fn is(&self, Test { left, is, right }: &Test) -> Result<bool, String> {
        Ok(is(&self.value(left)?, &self.value(right)?))
    }

    /// Puts the values of the variables into the text of a note.
    pub fn filled(&self, text: &str) -> Result<String, String> {
        let filled = pieces(text).into_iter().map(|piece| match piece {
            Piece::Text(text) => Ok(text.to_owned()),
            Piece::Variable(name) => Ok(self.variable(name)?.to_string()),
        });
        filled.collect()
    }
}

/// A guard for the locks of a block.
pub struct LocksOfABlock<'f, 'w> {
    frame: &'f Frame<'w>,
    /// How many guards belong to the blocks around it.
    outer: usize,
}

impl Drop for LocksOfABlock<'_, '_> {
    fn drop(&mut self) {
        let mut held = self.frame.held.borrow_mut();
        // One by one from the end, because Rust drops the newest guard first.
        while held.len() > self.outer {
            held.pop();
        }
    }
}
