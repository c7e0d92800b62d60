//! `timeline`: one page with all that it needs inside.

use std::fmt::Write as _;

use super::model::Trace;
use super::perfetto::quoted;
use super::scopes::scopes;
use super::waits::{lates, waits};

/// One script, in the order in which its parts need each other.
const SCRIPT: &str = concat!(
    include_str!("../timeline/data.js"),
    include_str!("../timeline/lanes.js"),
    include_str!("../timeline/axis.js"),
    include_str!("../why.js"),
    include_str!("../timeline/labels.js"),
    include_str!("../timeline/scopes.js"),
    include_str!("../timeline/waits.js"),
    include_str!("../timeline/draw.js"),
    include_str!("../timeline/marks.js"),
    include_str!("../timeline/arrows.js"),
    include_str!("../timeline/panel.js"),
    include_str!("../timeline/tree.js"),
    include_str!("../timeline/search.js"),
    include_str!("../timeline/input.js"),
    include_str!("../timeline/check.js"),
);

/// The page.
pub fn page(trace: &Trace) -> String {
    let title = trace.header.as_deref().unwrap_or("a trace").trim_start_matches("#trace ");
    let parts = [
        ("{{style}}", include_str!("../timeline/page.css").to_owned()),
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

/// The trace as JSON: `lines` as text; `at`, `turn`, `task` and `behind` (a place, or -1) for each;
/// `tasks` as `[id, name, pieces, ended]`, with pieces `state, from, to` in one flat list; `spans`
/// as `[task, name, from, to]`; `notes` as `[place, text]`.
fn data(trace: &Trace) -> String {
    let list =
        |of: &dyn Fn(usize) -> String| (0..trace.lines.len()).map(of).collect::<Vec<_>>().join(",");
    let lines = list(&|n| quoted(&trace.lines[n].to_string()));
    let at = list(&|n| trace.lines[n].at.as_micros().to_string());
    let turn = list(&|n| trace.lines[n].turn.to_string());
    let task = list(&|n| trace.lines[n].task.to_string());
    let behind = list(&|n| trace.cause(n).map_or("-1".to_owned(), |place| place.to_string()));
    let mut tasks = Vec::new();
    for task in trace.tasks.values() {
        let mut pieces = String::new();
        for piece in &task.pieces {
            let comma = if pieces.is_empty() { "" } else { "," };
            let _ = write!(pieces, "{comma}{},{},{}", piece.state as u8, piece.from, piece.to);
        }
        let ends = |place: &&usize| trace.lines[**place].verb == "exit";
        let end = task.lines.iter().find(ends).map_or("-1".to_owned(), ToString::to_string);
        tasks.push(format!("[{},{},[{pieces}],{end}]", task.id, quoted(&task.name)));
    }
    let tasks = tasks.join(",");
    let spans = trace
        .spans
        .iter()
        .map(|span| format!("[{},{},{},{}]", span.task, quoted(&span.name), span.from, span.to));
    let notes = (0..trace.lines.len()).filter(|n| trace.lines[*n].verb == "note");
    let notes = notes.map(|n| format!("[{n},{}]", quoted(trace.lines[n].detail())));
    let [spans, notes] = [spans.collect::<Vec<_>>(), notes.collect()].map(|list| list.join(","));
    let each = |list: Vec<[usize; 3]>| {
        let each = list.iter().map(|[from, to, how]| format!("[{from},{to},{how}]"));
        each.collect::<Vec<_>>().join(",")
    };
    let scopes = scopes(trace).iter().map(|each| [each.from, each.to, each.left as usize]).collect();
    let waits = waits(trace).iter().map(|each| [each.from, each.to, each.ended as usize]).collect();
    let lates = lates(trace).into_iter().map(|each| [each.set, each.fired, each.micros as usize]);
    let [scopes, waits, lates] = [scopes, waits, lates.collect()].map(each);
    let columns = format!(r#""at":[{at}],"turn":[{turn}],"task":[{task}],"behind":[{behind}]"#);
    let said = format!(r#""spans":[{spans}],"notes":[{notes}],"scopes":[{scopes}],"waits":[{waits}],"lates":[{lates}]"#);
    format!(r#"{{"lines":[{lines}],{columns},"tasks":[{tasks}],{said}}}"#)
}
