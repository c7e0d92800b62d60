//! The page that shows counts: `kernel/src/guide/speed.md`.
//!
//! A row of a table of the page has the name of a count in one cell, and the count in the next.
//! `bench counts --write` fills in these cells from `counts.txt`. The rest of the page, including
//! the counts of the peers, is written by hand.

use std::fs;
use std::path::{Path, PathBuf};

use super::file::File;

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel/src/guide/speed.md")
}

/// Writes the page with the counts of the file.
///
/// # Errors
///
/// Returns an error if the page cannot be read or written, or names a count without a line.
pub fn write(lines: &File) -> Result<(), String> {
    let path = path();
    let of_page = |error| format!("{}: {error}", path.display());
    let page = fs::read_to_string(&path).map_err(of_page)?;
    fs::write(&path, filled(&page, lines)?).map_err(of_page)
}

/// The page with the counts of the file.
fn filled(page: &str, lines: &File) -> Result<String, String> {
    let filled = page.split_inclusive('\n').map(|row| match row.starts_with('|') {
        true => filled_row(row, lines),
        false => Ok(row.to_owned()),
    });
    filled.collect()
}

fn filled_row(row: &str, lines: &File) -> Result<String, String> {
    let mut cells: Vec<String> = row.split('|').map(str::to_owned).collect();
    for place in 1..cells.len() {
        let name = cells[place - 1].trim().trim_matches('`');
        if !is_name(name) {
            continue;
        }
        let line = lines.line(name).ok_or_else(|| format!("speed.md: `{name}` has no line"))?;
        cells[place] = format!(" {} ", shown(name, line.count));
    }
    Ok(cells.join("|"))
}

/// Whether it has the form of the name of a count: `echo.instructions`.
fn is_name(word: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    word.split_once('.').is_some_and(|(work, what)| {
        is_part(work) && is_part(what) && what.starts_with(|first: char| first.is_ascii_lowercase())
    })
}

/// A count as text: with a comma before three digits, and a count per hundred as the share of one.
fn shown(name: &str, count: u64) -> String {
    if name.ends_with("_per_100") {
        return format!("{}.{:02}", count / 100, count % 100);
    }
    match count {
        ..1000 => count.to_string(),
        _ => format!("{},{:03}", count / 1000, count % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> File {
        File::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("counts.txt")).unwrap()
    }

    #[test]
    fn the_page_has_the_counts_of_the_file() {
        let page = fs::read_to_string(path()).unwrap();
        let how = "`bench counts --write WORD` writes the page, too";
        assert!(filled(&page, &counts()).unwrap() == page, "speed.md has other counts: {how}");
        let named = page.lines().filter(|row| row.starts_with("| ") && row.contains(".instr"));
        assert!(named.count() > 10, "rows with counts are found");
    }

    #[test]
    fn the_cell_after_a_name_is_the_count() {
        let lines = File::parse(
            "compiler rustc 1\na.instructions 12345 near why\nb.calls_per_100 201 exact why\n",
        );
        let lines = lines.unwrap();
        let row = |row: &str| filled(row, &lines).unwrap();
        assert_eq!(
            row("| x | `a.instructions` | 1 | y |\n"),
            "| x | `a.instructions` | 12,345 | y |\n"
        );
        assert_eq!(row("| x | `b.calls_per_100` | |\n"), "| x | `b.calls_per_100` | 2.01 |\n");
        assert_eq!(row("`a.instructions` | 1 |\n"), "`a.instructions` | 1 |\n");
        assert_eq!(row("| 1.5 | 2 |\n"), "| 1.5 | 2 |\n");
        assert!(filled("| `c.calls_per_100` | 1 |\n", &lines).unwrap_err().contains("c.calls"));
    }
}
