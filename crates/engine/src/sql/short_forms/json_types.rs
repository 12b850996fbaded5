//! `from_json(x, '{"a": "INTEGER", "b": ["VARCHAR"]}')`: JSON as values of the type that a structure says.
//!
//! In: a call of `from_json` or `json_transform`. Out: a call with a NULL of the type, `STRUCT(a INTEGER, b VARCHAR[])`.
//! Invariant: a structure that is no literal, or no structure, is an error.
//! Not here: what the values are (functions/scalar/json_shapes.rs).

use datafusion::sql::sqlparser::ast::Expr;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::functions::JSON_AS;
use crate::sql::ast::{literal_text, parse_expr};
use crate::sql::short_forms::known_types::known_type;
use crate::sql::short_forms::quoted_call;

/// The call of JSON `json` with the structure `structure`.
pub(super) fn as_structure(json: &Expr, structure: &Expr) -> Result<Expr> {
    let text = literal_text(structure);
    let value = text.and_then(|text| serde_json::from_str(text).ok());
    let null = value.and_then(|value| {
        let of = type_of(&value)?;
        let cast = parse_expr(&format!("CAST(NULL AS {of})")).ok()?;
        matches!(cast, Expr::Cast { .. }).then_some(cast)
    });
    match null {
        Some(mut null) => {
            if let Expr::Cast { data_type, .. } = &mut null {
                known_type(data_type);
            }
            Ok(quoted_call(JSON_AS, vec![json.clone(), null]))
        }
        None => Err(Error::unsupported("from_json takes a structure as its second argument, e.g. '{\"a\": \"INTEGER\", \"b\": [\"VARCHAR\"]}'".to_owned())),
    }
}

fn type_of(value: &Value) -> Option<String> {
    match value {
        Value::String(name) if name.eq_ignore_ascii_case("json") => Some("VARCHAR".to_owned()),
        Value::String(name) if name.eq_ignore_ascii_case("null") => Some("VARCHAR".to_owned()),
        Value::String(name) => Some(name.clone()),
        Value::Array(items) => match items.as_slice() {
            [item] => Some(format!("{}[]", type_of(item)?)),
            _ => None,
        },
        Value::Object(members) => {
            let fields = members.iter().map(|(name, value)| {
                let name = name.replace('"', "\"\"");
                Some(format!("\"{name}\" {}", type_of(value)?))
            });
            let fields: Option<Vec<String>> = fields.collect();
            Some(format!("STRUCT<{}>", fields?.join(", "))).filter(|_| !members.is_empty())
        }
        _ => None,
    }
}
