//! What a function takes, read from the host's errors about its arguments.
//!
//! In: a text of the host about a call that fits no signature. Out: the call and the forms that there are, in SQL's words.
//! Invariant: a form that the text does not say in words of SQL is left out.
//! Not here: functions of ours, which say it themselves (functions/scalar).

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
        ] {
            reason = reason.replace(prefix, "");
        }
        return Some(in_sql_words(reason.trim().trim_end_matches('.')));
    }
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
}
