//! The bell of the simulated machine: how another thread ends a wait that has no end by the clock.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::wake::Bell;

#[derive(Default)]
pub(super) struct SimBell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell for SimBell {
    fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.heard.notify_one();
    }
}

impl SimBell {
    pub(super) fn take(&self) -> bool {
        std::mem::take(&mut *self.rung.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn wait(&self) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let rung = self.heard.wait_while(rung, |rung| !*rung);
        *rung.unwrap_or_else(PoisonError::into_inner) = false;
    }
}
