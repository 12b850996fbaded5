//! EXCLUDE behind the frame of a window, which the parser has no place for, as a mark among the keys of PARTITION BY.
//!
//! In: what a frame leaves out; later the window as it was parsed. Out: tokens of the mark; the window as it was written.
//! Invariant: the mark is a call that nobody else can write without quotes; text made of a marked window has the mark again.
//! Not here: where EXCLUDE stands (token_forms.rs); what becomes of the mark (optimizer/fixes/orders/exclusions.rs).

use datafusion::sql::sqlparser::ast::{Expr, Ident, WindowSpec, WindowType};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::functions::{EXCLUDE, Exclusion};
use crate::sql::ast::{function_name, literal_text, plain_arguments};

/// The tokens of the mark.
pub(in crate::sql) fn mark(exclusion: Exclusion) -> [Token; 4] {
    [
        Token::make_word(EXCLUDE, Some('"')),
        Token::LParen,
        Token::SingleQuotedString(exclusion.words().to_string()),
        Token::RParen,
    ]
}

/// Whether a key of PARTITION BY is the mark.
pub(in crate::sql) fn is_mark(key: &Expr) -> bool {
    words_of(key).is_some()
}

fn words_of(key: &Expr) -> Option<String> {
    match key {
        Expr::Function(function) if function_name(function).as_deref() == Some(EXCLUDE) => {
            let arguments = plain_arguments(function)?;
            literal_text(arguments.first()?).map(str::to_owned)
        }
        _ => None,
    }
}

/// Writes a window with a mark as its user did.
pub(in crate::sql) fn write_out(over: &mut WindowType) {
    let WindowType::WindowSpec(window) = over else {
        return;
    };
    if let Some(words) = window.partition_by.iter().find_map(words_of) {
        let mut plain = WindowSpec::clone(window);
        plain.partition_by.retain(|key| !is_mark(key));
        let text = format!("({plain} EXCLUDE {words})");
        *over = WindowType::NamedWindow(Ident::new(text));
    }
}
