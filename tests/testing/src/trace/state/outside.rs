//! Timers, descriptors, primitives, jobs, and the shutdown.

use traps::Time;

use super::things::{
    Alias, DIRECTIONS, Deadline, Hold, Job, JobDoing, Key, Notified, Shutdown, TimerName,
};
use super::{Line, State};

/// Parses the number in a name such as `d1`, after that letter.
fn number(word: &str, letter: char) -> Option<u64> {
    word.strip_prefix(letter)?.parse().ok()
}

/// The number of queues whose last notification is kept.
const NOTIFIED: usize = 1024;

fn until(line: &Line<'_>) -> Option<Time> {
    line.key("until")?.parse().ok().filter(|until| *until != Time::NEVER)
}

impl State {
    pub(super) fn outside(&mut self, line: &Line<'_>) {
        match line.verb {
            "fire" => self.fire(line),
            "arm" | "disarm" => self.arm(line),
            "register" | "unregister" | "remember" | "close" => self.descriptor_line(line),
            "take" | "give" => self.holder(line),
            "notify" => self.notify(line),
            "offload" => self.offload(line),
            "done" | "orphan" | "abandon" | "drop" => self.job(line),
            "phase" | "halt" => self.phase(line),
            _ => {}
        }
    }

    fn fire(&mut self, line: &Line<'_>) {
        let word = line.word(0);
        if let Some(deadline) = number(word, 'd') {
            let guards = self.deadlines.get(&deadline).map(|it| it.guards.clone());
            self.change_deadline(deadline, |it| it.until = None);
            guards.into_iter().flatten().for_each(|scope| self.fire_scope(scope, line.seq));
            return;
        }
        let sleep = word.strip_prefix("k=").and_then(|ticket| ticket.parse().ok());
        let name = match (sleep, number(word, 's'), word) {
            (Some(ticket), ..) => TimerName::Sleep(ticket),
            (_, Some(scope), _) => TimerName::Scope(scope),
            (.., "drain") => TimerName::Drain,
            (.., "grace") => TimerName::Grace,
            _ => return,
        };
        if let Some(until) = self.timer(name) {
            self.remove_timer(until, name);
        }
        if let TimerName::Scope(scope) = name {
            self.fire_scope(scope, line.seq);
        }
    }

    /// Handles `arm` and `disarm` of a connection deadline. The sweep of a test arms a scope.
    fn arm(&mut self, line: &Line<'_>) {
        let word = line.word(0);
        if let Some(scope) = number(word, 's') {
            let Some(found) = self.scopes.get_mut(&scope).filter(|_| line.verb == "arm") else {
                return;
            };
            let (old, new) = (found.until, until(line));
            found.until = new;
            self.changed.push(Key::Scope(scope));
            old.into_iter().for_each(|at| self.remove_timer(at, TimerName::Scope(scope)));
            new.into_iter().for_each(|at| self.set_timer(at, TimerName::Scope(scope), line.seq));
        }
        let Some(deadline) = number(word, 'd') else { return };
        if line.verb == "disarm" {
            self.change_deadline(deadline, |it| it.until = None);
        } else {
            let until = until(line);
            self.change_deadline(deadline, |it| {
                *it = Deadline {
                    until,
                    seq: line.seq,
                    task: line.task,
                    phase: line.key("phase").map(Box::from),
                    site: line.key("at").map(Box::from),
                    guards: std::mem::take(&mut it.guards),
                };
            });
        }
        let guards = self.deadlines.get(&deadline).map(|it| it.guards.clone());
        guards.into_iter().flatten().for_each(|scope| self.calm_scope(scope));
    }

    /// Changes a connection deadline. If it is not armed and guards nothing, it is forgotten.
    pub(super) fn change_deadline(&mut self, number: u64, change: impl FnOnce(&mut Deadline)) {
        let deadline = self.deadlines.entry(number).or_default();
        let before = deadline.until;
        change(deadline);
        let after = deadline.until;
        if after.is_none() && deadline.guards.is_empty() {
            self.deadlines.remove(&number);
        }
        if let Some(before) = before {
            self.armed.remove(&(before, number));
        }
        if let Some(after) = after {
            self.armed.insert((after, number));
        }
        if before != after {
            self.changed.push(Key::Armed(number));
        }
    }

    fn descriptor_line(&mut self, line: &Line<'_>) {
        let Some(alias) = Alias::of(line.word(0)) else { return };
        let descriptor = self.descriptors.entry(alias).or_default();
        match line.verb {
            "register" => descriptor.is_registered = true,
            "unregister" => descriptor.is_registered = false,
            "remember" => {
                let side = DIRECTIONS.iter().position(|direction| *direction == line.word(1));
                side.into_iter().for_each(|side| descriptor.ready[side] = true);
            }
            _ => {}
        }
        if line.verb == "close" || line.key("why") == Some("close") {
            descriptor.ready = [false; 2];
        }
        self.forget_idle(alias);
    }

    /// A wait was answered at once, because its descriptor was remembered as ready.
    pub(super) fn forget_readiness(&mut self, line: &Line<'_>) {
        let side = DIRECTIONS.iter().position(|direction| *direction == line.word(2));
        let Some((alias, side)) = Alias::of(line.word(1)).zip(side) else { return };
        if let Some(descriptor) = self.descriptors.get_mut(&alias) {
            descriptor.ready[side] = false;
            self.forget_idle(alias);
        }
    }

    /// Updates a descriptor. If nothing is known about it any more, it is forgotten.
    pub(super) fn forget_idle(&mut self, alias: Alias) {
        self.changed.push(Key::Descriptor(alias));
        if self.descriptors.get(&alias) == Some(&Default::default()) {
            self.descriptors.remove(&alias);
        }
    }

    /// Updates a primitive. If no task waits for it or holds it, it is forgotten.
    pub(super) fn forget_unused(&mut self, words: &str) {
        self.changed.push(Key::Primitive(words.into()));
        if self.primitives.get(words) == Some(&Default::default()) {
            self.primitives.remove(words);
        }
    }

    /// `take` and `give`.
    fn holder(&mut self, line: &Line<'_>) {
        let words = line.op();
        let id = line.number("from").unwrap_or(line.task);
        let Some(task) = self.tasks.get_mut(&id) else { return };
        if line.verb == "take" {
            task.holds.insert(words.into());
            let holders = &mut self.primitives.entry(words.into()).or_default().holders;
            let hold = holders.entry(id).or_insert(Hold { count: 0, seq: 0, site: None });
            let site = line.key("at").map(Box::from);
            *hold = Hold { count: hold.count + 1, seq: line.seq, site };
        } else {
            let Some(primitive) = self.primitives.get_mut(words) else { return };
            let hold = primitive.holders.get_mut(&id);
            let is_over = hold.is_some_and(|hold| {
                hold.count -= 1;
                hold.count == 0
            });
            if is_over {
                primitive.holders.remove(&id);
                task.holds.remove(words);
            }
        }
        self.forget_unused(words);
    }

    fn notify(&mut self, line: &Line<'_>) {
        let words: Box<str> = line.op().into();
        let woke = line.number("woke").unwrap_or(0);
        let notified = Notified { seq: line.seq, by: line.task, woke };
        self.notified.insert(words.clone(), notified);
        self.changed.push(Key::Notified(words));
        if self.notified.len() > NOTIFIED {
            let oldest = self.notified.iter().min_by_key(|(_, it)| it.seq);
            let words = oldest.expect("there are many").0.clone();
            self.notified.remove(&words);
            self.changed.push(Key::Notified(words));
        }
    }

    fn offload(&mut self, line: &Line<'_>) {
        let Some(job) = number(line.word(0), 'o') else { return };
        if line.word(1) == "starts" {
            self.set_job(job, line, JobDoing::Runs);
        } else {
            let runs = line.key("queued") == Some("0");
            let doing = if runs { JobDoing::Runs } else { JobDoing::Queued };
            let limiter = line.key("limiter").map(Box::from);
            let task = line.task;
            self.end_job(job);
            self.jobs.insert(job, Job { task, doing, since: line.at, seq: line.seq, limiter });
            self.changed.push(Key::Job(job));
        }
    }

    fn set_job(&mut self, number: u64, line: &Line<'_>, doing: JobDoing) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        (job.doing, job.since, job.seq) = (doing, line.at, line.seq);
        self.changed.push(Key::Job(number));
    }

    fn end_job(&mut self, number: u64) {
        if self.jobs.remove(&number).is_some() {
            self.changed.push(Key::Job(number));
        }
    }

    fn job(&mut self, line: &Line<'_>) {
        let Some(job) = number(line.word(0), 'o') else { return };
        match line.verb {
            "abandon" => self.set_job(job, line, JobDoing::Abandoned),
            _ => self.end_job(job),
        }
    }

    /// Begins a phase of a shutdown, which ends the limit of the previous phase.
    fn phase(&mut self, line: &Line<'_>) {
        let limit = self.shutdown.as_ref().and_then(|shutdown| shutdown.until);
        for name in [TimerName::Drain, TimerName::Grace] {
            limit.into_iter().for_each(|until| self.remove_timer(until, name));
        }
        let phase = if line.verb == "halt" { "halt" } else { line.word(0) };
        let until = until(line);
        let name = if phase == "drain" { TimerName::Drain } else { TimerName::Grace };
        let (seq, since) = (line.seq, line.at);
        self.shutdown = Some(Shutdown { phase: phase.into(), until, seq, since });
        until.into_iter().for_each(|until| self.set_timer(until, name, seq));
        self.changed.push(Key::Shutdown);
    }
}
