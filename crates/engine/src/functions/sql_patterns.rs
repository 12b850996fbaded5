//! Patterns of SQL in the forms that DataFusion has: of LIKE with another escape than `\`, of SIMILAR TO as regular expressions.
//!
//! In: a pattern as text. Out: the same pattern in the other form.
//! Invariant: in SIMILAR TO `%` is any text, `_` any character, and `|*+?{}()[]` are what they are in regular expressions. All
//! other characters are themselves; the whole text has to match. The escape makes the next character itself.
//! Not here: matching, which is DataFusion's; regular expressions as such.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::expr::function_methods::function_methods;
use crate::wire::{Portable, WireReader, WireValue};

/// The pattern of LIKE with `\` in place of its own escape.
pub(crate) fn like_pattern(pattern: Expr, escape: char) -> Expr {
    called(PatternForm::Like(escape), pattern)
}

/// The pattern of SIMILAR TO as a regular expression.
pub(crate) fn similar_pattern(pattern: Expr, escape: char) -> Expr {
    called(PatternForm::Similar(escape), pattern)
}

fn called(form: PatternForm, pattern: Expr) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::new_from_impl(PatternFunction { form, signature }).call(vec![pattern])
}

/// What is rewritten, with its escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PatternForm {
    Like(char),
    Similar(char),
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct PatternFunction {
    form: PatternForm,
    signature: Signature,
}

impl ScalarUDFImpl for PatternFunction {
    function_methods!();

    fn name(&self) -> &str {
        match self.form {
            PatternForm::Like(_) => "like_pattern",
            PatternForm::Similar(_) => "similar_pattern",
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let patterns: ArrayRef = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Utf8)?;
        let patterns = patterns.as_string::<i32>();
        let rewritten: StringArray = patterns
            .iter()
            .map(|pattern| {
                pattern.map(|pattern| match self.form {
                    PatternForm::Like(escape) => with_backslashes(pattern, escape),
                    PatternForm::Similar(escape) => regular(pattern, escape),
                })
            })
            .collect();
        debug_assert_eq!(rewritten.len(), args.number_rows);
        Ok(ColumnarValue::Array(Arc::new(rewritten)))
    }
}

impl Portable for PatternFunction {
    const KIND: &'static str = "pattern";

    fn apart(&self) -> Vec<WireValue> {
        let (is_like, escape) = match self.form {
            PatternForm::Like(escape) => (true, escape),
            PatternForm::Similar(escape) => (false, escape),
        };
        vec![is_like.into(), i64::from(u32::from(escape)).into()]
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        let is_like = values.flag()?;
        let code = u32::try_from(values.number()?).ok();
        let Some(escape) = code.and_then(char::from_u32) else {
            return internal_err!("a pattern has no escape");
        };
        let form = match is_like {
            true => PatternForm::Like(escape),
            false => PatternForm::Similar(escape),
        };
        let signature = Signature::any(1, Volatility::Immutable);
        Ok(PatternFunction { form, signature })
    }
}

fn with_backslashes(pattern: &str, escape: char) -> String {
    let mut rewritten = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let (is_literal, character) = match character == escape {
            true => (true, characters.next().unwrap_or(escape)),
            false => (character == '\\', character),
        };
        if is_literal && matches!(character, '%' | '_' | '\\') {
            rewritten.push('\\');
        }
        rewritten.push(character);
    }
    rewritten
}

fn regular(pattern: &str, escape: char) -> String {
    let mut rewritten = String::from("^(?s:");
    let mut is_class = false;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character == escape {
            push_literal(&mut rewritten, characters.next().unwrap_or(escape));
            continue;
        }
        match character {
            '[' => is_class = true,
            ']' => is_class = false,
            _ => {}
        }
        match character {
            '%' if !is_class => rewritten.push_str(".*"),
            '_' if !is_class => rewritten.push('.'),
            '.' | '^' | '$' | '\\' if !is_class => push_literal(&mut rewritten, character),
            other => rewritten.push(other),
        }
    }
    rewritten.push_str(")$");
    rewritten
}

fn push_literal(pattern: &mut String, character: char) {
    if !character.is_alphanumeric() && character != '_' && !character.is_whitespace() {
        pattern.push('\\');
    }
    pattern.push(character);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_say_the_same() {
        assert_eq!(with_backslashes("a!%b%", '!'), "a\\%b%");
        assert_eq!(with_backslashes("a\\b!!", '!'), "a\\\\b!");
        assert_eq!(regular("%(b|d)_", '\\'), "^(?s:.*(b|d).)$");
        assert_eq!(regular("a.b\\%[_%]", '\\'), "^(?s:a\\.b\\%[_%])$");
    }
}
