//! What the engine says of wrong statements: the golden text has the kind of error, the place and the suggestion.
//!
//! In: `messages/statements.sql`, right statements of which mutants are made; `messages/more.sql`, wrong ones.
//! Out: every statement that `messages/golden.txt` has gives the error that stands below it there.
//! Invariant: no message has a word of Rust's or of the planner's inside. `GROUSE_MESSAGES_UPDATE=1` rewrites the golden
//! text with all of them; read the diff.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use grouse::Session;
use grouse_tests::answer::Answer;
use grouse_tests::mutants::mutants;

/// At least so many statements are wrong.
const WRONG_MIN: usize = 300;

/// Words of Rust and of the planner's inside.
const INSIDE_WORDS: &[&str] = &[
    "Utf8",
    "Int64",
    "Int32",
    "UInt64",
    "Float64",
    "Date32",
    "Decimal128",
    "Timestamp(",
    "Interval(",
    "ScalarUDF",
    "AggregateUDF",
    "Field {",
    "DataType",
    "Boxed",
    "DataFusion",
    "Error during planning",
    "ArrowError",
    "Some(",
    "None",
    "backtrace",
    "TypeSignature",
    "Coercible",
    "LogicalPlan",
    "Physical",
    "SchemaError",
    "Schema error",
    "type_coercion",
    "This feature is not implemented",
    "Execution error",
    "Column {",
    "nullable",
    "internal error",
    "Internal error",
    "Assertion failed",
    "failed to match",
    "signature",
    "coerce",
    "UDF",
    "Literal",
    "Ident {",
    "sqltorel",
    "Arrow error",
    "Optimizer rule",
    "non-nullable",
    "datafusion.",
    "usize",
    "i32",
];

fn session() -> Session {
    let session = Session::new(grouse::SessionOptions::default()).expect("default options");
    for sql in [
        "CREATE TABLE orders AS SELECT * FROM (VALUES (1, 'DE', 9.5, 3, DATE '2024-01-05'), (2, 'FR', 1.5, 1, DATE '2024-02-05')) v(customer, country, price, amount, day)",
        "CREATE TABLE customers AS SELECT * FROM (VALUES (1, 'Anna Berg'), (2, 'Bert')) v(id, name)",
    ] {
        Answer::ask(&session, sql).expect("a right statement");
    }
    session
}

/// The error of a statement; `None` if it is right.
fn message(session: &Session, sql: &str) -> Option<String> {
    Answer::ask(session, sql).err().map(|error| {
        let text = error.to_string();
        let inside = INSIDE_WORDS
            .iter()
            .find(|word| text.contains(**word) && !sql.contains(**word));
        assert_eq!(inside, None, "{sql}\n{text}");
        text
    })
}

#[test]
fn wrong_statements_are_told_what_is_wrong_and_where() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("messages");
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("a file of statements");
    let mut statements: Vec<String> = Vec::new();
    let first = session();
    for statement in read("statements.sql").lines() {
        let right = Answer::ask(&first, statement);
        assert!(right.is_ok(), "{statement}\n{right:?}");
        statements.extend(mutants(statement));
    }
    statements.extend(read("more.sql").lines().map(str::to_owned));
    let mut messages = HashMap::new();
    for statement in statements {
        // What is not wrong after all is no message.
        if let Some(message) = message(&first, &statement) {
            messages.insert(statement, message.replace('\n', "\n    "));
        }
    }
    let wrong = messages.len();
    assert!(wrong >= WRONG_MIN, "only {wrong} statements are wrong");
    if std::env::var_os("GROUSE_MESSAGES_UPDATE").is_some() {
        let mut entries: Vec<String> = messages
            .iter()
            .map(|(sql, message)| format!("{sql}\n    {message}\n"))
            .collect();
        entries.sort();
        fs::write(folder.join("golden.txt"), entries.concat()).expect("a file that can be written");
        panic!("the golden text was rewritten; read the diff and run again");
    }
    let golden = read("golden.txt");
    let mut compared = 0;
    let mut lines = golden.lines().peekable();
    while let Some(statement) = lines.next() {
        let mut expected = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with("    ")) {
            expected.push(line.trim_start());
        }
        let message = messages
            .get(statement)
            .map(|message| message.lines().map(str::trim_start).collect::<Vec<_>>());
        assert_eq!(message, Some(expected), "{statement}");
        compared += 1;
    }
    assert!(
        compared >= WRONG_MIN,
        "the golden text has only {compared} statements"
    );
}
