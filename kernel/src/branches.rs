//! Which branches of a scope an interrupt reaches.

use traps::protocol::ROOT;

use crate::owner::Owner;
use crate::scope::Timing;
use crate::scopes::Scopes;
use crate::tasks::Tasks;
use crate::timers::TimeQueue;

impl Scopes {
    /// The branches of `source` that an interrupt can reach: the innermost scopes of the task that
    /// it reaches and that hold no other such scope. At least `source` itself. Scopes that nobody
    /// is in are not counted.
    pub(crate) fn branches(
        &self,
        tasks: &Tasks,
        task: u32,
        source: u32,
        timers: &TimeQueue,
    ) -> Vec<u32> {
        if !self.has_inner(source) {
            return vec![source];
        }
        let is_reached = |scope: &u32| {
            !self.holds(*scope) && self.reaches(source, *scope) && !self.is_idle(*scope, timers)
        };
        let mut reached: Vec<u32> = self.each_of(tasks, task).filter(is_reached).collect();
        if source == ROOT || reached.is_empty() {
            reached.push(source);
        }
        if reached.len() > 1 {
            let below = reached.iter().filter(|scope| **scope != ROOT);
            let mut outer: Vec<u32> = below.map(|scope| self.get(*scope).parent).collect();
            outer.sort_unstable();
            reached.retain(|scope| outer.binary_search(scope).is_err());
            // Oldest first: the order of opening.
            reached.reverse();
        }
        reached
    }

    /// Whether it is kept for the next guard, or only stands for something.
    fn is_idle(&self, index: u32, timers: &TimeQueue) -> bool {
        let scope = self.get(index);
        match (scope.timing, scope.timer()) {
            (Timing::Own, _) => false,
            (Timing::Guard, Some(slot)) => timers.owner(slot) != Owner::guard(index),
            (Timing::Guard, None) | (Timing::Bare, _) => true,
        }
    }
}
