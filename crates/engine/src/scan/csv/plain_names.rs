//! `normalize_names`: names of columns that need no quotes.
//!
//! In: a name as a file has it. Out: a word of lower-case ASCII letters, digits and `_`.
//! Invariant: no word that SQL reserves, none that begins with a digit, and none that is empty.
//! Not here: names that are there twice (table.rs).

use icu_normalizer::DecomposingNormalizer;

/// What SQL reserves, as PostgreSQL and DuckDB list it.
const RESERVED: &str = "all analyse analyze and any array as asc asymmetric both case cast check collate column constraint \
    create default deferrable desc describe distinct do else end except false fetch for foreign from group having in \
    initially intersect into lambda lateral leading limit not null offset on only or order pivot placing primary qualify \
    references returning select show some summarize symmetric table then to trailing true union unique unpivot user using \
    variadic when where window with";

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
        || RESERVED.split_ascii_whitespace().any(|word| word == plain);
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
