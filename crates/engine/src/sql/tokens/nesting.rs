//! How deep brackets of a statement are nested, before anything walks down them.
//!
//! In: the tokens of a statement as it is written. Out: an error with the place where the text goes too deep.
//! Invariant: what passes is nested no deeper than the parser allows expressions to be. It bounds expressions and queries
//! itself, but neither types, `STRUCT(a STRUCT(b …` and `INT[][]…`, nor what reads the tokens before it.
//! Not here: chains without brackets (long_chains.rs).

use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::error::{Error, Result};

/// Nesting depth at which we and the parser give up with an error; the stack grows on demand, so this is generous.
pub(in crate::sql) const NESTING_MAX: usize = 200;

/// Refuses tokens with too many open brackets, or with too many brackets one after the other.
pub(in crate::sql) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut nesting = Nesting::default();
    let is_code = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    for token in tokens.iter().filter(is_code) {
        nesting.take(&token.token);
        if nesting.levels() > NESTING_MAX {
            return Err(too_deep(token.span.start));
        }
    }
    Ok(())
}

#[derive(Default)]
struct Nesting {
    /// Of each open bracket, how many closed right before it: `a[1][2]`.
    open: Vec<usize>,
    /// Brackets that have closed right before the next token.
    closed: usize,
    /// Open `ARRAY<` and `STRUCT<`.
    angles: usize,
    /// Whether the token before is a word that such a bracket may follow.
    is_type: bool,
}

impl Nesting {
    fn take(&mut self, token: &Token) {
        let closed = std::mem::take(&mut self.closed);
        let is_type = std::mem::take(&mut self.is_type);
        match token {
            Token::LParen | Token::LBrace => self.open.push(0),
            Token::LBracket => self.open.push(closed),
            Token::RBracket => self.closed = self.open.pop().unwrap_or(0) + 1,
            Token::RParen | Token::RBrace => {
                self.open.pop();
            }
            Token::Lt if is_type => self.angles += 1,
            Token::Gt => self.angles = self.angles.saturating_sub(1),
            Token::ShiftRight => self.angles = self.angles.saturating_sub(2),
            Token::Word(word) => {
                let types = ["array", "struct", "map"];
                self.is_type = types
                    .iter()
                    .any(|kind| word.value.eq_ignore_ascii_case(kind));
            }
            _ => {}
        }
    }

    fn levels(&self) -> usize {
        self.open.len().max(self.closed).max(self.angles)
    }
}

fn too_deep(at: Location) -> Error {
    Error::Syntax {
        message: format!("the statement is nested too deeply: more than {NESTING_MAX} brackets"),
        line: at.line.max(1),
        column: at.column.max(1),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::sql::dialect::DIALECT;

    #[track_caller]
    fn is_refused(text: &str) -> bool {
        let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
        check(&tokens.unwrap()).is_err()
    }

    #[test]
    fn brackets_are_counted_where_they_nest() {
        let nested = |open: &str, close: &str, levels: usize| {
            format!("{}1{}", open.repeat(levels), close.repeat(levels))
        };
        for (open, close) in [("(", ")"), ("[", "]"), ("{a: ", "}"), ("ARRAY<", ">")] {
            assert!(!is_refused(&nested(open, close, NESTING_MAX)), "{open}");
            assert!(is_refused(&nested(open, close, NESTING_MAX + 1)), "{open}");
        }
        assert!(!is_refused(&format!("INT{}", "[]".repeat(NESTING_MAX))));
        assert!(is_refused(&format!("INT{}", "[]".repeat(NESTING_MAX + 1))));
        assert!(is_refused(&format!(
            "INT{}",
            "[ 3 ] ".repeat(NESTING_MAX + 1)
        )));
        for flat in [
            "(1), ",
            "[1], ",
            "a[1][2], ",
            "ARRAY<INT>, ",
            "a < 1 AND a > 1, ",
        ] {
            assert!(!is_refused(&flat.repeat(10 * NESTING_MAX)), "{flat}");
        }
    }
}
