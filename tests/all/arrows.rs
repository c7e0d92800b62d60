//! The architecture, asserted like behaviour: which crate or module may use which others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use support::root;
use testing::child;

/// The names under `[dependencies]` of a member's manifest, and under those of Unix alone.
fn dependencies(member: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap();
    let sections = text.split("\n[").filter_map(|section| {
        let name = section.strip_prefix("target.'cfg(unix)'.").unwrap_or(section);
        name.strip_prefix("dependencies]\n")
    });
    let lines = sections.flat_map(str::lines);
    let names = lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    names.map(|line| line.split(['.', ' ', '=']).next().unwrap().to_owned()).collect()
}

/// Every source file below a folder, with its text.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            // Skip build output.
            if path.is_dir() && !path.ends_with("target") {
                walk(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    found.sort();
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

/// Returns the lines of code, without comments.
fn code(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn arrows_point_at_traps_and_nowhere_else() {
    let net = ["traps", "socket2", "httpdate", "rustix", "matchit"];
    let web = ["form_urlencoded", "percent-encoding", "mime_guess"];
    let interop =
        ["futures-io", "hyper", "send_wrapper", "tokio", "listenfd", "serde_core", "serde_json"];
    for (member, always, optional) in [
        ("traps", &["pin-project-lite", "slab"][..], &["anyhow", "eyre", "futures-core"][..]),
        ("net", &[&net[..], &web].concat(), &interop),
    ] {
        let mut all = [always, optional].concat();
        let mut found = dependencies(member);
        all.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, all);
        let manifest = fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap();
        for name in optional {
            let line = format!("{name} = {{ workspace = true, optional = true }}\n");
            assert!(manifest.contains(&line), "{name} is always there");
        }
        assert!(!manifest.contains("default = "), "a feature is on by default");
    }
    assert_eq!(dependencies("kernel"), ["traps", "log", "mio", "libc"]);
}

/// What a first program is built from. A feature or a test must not bring a package into it.
#[test]
fn the_example_hello_is_built_from_24_crates() {
    let mut cargo = child::cargo();
    cargo.args(["tree", "--locked", "--offline", "--prefix", "none", "--edges", "normal,dev"]);
    cargo.args(["-p", "trapline-examples", "--target", "x86_64-unknown-linux-gnu"]);
    let ran = child::output_within(child::BUILD, cargo.current_dir(root()));
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let tree = String::from_utf8(ran.stdout).unwrap();
    let crates: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(crates.len(), 24, "{crates:#?}");
}

#[test]
fn net_does_not_know_the_kernel() {
    for (path, text) in sources("net/src") {
        // Its unit tests run on one.
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
        assert!(!code(text).contains("kernel::"), "kernel:: in {}", path.display());
        // `net` uses the tape of the seam, but not what a task and its kernel share. A test may
        // name a scope.
        for inner in code(text).split("traps::internal::").skip(1) {
            let path_of = inner.split(';').next().unwrap();
            let mut names = path_of.split(|c: char| !c.is_alphanumeric() && c != '_');
            let shared = ["gate", "protocol", "scope", "records", "wait", "deadlines", "signals"];
            let is_shared = names.any(|name| shared.contains(&name));
            let is_record = path_of.contains("table") && !path_of.starts_with("table::ScopeId");
            assert!(!is_shared && !is_record, "internal::{path_of:.40} in {}", path.display());
        }
    }
}

#[test]
fn the_floors_of_net_use_those_below() {
    for (path, text) in sources("net/src") {
        let is_in = |folder: &str| path.components().any(|part| part.as_os_str() == folder);
        let above: &[&str] = match (is_in("web"), is_in("http")) {
            (true, _) => &[],
            (_, true) => &["crate::web"],
            _ => &["crate::web", "crate::http"],
        };
        for floor in above {
            assert!(!code(&text).contains(floor), "{floor} in {}", path.display());
        }
    }
}

#[test]
fn only_the_real_machine_touches_the_world() {
    for word in ["mio::", "Instant::now", "SystemTime::now", "env::"] {
        for (path, text) in sources("kernel/src") {
            // The watchdog watches from outside, by the real clock.
            let allowed = ["real.rs", "signals.rs", "sys.rs", "taped.rs"]
                .iter()
                .any(|file| path.ends_with(format!("machine/{file}")))
                || path.ends_with("watchdog.rs") && word == "Instant::now";
            assert!(allowed || !code(&text).contains(word), "{word} in {}", path.display());
        }
    }
}

#[test]
fn the_cores_are_the_same_on_every_system() {
    for folder in ["traps/src/core", "kernel/src/core"] {
        for (path, text) in sources(folder) {
            for word in ["target_", "unix", "windows"] {
                assert!(!code(&text).contains(word), "{word} in {}", path.display());
            }
        }
    }
}

#[test]
fn unsafe_lives_in_one_file() {
    for folder in ["traps", "net", "kernel", "examples", "tests"] {
        for (path, text) in sources(folder) {
            let allowed = path.ends_with("machine/sys.rs");
            // Some tests have the word in a string.
            let found = code(&text)
                .replace("\"unsafe", "")
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|word| word == "unsafe");
            assert!(allowed || !found, "unsafe in {}", path.display());
        }
    }
    for member in ["traps", "net"] {
        let text = fs::read_to_string(root().join(member).join("src/lib.rs")).unwrap();
        assert!(text.contains("#![forbid(unsafe_code)]"), "{member}");
    }
}

#[test]
fn no_hash_map_can_reach_the_order_of_events() {
    for folder in ["traps/src", "net/src", "kernel/src"] {
        for (path, text) in sources(folder) {
            for word in ["HashMap", "HashSet"] {
                assert!(!code(&text).contains(word), "{word} in {}", path.display());
            }
        }
    }
}

#[test]
fn the_head_of_the_kernel_names_each_of_its_files() {
    let folder = root().join("kernel/src");
    let head = fs::read_to_string(folder.join("lib.rs")).unwrap();
    for (path, _) in sources("kernel/src") {
        if path.parent() == Some(&folder) && !path.ends_with("lib.rs") {
            let name = path.file_name().unwrap().to_string_lossy();
            assert!(head.contains(&format!("`{name}`")), "{name} is not in the reading list");
        }
    }
}

#[test]
fn services_reach_the_core_through_a_dozen_methods() {
    let mut called = BTreeSet::new();
    for (_, text) in sources("kernel/src/services") {
        for call in code(&text).split("core.").skip(1) {
            let call = call.strip_prefix("sched.").unwrap_or(call);
            let end = call.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap();
            if call[end..].starts_with('(') {
                called.insert(call[..end].to_owned());
            }
        }
    }
    assert!((5..=12).contains(&called.len()), "{called:?}");
}

/// The crates whose files must not import each other in a circle.
const WITHOUT_CIRCLES: [&str; 3] = ["traps", "kernel", "net"];

#[test]
fn no_files_import_each_other_in_a_circle() {
    let circles: String = WITHOUT_CIRCLES.iter().map(|name| circles(&modules(name))).collect();
    assert!(circles.is_empty(), "\n{circles}");
}

/// The folders and files in which no method calls lead in a circle either: `impl` blocks of one
/// type may stand in several files, and then no import shows who needs whom.
const LAYERED: [&str; 5] = ["core", "interrupts", "log", "parts", "view"];

/// Methods that the standard library has too. A call of one does not show whose it is.
const COMMON: &str = "\
    add after begin borrow by bytes collect contains count end enter file first finish from get \
    insert interrupt is_empty iter key kind last leave line lock name of post remove scope set \
    spawn take with word";

#[test]
fn no_methods_of_the_cores_call_each_other_in_a_circle() {
    for name in ["traps", "kernel"] {
        let mut all = modules(name);
        all.retain(|path, _| path.first().is_some_and(|name| LAYERED.contains(&&**name)));
        let mut definers = BTreeMap::<String, Vec<&Names>>::new();
        for (path, module) in &all {
            for method in &module.methods {
                definers.entry(method.clone()).or_default().push(path);
            }
        }
        let mut arrows = BTreeMap::<&Names, BTreeMap<Names, BTreeSet<&str>>>::new();
        for (path, module) in &all {
            for call in &module.calls {
                if let Some([to]) = definers.get(call).map(|paths| &paths[..])
                    && *to != path
                    && !COMMON.split_whitespace().any(|name| name == call)
                {
                    let ends = arrows.entry(path).or_default().entry((*to).clone()).or_default();
                    ends.insert(call);
                }
            }
        }
        let arrows_found: usize = arrows.values().map(BTreeMap::len).sum();
        assert!(arrows_found > 10, "{name}: the calls were not read: {arrows_found}");
        let circles = circles_of(&all, &arrows);
        assert!(circles.is_empty(), "{name}\n{circles}");
    }
}

/// The parts of a path in code, or of the path of a module from the root of its crate.
type Names = Vec<String>;

/// A file, as the module that it is.
struct Module {
    /// Its imports: the local name, the target, and whether it is `pub`.
    imports: Vec<(String, Names, bool)>,
    /// The paths in the rest of its code.
    paths: Vec<Names>,
    /// The methods that its `impl` blocks define, those of traits aside.
    methods: BTreeSet<String>,
    /// The methods that its code calls.
    calls: BTreeSet<String>,
}

/// The modules of a crate that are files, without those of tests.
fn modules(name: &str) -> BTreeMap<Names, Module> {
    let folder = root().join(name).join("src");
    let files = sources(&format!("{name}/src")).into_iter();
    let files = files.filter(|(path, _)| !path.to_string_lossy().ends_with("_tests.rs"));
    let path = |file: &Path| {
        let file = file.strip_prefix(&folder).unwrap().with_extension("");
        let names = file.iter().map(|name| name.to_string_lossy().into_owned());
        names.filter(|name| name != "lib" && name != "mod").collect()
    };
    files.map(|(file, text)| (path(&file), module(&text))).collect()
}

/// Reads a file, without its comments and its code for tests.
fn module(text: &str) -> Module {
    let (mut imports, mut rest, mut import) = (Vec::new(), String::new(), String::new());
    let begins =
        |line: &str| line.starts_with("use ") || line.starts_with("pub") && line.contains(" use ");
    let code = code(text);
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let line = line.split(" // ").next().unwrap();
        if ["#[cfg(test", "#[cfg(all(test"].iter().any(|only| line.trim().starts_with(only)) {
            let item = lines.next().unwrap_or_default();
            let end = format!("{}}}", &item[..item.len() - item.trim_start().len()]);
            if item.ends_with('{') {
                lines.by_ref().find(|line| **line == end);
            }
        } else if !import.is_empty() || begins(line.trim_start()) {
            import += line;
            if line.ends_with(';') {
                let (before, tree) = import.split_once("use ").unwrap();
                leaves("", tree.trim_end_matches(';'), before.contains("pub"), &mut imports);
                import.clear();
            }
        } else {
            rest += &format!("{line}\n");
        }
    }
    let words = rest.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    let paths = words.filter(|word| word.contains("::") && !word.starts_with(':')).map(names);
    // A path may begin with an imported module.
    let whole = |path: Names| match imports.iter().find(|(name, ..)| *name == path[0]) {
        Some((name, start, _)) if name.starts_with(char::is_lowercase) => {
            [start, &path[1..]].concat()
        }
        _ => path,
    };
    let paths = paths.map(whole).collect();
    Module { paths, imports, methods: methods(&rest), calls: calls(&rest) }
}

/// The methods that the `impl` blocks of a file define, those of traits aside.
fn methods(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_inherent = false;
    for line in code.lines() {
        if line.starts_with("impl") {
            is_inherent = !line.contains(" for ");
        }
        let is_method = is_inherent && line.starts_with("    ") && !line.starts_with("     ");
        if let Some((before, after)) = line.split_once("fn ")
            && is_method
            && (before.trim().is_empty() || before.trim().starts_with("pub"))
        {
            let name = after.split(|c: char| !c.is_alphanumeric() && c != '_').next();
            found.extend(name.map(str::to_owned));
        }
    }
    found
}

/// The methods that a file calls: `.name(` and `::name(`.
fn calls(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (place, _) in code.match_indices('(') {
        let before = &code[..place];
        let name = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
        let before = &before[..before.len() - name.len()];
        if !name.is_empty() && (before.ends_with('.') || before.ends_with("::")) {
            found.insert(name.to_owned());
        }
    }
    found
}

fn names(path: &str) -> Names {
    path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Expands a tree such as `a::{b, c as d}` into its imports.
fn leaves(before: &str, tree: &str, is_pub: bool, found: &mut Vec<(String, Names, bool)>) {
    if let Some((stem, branches)) = tree.split_once('{') {
        let (mut depth, before) = (0, format!("{before}{}", stem.trim()));
        let branches = branches.rsplit_once('}').unwrap().0;
        let branches = branches.split(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        });
        return branches.for_each(|tree| leaves(&before, tree, is_pub, found));
    }
    let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
    let mut path = names(&format!("{before}{}", path.trim()));
    path.pop_if(|name| name == "self");
    let name = if name.is_empty() { path.last().cloned() } else { Some(name.to_owned()) };
    found.extend(name.map(|name| (name, path, is_pub)));
}

/// A path in the code of a module, from the root of the crate; `None` if it leads elsewhere.
fn absolute(all: &BTreeMap<Names, Module>, from: &Names, path: &[String]) -> Option<Names> {
    let mut at = from.clone();
    let is_step = |name: &&String| ["crate", "self", "super"].contains(&name.as_str());
    let steps = path.iter().take_while(is_step).count();
    for step in &path[..steps] {
        match step.as_str() {
            "crate" => at.clear(),
            "super" => drop(at.pop()?),
            _ => {}
        }
    }
    at.extend_from_slice(&path[steps..]);
    (steps > 0 || all.contains_key(&at[..=from.len()])).then_some(at)
}

/// The module that defines the target of a path. A re-export is not a definition.
fn definer(all: &BTreeMap<Names, Module>, path: &[String]) -> Names {
    let depth = (0..=path.len()).rev().find(|depth| all.contains_key(&path[..*depth])).unwrap();
    let (at, rest) = (path[..depth].to_vec(), &path[depth..]);
    let import = all[&at].imports.iter().find(|(name, ..)| rest.first() == Some(name));
    let import = import.and_then(|(_, path, _)| absolute(all, &at, path));
    import.map_or(at, |import| definer(all, &[&import, rest.get(1..).unwrap_or(&[])].concat()))
}

/// The circles of modules, each as the arrows within it, one a line.
fn circles(all: &BTreeMap<Names, Module>) -> String {
    let mut arrows = BTreeMap::<&Names, BTreeMap<Names, BTreeSet<&str>>>::new();
    for (from, module) in all {
        let imports = module.imports.iter().map(|(_, path, is_pub)| (path, *is_pub));
        for (path, is_pub) in imports.chain(module.paths.iter().map(|path| (path, false))) {
            let Some(named) = absolute(all, from, path) else { continue };
            let to = definer(all, &named);
            // A re-export of a child's item is not a use.
            if to != *from && !(is_pub && named.starts_with(from)) {
                let names = arrows.entry(from).or_default().entry(to).or_default();
                names.extend(path.last().map(String::as_str));
            }
        }
    }
    circles_of(all, &arrows)
}

/// The circles among arrows between modules, each as the arrows within it, one a line.
fn circles_of(
    all: &BTreeMap<Names, Module>,
    arrows: &BTreeMap<&Names, BTreeMap<Names, BTreeSet<&str>>>,
) -> String {
    let reach = |from| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(from) = next.pop() {
            let ends = arrows.get(from).into_iter().flat_map(BTreeMap::keys);
            next.extend(ends.filter(|to| reached.insert(*to)));
        }
        reached
    };
    let circle = |from| reach(from).into_iter().filter(|to| reach(to).contains(from)).collect();
    let circles: BTreeSet<BTreeSet<&Names>> = all.keys().map(circle).collect();
    let mut text = String::new();
    for circle in circles.iter().filter(|circle| !circle.is_empty()) {
        text += &format!("A circle of {} files:\n", circle.len());
        for from in circle {
            for (to, names) in arrows[from].iter().filter(|(to, _)| circle.contains(to)) {
                let names = names.iter().copied().collect::<Vec<_>>().join(", ");
                text += &format!("  {} -> {}: {names}\n", from.join("::"), to.join("::"));
            }
        }
    }
    text
}

#[test]
fn a_circle_is_found_through_what_is_handed_on_and_not_in_tests() {
    let crate_of = |files: [(&str, &str); 4]| {
        circles(&files.into_iter().map(|(path, text)| (names(path), module(text))).collect())
    };
    let root = ("", "mod a;\nmod b;\npub use a::{inner::One, Two};\n");
    let tests = "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n";
    let a = ("a", "//! Of crate::b.\npub use inner::One;\npub struct Two;\n");
    let b = ("b", "use crate::{\n    a,\n};\nfn f() { a::One::new() }\n");
    assert_eq!(crate_of([root, a, ("a::inner", tests), b]), "");
    let inner = "fn f() -> super::super::b::B {}\n";
    let found = "A circle of 2 files:\n  a::inner -> b: B\n  b -> a::inner: new\n";
    assert_eq!(crate_of([root, a, ("a::inner", inner), b]), found);
}

/// Tests start processes by `testing::child`, so that none runs forever, and a cargo sees no
/// variables of the test's package.
#[test]
fn no_test_waits_for_a_program_without_limit() {
    let mut files: Vec<_> =
        ["tests", "traps/tests", "kernel/tests", "net/tests", "examples/course", "examples/trace"]
            .map(sources)
            .concat();
    files.retain(|(path, _)| {
        let path = path.strip_prefix(root()).unwrap();
        let others = [
            "tests/all/arrows.rs",
            "tests/benches/src",
            "tests/benches/build.rs",
            "tests/testing/src",
        ];
        !others.iter().any(|other| path.starts_with(other))
    });
    for (path, text) in &files {
        let code = code(text);
        assert!(!code.contains("\"CARGO\""), "{} calls cargo", path.display());
        // A tool may wait as long as its user does.
        let place = path.strip_prefix(root()).unwrap();
        let is_tool = place.starts_with("examples") && !place.iter().any(|part| part == "tests");
        if !is_tool && (code.contains("Command::new(") || code.contains("child::")) {
            for call in [".spawn()", ".output()", ".status()"] {
                assert!(!code.contains(call), "{} calls {call}", path.display());
            }
        }
    }
    assert!(files.len() > 100, "the sources were read");
}

/// The type names that stand for several types, each in a module that says which: the two ends of
/// each channel, and the event of the log beside that of `sync`.
const SHARED_NAMES: [&str; 3] = ["Event", "Receiver", "Sender"];

#[test]
fn type_names_have_one_meaning_in_traps_and_kernel() {
    let mut places = BTreeMap::<String, Vec<String>>::new();
    for (path, text) in ["traps/src", "kernel/src"].into_iter().flat_map(sources) {
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
        let text = text.split("#[cfg(all(test").next().unwrap();
        for line in code(text).lines().filter(|line| !line.starts_with("    ")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let word = words
                .iter()
                .position(|word| ["struct", "enum", "trait", "type", "union"].contains(word));
            let Some(name) = word.filter(|at| *at < 2).and_then(|at| words.get(at + 1)) else {
                continue;
            };
            let name = name.split(|c: char| !c.is_alphanumeric()).next().unwrap();
            places.entry(name.to_owned()).or_default().push(path.display().to_string());
        }
    }
    assert!(places.len() > 200, "the types were not read: {}", places.len());
    places.retain(|name, files| files.len() > 1 && !SHARED_NAMES.contains(&&**name));
    assert!(places.is_empty(), "{places:#?}");
}
