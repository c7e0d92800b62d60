//! Code with numbered lines, as HTML.

use course::markup::escaped;

/// The name of a file's language, for the colours.
fn language(file: &str) -> &'static str {
    match file.rsplit_once('.') {
        Some((_, "rs")) => "rust",
        Some((_, "toml")) => "toml",
        Some((_, "patch")) => "diff",
        _ => "text",
    }
}

/// A file with the anchors `{anchor}1` and so on at its lines.
pub fn listing(file: &str, text: &str, anchor: &str) -> String {
    let numbers = (1..=text.lines().count())
        .map(|line| format!("<a id=\"{anchor}{line}\" href=\"#{anchor}{line}\">{line}</a>\n"));
    let (numbers, language) = (numbers.collect::<String>(), language(file));
    // A comment keeps mdBook from hiding the lines of Rust that begin with `# `.
    format!(
        "<div class=\"listing\">\n\n<pre class=\"numbers\" aria-hidden=\"true\">{numbers}</pre>\n\
         <pre><code class=\"language-{language}\">{}<!-- --></code></pre>\n\n</div>\n",
        escaped(text)
    )
}

/// A part that is folded until the reader opens it.
pub fn folded(class: &str, summary: &str, body: &str) -> String {
    format!(
        "<details class=\"{class}\">\n<summary>{summary}</summary>\n\n{}\n\n</details>\n",
        body.trim_end()
    )
}

/// Lines of code, without blank lines and comments.
pub fn lines_of_code(text: &str) -> usize {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    text.lines().filter(is_code).count()
}

/// `1 file`, `2 files`.
pub fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}
