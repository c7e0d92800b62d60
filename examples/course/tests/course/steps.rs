//! The steps of the course: each program prints its golden log, and each page says what is true of
//! the sources and of the log. `BLESS=1` writes the golden logs.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;

use course::labs;
use course::pages::{self, STEPS, folder, mark, sources};
use similar::TextDiff;
use support::examples;
use testing::child::{self, Child};
use testing::trace;

/// The first step with a log in the format of the real kernel.
const FIRST_TRACE: u32 = 6;
/// Lines of code of each step, and lines of code that it adds to the step before. Given files are
/// not counted.
const BUDGETS: [(usize, usize); STEPS as usize] = [
    (134, 134),
    (236, 116),
    (286, 68),
    (364, 201),
    (426, 83),
    (553, 196),
    (687, 206),
    (872, 230),
    (934, 89),
    (1126, 221),
    (1261, 182),
    (1453, 181),
];
/// Lines of code in a file.
const FILE: usize = 180;

/// The program of a step. All are built at the first call.
fn program(step: u32) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let name = |step| format!("step_{step:02}");
    let folder = BUILT.get_or_init(|| {
        let names: Vec<String> = (1..=STEPS).map(name).collect();
        examples::build_all(&names.iter().map(String::as_str).collect::<Vec<_>>())
    });
    folder.join(name(step))
}

fn code(text: &str) -> Vec<&str> {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    text.lines().filter(is_code).collect()
}

/// The output of a step on the virtual clock. Step 2 has the real one: its times are masked.
fn log(step: u32) -> String {
    let ran = child::output(&mut Command::new(program(step)));
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && errors.is_empty(), "step {step}: {errors}");
    let text = String::from_utf8(ran.stdout).unwrap();
    if step != 2 {
        return text;
    }
    let masked = text.lines().map(|line| match line.split_once(' ') {
        Some(("", rest)) => match rest.split_once('.') {
            Some((seconds, rest)) if seconds.trim().parse::<u32>().is_ok() => {
                let (micros, rest) = rest.split_at(6);
                format!(" {seconds}.{}*****{rest}\n", &micros[..1])
            }
            _ => format!("{line}\n"),
        },
        _ => format!("{line}\n"),
    });
    masked.collect()
}

fn has_fixed_log(step: u32) -> bool {
    step != 7 && step != 12
}

/// The text of a page.
fn page(step: u32) -> String {
    fs::read_to_string(folder(step).join("README.md")).unwrap()
}

#[test]
fn each_program_prints_its_golden_log() {
    for step in (1..=STEPS).filter(|step| has_fixed_log(*step)) {
        let golden = pages::log(step);
        let mut printed = log(step);
        // On the real clock of step 2, a busy machine can be so late that two turns become one.
        let mut attempts = if step == 2 { 20 } else { 0 };
        while printed != golden && attempts > 0 && !support::is_blessing() {
            attempts -= 1;
            printed = log(step);
        }
        if support::is_blessing() {
            fs::write(folder(step).join("golden.trace"), printed).unwrap();
        } else {
            assert_eq!(printed, golden, "step {step}: BLESS=1 writes the golden log");
        }
    }
}

#[test]
fn each_page_has_its_marks_and_no_generated_part() {
    for step in 1..=STEPS {
        let page = page(step);
        let comments = page.lines().filter(|line| line.contains("<!--"));
        let marks: Vec<_> = comments.map(|line| mark(line).expect(line)).collect();
        let rest = pages::Mark::Change("");
        let wanted = [pages::Mark::Log, rest, pages::Mark::Code];
        let wanted = wanted.into_iter().filter(|mark| step > 1 || *mark != rest);
        for wanted in wanted {
            let count = marks.iter().filter(|mark| **mark == wanted).count();
            assert_eq!(count, 1, "step {step}: {wanted:?}");
        }
        assert!(!page.contains("```diff") && !page.contains("```rust"), "step {step}");
    }
}

/// The page of the guide that has a program of the playground too.
fn reading() -> String {
    fs::read_to_string(labs::root().join("kernel/src/guide/reading.md")).unwrap()
}

/// The names of the programs of the playground on a page.
fn played(page: &str) -> Vec<&str> {
    let name = |line| match mark(line) {
        Some(pages::Mark::Play(name)) => Some(name),
        _ => None,
    };
    page.lines().filter_map(name).collect()
}

#[test]
fn each_program_of_the_playground_is_on_one_page_of_the_book() {
    let mut texts: Vec<String> = (1..=STEPS).map(page).collect();
    texts.push(reading());
    let mut found: Vec<&str> = texts.iter().flat_map(|text| played(text)).collect();
    found.sort_unstable();
    let programs = fs::read_dir(labs::root().join("examples/play/pages")).unwrap();
    let mut names: Vec<String> = programs
        .map(|entry| {
            let file = entry.unwrap().file_name().into_string().unwrap();
            file.strip_suffix(".play").unwrap().split_once('-').unwrap().1.to_owned()
        })
        .collect();
    names.sort_unstable();
    assert_eq!(found, names);
    for text in &texts {
        for name in played(text) {
            let address = format!("`target/playground.html#{name}`");
            assert!(text.contains(&address), "a page does not say {address}");
        }
    }
}

#[test]
fn the_lines_of_the_log_on_a_page_are_lines_of_the_golden_log_in_their_order() {
    for step in 1..=STEPS {
        let (page, golden) = (page(step), pages::log(step));
        let excerpts: Vec<&str> = page.split("```log\n").skip(1).collect();
        assert!(!excerpts.is_empty(), "the page of step {step} shows no line of its log");
        for excerpt in excerpts {
            let mut later = golden.lines();
            for line in excerpt.lines().take_while(|line| *line != "```") {
                assert!(later.any(|golden| golden == line), "step {step} has no such line: {line}");
            }
        }
    }
}

#[test]
fn the_numbers_of_lines_on_a_page_are_lines_of_its_golden_log() {
    for step in FIRST_TRACE..=STEPS {
        let (page, golden) = (page(step), pages::log(step));
        for rest in page.split("`#").skip(1) {
            let Some((number, _)) = rest.split_once('`') else { continue };
            let is_there = golden.contains(&format!(" #{number} "));
            assert!(is_there, "the golden log of step {step} has no line #{number}");
        }
    }
}

/// Every file of the course by its bytes. Links are not files, and the book is built in `target`.
fn files(folder: &Path, found: &mut BTreeMap<Vec<u8>, Vec<PathBuf>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() && entry.file_name() == "target" => {}
            kind if kind.is_dir() => files(&entry.path(), found),
            kind if kind.is_file() => {
                found.entry(fs::read(entry.path()).unwrap()).or_default().push(entry.path());
            }
            _ => {}
        }
    }
}

#[test]
fn no_file_of_the_course_is_a_copy() {
    let mut found = BTreeMap::new();
    files(folder(1).parent().unwrap(), &mut found);
    assert!(found.len() > 300, "the course was read");
    let copies: Vec<_> = found.into_values().filter(|paths| paths.len() > 1).collect();
    assert!(copies.is_empty(), "{copies:#?}");
}

#[test]
fn the_crate_of_a_student_has_each_module_of_the_kernel_as_a_plain_file() {
    for step in 1..=STEPS {
        let sources = sources(step);
        let (_, list) = &sources["kernel/mod.rs"];
        assert!(!list.contains("path"), "step {step}: {list}");
        let modules = list.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
        for module in modules {
            assert!(sources.contains_key(&format!("kernel/{module}.rs")), "step {step}: {module}");
        }
    }
}

#[test]
fn a_page_links_to_the_files_that_its_step_adds_or_changes() {
    for step in 1..=STEPS {
        let page = page(step);
        let is_here = |file: &&(String, u32)| file.1 == step;
        let files: Vec<(String, u32)> =
            sources(step).into_iter().map(|(path, (from, _))| (path, from)).collect();
        for (path, _) in files.iter().filter(is_here) {
            assert!(page.contains(&format!("]({path})")), "the page of step {step}: {path}");
        }
        for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let is_in_checkout = !link.starts_with("http") && !link.contains("/target/");
            let file = link.split('#').next().unwrap();
            let is_there = folder(step).join(file).exists();
            assert!(!is_in_checkout || is_there, "the page of step {step} links to {link}");
        }
    }
}

/// The lines of a golden log that contain each of these words.
fn lines_with<'t>(golden: &'t str, words: &[&str]) -> Vec<&'t str> {
    let has_all = |line: &&str| {
        words.iter().all(|word| line.split_whitespace().any(|in_line| in_line == *word))
    };
    golden.lines().filter(has_all).collect()
}

#[test]
fn the_numbers_in_the_answers_of_the_pages_are_those_of_the_logs() {
    let logs: Vec<String> = (1..=STEPS).map(pages::log).collect();
    let log = |step: usize| &*logs[step - 1];
    let count = |step: usize, words: &[&str]| lines_with(log(step), words).len();
    let at = |step: usize, words: &[&str]| lines_with(log(step), words)[0].trim_start();
    // In the first step the columns are the turn, the task and the verb.
    let is_run_of_one = |line: &&str| line.split_whitespace().skip(1).eq(["1", "run"]);
    let turns = |step: usize| {
        let columns = log(step).lines().filter_map(|line| line.split_whitespace().nth(1));
        columns.filter_map(|turn| turn.parse::<u32>().ok()).max()
    };
    // The facts about the logs, and the sentence of the page.
    let facts = [
        (1, log(1).lines().filter(is_run_of_one).count() == 4, "1. Four times."),
        (2, turns(2) == Some(4), "2. Four:"),
        (3, at(3, &["4", "exit"]).starts_with("0.300000"), "the clock shows 0.300000"),
        // Of two equal tasks: a run has one poll more than it has answered traps.
        (4, count(4, &["run"]) == 6 && count(4, &["trap"]) == 4, "2. Three runs and five polls."),
        (5, count(5, &["spawn", "parent=1"]) == 2, "its children are 2 and 3"),
        (5, log(5).lines().last().unwrap().starts_with(" 0.600000"), "2. At 0.6 s"),
        (6, count(6, &["block"]) == 4, "3. Four: two sleeps and two joins."),
        (9, at(9, &["#0027"]).starts_with("2.000000"), "1. At 2 s (`#0027`)."),
        (9, at(9, &["halt"]).starts_with("3.000000"), "2. At 3 s."),
        (10, at(10, &["done", "o1"]).starts_with("0.000000"), "1. `0.000000` (`#0015`)."),
        (10, at(10, &["#0030", "5", "run"]).contains("main"), "2. In turn 5."),
        (11, count(11, &["arm"]) == 46, "The ten connections arm a deadline 46 times."),
        (11, count(11, &["tick"]) == 1, "1. One, at 10 s (`#0383`)."),
    ];
    for (step, is_true, sentence) in facts {
        assert!(page(step).contains(sentence), "the page of step {step} does not say: {sentence}");
        assert!(is_true, "the log of step {step} does not show: {sentence}");
    }
}

#[test]
fn a_page_is_right_about_the_logs_of_the_playground() {
    let facts: [(String, &str, &str, &[&str]); 8] = [
        (page(4), "that both read 100", "race", &["note", "ben", "reads", "100"]),
        (page(4), "both write 110", "race", &["note", "ben", "writes", "110"]),
        (page(4), "`block queue tea`", "channel", &["producer", "block", "queue", "tea"]),
        (page(6), "The `warn` line between them", "deadlock", &["warn", "deadlock"]),
        (page(6), "`notify` says `woke=0`", "lost-wake-up", &["notify", "woke=0"]),
        (page(8), "`give mutex table`", "timeout", &["give", "mutex", "table"]),
        (page(11), "ends with `= pending`", "shield", &["cancel", "=", "pending"]),
        (reading(), "its note comes at 92 ms", "crowd", &["0.092000", "health", "note"]),
    ];
    for (page, sentence, program, words) in facts {
        assert!(page.contains(sentence), "no page says: {sentence}");
        let log = labs::root().join(format!("tests/golden/play/{program}.trace"));
        let log = fs::read_to_string(log).unwrap();
        assert!(
            !lines_with(&log, words).is_empty(),
            "the log of {program} does not show: {words:?}"
        );
    }
}

#[test]
fn the_tool_prints_the_change_of_a_step() {
    for step in 2..=STEPS {
        assert!(page(step).contains(&format!("course -- change {step}\n")), "step {step}");
        let printed = course(&["change", &step.to_string()]);
        for file in pages::change(step).iter().flatten() {
            assert!(printed.contains(file.diff.trim_end_matches('\n')), "{}", file.path);
        }
    }
}

#[test]
fn the_logs_from_the_sixth_step_on_keep_the_promises_of_the_real_kernel() {
    for step in (FIRST_TRACE..=STEPS).filter(|step| has_fixed_log(*step)) {
        assert_checks(&log(step));
    }
}

/// The output of the tool of the course.
fn course(args: &[&str]) -> String {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = BUILT.get_or_init(|| examples::build("course"));
    let ran = child::output(Command::new(program).args(args));
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && errors.is_empty(), "{args:?}: {errors}");
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn each_page_asks_for_the_state_at_a_line_of_the_log_and_links_to_it() {
    for step in 1..=STEPS {
        let page = page(step);
        let asked = format!("cargo run --example course -- state {step} ");
        let (_, rest) = page.split_once(&asked).unwrap_or_else(|| panic!("{asked} is missing"));
        let line = rest.lines().next().unwrap();
        let panel = format!("<!-- panel {line} -->\n");
        assert!(page.contains(&panel), "the page of step {step} has no {panel}");
        let said = course(&["state", &step.to_string(), line]);
        let shown = trace::line(said.lines().next().unwrap()).unwrap();
        let link = format!("(../../../target/step_{step:02}.html#{:04})", shown.seq);
        assert!(page.contains(&link), "the page of step {step} has no link {link}");
        let page_of_log = format!("target/step_{step:02}.html");
        let make = format!("course -- log {step} | cargo run --example trace -- timeline -o ");
        let make = make + &page_of_log;
        assert!(page.contains(&make), "the page of step {step} does not say: {make}");
        if step >= FIRST_TRACE {
            assert!(page.contains(&format!("after `#{:04}`", shown.seq)), "step {step}");
        }
        // The state is what the log says, and there is something to find out.
        let log = course(&["log", &step.to_string()]);
        let mut state = trace::State::default();
        let lines = trace::trace(&log).unwrap();
        lines.iter().filter(|it| it.seq <= shown.seq).for_each(|line| state.line(line));
        let rows = state.text(trace::state::View::Whole).lines().count();
        assert!(rows >= 4, "step {step}:\n{state}");
        let names = |id: &u64| said.contains(&format!("{id} {}  since", state.tasks[id].name));
        assert!(state.tasks.keys().all(names), "{state}\n{said}");
        assert!(state.timers.keys().all(|(at, name)| said.contains(&format!("{at}  {name}"))));
    }
}

#[test]
fn the_logs_that_the_tool_shows_are_those_of_the_steps() {
    for step in 1..=STEPS {
        let shown = course(&["log", &step.to_string()]);
        assert_checks(&shown);
        let lines = trace::trace(&shown).unwrap();
        if step >= FIRST_TRACE && has_fixed_log(step) {
            assert_eq!(shown, log(step), "step {step}");
        } else if step >= FIRST_TRACE {
            // The log was recorded, so check that each line of source that it names exists.
            for (file, line) in lines.iter().filter_map(|line| line.key("at")?.rsplit_once(':')) {
                let text = fs::read_to_string(labs::root().join(file)).unwrap();
                let number: usize = line.parse().unwrap();
                assert!(number <= text.lines().count(), "{file}:{line}");
            }
        } else {
            // All its lines are present, in order, with their words. The tool adds words and wakes
            // to them.
            let mut told = lines.iter();
            for line in pages::log(step).lines() {
                let words: Vec<&str> = line.split_whitespace().collect();
                let verb =
                    words.iter().position(|word| ["run", "block", "fire", "exit"].contains(word));
                let Some(verb) = verb.filter(|at| *at >= 2) else { continue };
                let found = told.find(|told| told.verb == words[verb]);
                let found = found.unwrap_or_else(|| panic!("step {step} has no {line}\n{shown}"));
                assert_eq!(found.task.to_string(), words[verb - 1], "step {step}: {line}\n{found}");
                let op = words.get(verb + 1).copied().unwrap_or_default();
                assert!(found.detail().contains(op), "step {step}: {line}\n{found}");
            }
        }
    }
}

fn assert_checks(text: &str) {
    let lines = trace::trace(text).unwrap_or_else(|error| {
        panic!("{error}\n{text}");
    });
    trace::check(&lines).unwrap_or_else(|violations| panic!("{violations:?}\n{text}"));
}

#[test]
fn each_step_keeps_its_budget_and_has_no_unsafe_code() {
    for (step, (budget, added_budget)) in (1..).zip(BUDGETS) {
        let (before, now) = (sources(step - 1), sources(step));
        let (mut total, mut added) = (0, 0);
        for (path, (from, text)) in &now {
            let lines = code(text);
            assert!(lines.len() <= FILE, "{path} of step {step}: {} lines", lines.len());
            assert!(!text.contains("unsafe"), "{path} of step {step}");
            if pages::is_given(text) {
                continue;
            }
            assert_ne!(*from, pages::GIVEN, "{path} does not say that it is given");
            total += lines.len();
            if *from < step {
                continue;
            }
            let earlier = before.get(path).map(|(_, text)| code(text)).unwrap_or_default();
            let diff = TextDiff::from_slices(&earlier, &lines);
            let is_new =
                |change: &similar::Change<&str>| change.tag() == similar::ChangeTag::Insert;
            added += diff.iter_all_changes().filter(is_new).count();
        }
        println!("step {step}: {total} lines of code, {added} of them new");
        assert!(total <= budget, "step {step} has {total} lines of code");
        assert!(added <= added_budget, "step {step} adds {added} lines of code");
    }
}

/// A server of the course. It ends with the test.
struct Server {
    child: Child,
    address: SocketAddr,
    log: thread::JoinHandle<String>,
}

impl Server {
    fn start(step: u32, args: &[&str]) -> Server {
        let mut command = Command::new(program(step));
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child::spawn(&mut command);
        let mut said = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
        let address = said.trim().strip_prefix("listening on ").expect(&said).parse().unwrap();
        let mut out = child.stdout.take().unwrap();
        let log = thread::spawn(move || {
            let mut log = String::new();
            out.read_to_string(&mut log).unwrap();
            log
        });
        Server { child, address, log }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).unwrap()
    }

    /// Ctrl-C.
    fn interrupt(&self) {
        self.child.send("INT");
    }

    /// Waits for the end of the server. Checks and returns its log.
    fn end(mut self) -> String {
        let status = self.child.wait().unwrap();
        let log = self.log.join().unwrap();
        assert!(status.success(), "{log}");
        assert_checks(&log);
        log
    }
}

/// Sends this many messages, one after the other, and reads each back.
fn echo(mut stream: TcpStream, count: usize) {
    for number in 0..count {
        let sent = format!("message {number:05}\n");
        stream.write_all(sent.as_bytes()).unwrap();
        let mut read = vec![0; sent.len()];
        stream.read_exact(&mut read).unwrap();
        assert_eq!(read, sent.as_bytes());
    }
}

fn count(log: &str, words: &str) -> usize {
    log.lines().filter(|line| line.contains(words)).count()
}

#[test]
fn the_seventh_step_registers_each_descriptor_once() {
    let server = Server::start(7, &["2"]);
    let (one, other) = (server.connect(), server.connect());
    thread::scope(|scope| {
        scope.spawn(|| echo(one, 20));
        scope.spawn(|| echo(other, 20));
    });
    let log = server.end();
    for alias in ["l1", "c1", "c2"] {
        assert!(count(&log, &format!(" register {alias} ")) <= 1, "{log}");
    }
    assert_eq!(count(&log, "write = 14"), 40);
}

#[test]
fn the_last_step_echoes_ten_thousand_messages() {
    let server = Server::start(12, &["echo", "127.0.0.1:0"]);
    thread::scope(|scope| {
        for _ in 0..4 {
            let stream = server.connect();
            scope.spawn(move || echo(stream, 2500));
        }
    });
    server.interrupt();
    let log = server.end();
    assert_eq!(count(&log, "write = 14"), 10_000);
}

/// Reads one response with a body of known length.
fn answer(reader: &mut BufReader<TcpStream>) -> (String, String) {
    let (mut status, mut length) = (String::new(), 0);
    reader.read_line(&mut status).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (status.trim().to_owned(), String::from_utf8(body).unwrap())
}

#[test]
fn the_last_step_answers_a_thousand_requests_and_drains() {
    let server = Server::start(12, &["http", "127.0.0.1:0"]);
    let mut readers: Vec<_> = (0..4).map(|_| BufReader::new(server.connect())).collect();
    for number in 0..1000 {
        let reader = &mut readers[number % 4];
        reader.get_mut().write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let (status, body) = answer(reader);
        assert_eq!((&*status, &*body), ("HTTP/1.1 200 OK", "Hello from the course.\n"));
    }
    server.interrupt();
    let log = server.end();
    assert_eq!(count(&log, "phase drain"), 1, "{log}");
    assert_eq!(count(&log, "read = 0"), 0, "what is idle is closed by the server");
}

#[test]
fn the_last_step_refuses_requests_that_it_does_not_understand() {
    let server = Server::start(12, &["http", "127.0.0.1:0"]);
    let cases = [
        ("GET /x HTTP/1.1\r\nHost: a\r\n\r\n", "404 Not Found"),
        ("GET / HTTP/1.1\r\n\r\n", "400 Bad Request"),
        ("nonsense\r\n\r\n", "400 Bad Request"),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", "413 Content Too Large"),
        ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "501 Not Implemented"),
    ];
    for (request, status) in cases {
        let mut reader = BufReader::new(server.connect());
        reader.get_mut().write_all(request.as_bytes()).unwrap();
        assert_eq!(answer(&mut reader).0, format!("HTTP/1.1 {status}"), "{request}");
    }
    server.interrupt();
    server.end();
}

/// The sources of three lessons, unchanged, are compiled with the kernel of the last step in the
/// place of the real one, and print the same bytes.
#[test]
fn three_lessons_print_the_same_bytes_on_the_last_step_as_on_the_real_kernel() {
    for name in ["hello", "nested", "linger"] {
        let ran = child::output(Command::new(program(STEPS)).args(["--lesson", name]));
        assert!(ran.status.success(), "{name}: {}", String::from_utf8_lossy(&ran.stderr));
        support::compare(name, &String::from_utf8(ran.stdout).unwrap());
    }
}
