//! What the engine says of wrong statements: the golden text has the kind of error, the place and the suggestion.
//!
//! In: `messages/statements.sql`, right statements of which mutants are made; `messages/more.sql`, wrong ones.
//! Out: `messages/golden.txt`, each wrong statement with its error below.
//! Invariant: no message has a word of Rust's or of the planner's inside. `GROUSE_MESSAGES_UPDATE=1` rewrites the golden
//! text; read the diff.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use grouse::Session;
use grouse_tests::answer::Answer;
use grouse_tests::mutants::mutants;

/// At least so many statements are wrong.
const WRONG_MIN: usize = 300;

/// Of mutants so many of each hundred are kept in the golden text; all are tried.
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
        let place = error
            .position()
            .map(|place| format!("{}:{}", place.line, place.column));
        let text = error.to_string();
        let inside = INSIDE_WORDS
            .iter()
            .find(|word| text.contains(**word) && !sql.contains(**word));
        assert_eq!(inside, None, "{sql}\n{text}");
        format!("{} {text}", place.unwrap_or_else(|| "-".to_owned()))
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
    let mut golden = String::new();
    let mut wrong = 0;
    for statement in &statements {
        let text = match message(&first, statement) {
            Some(text) => {
                wrong += 1;
                text
            }
            None => "(runs)".to_owned(),
        };
        writeln!(golden, "{statement}\n    {}", text.replace('\n', "\n    ")).expect("a String");
    }
    assert!(wrong >= WRONG_MIN, "only {wrong} statements are wrong");
    if std::env::var_os("GROUSE_MESSAGES_UPDATE").is_some() {
        fs::write(folder.join("golden.txt"), &golden).expect("a file that can be written");
        panic!("the golden text was rewritten; read the diff and run again");
    }
    let expected = read("golden.txt");
    for (ours, theirs) in golden.lines().zip(expected.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(golden.lines().count(), expected.lines().count());
}
