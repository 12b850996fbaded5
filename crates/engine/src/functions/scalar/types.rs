//! What a value is, and what the session is: `typeof`, `current_setting` and others.
//!
//! In: any value, names of settings. Out: strings.
//! Invariant: types are called as `CAST` takes them.
//! Not here: names of types under the heads of columns (types.rs of the engine).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, StringViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::expr_fn::{nvl, uuid};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use super::definition::{CallArguments, CallForm, Definition, rows, stands};
use super::kinds::ParameterKind;
use crate::error::types::type_name;
use crate::expr::function_methods::function_methods;

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    const ANY: &[CallForm] = &[&[ParameterKind::Any]];
    const NONE: &[CallForm] = &[&[]];
    let text = |_: &[DataType]| Ok(DataType::Utf8View);
    let of_type = rows("typeof", ANY, text, |call| {
        Ok(named(call, &type_name(call.args[0].data_type())))
    });
    let all: Vec<Definition> = vec![
        of_type.also("pg_typeof"),
        of_type,
        stands("current_user", NONE, |_| Ok(lit("grouse"))),
        stands("session_user", NONE, |_| Ok(lit("grouse"))),
        stands("current_database", NONE, |_| Ok(lit("grouse"))),
        stands("current_catalog", NONE, |_| Ok(lit("grouse"))),
        stands("current_schema", NONE, |_| Ok(lit("public"))),
        stands("gen_random_uuid", NONE, |_| Ok(uuid())).volatile(),
        rows(
            "error",
            &[&[ParameterKind::Text]],
            |_| Ok(DataType::Null),
            |call| {
                let message = call.strings(0);
                match (0..call.rows).find(|row| message.is_valid(*row)) {
                    Some(row) => {
                        Err(crate::error::Error::Execution(message.value(row).to_owned()).into())
                    }
                    None => Ok(datafusion::arrow::array::new_null_array(
                        &DataType::Null,
                        call.rows,
                    )),
                }
            },
        )
        .volatile(),
        stands(
            "ifnull",
            &[&[ParameterKind::Any, ParameterKind::Any]],
            |args| {
                let mut args = args.into_iter();
                let mut next = || args.next().unwrap_or(lit(ScalarValue::Null));
                Ok(nvl(next(), next()))
            },
        ),
    ];
    let mut all: Vec<ScalarUDF> = all.into_iter().map(ScalarUDF::from).collect();
    all.push(CurrentSetting::new().into());
    all
}

/// The same text in every row.
fn named(call: &CallArguments, name: &str) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(
        (0..call.rows).map(|_| name),
    ))
}

/// `current_setting(name)`: the value of an option of ours or of DataFusion.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CurrentSetting {
    signature: Signature,
}

impl CurrentSetting {
    fn new() -> CurrentSetting {
        CurrentSetting {
            signature: Signature::string(1, Volatility::Stable),
        }
    }
}

impl ScalarUDFImpl for CurrentSetting {
    function_methods!("current_setting");

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let name = match args.args.first() {
            Some(ColumnarValue::Scalar(value)) => {
                value.try_as_str().flatten().map(str::to_lowercase)
            }
            _ => None,
        };
        let Some(name) = name else {
            return Err(crate::error::Error::invalid(
                "current_setting",
                "it takes the name of one option as a literal, e.g. current_setting('threads')",
            )
            .into());
        };
        let name = match name.as_str() {
            "timezone" => "datafusion.execution.time_zone".to_owned(),
            _ => name,
        };
        let entries = args.config_options.entries();
        let is_named = |key: &str| key == name || key.strip_prefix("grouse.") == Some(&name);
        match entries.into_iter().find(|entry| is_named(&entry.key)) {
            Some(entry) => Ok(ColumnarValue::Scalar(ScalarValue::Utf8(entry.value))),
            None => Err(crate::error::Error::invalid(
                format!("option '{name}'"),
                "there is none of this name; SHOW ALL lists them",
            )
            .into()),
        }
    }
}
