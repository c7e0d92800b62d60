//! The session of `step`: keys in, and what the screen shows.
//!
//! A key goes to a line, opens a prompt, or shows a list. Wrong input and a search that finds
//! nothing leave the line as it is, with a sentence at the bottom of the screen.

use super::chain::{caused, tell};
use super::model::Trace;
use super::query::Query;
use super::select::Select;
use super::state::{At, Walk, at, count, line_at, place};
use super::step::{Body, Go, KEYS, go, screen};
use super::style::Paint;

/// A key of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A key that goes to another line whatever is at this line.
    Go(Go),
    /// A character.
    Char(char),
    /// Confirms a prompt or a choice; otherwise goes to the cause.
    Enter,
    /// Removes the last character of a prompt; otherwise goes back to the line before the last
    /// jump.
    Back,
    /// Closes a prompt or a list; otherwise ends the session.
    Escape,
}

/// What a prompt asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Search,
    Line,
    Stop,
}

/// What a key is for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mode {
    /// It goes to a line.
    Walk,
    /// It edits this input.
    Prompt(Ask, String),
    /// It chooses one of the lines at these places; the number is the marked one's.
    Choose(Vec<usize>, usize),
    /// It closes the help.
    Help,
}

/// The help, a key a line.
const HELP: &[&str] = &[
    "left, right      the line before, the next line (h, l, space)",
    "up, down         the run before, the next run (k, j)",
    "PgUp, PgDn       the turn before, the next turn",
    "Home, End        the first line, the last line",
    ":N               line N, or the time N: 812, #0812, 0.5, 250ms",
    "/TEXT            the next line with this text; n the next one, N the one before",
    "b QUERY          stop at the next line that the query takes: verb=block task~conn-* for>1s,",
    "                 at=chat.rs:57; c the next stop, C the one before; `trace select --help`",
    "                 describes queries",
    "Enter            the cause of the line; of a timer that fired, the line that set it",
    "e                what the line has caused; if that is several lines, choose one",
    "Backspace        back to the line before the last jump (:, /, n, N, b, c, C, Enter, e)",
    "q, Esc           the end of the session; Esc also closes a prompt, a list and this help",
];

/// A session of `step`.
pub struct Debugger<'t> {
    trace: &'t Trace,
    walk: Walk<'t>,
    mode: Mode,
    /// Shown at the bottom until the next key.
    said: Option<String>,
    searched: Option<String>,
    stops: Option<Stops>,
    /// The lines before jumps.
    jumps: Vec<usize>,
}

/// The places of the lines that a query takes.
struct Stops {
    query: Query,
    places: Vec<usize>,
}

impl<'t> Debugger<'t> {
    /// Begins at a place of a trace, which must have a line.
    pub fn new(trace: &'t Trace, place: usize) -> Debugger<'t> {
        let mut walk = Walk::new(trace);
        walk.to(place);
        let (mode, jumps) = (Mode::Walk, Vec::new());
        Debugger { trace, walk, mode, said: None, searched: None, stops: None, jumps }
    }

    /// The place of the line.
    pub fn place(&self) -> usize {
        self.walk.place()
    }

    /// Follows a key. Returns whether the session continues.
    pub fn key(&mut self, key: Key) -> bool {
        self.said = None;
        match std::mem::replace(&mut self.mode, Mode::Walk) {
            Mode::Walk => return self.walk(key),
            Mode::Prompt(ask, text) => self.edit(ask, text, key),
            Mode::Choose(places, nth) => self.choose(places, nth, key),
            Mode::Help => {}
        }
        true
    }

    fn walk(&mut self, key: Key) -> bool {
        match key {
            Key::Go(way) => self.walk.to(go(self.trace, self.place(), way)),
            Key::Char(' ' | 'l') => return self.walk(Key::Go(Go::Line(1))),
            Key::Char('h') => return self.walk(Key::Go(Go::Line(-1))),
            Key::Char('j') => return self.walk(Key::Go(Go::Run(1))),
            Key::Char('k') => return self.walk(Key::Go(Go::Run(-1))),
            Key::Char('/') => self.ask(Ask::Search),
            Key::Char(':') => self.ask(Ask::Line),
            Key::Char('b') => self.ask(Ask::Stop),
            Key::Char('n') => self.search(true),
            Key::Char('N') => self.search(false),
            Key::Char('c') => self.stop(true),
            Key::Char('C') => self.stop(false),
            Key::Char('e') => self.effects(),
            Key::Char('?') => self.mode = Mode::Help,
            Key::Enter => self.cause(),
            Key::Back => match self.jumps.pop() {
                Some(place) => self.walk.to(place),
                None => self.say("there was no jump to go back from"),
            },
            Key::Char('q') | Key::Escape => return false,
            Key::Char(other) => self.say(&format!("{other:?} is no key of `step`; ? lists them")),
        }
        true
    }

    fn say(&mut self, what: &str) {
        self.said = Some(what.to_owned());
    }

    fn ask(&mut self, ask: Ask) {
        self.mode = Mode::Prompt(ask, String::new());
    }

    fn jump(&mut self, place: usize) {
        self.jumps.push(self.place());
        self.walk.to(place);
    }

    fn edit(&mut self, ask: Ask, mut text: String, key: Key) {
        match key {
            Key::Enter => return self.answer(ask, &text),
            Key::Escape => return,
            // As in `less`, the prompt closes when it is empty.
            Key::Back if text.pop().is_none() => return,
            Key::Char(c) => text.push(c),
            Key::Back | Key::Go(_) => {}
        }
        self.mode = Mode::Prompt(ask, text);
    }

    /// Follows the input of a prompt. If it is wrong, it can be edited again.
    fn answer(&mut self, ask: Ask, text: &str) {
        let wrong = match ask {
            Ask::Search => {
                // No text repeats the last search.
                if !text.is_empty() {
                    self.searched = Some(text.to_owned());
                }
                return self.search(true);
            }
            Ask::Stop if text.trim().is_empty() => return self.stop(true),
            Ask::Stop => match Query::parse(text) {
                Ok(query) => {
                    self.stops = Some(self.stops(query));
                    return self.stop(true);
                }
                Err(wrong) => wrong,
            },
            Ask::Line => match at(text.trim()).and_then(|at: At| place(self.trace, at)) {
                Ok(place) => return self.jump(place),
                Err(wrong) => wrong,
            },
        };
        self.say(&wrong);
        self.mode = Mode::Prompt(ask, text.to_owned());
    }

    /// Finds the next line with the text of the last search, or the one before.
    fn search(&mut self, is_forward: bool) {
        let Some(text) = self.searched.clone() else {
            return self.say("there is no search to repeat; / begins one");
        };
        let has_it = |place: &usize| line_at(self.trace, *place).to_string().contains(&text);
        let here = self.place();
        let found = match is_forward {
            true => (here + 1..count(self.trace)).find(has_it),
            false => (0..here).rev().find(has_it),
        };
        match found {
            Some(place) => self.jump(place),
            None => {
                self.say(&format!("no line {} this one has `{text}`", beside(is_forward)));
            }
        }
    }

    /// Finds the lines that a query takes.
    fn stops(&self, query: Query) -> Stops {
        let (mut select, mut places) = (Select::new(query.clone(), false), Vec::new());
        self.trace.each(|place, line| select.line(line, || place));
        select.end();
        while let Some((place, _)) = select.pop() {
            places.push(place);
        }
        Stops { query, places }
    }

    /// Goes to the next line that the query takes, or to the one before.
    fn stop(&mut self, is_forward: bool) {
        let Some(Stops { query, places }) = &self.stops else {
            return self.say("there is no stop to go to; b sets one");
        };
        let here = self.place();
        let found = match is_forward {
            true => places.get(places.partition_point(|place| *place <= here)),
            false => places[..places.partition_point(|place| *place < here)].last(),
        };
        match found.copied() {
            Some(place) => self.jump(place),
            None => {
                let (beside, count) = (beside(is_forward), places.len());
                let said = format!(
                    "no line {beside} this one matches {query}; {count} lines of the log do"
                );
                self.say(&said);
            }
        }
    }

    fn cause(&mut self) {
        let place = self.place();
        // A timer fires because of time, but its line names the line that set it.
        let named = || self.trace.place(line_at(self.trace, place).cause?);
        match self.trace.cause(place).or_else(named) {
            Some(cause) => self.jump(cause),
            None if self.trace.is_from_outside(place) => {
                self.say("no line of the log is the cause of this line");
            }
            None => match self.trace.whole.flight() {
                Some(it) => self
                    .say(&format!("its cause was before #{:04}, where the dump begins", it.from)),
                None => self.say("the log does not say what caused this line"),
            },
        }
    }

    fn effects(&mut self) {
        let caused = caused(self.trace, self.place());
        match caused[..] {
            [] => self.say("no line has this line as its cause"),
            [place] => self.jump(place),
            _ => self.mode = Mode::Choose(caused, 0),
        }
    }

    fn choose(&mut self, places: Vec<usize>, nth: usize, key: Key) {
        let last = places.len() - 1;
        let nth = match key {
            Key::Enter => return self.jump(places[nth]),
            Key::Escape | Key::Back | Key::Char('q') => return,
            Key::Go(Go::Run(by)) | Key::Go(Go::Line(by)) => nth.saturating_add_signed(by).min(last),
            Key::Char('j') => (nth + 1).min(last),
            Key::Char('k') => nth.saturating_sub(1),
            Key::Go(Go::Turn(by)) => nth.saturating_add_signed(10 * by).min(last),
            Key::Go(Go::First) => 0,
            Key::Go(Go::Last) => last,
            Key::Char(_) => nth,
        };
        self.mode = Mode::Choose(places, nth);
    }

    /// Prints the screen of that size.
    pub fn screen(&self, size: (usize, usize), paint: Paint) -> String {
        let trace = self.trace;
        let body = match &self.mode {
            Mode::Walk | Mode::Prompt(..) => Body::State,
            Mode::Choose(places, nth) => {
                let row = |place: &usize| {
                    let line = line_at(trace, *place);
                    format!("#{:04}  {}  {}", line.seq, line.at, tell(trace, *place))
                };
                Body::List(places.iter().map(row).collect(), Some(*nth))
            }
            Mode::Help => Body::List(HELP.iter().map(|row| (*row).to_owned()).collect(), None),
        };
        let prompt = match &self.mode {
            Mode::Prompt(Ask::Search, text) => Some(format!("/{text}_")),
            Mode::Prompt(Ask::Line, text) => Some(format!(":{text}_")),
            Mode::Prompt(Ask::Stop, text) => Some(format!("stop at: {text}_")),
            Mode::Choose(places, _) => {
                Some(format!("{} effects: up, down, Enter goes there, Esc closes", places.len()))
            }
            Mode::Help => Some("any key closes the help".to_owned()),
            Mode::Walk => None,
        };
        let foot = match (self.said.clone(), prompt) {
            (Some(said), Some(prompt)) => format!("{prompt}  {said}"),
            (Some(text), None) | (None, Some(text)) => text,
            (None, None) => {
                let keys = format!("line {} of {}  {KEYS}", self.place() + 1, count(trace));
                keys.chars().take(size.0).collect()
            }
        };
        screen(trace, &self.walk, size, paint, &body, &foot)
    }
}

fn beside(is_forward: bool) -> &'static str {
    if is_forward { "after" } else { "before" }
}
