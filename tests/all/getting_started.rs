//! The five programs of "Getting started" compile, the last one passes its test, and the page shows
//! them as they are.

#![allow(dead_code, reason = "nobody calls `main` of a step")]

mod step_1;
mod step_2;
mod step_3;
mod step_4;
mod step_5;

const STEPS: [&str; 5] = [
    include_str!("getting_started/step_1.rs"),
    include_str!("getting_started/step_2.rs"),
    include_str!("getting_started/step_3.rs"),
    include_str!("getting_started/step_4.rs"),
    include_str!("getting_started/step_5.rs"),
];

const PAGE: &str = include_str!("../../kernel/src/guide/start.md");

/// Returns the block after that remark.
fn block(remark: &str) -> &'static str {
    let block = PAGE.split(remark).nth(1).expect("it is there").split("```").nth(1).unwrap();
    block.split_once('\n').unwrap().1
}

#[test]
fn the_page_shows_each_step_as_it_is() {
    let shown =
        |step: usize| block(&format!("<!-- program: tests/all/getting_started/step_{step}.rs -->"));
    for step in 1..5 {
        assert_eq!(shown(step), STEPS[step - 1], "step {step}");
    }
    // The last step extends the previous one.
    assert_eq!(format!("{}\n{}", STEPS[3], shown(5)), STEPS[4]);
}

#[test]
fn the_table_of_the_guide_has_each_feature() {
    for (name, manifest) in [
        ("traps", include_str!("../../traps/Cargo.toml")),
        ("kernel", include_str!("../../kernel/Cargo.toml")),
        ("net", include_str!("../../net/Cargo.toml")),
    ] {
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap();
        let features = manifest.split("[features]\n").nth(1).unwrap().split("\n[").next().unwrap();
        let keys = features.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key);
        for key in keys.filter(|key| *key != "default" && !key.starts_with('#')) {
            assert!(row.contains(&format!("`{key}`")), "{name}: the table lacks `{key}`");
        }
    }
}

#[test]
fn the_packages_of_the_guide_are_called_so() {
    let manifest = block("## An empty crate");
    let packages = [
        ("traps", include_str!("../../traps/Cargo.toml")),
        ("kernel", include_str!("../../kernel/Cargo.toml")),
        ("net", include_str!("../../net/Cargo.toml")),
    ];
    for (name, package) in packages {
        let named = format!("trapline-{name}");
        assert!(package.contains(&format!("name = \"{named}\"\n")), "{named}");
        let path = format!("path = \"../trapline/{name}\"");
        let line = format!("{name} = {{ package = \"{named}\", {path} }}");
        assert!(manifest.contains(&line), "{line}");
    }
}
