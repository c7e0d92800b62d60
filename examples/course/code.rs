//! The code of a source file, without its comments and strings.
//!
//! A lab that forbids a word looks for it in code only: a comment may say why the word is not used.

use proc_macro2::{TokenStream, TokenTree};

/// Returns the source with blanks in place of comments and strings. Lines and columns stay.
/// A source that is not Rust is returned as it is.
pub fn code(source: &str) -> String {
    let Ok(tokens) = source.parse() else { return source.to_owned() };
    let blank = |byte| if byte == b'\n' { b'\n' } else { b' ' };
    let mut code: Vec<u8> = source.bytes().map(blank).collect();
    copy(tokens, source, &mut code);
    String::from_utf8_lossy(&code).into_owned()
}

/// Copies the tokens to their places.
fn copy(tokens: TokenStream, source: &str, code: &mut [u8]) {
    for token in tokens {
        let (text, spans) = match token {
            TokenTree::Group(group) => {
                let spans = vec![group.span_open(), group.span_close()];
                copy(group.stream(), source, code);
                (None, spans)
            }
            TokenTree::Literal(literal) if literal.to_string().contains(['"', '\'']) => continue,
            token => (Some(token.to_string()), vec![token.span()]),
        };
        for range in spans.into_iter().map(|span| span.byte_range()) {
            // A doc comment is an attribute for the compiler, with the comment as its place.
            let there = &source[range.clone()];
            if text.as_deref().map_or("([{)]}".contains(there), |text| text == there) {
                code[range].copy_from_slice(there.as_bytes());
            }
        }
    }
}

/// Returns the number of the first line that has the identifier `word`.
pub fn line_of(source: &str, word: &str) -> Option<usize> {
    let code = code(source);
    let mut lines = code.lines();
    let at = lines.position(|line| line.split(|c| !is_word(c)).any(|each| each == word))?;
    Some(at + 1)
}

/// Returns the first line that takes code from another file, as `mod NAME;` or `include!` does.
pub fn line_of_other_file(source: &str) -> Option<usize> {
    let code = code(source);
    let has_no_body = |at: usize| {
        let (before, after) = (&code[..at], &code[at + "mod".len()..]);
        let ends = after.find([';', '{']).is_some_and(|end| after[end..].starts_with(';'));
        ends && !before.ends_with(is_word) && after.starts_with(char::is_whitespace)
    };
    let mut mods = code.match_indices("mod").map(|(at, _)| at).filter(|at| has_no_body(*at));
    let line = mods.next().map(|at| code[..at].matches('\n').count() + 1);
    line.into_iter().chain(line_of(source, "include")).min()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
