//! Scopes, and the interrupts that are pending in them.
//!
//! A *source* is a scope that has fired; `None` is a whole task that was cancelled. Its *places*
//! are the source itself and each branch that was open inside it when it fired. The *way* from a
//! scope out to a source leads from parent to parent.
//!
//! - A source that fires is pending at each of its places.
//! - A wait or a trap that ends with the interrupt clears the way from its scope to the source.
//! - `cleanup` makes the interrupt pending again at one place.
//! - When a scope closes, interrupts that are pending at it are gone. If it was a timeout scope,
//!   each timeout scope around it that has fired is pending again, unless a shield is between.
//!
//! Two branches inside a timeout of 1 s:
//!
//! ```text
//! trap set_timeout = s1      s1 { }
//! trap branch = s2           s1 { s2 { k=1 } }
//! trap branch in=s1 = s3     s1 { s2 { k=1 }, s3 { } }
//! fire s1                    pending at s1, s2, s3
//! deliver k=1 scope=s1       the way is s2, s1: pending at s3 alone
//! ```

use super::things::{In, Key, Kind, Pending, Scope, TimerName};
use super::{Line, Seq, State};

/// The outcome of a cancellation.
const CANCELLED: &str = "!cancelled";

/// The outcomes that are interrupts. Other outcomes, such as `!busy`, are errors of a call.
const INTERRUPTS: [&str; 4] = [CANCELLED, "!timeout", "!timeout-cancellation", "!uncaught-timeout"];

/// Parses a scope of the log: `sN`. `None` is `root`, or no scope.
fn scope(word: &str) -> In {
    word.strip_prefix('s')?.parse().ok()
}

impl State {
    pub(super) fn scope_line(&mut self, line: &Line<'_>) {
        let outcome = line.outcome().unwrap_or_default();
        match (line.verb, line.word(0)) {
            ("trap", "set_timeout" | "guard" | "branch" | "shield") => self.open_scope(line),
            ("trap", "unset_timeout" | "unguard" | "unbranch" | "unshield") => {
                scope(line.word(1)).into_iter().for_each(|scope| self.close_scope(scope));
            }
            ("trap", op) => {
                if op == "io" && outcome == "ok" {
                    self.forget_readiness(line);
                }
                // An interrupt that a shield holds back is shown without a cause, and stays
                // pending.
                let is_taken = line.cause.is_some() || op != "check_cancellation";
                if is_taken {
                    let scope = self.scope_of(line);
                    self.take(line, scope);
                }
            }
            ("move", _) => self.move_to(line),
            ("cancel", _) if outcome != "again" => {
                let task = self.tasks.get(&line.task);
                let scopes = task.into_iter().flat_map(|task| task.scopes.iter().copied());
                let branches = scopes.filter(|scope| self.scopes[scope].kind == Kind::Branch);
                for place in std::iter::once(None).chain(branches.map(Some)).collect::<Vec<_>>() {
                    self.set_pending(line.task, Pending { source: None, place });
                }
            }
            ("cleanup", word) => {
                let source = scope(word);
                let place = line.key("in").map_or(source, scope);
                let is_left_out = source.is_none() && !outcome.starts_with(CANCELLED);
                let is_known = |it: In| it.is_none_or(|it| self.scopes.contains_key(&it));
                if is_known(source) && is_known(place) && !is_left_out {
                    self.set_pending(line.task, Pending { source, place });
                }
            }
            _ => {}
        }
    }

    /// The scope that the line names; by default, the open scope of its task that was opened last.
    pub(super) fn scope_of(&self, line: &Line<'_>) -> In {
        let named = line.key("in").map(scope);
        let last = || self.tasks.get(&line.task)?.scopes.last().copied();
        named.unwrap_or_else(last).filter(|scope| self.scopes.contains_key(scope))
    }

    fn open_scope(&mut self, line: &Line<'_>) {
        let Some(number) = line.outcome().and_then(scope) else { return };
        let kind = match line.word(0) {
            "set_timeout" => Kind::SetTimeout,
            "branch" => Kind::Branch,
            "shield" => Kind::Shield,
            _ => {
                let deadline =
                    line.word(1).strip_prefix('d').and_then(|number| number.parse().ok());
                let Some(deadline) = deadline else { return };
                Kind::Guard(deadline)
            }
        };
        self.remove_scope(number);
        let parent = self.scope_of(line);
        let Some(task) = self.tasks.get_mut(&line.task) else { return };
        task.scopes.insert(number);
        let until = line.key("until").and_then(|until| until.parse().ok());
        let until = until.filter(|until| *until != traps::Time::NEVER);
        self.scopes.insert(
            number,
            Scope {
                task: line.task,
                kind,
                parent,
                until,
                seq: line.seq,
                since: line.at,
                site: line.key("at").map(Box::from),
                fired: None,
                scopes: Default::default(),
                waits: Default::default(),
            },
        );
        if let Some(around) = parent.and_then(|parent| self.scopes.get_mut(&parent)) {
            around.scopes.insert(number);
        }
        if let Kind::Guard(deadline) = kind {
            self.deadlines.entry(deadline).or_default().guards.insert(number);
        }
        until.into_iter().for_each(|at| self.set_timer(at, TimerName::Scope(number), line.seq));
        self.changed.push(Key::Scope(number));
    }

    /// Closes a scope. The timeouts around it that have fired are pending again.
    fn close_scope(&mut self, number: u64) {
        let Some(scope) = self.scopes.get(&number) else { return };
        let (task, kind, parent) = (scope.task, scope.kind, scope.parent);
        self.remove_scope(number);
        if !kind.is_timeout() {
            return;
        }
        let mut branches: Vec<(u64, Seq)> = Vec::new();
        let mut again = Vec::new();
        let mut at = parent;
        while let Some((number, scope)) = at.and_then(|at| Some((at, self.scopes.get(&at)?))) {
            match (scope.kind, scope.fired) {
                (Kind::Shield, _) => break,
                (Kind::Branch, _) => branches.push((number, scope.seq)),
                (_, Some(fired)) => {
                    let first = branches.iter().find(|(_, opened)| *opened < fired);
                    let place = Some(first.map_or(number, |(branch, _)| *branch));
                    again.push(Pending { source: Some(number), place });
                }
                (_, None) => {}
            }
            at = scope.parent;
        }
        again.into_iter().for_each(|pending| self.set_pending(task, pending));
    }

    /// Removes a scope, and the interrupts that are pending at it. Its contents then count as
    /// inside its parent.
    pub(super) fn remove_scope(&mut self, number: u64) {
        let Some(scope) = self.scopes.remove(&number) else { return };
        self.changed.push(Key::Scope(number));
        for inner in &scope.scopes {
            self.put_scope(*inner, scope.parent);
        }
        for wait in &scope.waits {
            self.put_wait(*wait, scope.parent);
        }
        if let Some(around) = scope.parent.and_then(|parent| self.scopes.get_mut(&parent)) {
            around.scopes.remove(&number);
        }
        if let Some(task) = self.tasks.get_mut(&scope.task) {
            task.scopes.remove(&number);
        }
        self.clear(scope.task, |pending| [pending.source, pending.place].contains(&Some(number)));
        if let Some(until) = scope.until {
            self.remove_timer(until, TimerName::Scope(number));
        }
        if let Kind::Guard(deadline) = scope.kind {
            self.change_deadline(deadline, |it| {
                it.guards.remove(&number);
            });
        }
    }

    fn put_scope(&mut self, number: u64, parent: In) {
        if let Some(scope) = self.scopes.get_mut(&number) {
            scope.parent = parent;
            self.changed.push(Key::Scope(number));
        }
        if let Some(around) = parent.and_then(|parent| self.scopes.get_mut(&parent)) {
            around.scopes.insert(number);
        }
    }

    fn put_wait(&mut self, ticket: u64, scope: In) {
        if let Some(wait) = self.waits.get_mut(&ticket) {
            wait.scope = scope;
            self.changed.push(Key::Wait(ticket));
        }
        if let Some(around) = scope.and_then(|scope| self.scopes.get_mut(&scope)) {
            around.waits.insert(ticket);
        }
    }

    /// `move k=N in=SCOPE`, `move sN in=SCOPE`.
    fn move_to(&mut self, line: &Line<'_>) {
        let to = self.scope_of(line);
        if let Some(ticket) = line.ticket {
            let from = self.waits.get(&ticket).and_then(|wait| wait.scope);
            if let Some(from) = from.and_then(|from| self.scopes.get_mut(&from)) {
                from.waits.remove(&ticket);
            }
            if self.waits.contains_key(&ticket) {
                self.put_wait(ticket, to);
            }
        } else if let Some(number) = scope(line.word(0)).filter(|it| !self.is_inside(to, *it)) {
            let from = self.scopes.get(&number).and_then(|scope| scope.parent);
            if let Some(from) = from.and_then(|from| self.scopes.get_mut(&from)) {
                from.scopes.remove(&number);
            }
            if self.scopes.contains_key(&number) {
                self.put_scope(number, to);
            }
        }
    }

    /// Whether a scope is the other one or inside it. Used to refuse a move that would make a
    /// circle.
    fn is_inside(&self, scope: In, around: u64) -> bool {
        self.way(scope).any(|on_the_way| on_the_way == around)
    }

    /// The scopes from this one outward.
    pub fn way(&self, scope: In) -> impl Iterator<Item = u64> {
        let parent = |scope: &u64| self.scopes.get(scope)?.parent;
        std::iter::successors(scope, parent)
    }

    /// A scope has fired.
    pub(super) fn fire_scope(&mut self, number: u64, seq: Seq) {
        let Some(scope) = self.scopes.get_mut(&number) else { return };
        scope.fired = Some(seq);
        let task = scope.task;
        self.changed.push(Key::Scope(number));
        let source = Some(number);
        let mut inside = vec![number];
        while let Some((at, scope)) = inside.pop().and_then(|at| Some((at, self.scopes.get(&at)?)))
        {
            inside.extend(&scope.scopes);
            if at == number || scope.kind == Kind::Branch {
                self.set_pending(task, Pending { source, place: Some(at) });
            }
        }
    }

    /// A guard scope is like new, because its deadline is armed again.
    pub(super) fn calm_scope(&mut self, number: u64) {
        let Some(scope) = self.scopes.get_mut(&number) else { return };
        if scope.fired.take().is_some() {
            let task = scope.task;
            self.changed.push(Key::Scope(number));
            self.clear(task, |pending| pending.source == Some(number));
        }
    }

    /// Ends a wait or a trap in that scope with the outcome of the line. If the outcome is an
    /// interrupt, it is no longer pending on the way from the scope to its source.
    pub(super) fn take(&mut self, line: &Line<'_>, from: In) {
        let outcome = line.outcome().unwrap_or_default();
        let word = outcome.split(' ').next().unwrap_or_default();
        let named = outcome.split(' ').find_map(|word| word.strip_prefix("scope="));
        let source = named.and_then(scope);
        // A timeout without a scope belongs to a deadline around a whole task, which is left out.
        if !INTERRUPTS.contains(&word) || source.is_none() && word != CANCELLED {
            return;
        }
        let mut places: Vec<In> = Vec::new();
        for scope in self.way(from) {
            places.push(Some(scope));
            if Some(scope) == source {
                break;
            }
        }
        places.extend((!places.contains(&source)).then_some(source));
        for place in places {
            self.clear_one(line.task, Pending { source, place });
        }
    }

    fn set_pending(&mut self, id: u64, pending: Pending) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        if task.pending.insert(pending) {
            self.changed.push(Key::Pending(id, pending));
        }
    }

    fn clear_one(&mut self, id: u64, pending: Pending) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        if task.pending.remove(&pending) {
            self.changed.push(Key::Pending(id, pending));
        }
    }

    fn clear(&mut self, id: u64, is_gone: impl Fn(&Pending) -> bool) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.pending.retain(|pending| {
            let is_gone = is_gone(pending);
            self.changed.extend(is_gone.then_some(Key::Pending(id, *pending)));
            !is_gone
        });
    }
}
