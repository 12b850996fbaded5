//! Bytes as text: `\xAA` is one of them.
//!
//! In: a text, or bytes. Out: the other.
//! Invariant: what is written of bytes is read as the same bytes, here and by DuckDB.
//! Not here: other casts of text.

use std::fmt::Write;

use arrow::array::{ArrayRef, BinaryBuilder, StringArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

/// The bytes of a text, in which `\xAA` is one; `None` if a backslash is followed by anything else.
pub fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('\\');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.strip_prefix('x')?.get(..2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[3..]);
    }
    Some(bytes)
}

/// Bytes as they are read: letters, digits and most signs as they are, all others as `\xAA`.
pub fn write_bytes(bytes: &[u8], text: &mut String) {
    for &byte in bytes {
        match byte {
            b' '..=b'~' if !matches!(byte, b'\\' | b'"' | b'\'') => text.push(char::from(byte)),
            _ => {
                // Memory takes all that is written.
                let _ = write!(text, "\\x{byte:02X}");
            }
        }
    }
}

/// Strings cast to a type; NULL, where there was none, for what is no value of it.
pub(crate) fn cast_text(strings: &StringArray, kind: &DataType) -> Result<ArrayRef, ArrowError> {
    if !kind.is_binary() {
        let options = CastOptions {
            safe: true,
            ..CastOptions::default()
        };
        return cast_with_options(strings, kind, &options);
    }
    let mut values = BinaryBuilder::new();
    for text in strings {
        values.append_option(text.and_then(bytes_of));
    }
    cast(&values.finish(), kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        let mut text = String::new();
        write_bytes(&all, &mut text);
        assert_eq!(bytes_of(&text).unwrap(), all);
        assert_eq!(bytes_of("a\\x41").unwrap(), b"aA");
        assert_eq!(bytes_of("\\x"), None);
    }
}
