//! Functions that a caller registers: called by name, refused where the name means something, gone when they are removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use grouse::{Error, Session};

use crate::support::{error, rows, session, two_streams};

/// Gives 1, 2, 3, …: another number for each row.
#[derive(Debug)]
struct Counter {
    name: String,
    signature: Signature,
    last: Arc<AtomicI64>,
}

impl PartialEq for Counter {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Counter {}

impl std::hash::Hash for Counter {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Counter {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> datafusion::common::Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(
        &self,
        args: ScalarFunctionArgs,
    ) -> datafusion::common::Result<ColumnarValue> {
        let numbers = (0..args.number_rows).map(|_| self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
        Ok(ColumnarValue::Array(numbers))
    }
}

fn counter(name: &str) -> ScalarUDF {
    ScalarUDF::from(Counter {
        name: name.to_owned(),
        signature: Signature::nullary(Volatility::Volatile),
        last: Arc::default(),
    })
}

fn register(session: &Session, name: &str) -> Result<(), Error> {
    let registered = session.register_function(counter(name));
    session.handle().block_on(registered)
}

#[test]
fn a_function_is_called_by_its_name_in_any_case() {
    let session = session();
    register(&session, "my_counter").unwrap();
    assert_eq!(rows(&session, "SELECT my_counter()"), ["1"]);
    assert_eq!(rows(&session, "SELECT MY_Counter() + 10"), ["12"]);
    let sql = "SELECT count(DISTINCT my_counter()) FROM numbers(1000)";
    assert_eq!(rows(&session, sql), ["1000"]);
    session.deregister_function("My_Counter").unwrap();
    let gone = error(&session, "SELECT my_counter()");
    assert!(
        matches!(gone.kind(), Error::UnknownFunction { name, .. } if name == "my_counter"),
        "{gone}"
    );
    register(&session, "my_counter").unwrap();
}

#[test]
fn names_that_mean_something_are_refused() {
    let session = session();
    rows(&session, "CREATE MACRO twice(x) AS 2 * x");
    for name in [
        "upper",
        "sum",
        "row_number",
        "if",
        "cast",
        "list_filter",
        "coalesce",
        "columns",
        "struct_pack",
        "twice",
    ] {
        let refused = register(&session, name).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("SQL has a function '{name}'")),
            "{refused}"
        );
    }
    for name in [
        "case", "when", "select", "where", "with", "values", "explain",
    ] {
        let refused = register(&session, name).unwrap_err().to_string();
        let expected = format!("'{name}' is a word of SQL's grammar; take another name");
        assert!(refused.contains(&expected), "{refused}");
    }
    for name in ["Upper", "a b", "1a", "", "a.b", "f()"] {
        let refused = register(&session, name).unwrap_err().to_string();
        assert!(refused.contains("has to be a word"), "{refused}");
    }
    register(&session, "mine").unwrap();
    let again = register(&session, "mine").unwrap_err().to_string();
    assert!(again.contains("function 'mine' exists"), "{again}");
    for name in ["upper", "yours"] {
        let missing = session.deregister_function(name).unwrap_err().to_string();
        assert!(
            missing.contains(&format!("no function '{name}' was registered")),
            "{missing}"
        );
    }
    assert_eq!(rows(&session, "SELECT upper('a')"), ["A"]);
}

/// Each use planned anew would have numbers of its own, and no row of the join.
#[test]
fn a_common_table_has_one_value_of_a_volatile_function() {
    for session in [session(), two_streams()] {
        register(&session, "my_counter").unwrap();
        let sql = "WITH t AS (SELECT my_counter() AS n FROM numbers(100)) SELECT count(*) FROM t AS a JOIN t AS b USING (n)";
        assert_eq!(rows(&session, sql), ["100"]);
    }
}
