//! Everything that is measured, in one table.

use std::fs::{self, OpenOptions};
use std::path::Path;

use crate::beside::{self, Asked, WORKLOADS, memory, speed};
use crate::counts::tools;
use crate::occasion::Occasion;
use crate::report::Row;
use crate::{Words, micro, out, report, servers, summary, sys, value};

/// The rows to measure, and the place of the JSON.
struct Command {
    asked: Asked,
    timed: bool,
    counted: bool,
    wrk: bool,
    json: String,
}

fn command(words: &mut Words<'_>) -> Result<Command, String> {
    let asked = Asked { quick: false, only: None, peers: Vec::new() };
    let json = "bench.json".to_owned();
    let mut found = Command { asked, timed: true, counted: false, wrk: false, json };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => found.asked.quick = true,
            "--counts" => found.counted = true,
            "--counts-only" => (found.counted, found.timed) = (true, false),
            "--wrk" => found.wrk = true,
            "--only" => found.asked.only = Some(value(word, "a part of a figure's name", words)?),
            "--json" => found.json = value(word, "a file", words)?,
            "--peers" => {
                let names: String = value(word, "names of servers, with commas between", words)?;
                found.asked.peers = names.split(',').map(str::to_owned).collect();
                for name in &found.asked.peers {
                    servers::named(name).map_err(|error| format!("{word}: {error}"))?;
                }
            }
            other => return Err(format!("no command or option `{other}`; see --help")),
        }
    }
    Ok(found)
}

impl Command {
    /// The small operations have other peers, so with names of servers they are left out.
    fn micro(&self) -> bool {
        self.timed && self.asked.peers.is_empty()
    }

    /// Checks, before anything is measured, that there is something to measure, that the tools
    /// exist, and that the JSON can be written.
    fn check(&self) -> Result<(), String> {
        if let Some(text) = &self.asked.only {
            let served = WORKLOADS.iter().any(|load| self.asked.wants(load.name));
            let idle = self.timed && self.asked.wants(memory::FIGURE);
            if !(served || idle || self.micro() && micro::has(text)) {
                let among = if self.micro() { "" } else { " among those of servers" };
                return Err(format!(
                    "--only: no figure{among} has `{text}` in its name; `bench figures` lists them"
                ));
            }
        }
        let wrk = self.wrk.then_some("wrk");
        let counting = if self.counted { &["valgrind", "strace"][..] } else { &[] };
        tools::check(counting.iter().copied().chain(wrk))?;
        can_be_written(Path::new(&self.json))
    }

    /// The measurements go to `rows`, even if an error ends it.
    fn measure(&self, rows: &mut Vec<Row>) -> Result<(), String> {
        let say = |error: std::io::Error| error.to_string();
        sys::raise_descriptors().map_err(say)?;
        if self.micro() {
            // Do this before this thread is pinned, because its child processes would be pinned
            // too.
            rows.extend(micro::rows(self.asked.only.as_deref(), self.asked.quick));
        }
        // The load and the measuring run on the first core, servers on the last.
        sys::pin(0).map_err(say)?;
        if sys::cores() < 2 {
            out::note("one core alone: the load and the server share it: the times mean little");
        }
        if self.counted {
            rows.extend(beside::counts::rows(&self.asked));
        }
        if self.timed {
            rows.extend(memory::rows(&self.asked).map_err(say)?);
            speed::measure(&self.asked, rows).map_err(say)?;
        }
        Ok(())
    }
}

/// Whether a file can be written. Leaves the file as it was.
fn can_be_written(path: &Path) -> Result<(), String> {
    let is_new = !path.exists();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| format!("--json: {}: {error}", path.display()))?;
    if is_new {
        // A failing run leaves no empty file.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// The command `bench [OPTION]...`.
///
/// # Errors
///
/// An error in the words, a missing tool, or a failed measurement.
pub fn measure(words: &mut Words<'_>) -> Result<(), String> {
    let command = command(words)?;
    command.check()?;
    out::warn_of_debugging();
    let occasion = Occasion::begin(command.asked.quick);
    let mut rows = Vec::new();
    let done = command.measure(&mut rows);
    if rows.is_empty() {
        done?;
        return Err(format!("nothing could be measured; {} is as it was", command.json));
    }
    let order = |row: &Row| {
        let sections = ["Instructions in user space", "System calls", "Memory"];
        sections.iter().position(|name| *name == row.section).unwrap_or(sections.len())
    };
    rows.sort_by_key(|row| (order(row), row.section));
    // Write the file first, because the reader of the table may go away.
    let json = &command.json;
    let text = report::json(&occasion.json(), &rows);
    fs::write(json, text).map_err(|error| format!("{json}: {error}"))?;
    out::say(&occasion.line())?;
    out::say(&report::table(&rows))?;
    out::say(&summary::summary(&rows))?;
    done?;
    if command.wrk {
        out::say(&beside::wrk::table(&command.asked).map_err(|error| format!("wrk: {error}"))?)?;
    }
    Ok(())
}

/// The command `bench figures`.
///
/// # Errors
///
/// There is a word more.
pub fn figures(words: &[&str]) -> Result<(), String> {
    if let Some(word) = words.first() {
        return Err(format!("expected nothing after `figures`, not `{word}`"));
    }
    let served = WORKLOADS.iter().map(|load| load.name).chain([memory::FIGURE]);
    served.chain(micro::figures()).try_for_each(|name| out::say(&format!("{name}\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Command, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        command(&mut words.iter())
    }

    #[test]
    fn a_text_that_no_figure_has_is_an_error_that_names_it() {
        for (words, text) in [
            (&["--only", "nosuch"][..], "nosuch"),
            (&["--only", "yield", "--counts-only"], "yield"),
            (&["--only", "yield", "--peers", "tokio"], "yield"),
        ] {
            let error = parsed(words).unwrap().check().unwrap_err();
            assert!(error.contains(&format!("`{text}`")), "{error}");
            assert!(error.contains("bench figures"), "{error}");
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_an_error_that_lists_those_that_are() {
        let error = parsed(&["--peers", "tokio,nosuch"]).err().unwrap();
        assert!(error.contains("`nosuch`") && error.contains("trapline-http, epoll"), "{error}");
    }

    #[test]
    fn looking_whether_a_file_can_be_written_leaves_no_file_and_no_change() {
        let folder =
            std::env::temp_dir().join(format!("trapline-bench-test-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let (new, old) = (folder.join("new.json"), folder.join("old.json"));
        fs::write(&old, "before").unwrap();
        let found = [&new, &old, &folder.join("none/x.json")].map(|path| can_be_written(path));
        let after = (new.exists(), fs::read_to_string(&old).unwrap());
        fs::remove_dir_all(&folder).unwrap();
        assert!(found[0].is_ok() && found[1].is_ok() && found[2].is_err(), "{found:?}");
        assert_eq!(after, (false, "before".to_owned()));
    }
}
