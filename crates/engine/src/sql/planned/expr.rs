//! Expressions.
//!
//! In: an expression. Out: nothing, or its first clause that DataFusion drops or does not plan.
//! Invariant: as of the folder.
//! Not here: calls of functions (function.rs); types of values, which DataFusion judges.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, ArrayElemTypeDef, CaseWhen, CeilFloorKind, DataType, DateTimeField,
    DictionaryField, Expr, ExtractSyntax, Interval, JsonPath, JsonPathElem, LambdaFunction,
    LambdaFunctionParameter, Map, MapEntry, OneOrManyWithParens, StructField, Subscript,
    TypedString, UnaryOperator, Value, ValueWithSpan,
};

use super::{Checked, StatementWalk};

impl StatementWalk<'_> {
    pub(super) fn exprs(&mut self, exprs: &[Expr]) -> Checked {
        self.each(exprs, Self::expr)
    }

    pub(super) fn expr(&mut self, expr: &Expr) -> Checked {
        match expr {
            Expr::Identifier(name) => {
                self.ident(name);
                Ok(())
            }
            Expr::CompoundIdentifier(parts) => {
                parts.iter().for_each(|part| self.ident(part));
                Ok(())
            }
            Expr::Value(value) => self.value(value),
            Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotUnknown(inner)
            | Expr::Nested(inner) => self.expr(inner),
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                self.expr(left)?;
                self.expr(right)
            }
            Expr::BinaryOp { left, op: _, right } => {
                self.expr(left)?;
                self.expr(right)
            }
            Expr::UnaryOp { op, expr } => self.unary(*op, expr),
            Expr::Function(function) => self.function(function),
            Expr::Exists {
                subquery,
                negated: _,
            }
            | Expr::Subquery(subquery) => self.query(subquery),
            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
                self.each(sets, |walk, set| walk.exprs(set))
            }
            Expr::Tuple(values) => self.exprs(values),
            Expr::Wildcard(token) => {
                self.pass(token.0.span.start);
                Ok(())
            }
            Expr::QualifiedWildcard(name, _) => self.name(name),
            Expr::CompoundFieldAccess { root, access_chain } => {
                self.expr(root)?;
                self.each(access_chain, Self::access)
            }
            Expr::JsonAccess { value, path } => {
                self.expr(value)?;
                let JsonPath { path } = path;
                self.each(path, |walk, element| match element {
                    JsonPathElem::Dot { key: _, quoted: _ } => Ok(()),
                    JsonPathElem::Bracket { key } | JsonPathElem::ColonBracket { key } => {
                        walk.expr(key)
                    }
                })
            }
            _ => self.comparison(expr),
        }
    }

    fn comparison(&mut self, expr: &Expr) -> Checked {
        match expr {
            Expr::InList {
                expr,
                list,
                negated: _,
            } => {
                self.expr(expr)?;
                self.exprs(list)
            }
            Expr::InSubquery {
                expr,
                subquery,
                negated: _,
            } => {
                self.expr(expr)?;
                self.query(subquery)
            }
            Expr::Between {
                expr,
                negated: _,
                low,
                high,
            } => {
                self.expr(expr)?;
                self.expr(low)?;
                self.expr(high)
            }
            Expr::Like {
                negated: _,
                any,
                expr,
                pattern,
                escape_char: _,
            }
            | Expr::ILike {
                negated: _,
                any,
                expr,
                pattern,
                escape_char: _,
            } => {
                self.expr(expr)?;
                self.absent(any, "ANY after LIKE", "write LIKE … OR … LIKE …")?;
                self.expr(pattern)
            }
            Expr::SimilarTo {
                negated: _,
                expr,
                pattern,
                escape_char: _,
            } => {
                self.expr(expr)?;
                self.expr(pattern)
            }
            _ => self.choice(expr),
        }
    }

    fn choice(&mut self, expr: &Expr) -> Checked {
        match expr {
            Expr::AnyOp {
                left,
                compare_op: _,
                right,
                is_some: _,
            }
            | Expr::AllOp {
                left,
                compare_op: _,
                right,
            } => {
                self.expr(left)?;
                self.expr(right)
            }
            Expr::Case {
                case_token,
                end_token: _,
                operand,
                conditions,
                else_result,
            } => {
                self.pass(case_token.0.span.start);
                self.maybe(operand, |walk, operand| walk.expr(operand))?;
                self.each(conditions, |walk, when| {
                    let CaseWhen { condition, result } = when;
                    walk.expr(condition)?;
                    walk.expr(result)
                })?;
                self.maybe(else_result, |walk, result| walk.expr(result))
            }
            _ => self.conversion(expr),
        }
    }

    fn conversion(&mut self, expr: &Expr) -> Checked {
        match expr {
            Expr::Cast {
                kind: _,
                expr,
                data_type,
                array,
                format,
            } => {
                self.expr(expr)?;
                self.data_type(data_type)?;
                self.absent(
                    array,
                    "ARRAY after the type of a CAST",
                    "write the type with []",
                )?;
                self.absent(
                    format,
                    "FORMAT",
                    "write to_date(…, format) or strptime(…, format)",
                )
            }
            Expr::TypedString(TypedString {
                data_type,
                value,
                uses_odbc_syntax: _,
            }) => {
                self.value(value)?;
                self.data_type(data_type)
            }
            Expr::AtTimeZone {
                timestamp,
                time_zone,
            } => {
                self.expr(timestamp)?;
                self.expr(time_zone)
            }
            Expr::Extract {
                field: _,
                syntax: ExtractSyntax::From | ExtractSyntax::Comma,
                expr,
            } => self.expr(expr),
            Expr::Ceil { expr, field } | Expr::Floor { expr, field } => {
                self.expr(expr)?;
                match field {
                    CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => Ok(()),
                    CeilFloorKind::DateTimeField(_) => {
                        self.refuse("TO in CEIL or FLOOR", "write date_trunc('day', …)")
                    }
                    CeilFloorKind::Scale(_) => {
                        self.refuse("a scale in CEIL or FLOOR", "write floor(x * 100) / 100")
                    }
                }
            }
            Expr::Interval(interval) => self.interval(interval),
            _ => self.text(expr),
        }
    }

    fn text(&mut self, expr: &Expr) -> Checked {
        match expr {
            Expr::Position { expr, r#in } => {
                self.expr(expr)?;
                self.expr(r#in)
            }
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                special: _,
                shorthand: _,
            } => {
                self.expr(expr)?;
                self.maybe(substring_from, |walk, from| walk.expr(from))?;
                self.maybe(substring_for, |walk, length| walk.expr(length))
            }
            Expr::Trim {
                trim_where: _,
                trim_what,
                expr,
                trim_characters,
            } => {
                self.maybe(trim_what, |walk, what| walk.expr(what))?;
                self.expr(expr)?;
                self.maybe(trim_characters, |walk, characters| {
                    match characters.as_slice() {
                        [one] => walk.expr(one),
                        _ => walk.refuse(
                            "TRIM of several strings",
                            "write all characters in one string",
                        ),
                    }
                })
            }
            Expr::Overlay {
                expr,
                overlay_what,
                overlay_from,
                overlay_for,
            } => {
                self.expr(expr)?;
                self.expr(overlay_what)?;
                self.expr(overlay_from)?;
                self.maybe(overlay_for, |walk, length| walk.expr(length))
            }
            _ => self.nested(expr),
        }
    }

    fn nested(&mut self, expr: &Expr) -> Checked {
        match expr {
            Expr::Struct { values, fields } => {
                self.absent(
                    fields,
                    "types of the fields of a STRUCT value",
                    "write CAST around it",
                )?;
                self.exprs(values)
            }
            Expr::Named { expr, name } => {
                self.expr(expr)?;
                self.ident(name);
                Ok(())
            }
            Expr::Dictionary(fields) => self.each(fields, |walk, field| {
                let DictionaryField { key, value } = field;
                walk.ident(key);
                walk.expr(value)
            }),
            Expr::Map(Map { entries }) => self.each(entries, |walk, entry| {
                let MapEntry { key, value } = entry;
                walk.expr(key)?;
                walk.expr(value)
            }),
            Expr::Array(Array { elem, named: _ }) => self.exprs(elem),
            Expr::Lambda(LambdaFunction {
                params,
                body,
                syntax: _,
            }) => {
                let params = match params {
                    OneOrManyWithParens::One(one) => std::slice::from_ref(one),
                    OneOrManyWithParens::Many(many) => many.as_slice(),
                };
                self.each(params, |walk, param| {
                    let LambdaFunctionParameter { name, data_type } = param;
                    walk.ident(name);
                    walk.absent(data_type, "a type of a lambda's parameter", "leave it out")
                })?;
                let mut names = HashSet::new();
                for LambdaFunctionParameter { name, .. } in params {
                    if !names.insert(name.value.to_lowercase()) {
                        let form = format!("two parameters '{}' of a lambda", name.value);
                        return self.refuse(form, "give each its own name");
                    }
                }
                self.expr(body)
            }
            _ => self.foreign(expr),
        }
    }

    /// Expressions of other dialects.
    fn foreign(&mut self, expr: &Expr) -> Checked {
        match expr {
            Expr::Collate { expr, .. } => {
                self.expr(expr)?;
                self.refuse("COLLATE", "compare lower(…)")
            }
            Expr::IsNormalized { expr, .. } => {
                self.expr(expr)?;
                self.refuse("IS NORMALIZED", "")
            }
            Expr::InUnnest { expr, .. } => {
                self.expr(expr)?;
                self.refuse("IN UNNEST", "write array_has(list, value)")
            }
            Expr::RLike { expr, .. } => {
                self.expr(expr)?;
                self.refuse("RLIKE or REGEXP", "write ~ or regexp_like(…)")
            }
            Expr::Convert { .. } => self.refuse("CONVERT", "write CAST(… AS type)"),
            Expr::Prefixed { prefix, .. } => {
                self.ident(prefix);
                self.refuse(format!("a string with the prefix {}", prefix.value), "")
            }
            Expr::MatchAgainst { .. } => self.refuse("MATCH", "write LIKE or ~"),
            Expr::OuterJoin(expr) => {
                self.expr(expr)?;
                self.refuse("(+)", "write LEFT JOIN")
            }
            Expr::Prior(_) => self.refuse("PRIOR", "write WITH RECURSIVE"),
            Expr::MemberOf(_) => self.refuse("MEMBER OF", "write array_has(list, value)"),
            _ => self.refuse("this expression", ""),
        }
    }

    fn unary(&mut self, op: UnaryOperator, expr: &Expr) -> Checked {
        match op {
            UnaryOperator::Plus | UnaryOperator::Minus | UnaryOperator::Not => self.expr(expr),
            other => {
                self.expr(expr)?;
                self.refuse(format!("the operator {other} before a value"), "")
            }
        }
    }

    fn interval(&mut self, interval: &Interval) -> Checked {
        let Interval {
            value,
            leading_field: _,
            leading_precision,
            last_field,
            fractional_seconds_precision,
        } = interval;
        self.expr(value)?;
        self.absent(
            leading_precision,
            "a precision of an interval's field",
            "leave it out",
        )?;
        self.absent(
            last_field,
            "TO in an interval",
            "write INTERVAL '1 day 2 hours'",
        )?;
        self.absent(
            fractional_seconds_precision,
            "a precision of an interval's seconds",
            "leave it out",
        )
    }

    fn access(&mut self, access: &AccessExpr) -> Checked {
        match access {
            AccessExpr::Dot(expr) => self.expr(expr),
            AccessExpr::Subscript(Subscript::Index { index }) => self.expr(index),
            AccessExpr::Subscript(Subscript::Slice {
                lower_bound,
                upper_bound,
                stride,
            }) => {
                self.maybe(lower_bound, Self::expr)?;
                self.maybe(upper_bound, Self::expr)?;
                self.maybe(stride, Self::expr)
            }
        }
    }

    fn value(&mut self, value: &ValueWithSpan) -> Checked {
        let ValueWithSpan { value, span } = value;
        self.pass(span.start);
        match value {
            Value::Number(digits, _) if digits.parse().is_ok_and(f64::is_infinite) => self.refuse(
                format!("the number {digits}, which is beyond DOUBLE"),
                "infinity is 'inf'::DOUBLE",
            ),
            _ => Ok(()),
        }
    }

    /// DataFusion's own list of types leaves none out; what a type contains it may drop.
    pub(super) fn data_type(&mut self, data_type: &DataType) -> Checked {
        match data_type {
            DataType::Struct(fields, _) => self.each(fields, |walk, field| {
                let StructField {
                    field_name,
                    field_type,
                    options,
                } = field;
                if let Some(name) = field_name {
                    walk.ident(name);
                }
                walk.absent(options, "OPTIONS", "fields of a STRUCT have none")?;
                walk.data_type(field_type)
            }),
            DataType::Array(
                ArrayElemTypeDef::AngleBracket(inner)
                | ArrayElemTypeDef::SquareBracket(inner, _)
                | ArrayElemTypeDef::Parenthesis(inner),
            ) => self.data_type(inner),
            _ => Ok(()),
        }
    }
}
