//! An exercise as HTML. Without scripts, a page shows the questions, with folded answers.

use std::fmt::Write as _;

use super::answer::{Answer, Choice, find, shown};
use super::{Exercise, Question};
use crate::markup::{escaped, markdown, sentence};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Some lines of the log, with `...` between groups of them. `left_out` has its number alone.
fn excerpt(
    question: &Question,
    groups: &[(u64, u64)],
    left_out: Option<u64>,
) -> Result<String, String> {
    let lines = question.lines()?;
    let mut text = String::new();
    for (nth, (from, to)) in groups.iter().enumerate() {
        if nth > 0 {
            text += "   ...\n";
        }
        for seq in *from..=*to {
            let line = shown(&find(&lines, seq)?.to_string());
            text += &match left_out == Some(seq) {
                false => format!("{}\n", escaped(&line)),
                true => format!(
                    "<mark>{}  ?</mark>\n",
                    escaped(line.split_inclusive(&number(seq)).next().unwrap_or_default())
                ),
            };
        }
    }
    Ok(text)
}

fn number(seq: u64) -> String {
    format!("#{seq:04}")
}

fn log(text: &str) -> String {
    format!("<pre class=\"log\" tabindex=\"0\">{text}</pre>\n")
}

fn choices(out: &mut String, name: &str, choices: &[Choice]) {
    *out += "<fieldset>\n";
    for Choice { label, wrong } in choices {
        let hint = wrong
            .as_ref()
            .map_or(String::new(), |wrong| format!(" data-hint=\"{}\"", escaped(&sentence(wrong))));
        let label = escaped(label);
        let _ = writeln!(
            out,
            "<label><input type=\"radio\" name=\"{name}\"{hint}><code>{label}</code></label>"
        );
    }
    *out += "</fieldset>\n";
}

/// The order in which a list is first shown. It is never that of the answer.
fn mixed(count: usize) -> impl Iterator<Item = usize> {
    (0..count).filter(|nth| nth % 2 == 1).chain((0..count).rev().filter(|nth| nth % 2 == 0))
}

fn list(out: &mut String, lines: &[String], reasons: &[String]) {
    *out += "<ol class=\"order\">\n";
    for nth in mixed(lines.len()) {
        let hint = reasons.get(nth).map_or(String::new(), |reason| escaped(&sentence(reason)));
        let line = escaped(&lines[nth]);
        let _ =
            writeln!(out, "<li data-place=\"{nth}\" data-hint=\"{hint}\"><code>{line}</code></li>");
    }
    *out += "</ol>\n";
}

fn question(name: &str, nth: usize, question: &Question) -> Result<String, String> {
    let answer = question.answer()?;
    let left_out = match &question.ask {
        super::Ask::Missing(seq, _) => Some(*seq),
        _ => None,
    };
    let mut out =
        format!("<article class=\"ask\">\n<h3>{nth}. {}</h3>\n", sentence(&question.title));
    out += &markdown(&question.text);
    if !question.shown.is_empty() {
        out += &log(&excerpt(question, &question.shown, left_out)?);
    }
    let right = match answer {
        Answer::Choices(all, shows) => {
            choices(&mut out, &format!("{name}-{nth}"), &all);
            let right = all.iter().find(|choice| choice.wrong.is_none());
            let right = right.ok_or_else(|| format!("{}: no choice is right", question.title))?;
            let groups: Vec<(u64, u64)> = shows.iter().map(|seq| (*seq, *seq)).collect();
            let groups = if left_out.is_some() { Vec::new() } else { groups };
            let shows = excerpt(question, &groups, None)?.replace("   ...\n", "");
            let shows = if shows.is_empty() { shows } else { log(&shows) };
            format!("<p><code>{}</code></p>\n{shows}", escaped(&right.label))
        }
        Answer::Order(lines, reasons) => {
            list(&mut out, &lines, &reasons);
            log(&lines.iter().map(|line| escaped(line) + "\n").collect::<String>())
        }
    };
    let because = markdown(&question.because);
    let _ = write!(
        out,
        "<p class=\"said\" role=\"status\"></p>\n<details><summary>Answer</summary>\n\
         {right}{because}</details>\n</article>\n"
    );
    Ok(out)
}

pub fn piece(exercise: &Exercise) -> Result<String, String> {
    let name: String = exercise.title.chars().filter(char::is_ascii_digit).collect();
    let mut out = format!(
        "<section class=\"exercise\">\n<style>\n{STYLE}</style>\n<h2>{}</h2>\n",
        sentence(&exercise.title)
    );
    out += &markdown(&exercise.intro);
    for (nth, each) in exercise.questions.iter().enumerate() {
        out += &question(&format!("step-{name}"), nth + 1, each)?;
    }
    let _ = writeln!(out, "<script>\n{SCRIPT}</script>\n</section>");
    Ok(out)
}

/// A complete page around a piece.
pub fn document(title: &str, piece: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n\
         <style>\n:root {{ color-scheme: light dark; }}\n\
         body {{ max-width: 60rem; margin: auto; padding: 1rem; font: 1rem/1.5 sans-serif; }}\n\
         </style>\n{piece}</html>\n",
        escaped(title)
    )
}
