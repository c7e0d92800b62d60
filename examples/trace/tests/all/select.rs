//! `select`: which lines a query takes, and how long their waits and runs lasted.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use kernel::trace::Event;
use support::{examples, golden, goldens};
use testing::child;
use testing::trace::{Line, trace as parse};
use trace_tool::model::Trace;
use trace_tool::query::Query;
use trace_tool::select::{Lengths, Select};
use trace_tool::style::Paint;
use trace_tool::waits::{Ended, Wait, waits};

/// The lines that a query takes, with their lengths.
fn select(query: &str, text: &str) -> Vec<(String, Option<Duration>)> {
    let mut select = Select::new(Query::parse(query).unwrap(), true);
    let mut taken = Vec::new();
    for line in parse(text).unwrap() {
        select.line(&line, || line.to_string());
        taken.extend(std::iter::from_fn(|| select.pop()));
    }
    select.end();
    taken.extend(std::iter::from_fn(|| select.pop()));
    taken
}

fn lines(query: &str, text: &str) -> Vec<String> {
    let taken = select(query, text).into_iter().map(|(line, _)| line);
    // Without lengths, the same.
    let mut other = Select::new(Query::parse(query).unwrap(), false);
    parse(text).unwrap().iter().for_each(|line| other.line(line, || line.to_string()));
    other.end();
    let other: Vec<_> = std::iter::from_fn(|| other.pop()).map(|(line, _)| line).collect();
    let taken: Vec<_> = taken.collect();
    assert_eq!(taken, other, "{query}");
    taken
}

type IsTaken = fn(&Line<'_>) -> bool;

#[test]
fn each_condition_takes_the_lines_that_it_says() {
    let text = golden("echo_two_clients");
    let all = parse(&text).unwrap();
    let expected: [(&str, IsTaken); 17] = [
        ("verb=block", |it| it.verb == "block"),
        ("verb=wake,run", |it| ["wake", "run"].contains(&it.verb)),
        ("verb!=io", |it| it.verb != "io"),
        ("task=2", |it| it.task == 2),
        ("task=main", |it| it.name() == "main"),
        ("task~conn-*", |it| it.name().starts_with("conn-")),
        ("task!~conn-?", |it| !it.name().starts_with("conn-")),
        ("task=0", |it| it.task == 0),
        ("line>=40 line<0050", |it| (40..50).contains(&it.seq)),
        ("line=#0042", |it| it.seq == 42),
        ("line!=42", |it| it.seq != 42),
        ("turn<=3", |it| it.turn <= 3),
        ("time>50ms", |it| it.at.as_micros() > 50_000),
        ("time<=0.05", |it| it.at.as_micros() <= 50_000),
        ("text~\"io c?\"", |it| it.event().contains("io c")),
        ("text!~cause=", |it| !it.event().contains("cause=")),
        ("verb=block\ttask~conn-*", |it| it.verb == "block" && it.name().starts_with("conn-")),
    ];
    for (query, is_taken) in expected {
        let expected: Vec<_> =
            all.iter().filter(|line| is_taken(line)).map(ToString::to_string).collect();
        assert!(!expected.is_empty() && expected.len() < all.len(), "{query}");
        assert_eq!(lines(query, &text), expected, "{query}");
    }
}

#[test]
fn a_call_site_is_compared_whole_or_from_a_slash_on() {
    let text = golden("hello").replace("at=examples/hello.rs:", "at=a/examples/hello.rs:");
    let count = |query: &str| lines(query, &text).len();
    let all = count("text~at=a/");
    assert!(all > 1);
    for query in
        ["at~a/examples/hello.rs:*", "at~hello.rs:*", "at~examples/hello.rs:??", "at~*o.rs*"]
    {
        assert_eq!(count(query), all, "{query}");
    }
    assert_eq!(count("at~ello.rs:*"), 0);
    let site = text.split(" at=").nth(1).unwrap().split_whitespace().next().unwrap();
    let tail = site.rsplit('/').next().unwrap();
    assert!(count(&format!("at={tail}")) > 0);
    assert_eq!(count(&format!("at={site}")), count(&format!("at={tail}")));
    assert_eq!(count(&format!("at={}", &tail[1..])), 0);
}

#[test]
fn a_wait_has_the_length_that_the_model_gives_it() {
    let (mut open, mut ended) = (0, 0);
    for name in goldens() {
        let whole = golden(&name);
        let lines: Vec<_> = whole.lines().collect();
        if lines.iter().filter(|line| line.starts_with("#trace")).count() > 1 {
            continue;
        }
        // In the first part of a log, waits have not ended.
        for text in [&whole, &(lines[..lines.len() * 2 / 3].join("\n") + "\n")] {
            let trace = Trace::read(text.clone().into_bytes(), |_| {}).unwrap();
            let length = |wait: &Wait| trace.at(wait.to).since(trace.at(wait.from));
            let waits = waits(&trace);
            open += waits.iter().filter(|wait| wait.ended == Ended::Open).count();
            ended += waits.iter().filter(|wait| wait.ended != Ended::Open).count();
            let lengths =
                waits.iter().map(|it| (trace.line(it.from).to_string(), Some(length(it))));
            let found = select("verb=block,await text~\" k=\"", text);
            assert_eq!(found, lengths.collect::<Vec<_>>(), "{name}");
        }
    }
    assert!(open > 100 && ended > 1000, "{open} {ended}");
}

#[test]
fn a_length_is_compared_and_the_lines_keep_their_order() {
    let text = golden("nested");
    let all = select("verb=block,await", &text);
    let limit = Duration::from_millis(300);
    let expected: Vec<_> = all
        .iter()
        .filter(|(_, length)| length.is_some_and(|length| length > limit))
        .map(|(line, _)| line.clone())
        .collect();
    assert!(!expected.is_empty() && expected.len() < all.len());
    assert_eq!(lines("verb=block,await for>300ms", &text), expected);
    let rest: Vec<_> =
        all.iter().map(|(line, _)| line).filter(|line| !expected.contains(line)).collect();
    assert!(lines("verb=block,await for<=300ms", &text).iter().eq(rest));
    // A line without a length fulfils no condition on it.
    assert_eq!(lines("verb=spawn for<=300ms", &text), [""; 0]);
}

#[test]
fn a_run_has_a_length_if_the_log_says_it() {
    const LOG: &str = "\
 0.000000       1  #0001   2 main     run      cause=#0000
 0.000000       1  #0002   2 main     block    sleep 1s until=1.000000 k=1
 1.000000       2  #0003   2 main     wake     sleep k=1 cause=#0002
 1.000000       2  #0004   2 main     run      cause=#0003
 1.070000       2  #0005   2 main     longrun  ran=0.070000 from=sleep to=sleep
 1.070000       2  #0006   2 main     exit     ok
";
    let ran =
        |text: &str| select("verb=run", text).into_iter().map(|(_, ran)| ran).collect::<Vec<_>>();
    assert_eq!(ran(LOG), [None, Some(Duration::from_millis(70))]);
    let timed = LOG.replace("k=1\n 1.0", "k=1 ran=25us\n 1.0");
    assert_eq!(ran(&timed), [Some(Duration::from_micros(25)), Some(Duration::from_millis(70))]);
    assert_eq!(lines("verb=run for>50ms", LOG).len(), 1);
}

#[test]
fn percentiles_are_by_kind_with_the_line_of_the_longest() {
    let mut log = String::new();
    for nth in 1..=100_u64 {
        let (begin, end) = (2 * nth - 1, 2 * nth);
        let ms = if nth == 7 { 900 } else { nth };
        log += &format!(
            " {nth}.000000 1  #{begin:04}   2 main     block    io c1 read k={nth}\n \
             {nth}.{ms:03}000 1  #{end:04}   2 main     wake     io c1 read k={nth}\n"
        );
    }
    log += " 200.000000 1  #0201   3 other    block    sleep 1s until=201.000000 k=200\n";
    log += " 201.000000 1  #0202   3 other    exit     ok\n";
    let mut select = Select::new(Query::parse("verb=block").unwrap(), true);
    let mut lengths = Lengths::default();
    for line in parse(&log).unwrap() {
        select.line(&line, || (Lengths::kind(&line), line.seq));
        lengths.take(&mut select);
    }
    select.end();
    lengths.take(&mut select);
    let shown = lengths.show(Paint::PLAIN);
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .map(|row| row.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect())
        .collect();
    assert_eq!(
        rows,
        [
            vec!["kind", "count", "sum", "p50", "p90", "p99", "longest", "line"],
            vec!["block io read", "100", "5.943s", "0.051s", "91ms", "0.1s", "0.9s", "#0013"],
            vec!["block sleep", "1", "1.000s", "1.000s", "-", "-", "1.0s", "#0201"],
        ],
        "{shown}"
    );
}

#[test]
fn a_wrong_query_is_told_what_was_expected() {
    for (query, expected) in [
        ("", "expected a condition such as verb=block"),
        (
            "block",
            "expected one of the fields verb, task, at, text, line, turn, time, for and an \
             operator, as in verb=block, not `block`",
        ),
        ("verb", "expected one of the operators = != after verb, and then a value"),
        ("verb=blok", "expected a verb of the log, not `blok`; did you mean `block`?"),
        ("verb~b*", "expected one of the operators = != after verb, not `~b*`"),
        ("for=1s", "expected one of the operators < <= > >= after for, not `=1s`"),
        ("turn==1", "expected one of the operators = != < <= > >= after turn, not `==1`"),
        ("verb= block", "expected a value after verb="),
        ("for>1", "expected a duration such as 1s, 250ms or 64us after for, not `1`"),
        ("line>x", "expected the number of a line after line, not `x`"),
        ("time>x", "expected a time of the trace such as 3.25 or 250ms, not `x`"),
        ("text~\"a b", "expected a second \" at the end of the value"),
    ] {
        assert_eq!(Query::parse(query).unwrap_err(), expected, "{query}");
    }
    let wrong = Query::parse("verb=eat").unwrap_err();
    assert!(wrong.starts_with("expected a verb of the log, not `eat`: "), "{wrong}");
    let wrong = wrong.rsplit(": ").next().unwrap().to_owned();
    for verb in Event::WORDS {
        assert_eq!(wrong.split([' ', ',']).filter(|word| word == verb).count(), 1, "{verb}");
    }
}

fn tool(args: &[&str], input: &str) -> (String, String, Option<i32>) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("select-{}", args.join("-").replace('/', "")));
    fs::write(&path, input).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" <\"$0\""]).arg(path).arg(examples::build("trace")).args(args);
    let ran = child::output(&mut shell);
    let [out, error] = [ran.stdout, ran.stderr].map(|text| String::from_utf8(text).unwrap());
    (out, error, ran.status.code())
}

#[test]
fn a_selection_is_a_log_for_the_other_commands_except_check() {
    let text = golden("echo_two_clients");
    let (selected, error, code) = tool(&["select", "task~conn-*"], &text);
    assert_eq!((error.as_str(), code), ("", Some(0)));
    let header: Vec<_> = text.lines().take_while(|line| line.starts_with('#')).collect();
    let mut expected = vec![header[0].to_owned(), "# select task~conn-*".to_owned()];
    expected.extend(header[1..].iter().map(|line| (*line).to_owned()));
    expected.extend(lines("task~conn-*", &text));
    let found: Vec<_> = selected.lines().map(str::to_owned).collect();
    assert_eq!(found, expected);
    for command in ["summary", "tasks", "idle", "tree", "slow", "lanes", "state", "perfetto"] {
        let (out, error, code) = tool(&[command, "-"], &selected);
        assert!(!out.is_empty() && code == Some(0), "{command}: {error}");
        // Lines are missing on purpose.
        assert_eq!(error, "", "{command}");
    }
    let (_, error, code) = tool(&["check", "-"], &selected);
    let expected = "expected the whole log that `trace select` has read";
    assert_eq!(error, format!("trace: cannot check a selection of lines: {expected}\n"));
    assert_eq!(code, Some(2));
    // Also if it is of a dump, the selection is why a line has no cause.
    for text in [&text, include_str!("../cut.trace")] {
        let (blocks, ..) = tool(&["select", "verb=block"], text);
        let (said, ..) = tool(&["why", "-"], &blocks);
        assert!(said.ends_with("(the selection does not have what is behind that)\n"), "{said}");
    }
    let count = lines("task~conn-*", &text).len();
    let (_, error, _) = tool(&["effects", "1", "-"], &selected);
    let expected = format!("trace: there is no event 1; expected one of the {count} selected, ");
    assert!(error.starts_with(&expected), "{error}");
    let (counted, ..) = tool(&["select", "task~conn-*", "--count"], &text);
    assert_eq!(counted, format!("{}\n", lines("task~conn-*", &text).len()));
    let (again, ..) = tool(&["select", "verb=block"], &selected);
    assert_eq!(parse(&again).unwrap().len(), lines("verb=block task~conn-*", &text).len());
    let (table, ..) = tool(&["select", "verb=block", "--percentiles"], &text);
    assert!(table.contains("p50") && table.contains("block io read"), "{table}");
    let (_, error, code) = tool(&["select", "verb=blok"], &text);
    assert!(error.contains("expected a verb of the log, not `blok`") && code == Some(2), "{error}");
}
