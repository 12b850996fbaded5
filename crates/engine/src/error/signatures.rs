//! What a function takes, read from DataFusion's errors about its arguments.
//!
//! In: a text of DataFusion about a call that fits no signature. Out: the call and the forms that there are, in SQL's words.
//! Invariant: a form that the text does not say in words of SQL is left out.
//! Not here: functions of ours, which say it themselves (functions/scalar).

use super::phrases::told;
use super::words::in_sql_words;

/// The message of an error about arguments; `None` if the text is about something else.
pub(super) fn wrong_arguments(text: &str) -> Option<String> {
    if let Some((_, reason)) = text.split_once(" user-defined coercion failed with: ") {
        let reason = reason
            .split(" No function matches")
            .next()
            .unwrap_or(reason);
        let reason = reason
            .rsplit_once("type error: ")
            .map_or(reason, |(_, reason)| reason);
        let mut reason = reason.to_owned();
        for prefix in [
            "Error during planning: ",
            "Execution error: ",
            "External error: ",
            "Internal error: ",
        ] {
            reason = reason.replace(prefix, "");
        }
        let reason = reason.trim().trim_end_matches('.');
        let message = told(reason).map(|(_, message)| message);
        return Some(message.unwrap_or_else(|| in_sql_words(reason)));
    }
    of_one_call(text)
        .or_else(|| of_signatures(text))
        .or_else(|| of_types(text))
}

/// The call with its types is named, and the forms that there are.
fn of_one_call(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("No function matches the given name and argument types '")?;
    let (call, rest) = rest.split_once('\'')?;
    let (name, types) = call.split_once('(')?;
    let types = in_sql_words(types.strip_suffix(')')?);
    let candidates = rest
        .split_once("Candidate functions:")
        .map_or("", |(_, rest)| rest);
    let mut forms: Vec<String> = Vec::new();
    for candidate in candidates.lines() {
        let form = form(candidate.trim());
        forms.extend(form.filter(|form| !forms.contains(form)));
    }
    let forms = match forms.is_empty() {
        true => String::new(),
        false => format!("; it is written {}", forms.join(" or ")),
    };
    Some(format!("function '{name}' does not take ({types}){forms}"))
}

/// `Function 'sum' failed to match any signature, errors: …` lists one error per signature; one may also stand alone.
fn of_signatures(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("unction '")?;
    let (function, errors) = rest.split_once('\'')?;
    let wanted = wanted_types(errors);
    // The signature that goes furthest fails at a type that few others complain of.
    let count = |given: &str| wanted.iter().filter(|(_, other)| *other == given).count();
    if let Some((_, given)) = wanted.iter().min_by_key(|(_, given)| count(given)) {
        let mut classes: Vec<String> = Vec::new();
        for (class, _) in wanted.iter().filter(|(_, other)| other == given) {
            let class = class_word(class);
            if !classes.contains(&class) {
                classes.push(class);
            }
        }
        let given = in_sql_words(given);
        return Some(format!(
            "'{function}' takes {}, not {given}",
            classes.join(" or ")
        ));
    }
    let (counts, given) = wanted_counts(errors);
    let given = given?;
    let noun = if counts == [1] {
        "argument"
    } else {
        "arguments"
    };
    let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
    let counts = match counts.split_last() {
        None => "other arguments".to_owned(),
        Some((last, [])) => format!("{last} {noun}"),
        Some((last, before)) => format!("{} or {last} {noun}", before.join(", ")),
    };
    Some(format!("'{function}' takes {counts}, not {given}"))
}

/// `… requires Integer, but received String (DataType: Utf8).`: the type that is wanted and the one that is given.
fn wanted_types(errors: &str) -> Vec<(&str, &str)> {
    let pieces = errors.split(" requires ").skip(1);
    let pieces = pieces.filter_map(|piece| {
        let (wanted, rest) = piece.split_once(", but received")?;
        let (_, rest) = rest.split_once("(DataType: ")?;
        let end = rest.find(").").unwrap_or(rest.len());
        Some((wanted, &rest[..end]))
    });
    pieces.collect()
}

/// `… expects 1 arguments but received 2`: the numbers that are wanted, and the one that is given.
fn wanted_counts(errors: &str) -> (Vec<usize>, Option<usize>) {
    let mut counts = Vec::new();
    let mut given = None;
    for (at, _) in errors.match_indices(" but received ") {
        let words = errors[..at].rsplit([' ', '\'']);
        let count = words.take(4).find_map(|word| match word {
            "zero" => Some(0),
            word => word.parse().ok(),
        });
        let after = &errors[at + " but received ".len()..];
        let end = after
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(after.len());
        given = given.or(after[..end].parse().ok());
        counts.extend(count);
    }
    counts.sort_unstable();
    counts.dedup();
    (counts, given)
}

/// A class of types in SQL's words.
fn class_word(class: &str) -> String {
    match class {
        "Decimal" => "DECIMAL".to_owned(),
        "Integer" => "BIGINT".to_owned(),
        "Float" => "DOUBLE".to_owned(),
        "Numeric" => "a number".to_owned(),
        "String" => "VARCHAR".to_owned(),
        "Timestamp" => "TIMESTAMP".to_owned(),
        "Date" => "DATE".to_owned(),
        "Time" => "TIME".to_owned(),
        "Duration" => "INTERVAL".to_owned(),
        "Interval" => "INTERVAL".to_owned(),
        "Any" => "any type".to_owned(),
        class => in_sql_words(class),
    }
}

/// `Failed to coerce arguments to satisfy a call to 'f' function: coercion from A, B to the signature S failed`.
fn of_types(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("Failed to coerce arguments to satisfy a call to '")?;
    let (function, rest) = rest.split_once('\'')?;
    let (_, rest) = rest.split_once(" coercion from ")?;
    let (types, _) = rest.split_once(" to the signature ")?;
    let types = in_sql_words(types);
    Some(format!("function '{function}' does not take ({types})"))
}

/// `abs(Numeric(1))` as one writes it, `abs(number)`.
fn form(candidate: &str) -> Option<String> {
    let (name, arguments) = candidate.split_once('(')?;
    let arguments = arguments.strip_suffix(')')?;
    let arguments = match arguments.split_once('(') {
        Some((kind, count)) => {
            let kind = match kind {
                "Numeric" => "number",
                "String" => "VARCHAR",
                "Comparable" => "any",
                "NullAry" => return Some(format!("{name}()")),
                _ => return None,
            };
            let count = count.strip_suffix(')')?.parse().ok()?;
            vec![kind; count].join(", ")
        }
        None => plain(arguments)?,
    };
    Some(format!("{name}({arguments})"))
}

/// Arguments that are types or kinds of types.
fn plain(arguments: &str) -> Option<String> {
    const NOT_WRITTEN: [&str; 6] = [
        "UserDefined",
        "Coercible",
        "Class",
        "Coercion",
        "{",
        "recursive",
    ];
    if NOT_WRITTEN.iter().any(|word| arguments.contains(word)) {
        return None;
    }
    let words = in_sql_words(arguments);
    let words = words.split(", ").map(|word| match word {
        "Any" => "any".to_owned(),
        "String" => "VARCHAR".to_owned(),
        "Numeric" | "Integer" | "Float" | "Decimal" => "number".to_owned(),
        ".." => "…".to_owned(),
        word => word.replace("Any", "any"),
    });
    Some(words.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::wrong_arguments;

    #[test]
    fn calls_and_forms() {
        let text = "Failed to coerce arguments to satisfy a call to 'abs' function: coercion from Utf8 to the \
            signature Numeric(1) failed No function matches the given name and argument types 'abs(Utf8)'. You \
            might need to add explicit type casts.\n\tCandidate functions:\n\tabs(Numeric(1))";
        let expected = "function 'abs' does not take (VARCHAR); it is written abs(number)";
        assert_eq!(wrong_arguments(text).as_deref(), Some(expected));
        let text = "Function 'year' user-defined coercion failed with: External error: type error: function 'year' does not take (BIGINT) No function matches the given name and argument types 'year(Int64)'.";
        let expected = "function 'year' does not take (BIGINT)";
        assert_eq!(wrong_arguments(text).as_deref(), Some(expected));
        assert_eq!(wrong_arguments("no such thing"), None);
    }

    #[test]
    fn signatures() {
        let text = "Function 'sum' failed to match any signature, errors: Error during planning: Function 'sum' expects 1 \
            arguments but received 2,Error during planning: Function 'sum' expects 1 arguments but received 2";
        let expected = "'sum' takes 1 argument, not 2";
        assert_eq!(wrong_arguments(text).as_deref(), Some(expected));
        let text = "Function 'lag' failed to match any signature, errors: Error during planning: The function 'lag' \
            expected 1 arguments but received 4,Error during planning: The function 'lag' expected 2 arguments but received 4";
        let expected = "'lag' takes 1 or 2 arguments, not 4";
        assert_eq!(wrong_arguments(text).as_deref(), Some(expected));
        let text = "Function 'round' failed to match any signature, errors: Error during planning: Function 'round' requires \
            Decimal, but received Float64 (DataType: Float64).,Error during planning: Function 'round' requires Integer, but \
            received Float64 (DataType: Float64).,Error during planning: Function 'round' requires Int32, but received String \
            (DataType: Utf8).,Error during planning: Function 'round' expects 1 arguments but received 2";
        let expected = "'round' takes INTEGER, not VARCHAR";
        assert_eq!(wrong_arguments(text).as_deref(), Some(expected));
    }
}
