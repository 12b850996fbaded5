//! Lines of input -> pieces that can be run: a shell command, or SQL up to a `;` that ends a line.
//! In: lines, from the prompt, a file or a pipe. Out: [`Piece`]s with the line at which they began.
//! Invariant: a piece of SQL never ends within a string, a quoted name or a comment; what follows the last `;` is
//! handed out at the end of the input.
//! Not here: splitting a piece into statements, which the engine's own tokenizer does.

/// What some editors put before the first line.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Something to run.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// A line such as `.tables`, without its dot.
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
        let line = line.strip_suffix('\r').unwrap_or(line);
        let line = if self.lines == 1 {
            line.trim_start_matches(BYTE_ORDER_MARK)
        } else {
            line
        };
        if self.is_blank() {
            self.text.clear();
            if let Some(command) = line.trim().strip_prefix('.') {
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

    /// Forgets what is waiting.
    pub fn clear(&mut self) {
        self.text.clear();
        self.scan = Scan::default();
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

/// What the scanned text ends inside of.
#[derive(Debug, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Code,
    Quotes(char),
    Comment {
        depth: u32,
    },
    /// `$tag$ ... $tag$`, with its dollars.
    Dollars(String),
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
    inside: Inside,
    last: Last,
}

impl Scan {
    fn is_complete(&self) -> bool {
        self.inside == Inside::Code && self.last == Last::Semicolon
    }

    fn is_blank(&self) -> bool {
        self.inside == Inside::Code && self.last == Last::Nothing
    }

    fn line(&mut self, line: &str) {
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let taken = match &self.inside {
                Inside::Code => self.code(rest, first),
                Inside::Quotes(quote) => {
                    // A doubled quote leaves and enters again, which comes to the same.
                    if first == *quote {
                        self.inside = Inside::Code;
                    }
                    first.len_utf8()
                }
                Inside::Comment { depth } => {
                    let depth = *depth;
                    self.comment(rest, first, depth)
                }
                Inside::Dollars(tag) => match rest.find(tag.as_str()) {
                    Some(at) => {
                        let taken = at + tag.len();
                        self.inside = Inside::Code;
                        taken
                    }
                    None => rest.len(),
                },
            };
            rest = &rest[taken..];
        }
    }

    /// One step outside of strings and comments; gives the bytes taken.
    fn code(&mut self, rest: &str, first: char) -> usize {
        if rest.starts_with("--") {
            return rest.len();
        }
        if rest.starts_with("/*") {
            self.inside = Inside::Comment { depth: 1 };
            return 2;
        }
        if first.is_whitespace() {
            return first.len_utf8();
        }
        self.last = if first == ';' {
            Last::Semicolon
        } else {
            Last::Word
        };
        match first {
            '\'' | '"' | '`' => self.inside = Inside::Quotes(first),
            '$' => {
                if let Some(tag) = dollar_tag(rest) {
                    self.inside = Inside::Dollars(tag.to_owned());
                    return tag.len();
                }
            }
            _ if first.is_alphanumeric() || first == '_' => return word_len(rest),
            _ => {}
        }
        first.len_utf8()
    }

    fn comment(&mut self, rest: &str, first: char, depth: u32) -> usize {
        if rest.starts_with("/*") {
            self.inside = Inside::Comment { depth: depth + 1 };
            return 2;
        }
        if rest.starts_with("*/") {
            self.inside = if depth == 1 {
                Inside::Code
            } else {
                Inside::Comment { depth: depth - 1 }
            };
            return 2;
        }
        first.len_utf8()
    }
}

/// Bytes of the name or number that `text` starts with; a `$` within it opens nothing.
fn word_len(text: &str) -> usize {
    text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
        .unwrap_or(text.len())
}

/// The opening `$$` or `$tag$` that `text` starts with; `$1` is a parameter.
fn dollar_tag(text: &str) -> Option<&str> {
    let name = &text[1..];
    let end = name.find('$')?;
    let is_name = name[..end].chars().all(|c| c.is_alphanumeric() || c == '_');
    let is_number = name.starts_with(|c: char| c.is_ascii_digit());
    (is_name && !is_number).then(|| &text[..end + 2])
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
    fn blank_input_gives_nothing() {
        assert_eq!(pieces("\n  \n-- only a note\n/* and another */\n"), [""; 0]);
    }

    #[test]
    fn an_open_string_is_handed_out_at_the_end() {
        assert_eq!(pieces("select 'abc;\n"), ["1: select 'abc;"]);
    }
}
