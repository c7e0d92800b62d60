//! `tree`: which task has spawned which, and the state of each task.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kernel::trace::Span;
use testing::trace::Line;
use traps::Time;

use super::living::Living;
use super::look::Look;
use super::model::State;
use super::now::Now;
use super::stuck::Of;
use super::style::Paint;
use super::tally::pattern;

/// The tasks at a time, as a tree.
pub struct Tree {
    look: Look,
    now: Now,
    most: usize,
}

/// Tasks of one parent.
#[derive(Default)]
struct Children<'n> {
    shown: Vec<&'n Living>,
    /// For each family of names with too many tasks, how many of the rest run, are ready, and are
    /// blocked.
    folded: BTreeMap<String, [usize; 3]>,
}

/// An item to draw: a task or folded tasks, and the prefix of the row.
enum Node<'n> {
    Task(&'n Living, Before, &'static str),
    Folded(String),
}

/// The prefix and the depth of a row.
#[derive(Clone, Default)]
struct Before {
    guides: String,
    depth: usize,
}

/// Deeper rows are not indented further, but show their depth.
const DEEPEST: usize = 24;

impl Before {
    /// Below a row with that branch.
    fn below(mut self, branch: &str) -> Before {
        self.depth += 1;
        if self.depth <= DEEPEST {
            self.guides += if branch == "├─ " { "│  " } else { "   " };
        }
        self
    }

    fn with(&self, branch: &str) -> String {
        let Before { guides, depth } = self;
        match *depth > DEEPEST {
            true => format!("{guides}{branch}(depth {depth}) "),
            false => format!("{guides}{branch}"),
        }
    }
}

impl Tree {
    /// Shows this many tasks of one parent and one family of names.
    pub fn new(look: Look, most: usize) -> Tree {
        Tree { look, now: Now::default(), most }
    }

    /// Follows a remark.
    pub fn remark(&mut self, text: &str) {
        self.now.remark(text);
    }

    /// Follows the next line.
    pub fn line(&mut self, line: &Line<'_>) {
        if self.look.wants(line) {
            self.now.line(line);
        }
    }

    /// The tree.
    ///
    /// # Errors
    ///
    /// The time that was asked for is not in the trace.
    pub fn show(&self, paint: Paint) -> Result<String, String> {
        let time = self.look.time(&self.now)?;
        let families = self.families();
        let count = self.now.tasks.len();
        let plural = if count == 1 { "" } else { "s" };
        let mut text = paint
            .strong(&format!("{count} task{plural} {}", self.look.in_words(time, &self.now)))
            + "\n";
        let mut nodes = nodes(families.get(&None), &Before::default());
        while let Some(node) = nodes.pop() {
            match node {
                Node::Folded(what) => {
                    let _ = writeln!(text, "{}", paint.faint(&what));
                }
                Node::Task(task, before, branch) => {
                    let name = paint.strong(&task.name_and_peer());
                    let does = self.does(task, time);
                    let _ = writeln!(text, "{}{} {name}  {does}", before.with(branch), task.id);
                    let below = before.below(branch);
                    nodes.extend(self::nodes(families.get(&Some(task.id)), &below));
                }
            }
        }
        Ok(text)
    }

    /// The children of each task. Tasks whose parent has ended or is the kernel are children of
    /// `None`.
    fn families(&self) -> BTreeMap<Option<u64>, Children<'_>> {
        let mut seen = BTreeMap::<(Option<u64>, String), usize>::new();
        let mut families = BTreeMap::<Option<u64>, Children<'_>>::new();
        for task in self.now.tasks.values() {
            let parent = task.parent.filter(|parent| self.now.tasks.contains_key(parent));
            let children = families.entry(parent).or_default();
            let family = pattern(&task.name);
            let nth = seen.entry((parent, family.clone())).or_default();
            *nth += 1;
            if *nth <= self.most {
                children.shown.push(task);
            } else {
                let state = task.state.unwrap_or(State::Run);
                children.folded.entry(family).or_default()[state as usize] += 1;
            }
        }
        families
    }

    /// Describes the state of a task, its beginning and its call site.
    fn does(&self, task: &Living, time: Time) -> String {
        let span = Span(time.since(task.from.at));
        let mut does = match task.state {
            Some(State::Run) => format!("runs since {}", task.from.at),
            Some(State::Ready) => format!("ready for {span}"),
            Some(State::Blocked) => {
                let site = task.waits_at().map_or(String::new(), |site| format!(" at {site}"));
                let phase = self.now.phase(task).map_or(String::new(), |word| format!("{word}: "));
                let words = self.now.waits_in_words(task, Of::Now);
                format!("{phase}waits {span}{site} for {words}")
            }
            None => "unknown".to_owned(),
        };
        if let Some(parent) = task.parent.filter(|id| !self.now.tasks.contains_key(id)) {
            let _ = write!(does, " (task {parent}, its parent, has ended)");
        }
        does
    }
}

/// The nodes below a task, the last first.
fn nodes<'n>(children: Option<&Children<'n>>, before: &Before) -> Vec<Node<'n>> {
    let Some(Children { shown, folded }) = children else { return Vec::new() };
    let folds = folded.iter().enumerate().map(|(nth, (family, [run, ready, blocked]))| {
        let branch = if nth + 1 == folded.len() { "└─ " } else { "├─ " };
        let count = run + ready + blocked;
        let what = format!(
            "{}and {count} more {family}: {run} running, {ready} ready, {blocked} waiting",
            before.with(branch)
        );
        Node::Folded(what)
    });
    let tasks = shown.iter().enumerate().map(|(nth, task)| {
        let is_last = nth + 1 == shown.len() && folded.is_empty();
        Node::Task(task, before.clone(), if is_last { "└─ " } else { "├─ " })
    });
    let mut nodes: Vec<_> = tasks.chain(folds).collect();
    nodes.reverse();
    nodes
}
