//! `timeline`: a self-contained page.

use std::collections::BTreeMap;
use std::io;

use super::locks::{Deadlock, deadlock, links};
use super::model::Trace;
use super::pack::{Beside, Lists, pack};
use super::perfetto::quoted;
use super::scopes::scopes;
use super::waits::{lates, waits};

/// One script, in the order of the dependencies of its parts. It begins when the data has been
/// loaded.
const SCRIPT: &str = concat!(
    include_str!("../timeline/data.js"),
    include_str!("../timeline/faults.js"),
    include_str!("../timeline/lanes.js"),
    include_str!("../timeline/axis.js"),
    include_str!("../why.js"),
    include_str!("../timeline/labels.js"),
    include_str!("../timeline/scopes.js"),
    include_str!("../timeline/waits.js"),
    include_str!("../timeline/rows.js"),
    include_str!("../timeline/flow.js"),
    include_str!("../timeline/cast.js"),
    include_str!("../timeline/ribbon.js"),
    include_str!("../timeline/draw.js"),
    include_str!("../timeline/density.js"),
    include_str!("../timeline/lengths.js"),
    include_str!("../timeline/strip.js"),
    include_str!("../timeline/marks.js"),
    include_str!("../timeline/arrows.js"),
    include_str!("../timeline/locks.js"),
    include_str!("../timeline/panel.js"),
    include_str!("../timeline/tree.js"),
    include_str!("../timeline/states.js"),
    include_str!("../timeline/picture.js"),
    include_str!("../timeline/cards.js"),
    include_str!("../timeline/boxes.js"),
    include_str!("../timeline/program.js"),
    include_str!("../timeline/motion.js"),
    include_str!("../timeline/steps.js"),
    include_str!("../timeline/columns.js"),
    include_str!("../timeline/present.js"),
    include_str!("../timeline/playing.js"),
    include_str!("../timeline/life.js"),
    include_str!("../timeline/address.js"),
    include_str!("../timeline/range.js"),
    include_str!("../timeline/search.js"),
    include_str!("../timeline/input.js"),
    include_str!("../timeline/check.js"),
    include_str!("../timeline/legend.js"),
);

const STYLE: &str = concat!(
    include_str!("../timeline/page.css"),
    include_str!("../timeline/state.css"),
    include_str!("../timeline/present.css"),
);

/// Writes the page, with the texts of these files of the program.
///
/// # Errors
///
/// Returns the error of `out`.
pub fn page(
    trace: &Trace,
    sources: &BTreeMap<String, String>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    fill(include_str!("../timeline/page.html"), out, |name, out| match name {
        "style" => out.write_all(STYLE.as_bytes()),
        "columns" => out.write_all(include_bytes!("../timeline/columns.html")),
        "unpack" => out.write_all(include_bytes!("../timeline/unpack.js")),
        "script" => out.write_all(SCRIPT.as_bytes()),
        "title" => {
            let title = trace.header.as_deref().unwrap_or("a trace");
            let title = title.trim_start_matches("#trace ").replace(['<', '&'], "_");
            out.write_all(title.as_bytes())
        }
        "data" => pack(trace, beside(trace, sources), out),
        other => unreachable!("the page has {other}"),
    })
}

/// Writes a page with its parts: `part` writes each `{{name}}`.
///
/// # Errors
///
/// Returns the error of `part` or of `out`.
pub fn fill(
    page: &str,
    out: &mut dyn io::Write,
    mut part: impl FnMut(&str, &mut dyn io::Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("the page closes what it opens");
        out.write_all(before.as_bytes())?;
        part(name, out)?;
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

/// Whether time passes by itself in a trace.
pub fn is_real(trace: &Trace) -> bool {
    trace.header.as_ref().is_some_and(|header| header.contains(" clock=real"))
}

/// In addition to the lines and the tasks: for a dump, the place where it `begins` after its head,
/// the place of the line that it is `about`, and whether the watchdog made it (`watched`); whether
/// the lines were `selected`; the `clock`; whether it is `timed`; `spans` as `[task, name, from,
/// to]`; `notes` as `[place, text]`; `faults` as sentences; `sources` by name; and lists of scopes,
/// waits, late timers and long runs, and of links from a wait to a holder: `wait`, `from` and the
/// holder; `wait` and `to`.
fn beside(trace: &Trace, sources: &BTreeMap<String, String>) -> Beside {
    let clock = if is_real(trace) { "real" } else { "virtual" };
    let spans = trace
        .spans
        .iter()
        .map(|span| format!("[{},{},{},{}]", span.task, quoted(&span.name), span.from, span.to));
    let notes = (0..trace.len()).filter(|n| trace.verb(*n) == "note");
    let notes = notes.map(|n| format!("[{n},{}]", quoted(trace.line(n).detail())));
    let faults = trace.whole.faults();
    let faults = faults.iter().map(|fault| quoted(fault));
    let files = sources.iter().map(|(name, text)| format!("{}:{}", quoted(name), quoted(text)));
    let [spans, notes, faults, files] =
        [spans.collect::<Vec<_>>(), notes.collect(), faults.collect(), files.collect()]
            .map(|list| list.join(","));
    let head = format!(
        r#""clock":"{clock}","timed":{},"spans":[{spans}],"notes":[{notes}],"#,
        trace.is_timed
    );
    let head = format!(r#"{head}"faults":[{faults}],"#);
    let about = trace.cause_of_dump().map_or("null".to_owned(), |place| place.to_string());
    let (begins, selected) = (trace.begin(), trace.whole.is_selection());
    let watched = trace.whole.cause() == Some("watchdog");
    let head = format!(r#"{head}"begins":{begins},"about":{about},"selected":{selected},"#);
    let head = format!(r#"{head}"watched":{watched},"#);
    let head = format!(r#"{head}"sources":{{{files}}},{}"#, stuck(trace));
    let mut lists = Lists::default();
    lists.add(scopes(trace).iter().map(|each| [each.from, each.to, each.left as usize]));
    lists.add(waits(trace).iter().map(|each| [each.from, each.to, each.ended as usize]));
    lists.add(lates(trace).into_iter().map(|each| [each.set, each.fired, each.micros as usize]));
    lists.add(trace.long_runs().map(|(run, ran)| [run, run, ran.as_micros() as usize]));
    let links = links(trace);
    lists.add(links.iter().map(|link| [link.wait, link.from, link.holder as usize]));
    lists.add(links.iter().map(|link| [link.wait, link.to, 0]));
    Beside { head, lists }
}

/// For deadlocks: the `hang`, as a place; how many tasks were `hung` in circles then; `circles` as
/// `[[wait, holder], ..]`; and their words.
fn stuck(trace: &Trace) -> String {
    let Deadlock { at, is_hang, tasks, circles, words } = deadlock(trace);
    let hang = if is_hang { at.to_string() } else { "null".to_owned() };
    let circles = circles.iter().map(|circle| {
        let waits = circle.iter().map(|(wait, holder)| format!("[{wait},{holder}]"));
        format!("[{}]", waits.collect::<Vec<_>>().join(","))
    });
    let (circles, words) = (circles.collect::<Vec<_>>().join(","), quoted(&words));
    format!(r#""hang":{hang},"hung":{tasks},"circles":[{circles}],"stuck":{words}"#)
}
