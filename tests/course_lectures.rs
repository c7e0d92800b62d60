//! The concept pages, the exercises and the slides of the course: all that they show is from the
//! sources and the logs.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use support::goldens;
use testing::trace;

fn course() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/course")
}

/// The concept pages, by their names.
fn concepts() -> Vec<(String, String)> {
    let pages = fs::read_dir(course().join("concepts")).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        (path.display().to_string(), fs::read_to_string(&path).unwrap())
    });
    pages.collect()
}

#[test]
fn a_concept_page_shows_lines_of_golden_logs() {
    let logs: Vec<String> = goldens().iter().map(|name| support::golden(name)).collect();
    let golden: BTreeSet<&str> = logs.iter().flat_map(|log| log.lines()).collect();
    for (name, page) in concepts() {
        let shown: Vec<&str> = page.lines().filter(|line| trace::line(line).is_ok()).collect();
        assert!(shown.len() >= 3, "{name} shows {} lines of a log", shown.len());
        for line in shown {
            assert!(golden.contains(line), "{name}: {line}");
        }
    }
}

#[test]
fn a_concept_page_fits_on_one_screen() {
    for (name, page) in concepts() {
        let lines = page.lines().count();
        assert!(lines <= 45, "{name} has {lines} lines");
    }
}

#[test]
fn the_links_of_the_concept_pages_lead_to_files() {
    for (name, page) in concepts() {
        let links: Vec<&str> =
            page.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)).collect();
        assert!(links.len() >= 2, "{name} has {} links", links.len());
        for link in links {
            assert!(course().join("concepts").join(link).is_file(), "{name}: {link}");
        }
    }
}
