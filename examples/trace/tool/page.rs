//! `timeline`: one page with all that it needs inside.

use super::model::Trace;
use super::pack::{Beside, pack};
use super::perfetto::quoted;
use super::scopes::scopes;
use super::waits::{lates, waits};

/// One script, in the order in which its parts need each other. It begins when the data is there.
const SCRIPT: &str = concat!(
    include_str!("../timeline/data.js"),
    include_str!("../timeline/lanes.js"),
    include_str!("../timeline/axis.js"),
    include_str!("../why.js"),
    include_str!("../timeline/labels.js"),
    include_str!("../timeline/scopes.js"),
    include_str!("../timeline/waits.js"),
    include_str!("../timeline/rows.js"),
    include_str!("../timeline/flow.js"),
    include_str!("../timeline/draw.js"),
    include_str!("../timeline/density.js"),
    include_str!("../timeline/strip.js"),
    include_str!("../timeline/marks.js"),
    include_str!("../timeline/arrows.js"),
    include_str!("../timeline/panel.js"),
    include_str!("../timeline/tree.js"),
    include_str!("../timeline/range.js"),
    include_str!("../timeline/search.js"),
    include_str!("../timeline/input.js"),
    include_str!("../timeline/check.js"),
);

/// The page.
pub fn page(trace: &Trace) -> String {
    let title = trace.header.as_deref().unwrap_or("a trace").trim_start_matches("#trace ");
    let parts = [
        ("{{style}}", include_str!("../timeline/page.css").to_owned()),
        ("{{unpack}}", include_str!("../timeline/unpack.js").to_owned()),
        ("{{script}}", SCRIPT.to_owned()),
        ("{{title}}", title.replace(['<', '&'], "_")),
        ("{{data}}", data(trace)),
    ];
    let mut page = include_str!("../timeline/page.html").to_owned();
    for (place, text) in parts {
        page = page.replace(place, &text);
    }
    page
}

/// The trace, packed: beside its lines and tasks the `clock`; `spans` as `[task, name, from, to]`;
/// `notes` as `[place, text]`; and lists of scopes, waits and late timers.
fn data(trace: &Trace) -> String {
    let is_real = trace.header.as_ref().is_some_and(|header| header.contains(" clock=real"));
    let clock = if is_real { "real" } else { "virtual" };
    let spans = trace
        .spans
        .iter()
        .map(|span| format!("[{},{},{},{}]", span.task, quoted(&span.name), span.from, span.to));
    let notes = (0..trace.lines.len()).filter(|n| trace.lines[*n].verb == "note");
    let notes = notes.map(|n| format!("[{n},{}]", quoted(trace.lines[n].detail())));
    let [spans, notes] = [spans.collect::<Vec<_>>(), notes.collect()].map(|list| list.join(","));
    let scopes =
        scopes(trace).iter().map(|each| [each.from, each.to, each.left as usize]).collect();
    let waits = waits(trace).iter().map(|each| [each.from, each.to, each.ended as usize]).collect();
    let lates = lates(trace).into_iter().map(|each| [each.set, each.fired, each.micros as usize]);
    let head = format!(r#""clock":"{clock}","spans":[{spans}],"notes":[{notes}]"#);
    pack(trace, &Beside { head, lists: vec![scopes, waits, lates.collect()] })
}
