//! The published crates: each has the fields that a registry shows, and its front page has its
//! features.

use std::fs;
use std::path::Path;

use support::root;

/// The folders of the crates.
const PUBLISHED: [&str; 4] = ["traps", "kernel", "net", "tests/testing"];

fn text(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The keys of a section of a manifest.
fn keys(manifest: &str, section: &str) -> Vec<String> {
    let header = format!("[{section}]");
    let below = manifest.lines().skip_while(|line| *line != header).skip(1);
    let lines = below.take_while(|line| !line.starts_with('['));
    let entries = lines.filter_map(|line| line.split_once(['=', '.']));
    entries.map(|(key, _)| key.trim().to_owned()).filter(|key| !key.starts_with('#')).collect()
}

#[test]
fn each_published_crate_has_what_a_registry_shows() {
    for folder in PUBLISHED {
        let manifest = text(format!("{folder}/Cargo.toml"));
        let shown = keys(&manifest, "package");
        let wanted = ["description", "license", "readme", "keywords", "categories", "rust-version"];
        for key in wanted {
            assert!(shown.iter().any(|found| found == key), "{folder} has no {key}");
        }
        assert!(!shown.contains(&"publish".to_owned()), "{folder}");
        assert_eq!(
            keys(&manifest, "package.metadata.docs.rs"),
            ["all-features", "rustdoc-args"],
            "{folder}"
        );
        for file in ["LICENSE", "LICENSE-MIT", "LICENSE-APACHE"] {
            let copy = root().join(folder).join(file);
            assert!(fs::symlink_metadata(copy).unwrap().is_file(), "{folder}/{file} is a link");
            assert_eq!(text(format!("{folder}/{file}")), text(file), "{folder}");
        }
        assert_eq!(text(format!("{folder}/CHANGELOG.md")), text("CHANGELOG.md"), "{folder}");
        let has_address = |keys: &[String]| keys.contains(&"repository".to_owned());
        let workspace = keys(&text("Cargo.toml"), "workspace.package");
        assert_eq!(has_address(&shown), has_address(&workspace), "{folder}");
        let readme = text(format!("{folder}/README.md"));
        let name = folder.rsplit('/').next().unwrap();
        assert!(readme.starts_with(&format!("# trapline-{name}\n")), "{folder}");
    }
}

#[test]
fn nothing_else_is_published() {
    let manifest = text("Cargo.toml");
    let members = manifest.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
    for member in members.split('"').skip(1).step_by(2) {
        let is_kept = text(format!("{member}/Cargo.toml")).contains("publish = false\n");
        assert_eq!(is_kept, !PUBLISHED.contains(&member), "{member}");
    }
}

#[test]
fn the_changelog_the_readmes_and_the_dependencies_agree_on_the_version() {
    let (version, manifest) = (env!("CARGO_PKG_VERSION"), text("Cargo.toml"));
    let changelog = text("CHANGELOG.md");
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## [")?.split(']').next());
    assert_eq!(newest, Some(version));
    let minor = version.rsplit_once('.').unwrap().0;
    for folder in PUBLISHED {
        // The others use `traps::internal`, which can change in any release.
        let exact = if folder == "traps" { "=" } else { "" };
        let path = format!("{{ version = \"{exact}{version}\", path = \"{folder}\",");
        assert!(manifest.contains(&path), "{folder}");
        let readme = text(format!("{folder}/README.md"));
        let lines: Vec<_> = readme.lines().filter(|line| line.contains("package = ")).collect();
        assert!(!lines.is_empty(), "{folder}");
        for line in lines {
            assert!(line.ends_with(&format!("version = \"{minor}\" }}")), "{folder}: {line}");
        }
    }
}

#[test]
fn each_feature_is_on_the_front_page() {
    for folder in PUBLISHED {
        let front = text(format!("{folder}/src/lib.rs"));
        for feature in keys(&text(format!("{folder}/Cargo.toml")), "features") {
            let is_row = |line: &str| {
                let first = line.strip_prefix("//! | ").and_then(|line| line.split(" | ").next());
                first.is_some_and(|named| named.contains(&format!("`{feature}`")))
            };
            assert!(feature == "default" || front.lines().any(is_row), "{folder}: {feature}");
        }
    }
}
