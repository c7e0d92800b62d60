//! HTML of Markdown and of text.

use pulldown_cmark::{Options, Parser, html};

/// HTML of Markdown.
pub fn markdown(text: &str) -> String {
    let mut out = String::new();
    html::push_html(&mut out, Parser::new_ext(text, Options::ENABLE_TABLES));
    out
}

/// HTML of a sentence in Markdown, without the paragraph around it.
pub fn sentence(text: &str) -> String {
    let html = markdown(text);
    let html = html.trim();
    html.strip_prefix("<p>").and_then(|html| html.strip_suffix("</p>")).unwrap_or(html).to_owned()
}

/// HTML that shows a text as it is.
pub fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}
