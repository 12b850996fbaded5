//! Lines of input -> pieces that can be run: a shell command, or SQL up to a `;` that ends a line.
//! In: lines, from the prompt, a file or a pipe. Out: [`Piece`]s with the line at which they began.
//! Invariant: a piece of SQL never ends within a string, a quoted name or a comment; what follows the last `;` is
//! handed out at the end of the input.
//! Not here: quotes and comments (lexer.rs); splitting a piece into statements, which the engine's own tokenizer does.

use crate::lexer::{Kind, Lexer};

/// What some editors put before the first line.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Words that are commands without a dot; no statement is one of them.
const PLAIN_WORDS: [&str; 3] = ["exit", "quit", "help"];

/// Something to run.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// A line such as `.tables`, without its dot, or `\d`, with its backslash.
    Command(String),
    /// One or more statements.
    Sql(Text),
}

/// SQL text and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The SQL.
    pub sql: String,
    /// The line of the input, from 1, at which it begins.
    pub line: usize,
}

/// Gathers lines into pieces.
#[derive(Debug, Default)]
pub struct Assembler {
    scan: Scan,
    text: String,
    begun_at: usize,
    lines: usize,
}

impl Assembler {
    /// Takes the next line; gives a piece if the line completes one.
    pub fn push(&mut self, line: &str) -> Option<Piece> {
        self.lines += 1;
        let line = if self.lines == 1 {
            line.trim_start_matches(BYTE_ORDER_MARK)
        } else {
            line
        };
        if self.is_blank() {
            self.text.clear();
            if let Some(command) = command(line) {
                return Some(Piece::Command(command.to_owned()));
            }
        }
        if self.text.is_empty() {
            self.begun_at = self.lines;
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.scan.line(line);
        if self.scan.is_complete() {
            self.take()
        } else {
            None
        }
    }

    /// What is left at the end of the input.
    pub fn finish(&mut self) -> Option<Piece> {
        if self.is_blank() { None } else { self.take() }
    }

    /// Whether nothing but blanks and comments is waiting.
    pub fn is_blank(&self) -> bool {
        self.scan.is_blank()
    }

    fn take(&mut self) -> Option<Piece> {
        self.scan = Scan::default();
        let sql = std::mem::take(&mut self.text);
        Some(Piece::Sql(Text {
            sql,
            line: self.begun_at,
        }))
    }
}

/// The last thing seen that is neither blank nor comment.
#[derive(Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Nothing,
    Word,
    Semicolon,
}

#[derive(Debug, Default)]
struct Scan {
    lexer: Lexer,
    last: Last,
}

impl Scan {
    fn is_complete(&self) -> bool {
        !self.lexer.is_inside() && self.last == Last::Semicolon
    }

    fn is_blank(&self) -> bool {
        !self.lexer.is_inside() && self.last == Last::Nothing
    }

    fn line(&mut self, line: &str) {
        let mut rest = line;
        while !rest.is_empty() {
            let token = self.lexer.step(rest);
            match token.kind {
                Kind::Blank | Kind::Comment => {}
                Kind::Sign if rest.starts_with(';') => self.last = Last::Semicolon,
                _ => self.last = Last::Word,
            }
            rest = &rest[token.len..];
        }
    }
}

/// The command that a line between statements is: `.mode csv`, `\d`, or a word that hands type in every shell.
fn command(line: &str) -> Option<&str> {
    let line = line.trim();
    if line.starts_with('\\') {
        return Some(line);
    }
    if let Some(command) = line.strip_prefix('.') {
        return (!command.starts_with(|c: char| c.is_ascii_digit())).then_some(command);
    }
    let word = line.trim_end_matches(';').trim_end();
    let is_plain = |known: &&str| word.eq_ignore_ascii_case(known);
    PLAIN_WORDS.iter().copied().find(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `input` line by line and gives the pieces in short: `.command`, or `line: sql`.
    fn pieces(input: &str) -> Vec<String> {
        let mut assembler = Assembler::default();
        let mut pieces: Vec<Piece> = input.lines().filter_map(|l| assembler.push(l)).collect();
        pieces.extend(assembler.finish());
        pieces.iter().map(short).collect()
    }

    fn short(piece: &Piece) -> String {
        match piece {
            Piece::Command(command) => format!(".{command}"),
            Piece::Sql(text) => format!("{}: {}", text.line, text.sql.trim_end()),
        }
    }

    #[test]
    fn sql_runs_until_a_semicolon() {
        assert_eq!(
            pieces("select 1;\nselect\n2\n;\nselect 3"),
            ["1: select 1;", "2: select\n2\n;", "5: select 3"]
        );
        assert_eq!(pieces("select 1; select 2;"), ["1: select 1; select 2;"]);
        assert_eq!(pieces("select 1; -- done\n"), ["1: select 1; -- done"]);
    }

    #[test]
    fn semicolons_in_strings_names_and_comments_end_nothing() {
        for text in [
            "select ';\n';",
            "select 'it''s;\n';",
            "select 1 as \";\n\";",
            "select 1 /* ;\n /* ; */ ;\n */;",
            "select $$;\n$$;",
            "select $a$;\n$$;\n$a$;",
            "select 1 -- ;\n;",
        ] {
            assert_eq!(pieces(text), [format!("1: {text}")]);
        }
    }

    #[test]
    fn parameters_and_names_with_dollars_open_nothing() {
        assert_eq!(
            pieces("select $1, $2;\nselect a$b$;"),
            ["1: select $1, $2;", "2: select a$b$;"]
        );
    }

    #[test]
    fn commands_stand_between_statements_only() {
        assert_eq!(
            pieces(".mode csv\nselect 1;\n  .tables \n"),
            [".mode csv", "2: select 1;", ".tables"]
        );
        assert_eq!(pieces("select 1\n.5;"), ["1: select 1\n.5;"]);
        assert_eq!(pieces("-- note\n.help"), [".help"]);
    }

    #[test]
    fn commands_without_a_dot() {
        assert_eq!(
            pieces("exit\nQuit;\n help \n\\d t\nselect\nexit;"),
            [".exit", ".quit", ".help", ".\\d t", "5: select\nexit;"]
        );
        assert_eq!(pieces("exit from x;"), ["1: exit from x;"]);
    }

    #[test]
    fn escape_strings_end_where_the_engine_sees_it() {
        assert_eq!(pieces("select E'it\\'s;\n';"), ["1: select E'it\\'s;\n';"]);
    }

    #[test]
    fn blank_input_gives_nothing() {
        assert_eq!(pieces("\n  \n-- only a note\n/* and another */\n"), [""; 0]);
    }

    #[test]
    fn an_open_string_is_handed_out_at_the_end() {
        assert_eq!(pieces("select 'abc;\n"), ["1: select 'abc;"]);
    }
}
