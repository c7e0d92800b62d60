//! The files of the program that a log names, for a page that shows their lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use super::model::Trace;

/// A larger file is left out.
const FILE: u64 = 256 << 10;
/// Once the files have this many bytes, the others are left out.
const ALL: usize = 4 << 20;

/// The text of each file below `dir` that a site of the log names, by that name.
///
/// A file that is not text, or is not below `dir`, is left out, even if a link leads to it.
///
/// # Errors
///
/// Returns an error if `dir` cannot be read.
pub fn sources(trace: &Trace, dir: &Path) -> io::Result<BTreeMap<String, String>> {
    let named = |error| io::Error::other(format!("cannot read {}: {error}", dir.display()));
    let dir = dir.canonicalize().map_err(named)?;
    fs::read_dir(&dir).map_err(named)?;
    let (mut files, mut size) = (BTreeMap::new(), 0);
    for name in names(trace) {
        let Some(text) = text(&dir, &name) else { continue };
        size += text.len();
        if size > ALL {
            break;
        }
        files.insert(name, text);
    }
    Ok(files)
}

/// The files that the sites of a log name.
fn names(trace: &Trace) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    trace.each(|_, line| {
        let sites = ["at", "set-at"].into_iter().filter_map(|key| line.key(key));
        for (file, _) in sites.filter_map(|site| site.rsplit_once(':')) {
            if !names.contains(file) {
                names.insert(file.to_owned());
            }
        }
    });
    names
}

fn text(dir: &Path, name: &str) -> Option<String> {
    let path = dir.join(name).canonicalize().ok().filter(|path| path.starts_with(dir))?;
    // Opening a pipe would wait for its writer.
    let about = fs::metadata(&path).ok().filter(|about| about.is_file() && about.len() <= FILE)?;
    let mut text = String::new();
    fs::File::open(path).ok()?.take(about.len()).read_to_string(&mut text).ok()?;
    (!text.contains('\0')).then_some(text)
}
