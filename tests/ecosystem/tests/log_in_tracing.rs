//! The observer passes events with typed fields to a subscriber.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use kernel::{Kernel, Sim};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use trapline_ecosystem::ToTracing;
use traps::spawn;

/// An event as the subscriber got it.
#[derive(Debug, Default)]
struct Got {
    level: Option<Level>,
    numbers: BTreeMap<&'static str, u64>,
    texts: BTreeMap<&'static str, String>,
}

impl Visit for Got {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.numbers.insert(field.name(), value);
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.texts.insert(field.name(), value.to_owned());
    }
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.texts.insert(field.name(), format!("{value:?}"));
    }
}

#[derive(Clone, Default)]
struct Collect(Arc<Mutex<Vec<Got>>>);

impl<S: Subscriber> Layer<S> for Collect {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut got = Got { level: Some(*event.metadata().level()), ..Got::default() };
        event.record(&mut got);
        self.0.lock().unwrap().push(got);
    }
}

#[test]
fn the_fields_task_verb_and_cause_are_typed_and_a_cause_is_an_earlier_line() {
    let collect = Collect::default();
    let subscriber = tracing_subscriber::registry().with(collect.clone());
    tracing::subscriber::with_default(subscriber, || {
        let mut kernel = Kernel::new(Sim::new());
        kernel.observe(ToTracing);
        kernel.run(async { spawn("child", async {}).await.await.unwrap() }).unwrap();
    });
    let got = collect.0.lock().unwrap();
    let exits: Vec<&Got> = got.iter().filter(|got| got.texts["verb"] == "exit").collect();
    assert_eq!(exits.len(), 2, "{got:#?}");
    let (child, level) = (exits[0], exits[0].level.unwrap());
    assert_eq!((&*child.texts["name"], level), ("child", Level::DEBUG));
    let run = got.iter().find(|got| got.numbers["seq"] == child.numbers["cause"]).unwrap();
    assert_eq!(run.texts["verb"], "run");
    assert_eq!(run.numbers["task"], child.numbers["task"]);
    assert!(got.iter().any(|got| !got.numbers.contains_key("cause")), "a spawn has no cause");
}

#[test]
fn the_guide_has_the_observer_as_it_stands_here() {
    let source = include_str!("../src/lib.rs");
    let start = source.find("use kernel::").unwrap();
    let guide = include_str!("../../../kernel/src/guide/recipes.md");
    assert!(guide.contains(&source[start..]), "the recipe differs from src/lib.rs");
}
