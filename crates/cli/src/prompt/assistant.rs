//! Help while a person types: colors, proposals, what was typed before, and whether Enter runs it.
//! In: the text and the cursor. Out: what the line editor asks for.
//! Invariant: colors change no width, and neither they (the editor sees to it) nor hints are there where NO_COLOR is set. Enter runs a text whose last
//! piece is complete: a command, or SQL up to a `;`.

use std::borrow::Cow;

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter, HistoryHinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

use crate::lexer::{Kind, tokens};
use crate::script::Assembler;
use crate::shell::COMMANDS;

use super::complete::complete;
use super::keywords::is_keyword;
use super::names::Names;

const RESET: &str = "\x1b[0m";
const KEYWORD: &str = "\x1b[1;34m";
const TEXT: &str = "\x1b[32m";
const NUMBER: &str = "\x1b[36m";
const COMMENT: &str = "\x1b[2m";
const COMMAND: &str = "\x1b[35m";
const HINT: &str = "\x1b[2m";

/// Helps while a person types.
pub struct Assistant {
    names: Names,
    history: HistoryHinter,
    /// Without colors a hint would look like what is typed.
    has_hints: bool,
}

impl Assistant {
    /// With these names.
    pub fn new(names: Names) -> Assistant {
        Assistant {
            names,
            history: HistoryHinter::new(),
            has_hints: std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()),
        }
    }

    /// What it knows.
    pub fn names(&self) -> &Names {
        &self.names
    }
}

impl Helper for Assistant {}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        Ok(complete(&self.names, line, pos))
    }
}

/// What may follow what is typed.
pub struct Suggestion {
    text: String,
    /// Whether it is text to take over, and not a description.
    is_text: bool,
}

impl Hint for Suggestion {
    fn display(&self) -> &str {
        &self.text
    }

    fn completion(&self) -> Option<&str> {
        self.is_text.then_some(self.text.as_str())
    }
}

impl Hinter for Assistant {
    type Hint = Suggestion;

    fn hint(&self, line: &str, pos: usize, context: &Context<'_>) -> Option<Suggestion> {
        if !self.has_hints || pos < line.len() || line.trim().is_empty() {
            return None;
        }
        if let Some(rest) = self.history.hint(line, pos, context) {
            let text = rest.lines().next().unwrap_or("").to_owned();
            let is_text = true;
            return (!text.is_empty()).then_some(Suggestion { text, is_text });
        }
        let name = line.strip_prefix('.')?;
        let command = COMMANDS
            .iter()
            .find(|command| command.name == name.trim_end())?;
        let blank = if name.ends_with(' ') { "" } else { " " };
        let text = format!("{blank}{}", command.arguments);
        let is_text = false;
        (!text.trim().is_empty()).then_some(Suggestion { text, is_text })
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        Cow::Owned(colored(line))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("{HINT}{hint}{RESET}"))
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        kind != CmdKind::MoveCursor
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_complete(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

fn is_complete(text: &str) -> bool {
    let mut assembler = Assembler::default();
    for line in text.split('\n') {
        assembler.push(line);
    }
    assembler.is_blank()
}

fn colored(text: &str) -> String {
    if let Some(rest) = text.strip_prefix(['.', '\\']) {
        let end = 1 + rest.find(char::is_whitespace).unwrap_or(rest.len());
        return format!("{COMMAND}{}{RESET}{}", &text[..end], &text[end..]);
    }
    let mut drawn = String::with_capacity(text.len() * 2);
    for (start, token) in tokens(text) {
        let part = &text[start..start + token.len];
        let color = match token.kind {
            Kind::Word if is_keyword(part) => KEYWORD,
            Kind::Text => TEXT,
            Kind::Number => NUMBER,
            Kind::Comment => COMMENT,
            _ => "",
        };
        drawn.push_str(color);
        drawn.push_str(part);
        if !color.is_empty() {
            drawn.push_str(RESET);
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_runs_what_is_complete() {
        for text in [
            "",
            "SELECT 1;",
            "SELECT 1; -- done",
            ".mode csv",
            "exit",
            "\\d t",
            "SELECT\n1;",
            "SELECT 1;\n.tables",
        ] {
            assert!(is_complete(text), "{text}");
        }
        for text in [
            "SELECT 1",
            "SELECT ';",
            "SELECT $$;",
            "SELECT 1 /* ;",
            "SELECT 1; SELECT 2",
            "SELECT 1;\nSELECT",
        ] {
            assert!(!is_complete(text), "{text}");
        }
    }

    #[test]
    fn colors_leave_the_text() {
        for text in [
            "SELECT 'it''s', 1.5 -- x\nFROM \"t\"",
            ".mode csv",
            "日本 '",
        ] {
            let drawn = colored(text);
            let colors = [KEYWORD, TEXT, NUMBER, COMMENT, COMMAND, RESET];
            let plain = colors
                .iter()
                .fold(drawn.clone(), |text, color| text.replace(color, ""));
            assert_eq!(plain, text);
            assert_ne!(drawn, text);
        }
        assert_eq!(colored("select a"), format!("{KEYWORD}select{RESET} a"));
    }
}
