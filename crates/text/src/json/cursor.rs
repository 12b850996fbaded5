//! A cursor over JSON text.
//!
//! In: text that ends where a record ends. Out: its values, one after the other.
//! Invariant: what is skipped is balanced and closed; what is handed out is checked.
//! Not here: where records end in a file (splitter.rs), types (shape.rs), columns (columns.rs).

use std::borrow::Cow;

use memchr::memchr3;

/// What is wrong, and where in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    /// The byte of the text.
    pub at: usize,
    /// What is wrong, in words of JSON.
    pub message: String,
}

/// A value, or what is wrong in its place.
pub type Result<T> = std::result::Result<T, Bad>;

/// A place in a text.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

/// Words of JSON, and the numbers that others write although JSON has none.
const WORDS: [&str; 6] = ["true", "false", "null", "NaN", "Infinity", "-Infinity"];

impl<'a> Cursor<'a> {
    /// A cursor at byte `at` of `text`.
    pub fn new(text: &'a str, at: usize) -> Cursor<'a> {
        Cursor { text, at }
    }

    /// The byte that it stands at.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The next byte that is no space, which is not taken.
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Takes the next byte if it is `wanted`.
    pub fn take(&mut self, wanted: u8) -> bool {
        let is_next = self.peek() == Some(wanted);
        self.at += usize::from(is_next);
        is_next
    }

    /// An error at this place.
    pub fn bad<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(Bad {
            at: self.at,
            message: message.into(),
        })
    }

    /// An error that says what stands here instead of `wanted`.
    pub fn expected<T>(&mut self, wanted: &str) -> Result<T> {
        match self.peek() {
            None => self.bad(format!("{wanted} is missing: the record ends before")),
            Some(_) => {
                let rest = &self.text[self.at..];
                let end = rest
                    .char_indices()
                    .find(|(at, c)| *at > 0 && (c.is_whitespace() || *at >= FOUND_BYTES))
                    .map_or(rest.len(), |(at, _)| at);
                self.bad(format!("expected {wanted}, found '{}'", &rest[..end]))
            }
        }
    }

    /// The same for what should stand behind the last value, on whose line it is missing.
    fn missing<T>(&mut self, wanted: &str) -> Result<T> {
        let end = self.text[..self.at].trim_end().len();
        self.expected(wanted).map_err(|bad| Bad { at: end, ..bad })
    }

    /// The elements of an object: `each` is called before every value, with the name before it.
    pub fn object(
        &mut self,
        mut each: impl FnMut(&str, &mut Cursor<'a>) -> Result<()>,
    ) -> Result<()> {
        self.at += 1;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.expected("a name in quotes");
            }
            let name = self.string()?;
            if !self.take(b':') {
                return self.missing("':'");
            }
            each(&name, self)?;
            if self.take(b',') {
                continue;
            }
            match self.take(b'}') {
                true => return Ok(()),
                false => return self.missing("',' or '}'"),
            }
        }
    }

    /// The elements of an array: `each` is called before every value.
    pub fn array(&mut self, mut each: impl FnMut(&mut Cursor<'a>) -> Result<()>) -> Result<()> {
        self.at += 1;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            each(self)?;
            if self.take(b',') {
                continue;
            }
            match self.take(b']') {
                true => return Ok(()),
                false => return self.missing("',' or ']'"),
            }
        }
    }

    /// The text between two quotes, of which the first is next.
    pub fn string(&mut self) -> Result<Cow<'a, str>> {
        let start = self.at + 1;
        let end = self.closing_quote(start)?;
        let inside = &self.text[start..end];
        self.at = end + 1;
        match inside.as_bytes().contains(&b'\\') {
            false => Ok(Cow::Borrowed(inside)),
            true => unescape(inside, start).map(Cow::Owned),
        }
    }

    fn closing_quote(&self, mut from: usize) -> Result<usize> {
        let bytes = self.text.as_bytes();
        loop {
            // A line end inside of a string is none of JSON: the quote before it was forgotten.
            match memchr3(b'"', b'\\', b'\n', &bytes[from..]) {
                Some(found) if bytes[from + found] == b'"' => return Ok(from + found),
                Some(found) if bytes[from + found] == b'\\' && from + found + 2 <= bytes.len() => {
                    from += found + 2;
                }
                _ => return self.bad("a quote is opened here and never closed"),
            }
        }
    }

    /// A number, `true`, `false`, `null` or one of the words that stand for numbers.
    pub fn word(&mut self) -> Result<&'a str> {
        self.peek();
        let rest = &self.text[self.at..];
        let is_part =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let end = rest.bytes().position(|byte| !is_part(&byte));
        let word = &rest[..end.unwrap_or(rest.len())];
        if !WORDS.contains(&word) && !is_number(word.as_bytes()) {
            return self.expected("a value");
        }
        self.at += word.len();
        Ok(word)
    }

    /// Passes a value.
    pub fn skip(&mut self) -> Result<()> {
        match self.peek() {
            Some(b'"') => self.at = self.closing_quote(self.at + 1)? + 1,
            Some(b'{' | b'[') => self.skip_nested()?,
            _ => {
                self.word()?;
            }
        }
        Ok(())
    }

    /// Passes an object or an array, however deep.
    fn skip_nested(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        let (start, mut at, mut open) = (self.at, self.at, Vec::new());
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'"' => at = self.closing_quote(at + 1)?,
                b'{' => open.push(b'}'),
                b'[' => open.push(b']'),
                b'}' | b']' => {
                    if open.pop() != Some(byte) {
                        self.at = at;
                        return self.bad(format!("'{}' closes nothing here", byte as char));
                    }
                    if open.is_empty() {
                        self.at = at + 1;
                        return Ok(());
                    }
                }
                _ => {}
            }
            at += 1;
        }
        self.at = start;
        let opened = bytes[start] as char;
        self.bad(format!("'{opened}' is opened here and never closed"))
    }

    /// A value as it is written.
    pub fn raw(&mut self) -> Result<&'a str> {
        self.peek();
        let start = self.at;
        self.skip()?;
        Ok(&self.text[start..self.at])
    }
}

/// Bytes of the text that an error shows.
const FOUND_BYTES: usize = 20;

/// Whether the bytes are a number as JSON writes it.
fn is_number(bytes: &[u8]) -> bool {
    let digits = |bytes: &[u8]| {
        bytes
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut rest = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let whole = digits(rest);
    if whole == 0 || whole > 1 && rest[0] == b'0' {
        return false;
    }
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = exponent
            .strip_prefix(b"+")
            .or_else(|| exponent.strip_prefix(b"-"))
            .unwrap_or(exponent);
        return !exponent.is_empty() && digits(exponent) == exponent.len();
    }
    rest.is_empty()
}

/// The text that `inside` stands for; `start` is its place in the record.
fn unescape(inside: &str, start: usize) -> Result<String> {
    let mut text = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let (unescaped, after) = escape(&rest[at + 1..]).ok_or_else(|| Bad {
            at: start + inside.len() - rest.len() + at,
            message: format!(
                "'{}' is no escape of JSON",
                rest[at..].chars().take(6).collect::<String>()
            ),
        })?;
        text.push(unescaped);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

/// The character behind a backslash, and what follows it.
fn escape(after: &str) -> Option<(char, &str)> {
    let mut chars = after.chars();
    let unescaped = match chars.next()? {
        c @ ('"' | '\\' | '/') => c,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return unicode(chars.as_str()),
        _ => return None,
    };
    Some((unescaped, chars.as_str()))
}

/// Four digits, or twice four where the first are half of a character.
fn unicode(digits: &str) -> Option<(char, &str)> {
    let unit = |digits: &str| {
        let digits = digits.get(..4)?;
        let are_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        are_hex
            .then(|| u32::from_str_radix(digits, 16).ok())
            .flatten()
    };
    let high = unit(digits)?;
    let rest = &digits[4..];
    if let Some(c) = char::from_u32(high) {
        return Some((c, rest));
    }
    let low = rest.strip_prefix("\\u").and_then(unit)?;
    let is_pair = (0xd800..0xdc00).contains(&high) && (0xdc00..0xe000).contains(&low);
    let code = 0x10000 + ((high.checked_sub(0xd800)?) << 10) + low.checked_sub(0xdc00)?;
    is_pair
        .then(|| char::from_u32(code))
        .flatten()
        .map(|c| (c, &rest[6..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for yes in ["0", "-0", "10", "1.5", "-1.50e-3", "1E+9"] {
            assert!(is_number(yes.as_bytes()), "{yes}");
        }
        for no in ["", "-", "01", "1.", ".5", "1e", "1e+", "1x", "--1", "0x1"] {
            assert!(!is_number(no.as_bytes()), "{no}");
        }
    }

    #[test]
    fn strings() {
        let read = |text: &str| Cursor::new(text, 0).string().map(Cow::into_owned);
        assert_eq!(
            read(r#""a\"\\\u00e4\ud83d\ude00\n""#).unwrap(),
            "a\"\\ä😀\n"
        );
        for bad in [r#""a"#, r#""\x""#, r#""\ud83d""#, r#""\u12""#, r#""\"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn skipped_values_are_closed() {
        for good in [r#"{"a":[1,"]",{}]} "#, "[]", "\"x\"", " -1.5", "null"] {
            assert!(Cursor::new(good, 0).skip().is_ok(), "{good}");
        }
        for bad in ["{", "[}", "{\"a\":\"}", "nonsense", "", "[[]"] {
            assert!(Cursor::new(bad, 0).skip().is_err(), "{bad}");
        }
    }
}
