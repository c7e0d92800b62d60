//! Counts that repeat: instructions, system calls, allocations. Each is compared with a line of
//! `counts.txt`, which also has the reason for the integer.
//!
//! Every count is the difference of two lengths of the same work, divided by the additional
//! operations of the longer one, so that it does not include starting, warming up and growing.
//! Instructions are those of user space, by callgrind; allocations are those of valgrind's
//! memcheck; system calls are strace's. Files are those of `traps` and `kernel` whose code
//! callgrind finds.

mod drive;
mod file;
mod growth;
mod own;
mod page;
mod probes;
mod redis;
mod server;
pub mod tools;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use file::{File, Line, Mode};
use probes::{Found, Probe};

use crate::out;

/// How often a count that misses its line is taken again, because a tick of the clock or a slow
/// client can add some instructions once.
const TRIES: usize = 3;

/// The command `bench counts [--write] [--without-trace PROGRAM] [WORD]`, and the commands of its
/// child processes.
pub fn command(words: &[&str]) -> ExitCode {
    match run(words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            out::note(format!("bench counts: {message}"));
            ExitCode::from(2)
        }
    }
}

#[derive(Debug, Default)]
struct Asked<'a> {
    write: bool,
    list: bool,
    without_trace: Option<&'a str>,
    filter: Option<&'a str>,
}

fn parse<'a>(words: &[&'a str]) -> Result<Asked<'a>, String> {
    let mut asked = Asked::default();
    let mut left = words.iter();
    while let Some(word) = left.next() {
        match *word {
            "--write" => asked.write = true,
            "--list" => asked.list = true,
            "--without-trace" => {
                let path = left.next().ok_or("expected a program after --without-trace")?;
                asked.without_trace = Some(path);
            }
            word if word.starts_with('-') => {
                return Err(format!("no option `{word}`; see --help"));
            }
            word if asked.filter.is_none() => asked.filter = Some(word),
            word => return Err(format!("expected one WORD, not `{word}` too")),
        }
    }
    let alone = asked.list && words.len() > 1 || asked.without_trace.is_some() && words.len() > 2;
    if alone {
        return Err("--list and --without-trace PROGRAM go alone".to_owned());
    }
    Ok(asked)
}

fn run(words: &[&str]) -> Result<bool, String> {
    match words {
        ["growth", name, n] => return growth::child(name, n),
        ["redis-beside"] => return redis::beside(),
        ["sleeps", n] => return own::sleep_often(n),
        ["echo", rest @ ..] => return own::echo(rest == ["--timeouts"]),
        _ => {}
    }
    let asked = parse(words)?;
    let all = probes::all()?;
    let names: Vec<String> = all.iter().flat_map(Probe::names).collect();
    if asked.list {
        let all: Vec<String> = names.into_iter().chain(growth::names()).collect();
        out::say(&format!("{}\n", all.join("\n")))?;
        return Ok(true);
    }
    let wanted = |probe: &Probe| {
        asked.filter.is_none_or(|word| probe.names().iter().any(|name| name.contains(word)))
    };
    let probes: Vec<Probe> = all.into_iter().filter(wanted).collect();
    let grows = asked.filter.is_none_or(|word| growth::names().any(|name| name.contains(word)));
    if let Some(word) = asked.filter.filter(|_| probes.is_empty() && !grows) {
        let list = "`bench counts --list` lists them";
        return Err(format!("no count has `{word}` in its name; {list}"));
    }
    tools::check(["valgrind", "strace", "chrt"])?;
    if cfg!(debug_assertions) {
        return Err(
            "this is a build for debugging; the counts are of one with --release".to_owned()
        );
    }
    if let Some(other) = asked.without_trace {
        return probes::compare_trace(Path::new(other));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("counts.txt");
    let mut lines = File::read(&path)?;
    probes::build(&probes)?;
    let same = lines.compiler == env!("BENCH_COMPILER");
    if asked.write {
        if !same && asked.filter.is_some() {
            let (theirs, ours) = (&lines.compiler, env!("BENCH_COMPILER"));
            return Err(format!(
                "the lines are of {theirs}, and this is {ours}: write all of them"
            ));
        }
        for found in tools::on_all_cores(&probes, Probe::take)?.into_iter().flatten() {
            let (name, count) = (&found.name, found.count);
            out::say(&format!("{name:<28} {count:>8}\n"))?;
            lines.set(name, found.mode, count, same || !found.is_instructions());
        }
        lines.compiler = env!("BENCH_COMPILER").to_owned();
        lines.write(&path)?;
        page::write(&lines)?;
        for fault in lines.faults(&names) {
            out::say(&format!("{fault}; until then `bench counts` fails\n"))?;
        }
        return Ok(true);
    }
    let faults = lines.faults(&names);
    let mut sound = faults.is_empty();
    for fault in faults {
        out::say(&format!("{fault}  FAILS\n"))?;
    }
    let kept = tools::on_all_cores(&probes, |probe| check(&lines, probe, same))?;
    sound &= kept.into_iter().all(|kept| kept);
    if grows {
        sound &= growth::check(asked.filter)?;
    }
    if !same {
        out::say(&format!(
            "\n!! NOT CHECKED: instructions. The lines are those of {},\n\
             !! and this program was built by {}.\n",
            lines.compiler,
            env!("BENCH_COMPILER")
        ))?;
    }
    Ok(sound)
}

/// The result of comparing a count with its line.
#[derive(Debug, PartialEq)]
enum Verdict {
    Keeps,
    /// It passes, repeats, and is well below.
    Below,
    Fails,
}

fn judge(line: &Line, found: &Found) -> Verdict {
    let count = found.count;
    match line.mode {
        _ if count > line.most() => Verdict::Fails,
        Mode::Exact if count < line.count => Verdict::Fails,
        Mode::Most if found.repeats && count * 100 < line.count * 99 => Verdict::Below,
        Mode::Near if found.is_instructions() && count * 100 < line.count * 94 => Verdict::Below,
        _ => Verdict::Keeps,
    }
}

/// Takes a probe's counts, some of them again, and compares each with its line.
fn check(lines: &File, probe: &Probe, same_compiler: bool) -> Result<bool, String> {
    let mut best = probe.take()?;
    let held = |found: &Found| same_compiler || !found.is_instructions();
    let fails = |found: &Found| {
        let line = lines.line(&found.name);
        held(found) && line.is_none_or(|line| matches!(judge(line, found), Verdict::Fails))
    };
    for _ in 1..TRIES {
        if !best.iter().any(fails) {
            break;
        }
        for (best, again) in best.iter_mut().zip(probe.take()?) {
            if fails(best) && (!fails(&again) || again.count < best.count) {
                *best = again;
            }
        }
    }
    let (mut sound, mut text) = (true, String::new());
    for found in &best {
        let (name, count) = (&found.name, found.count);
        let Some(line) = lines.line(name) else {
            let _ = writeln!(text, "{name:<28} {count:>8}  NO LINE in counts.txt");
            sound = false;
            continue;
        };
        let reason = &line.reason;
        let verdict = match judge(line, found) {
            _ if !held(found) => "only reported".to_owned(),
            Verdict::Keeps => "ok".to_owned(),
            Verdict::Below => "ok; LOWER THE LINE: it is well below".to_owned(),
            Verdict::Fails => {
                sound = false;
                format!("FAILS\n    its line: {reason}")
            }
        };
        let (most, mode) = (line.count, line.mode.word());
        let _ = writeln!(text, "{name:<28} {count:>8}  of {most:>8} {mode:<5}  {verdict}");
    }
    out::say(&text)?;
    Ok(sound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(mode: Mode) -> Line {
        Line { name: "a".to_owned(), count: 1000, mode, reason: "why".to_owned() }
    }

    fn verdict(mode: Mode, repeats: bool, count: u64) -> Verdict {
        judge(&line(mode), &Found { name: "a".to_owned(), count, mode, repeats })
    }

    #[test]
    fn a_count_is_held_to_its_line() {
        for (mode, count, kept) in [
            (Mode::Most, 1001, Verdict::Fails),
            (Mode::Most, 1000, Verdict::Keeps),
            (Mode::Near, 1030, Verdict::Keeps),
            (Mode::Near, 1031, Verdict::Fails),
            (Mode::Exact, 1000, Verdict::Keeps),
            (Mode::Exact, 1001, Verdict::Fails),
            (Mode::Exact, 999, Verdict::Fails),
        ] {
            assert_eq!(verdict(mode, true, count), kept, "{mode:?} {count}");
        }
    }

    #[test]
    fn only_a_line_whose_count_repeats_is_to_be_lowered() {
        assert_eq!(verdict(Mode::Most, true, 989), Verdict::Below);
        assert_eq!(verdict(Mode::Most, true, 990), Verdict::Keeps);
        assert_eq!(verdict(Mode::Most, false, 0), Verdict::Keeps);
        assert_eq!(verdict(Mode::Near, true, 0), Verdict::Keeps);
    }

    #[test]
    fn the_file_has_a_line_for_every_count_and_no_other_faults() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("counts.txt");
        let file = File::read(&path).unwrap();
        let all = probes::all().unwrap();
        let names: Vec<String> = all.iter().flat_map(Probe::names).collect();
        assert_eq!(file.faults(&names), Vec::<String>::new());
        let missing: Vec<&String> = names.iter().filter(|name| file.line(name).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
