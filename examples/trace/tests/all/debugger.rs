//! The session of `step`, key by key.

use support::golden;
use trace_tool::chain::caused;
use trace_tool::debugger::{Debugger, Key};
use trace_tool::model::Trace;
use trace_tool::state;
use trace_tool::step::Go;
use trace_tool::style::Paint;

fn trace(name: &str) -> Trace {
    Trace::read(golden(name).into_bytes(), |_| {}).unwrap()
}

/// A session, and the number of its line.
struct Session<'t>(&'t Trace, Debugger<'t>);

impl<'t> Session<'t> {
    fn at(trace: &'t Trace, seq: u64) -> Session<'t> {
        Session(trace, Debugger::new(trace, trace.place(seq).unwrap()))
    }

    /// Sends keys: `<` is Back, `!` Escape, a newline Enter, and `v` and `^` go by run.
    fn keys(&mut self, keys: &str) -> &mut Self {
        for key in keys.chars() {
            let key = match key {
                '\n' => Key::Enter,
                '<' => Key::Back,
                '!' => Key::Escape,
                'v' => Key::Go(Go::Run(1)),
                '^' => Key::Go(Go::Run(-1)),
                other => Key::Char(other),
            };
            assert!(self.1.key(key), "the session has ended");
        }
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        text.chars().for_each(|c| assert!(self.1.key(Key::Char(c))));
        self
    }

    fn seq(&self) -> u64 {
        self.0.seq(self.1.place())
    }

    fn screen(&self) -> String {
        self.1.screen((100, 24), Paint::PLAIN)
    }

    /// The last row of the screen.
    fn foot(&self) -> String {
        self.screen().lines().last().unwrap().to_owned()
    }
}

#[test]
fn a_search_goes_to_the_next_line_with_its_text_and_back() {
    let trace = trace("nested");
    let with = |text: &str| -> Vec<u64> {
        let lines = (0..trace.len()).map(|place| trace.line(place));
        lines.filter(|line| line.to_string().contains(text)).map(|line| line.seq).collect()
    };
    let fires = with(" fire ");
    assert!(fires.len() >= 2, "{fires:?}");
    let mut session = Session::at(&trace, 1);
    session.keys("/").text(" fire ");
    assert_eq!(session.foot(), "/ fire _");
    assert_eq!(session.keys("\n").seq(), fires[0]);
    assert_eq!(session.keys("n").seq(), fires[1]);
    assert_eq!(session.keys("N").seq(), fires[0]);
    session.keys("N");
    assert_eq!(session.seq(), fires[0], "there is none before");
    assert_eq!(session.foot(), "no line before this one has ` fire `");
    session.keys("/").text("no such text").keys("\n");
    assert_eq!(
        (session.seq(), session.foot().as_str()),
        (fires[0], "no line after this one has `no such text`")
    );
    // The prompt takes keys that mean something elsewhere, and can be closed.
    session.keys("/q?nb<<<<<").keys("n");
    assert_eq!(session.foot(), "no line after this one has `no such text`");
    session.keys("/q!");
    assert!(session.foot().starts_with("line "), "{}", session.foot());
}

#[test]
fn a_line_is_reached_by_its_number_or_time_and_a_wrong_one_can_be_edited() {
    let trace = trace("nested");
    let mut session = Session::at(&trace, 3);
    assert_eq!(session.keys(":#0012\n").seq(), 12);
    assert_eq!(session.keys(":300\n").seq(), 12);
    let expected = "there is no event 300; expected one from 1 to 29";
    assert_eq!(session.foot(), format!(":300_  {expected}"));
    assert_eq!(session.keys("<<<7\n").seq(), 7);
    session.keys(":soon\n");
    assert!(session.foot().ends_with("or a time such as 0.5, not `soon`"), "{}", session.foot());
    assert_eq!(session.keys("!").seq(), 7);
    let last_at_that_time = (0..trace.len())
        .rev()
        .find(|place| trace.at(*place).to_string().parse::<f64>().unwrap() <= 0.4);
    assert_eq!(session.keys(":0.4\n").seq(), trace.seq(last_at_that_time.unwrap()));
    // Back goes to the line before each jump.
    assert_eq!(session.keys("<").seq(), 7);
    assert_eq!(session.keys("<").seq(), 12);
    assert_eq!(session.keys("<").seq(), 3);
    assert_eq!(session.keys("<").foot(), "there was no jump to go back from");
}

#[test]
fn e_goes_from_a_notify_and_a_give_line_to_the_wake_that_follows() {
    let notifies = golden("c11_a_pending_outer_timeout_leaves_the_inner_block");
    let gives = include_str!("../handed.trace").to_owned();
    for (text, verb) in [(notifies, "notify"), (gives, "give")] {
        let trace = Trace::read(text.into_bytes(), |_| {}).unwrap();
        let is = |place: usize, verb: &str| trace.verb(place) == verb;
        let woke = |place: &usize| is(*place, verb) && is(place + 1, "wake");
        let place = (0..trace.len() - 1).find(woke).expect("it wakes a task");
        let mut session = Session::at(&trace, trace.seq(place));
        assert_eq!(session.keys("e").1.place(), place + 1, "{verb}: {}", session.foot());
    }
}

#[test]
fn enter_goes_to_the_cause_and_e_to_the_effects() {
    for name in ["nested", "echo_two_clients", "producer"] {
        let trace = trace(name);
        let mut several = 0;
        for place in 0..trace.len() {
            let seq = trace.seq(place);
            let mut session = Session::at(&trace, seq);
            session.keys("\n");
            let set = trace.line(place).cause.filter(|_| trace.verb(place) == "fire");
            let set = set.map(|set| trace.place(set).unwrap());
            match trace.cause(place).or(set) {
                Some(cause) => assert_eq!(session.1.place(), cause),
                None => {
                    assert_eq!(session.1.place(), place);
                    let foot = session.foot();
                    assert!(foot.contains("cause"), "#{seq:04}: {foot}");
                }
            }
            let effects = caused(&trace, place);
            let mut session = Session::at(&trace, seq);
            session.keys("e");
            if let [first, .., last] = effects[..] {
                several += 1;
                assert_eq!(session.1.place(), place);
                for effect in &effects {
                    let row = format!(" #{:04}  ", trace.seq(*effect));
                    assert!(session.screen().contains(&row), "{}", session.screen());
                }
                assert_eq!(session.keys("\n").1.place(), first);
                session.keys("<e").keys(&"v".repeat(effects.len() + 1)).keys("\n");
                assert_eq!(session.1.place(), last);
                assert_eq!(session.keys("<e!").1.place(), place);
            } else {
                assert_eq!(session.1.place(), *effects.first().unwrap_or(&place));
            }
        }
        assert!(several > 0, "{name}");
    }
}

#[test]
fn a_stop_is_at_each_line_that_the_query_takes() {
    let trace = trace("echo_two_clients");
    let places: Vec<_> = (0..trace.len())
        .filter(|place| trace.verb(*place) == "block" && trace.task_of(*place).id > 2)
        .collect();
    assert!(places.len() > 2);
    let query = "verb=block task!=1,2";
    let mut session = Session::at(&trace, 1);
    session.keys("b").text(query).keys("\n");
    let mut found = vec![session.1.place()];
    for _ in 1..places.len() {
        found.push(session.keys("c").1.place());
    }
    assert_eq!(found, places);
    session.keys("c");
    let count = places.len();
    let none = format!("no line after this one matches {query}; {count} lines of the log do");
    assert_eq!((session.1.place(), session.foot()), (*places.last().unwrap(), none));
    assert_eq!(session.keys("C").1.place(), places[count - 2]);
    // A wrong query stays in the prompt, with what was expected, and the last one is still there.
    session.keys("b").text("verb>block").keys("\n");
    let expected = "expected one of the operators = != after verb, not `>block`";
    assert_eq!(session.foot(), format!("stop at: verb>block_  {expected}"));
    assert_eq!(session.keys("!c").1.place(), places[count - 1]);
    let mut session = Session::at(&trace, 1);
    assert_eq!(session.keys("c").foot(), "there is no stop to go to; b sets one");
}

#[test]
fn the_help_lists_each_key_and_other_keys_are_told_so() {
    let trace = trace("hello");
    let mut session = Session::at(&trace, 5);
    session.keys("?");
    let help = session.screen();
    for key in ["/TEXT", ":N ", "b QUERY", "Enter ", "  e ", "Backspace ", "q, Esc"] {
        assert!(help.contains(key), "{key}: {help}");
    }
    assert!(session.keys("?").foot().starts_with("line 5 of "), "{}", session.foot());
    assert_eq!(session.keys("x").foot(), "'x' is no key of `step`; ? lists them");
    assert_eq!(session.seq(), 5);
    assert!(!session.1.key(Key::Char('q')) && !session.1.key(Key::Escape));
}

#[test]
fn a_sentence_is_wrapped_even_if_the_state_fills_the_screen() {
    let trace = trace("echo_two_clients");
    let said = |place| {
        let head = state::head(&trace, place, Paint::PLAIN);
        head.lines().nth(1).unwrap().to_owned()
    };
    let longest = (0..trace.len()).max_by_key(|place| said(*place).len()).unwrap();
    let sentence = said(longest);
    let screen = Debugger::new(&trace, longest).screen((80, 24), Paint::PLAIN);
    assert!(sentence.len() > 160, "{sentence}");
    let words: Vec<_> = screen.split_whitespace().collect();
    assert!(words.join(" ").contains(&sentence), "{screen}");
}
