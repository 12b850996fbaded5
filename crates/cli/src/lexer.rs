//! SQL text -> words, numbers, strings, names in quotes and comments, also of text that is not finished.
//! In: text, all at once or line by line. Out: [`Token`]s, one after the other.
//! Invariant: tokens cover the text; one that the text does not end goes on where the next text begins. Quotes, dollar quotes,
//! escapes and comments are where the engine's own tokenizer sees them.
//! Not here: what a word means.

/// A piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its bytes; at least one.
    pub len: usize,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A keyword or a name.
    Word,
    /// `1_000`, `1.5`
    Number,
    /// `'text'`, `E'text'`, `$$text$$`
    Text,
    /// `"name"`, also in backquotes
    Name,
    /// `-- …`, `/* … */`
    Comment,
    /// White space.
    Blank,
    /// One character of punctuation.
    Sign,
}

/// Cuts text into tokens.
#[derive(Debug, Default)]
pub struct Lexer {
    inside: Inside,
}

/// What the text so far ends inside of.
#[derive(Debug, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Code,
    /// A doubled quote leaves and enters again, which comes to the same.
    Quotes(char),
    /// `E'…'`: a backslash takes the next character along.
    Escapes,
    Comment {
        depth: u32,
    },
    /// `$tag$ … $tag$`, `q'[ … ]'`: until these characters.
    Until(String),
}

impl Lexer {
    /// Whether the text so far ends in a string, a quoted name or a comment.
    pub fn is_inside(&self) -> bool {
        self.inside != Inside::Code
    }

    /// The next token of `rest`, which is not empty.
    pub fn step(&mut self, rest: &str) -> Token {
        if self.is_inside() {
            return Token {
                kind: self.kind(),
                len: self.close(rest),
            };
        }
        if let Some(opening) = self.open(rest) {
            let kind = self.kind();
            return Token {
                kind,
                len: opening + self.close(&rest[opening..]),
            };
        }
        plain(rest)
    }

    /// The bytes of what opens a string, a quoted name or a comment of several lines.
    fn open(&mut self, rest: &str) -> Option<usize> {
        let (inside, len) = if rest.starts_with("/*") {
            (Inside::Comment { depth: 1 }, 2)
        } else if rest.starts_with("E'") || rest.starts_with("e'") {
            (Inside::Escapes, 2)
        } else if let Some(until) = delimited_until(rest) {
            (Inside::Until(until), 3)
        } else if let Some(tag) = dollar_tag(rest) {
            (Inside::Until(tag.to_owned()), tag.len())
        } else {
            match rest.chars().next()? {
                quote @ ('\'' | '"' | '`') => (Inside::Quotes(quote), 1),
                _ => return None,
            }
        };
        self.inside = inside;
        Some(len)
    }

    fn kind(&self) -> Kind {
        match self.inside {
            Inside::Quotes('"' | '`') => Kind::Name,
            Inside::Comment { .. } => Kind::Comment,
            _ => Kind::Text,
        }
    }

    /// The bytes up to the end of what the text is inside of, or all.
    fn close(&mut self, rest: &str) -> usize {
        let end = match &self.inside {
            Inside::Code => Some(0),
            Inside::Quotes(quote) => rest.find(*quote).map(|at| at + 1),
            Inside::Escapes => escaped_end(rest),
            Inside::Until(end) => rest.find(end.as_str()).map(|at| at + end.len()),
            Inside::Comment { depth } => match comment_end(rest, *depth) {
                Ok(end) => Some(end),
                Err(depth) => {
                    self.inside = Inside::Comment { depth };
                    None
                }
            },
        };
        if end.is_some() {
            self.inside = Inside::Code;
        }
        end.unwrap_or(rest.len())
    }
}

/// All tokens of `text` with their place.
pub fn tokens(text: &str) -> impl Iterator<Item = (usize, Token)> {
    let mut lexer = Lexer::default();
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let token = lexer.step(rest);
        at += token.len;
        Some((at - token.len, token))
    })
}

/// A token of code that opens nothing.
fn plain(rest: &str) -> Token {
    if rest.starts_with("--") {
        let len = rest.find('\n').unwrap_or(rest.len());
        return Token {
            kind: Kind::Comment,
            len,
        };
    }
    let first = rest.chars().next().unwrap_or(' ');
    let (kind, len) = if first.is_whitespace() {
        let end = rest.find(|c: char| !c.is_whitespace());
        (Kind::Blank, end.unwrap_or(rest.len()))
    } else if first.is_ascii_digit() {
        (Kind::Number, number_len(rest))
    } else if first.is_alphanumeric() || first == '_' {
        (Kind::Word, word_len(rest))
    } else {
        (Kind::Sign, first.len_utf8())
    };
    Token { kind, len }
}

/// Bytes of the name that `text` starts with; a `$` within it opens nothing.
fn word_len(text: &str) -> usize {
    text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
        .unwrap_or(text.len())
}

/// Bytes of the number that `text` starts with, its unit and its decimals included.
fn number_len(text: &str) -> usize {
    let whole = word_len(text);
    let decimals = text[whole..].strip_prefix('.');
    match decimals.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        Some(rest) => whole + 1 + word_len(rest),
        None => whole,
    }
}

/// The opening `$$` or `$tag$` that `text` starts with; `$1` is a parameter.
fn dollar_tag(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let end = name.find('$')?;
    let is_name = name[..end].chars().all(|c| c.is_alphanumeric() || c == '_');
    let is_number = name.starts_with(|c: char| c.is_ascii_digit());
    (is_name && !is_number).then(|| &text[..end + 2])
}

/// What ends the string that `q'[` opens; its delimiter is an ASCII character.
fn delimited_until(text: &str) -> Option<String> {
    let rest = text.strip_prefix("q'").or(text.strip_prefix("Q'"))?;
    let end = match rest.chars().next()? {
        '[' => ']',
        '{' => '}',
        '(' => ')',
        '<' => '>',
        other if other.is_ascii_punctuation() && other != '\'' => other,
        _ => return None,
    };
    Some(format!("{end}'"))
}

/// The end of an escape string, behind its quote.
fn escaped_end(text: &str) -> Option<usize> {
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => {
                characters.next();
            }
            '\'' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The end of a comment within `depth` comments, or how many are open at the end of the text.
fn comment_end(text: &str, mut depth: u32) -> Result<usize, u32> {
    let mut at = 0;
    while let Some(step) = text[at..].find(['/', '*']) {
        at += step;
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Ok(at);
            }
        } else {
            at += 1;
        }
    }
    Err(depth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(Kind, &str)]) {
        let found: Vec<(Kind, &str)> = tokens(text)
            .filter(|(_, token)| token.kind != Kind::Blank)
            .map(|(at, token)| (token.kind, &text[at..at + token.len]))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn tokens_of_each_kind() {
        use Kind::*;
        check(
            "a$1 1_000.5 -- x\n/* /* */ */ \"n m\" `n`,$1",
            &[
                (Word, "a$1"),
                (Number, "1_000.5"),
                (Comment, "-- x"),
                (Comment, "/* /* */ */"),
                (Name, "\"n m\""),
                (Name, "`n`"),
                (Sign, ","),
                (Sign, "$"),
                (Number, "1"),
            ],
        );
    }

    #[test]
    fn strings_of_each_kind() {
        use Kind::*;
        for text in [
            "'a;b'",
            "E'it\\'s;'",
            "$$ ' $$",
            "$t$ $$ $t$",
            "q'[it's]'",
            "Q'!it's!'",
        ] {
            check(text, &[(Text, text)]);
        }
        check("'it''s'", &[(Text, "'it'"), (Text, "'s'")]);
    }

    #[test]
    fn what_is_open_stays_open() {
        for text in [
            "'a", "\"a", "/* a", "$$ a", "E'a\\'", "q'[a'", "/* /* */", "'a\\",
        ] {
            let mut lexer = Lexer::default();
            assert_eq!(lexer.step(text).len, text.len(), "{text}");
            assert!(lexer.is_inside(), "{text}");
        }
    }

    #[test]
    fn a_comment_goes_on_in_the_next_text() {
        let mut lexer = Lexer::default();
        lexer.step("/* a /* b");
        assert_eq!(lexer.step("*/ c").len, 4);
        assert!(lexer.is_inside());
        assert_eq!(lexer.step("*/ d").len, 2);
        assert!(!lexer.is_inside());
    }
}
