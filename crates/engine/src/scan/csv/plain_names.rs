//! `normalize_names`: names of columns that need no quotes.
//!
//! In: a name as a file has it. Out: a word of lower-case ASCII letters, digits and `_`.
//! Invariant: no word that SQL reserves, none that begins with a digit, and none that is empty.
//! Not here: names that are there twice (table.rs).

use icu_normalizer::DecomposingNormalizer;

use crate::scan::reserved_words::is_reserved;

/// The name as such a word: letters without their accents, `_` for blanks, all else left out.
pub(super) fn plain_name(name: &str) -> String {
    let letters = DecomposingNormalizer::new_nfd().normalize(name.trim());
    let plain = letters.chars().filter_map(|letter| match letter {
        letter if letter.is_whitespace() => Some('_'),
        '_' => Some('_'),
        letter => Some(letter.to_ascii_lowercase()).filter(char::is_ascii_alphanumeric),
    });
    let plain: String = plain.collect();
    let needs_prefix = plain.is_empty()
        || plain.starts_with(|first: char| first.is_ascii_digit())
        || is_reserved(&plain);
    match needs_prefix {
        true => format!("_{plain}"),
        false => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words() {
        for (name, expected) in [
            ("A b", "a_b"),
            (" Größe (cm) ", "groe_cm"),
            ("1st", "_1st"),
            ("Select", "_select"),
            ("日本", "_"),
            ("", "_"),
            ("Ünï", "uni"),
            ("a.b-c_D", "abc_d"),
            ("date", "date"),
        ] {
            assert_eq!(plain_name(name), expected, "{name}");
        }
    }
}
