//! Short forms of expressions that need no schema: `{…}.a`, `'a'.upper()`, `7 // 2`, `if(c, a, b)`, `INTERVAL (n) DAY`,
//! COLLATE NOCASE, `l[2:]`, HUGEINT.
//!
//! In: a parsed statement. Out: the same in words that DataFusion plans.
//! Invariant: a form that has no exact meaning in other words is an error that names it.
//! Not here: intervals (intervals.rs), forms that need the columns of a table (expand.rs), patterns of GLOB (expression_forms.rs).

pub(in crate::sql) mod known_types;
mod intervals;
mod json_types;
mod ordinality;
mod fallible;
mod numbered_lambdas;
mod ordered_modes;
mod collations;
pub(in crate::sql) mod array_subqueries;

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, CastKind, CheckConstraint, ColumnDef, ColumnOption,
    ColumnOptionDef, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, JoinOperator, ObjectNamePart, OneOrManyWithParens, Select, Statement as SqlStatement,
    Subscript, TableFactor, TableWithJoins, TypedString, UnaryOperator, Value, VisitorMut,
    helpers::attached_token::AttachedToken,
};

use crate::error::{Error, Result};
use crate::functions::{
    AT_TIME_ZONE, BIT_NOT, CENTURY, JSON, MILLENNIUM, TRY_UNSIGNED_HUGE, TRY_UUID, UNSIGNED_HUGE,
    UUID, WHOLE_QUOTIENT,
};
use crate::sql::ast::{
    call, cast, function_name, literal_text, number, object, parse_expr, plain_arguments, quoted,
    text, written_row,
};
use crate::sql::expand::joined_aliases::as_query;
pub(crate) use crate::sql::short_forms::collations::fold_order;
use crate::sql::short_forms::collations::{fold_both, fold_list};
use crate::sql::short_forms::intervals::{added, interval_of, negated};
use crate::sql::short_forms::known_types::{huge, is_unsigned_huge, known_type};
use crate::sql::short_forms::numbered_lambdas::{Applied, NumberedLambda};
use crate::sql::short_forms::ordinality::number_rows;
use crate::sql::walk::flow;

/// The visitor that puts them in longer ones.
#[derive(Debug, Default)]
pub(crate) struct ShortForms;

impl VisitorMut for ShortForms {
    type Break = Error;

    fn pre_visit_statement(&mut self, statement: &mut SqlStatement) -> ControlFlow<Error> {
        if let SqlStatement::CreateTable(table) = statement {
            for column in &mut table.columns {
                known_type(&mut column.data_type);
                flow(checked_column(column))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        for table in &mut select.from {
            semi_of_left(table);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        if let TableFactor::NestedJoin {
            table_with_joins, ..
        } = factor
        {
            semi_of_left(table_with_joins);
        }
        flow(number_rows(factor).and_then(|()| as_query(factor)))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        match longer(expr) {
            Ok(Some(longer)) => *expr = longer,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

/// A column of JSON, or of UUIDs, is text that is checked; one of UHUGEINT a decimal that is.
fn checked_column(column: &mut ColumnDef) -> Result<()> {
    let name = Expr::Identifier(column.name.clone());
    let (of, check) = match &column.data_type {
        DataType::JSON => (DataType::Varchar(None), call("json_valid", vec![name])),
        DataType::Uuid => {
            let uuid = quoted_call(TRY_UUID, vec![name.clone()]);
            let is_one = Expr::IsNotDistinctFrom(Box::new(name), Box::new(uuid));
            (DataType::Varchar(None), is_one)
        }
        other if is_unsigned_huge(other)? => {
            let is_one = Expr::BinaryOp {
                left: Box::new(name),
                op: BinaryOperator::GtEq,
                right: Box::new(number(0)),
            };
            (huge(), is_one)
        }
        _ => return Ok(()),
    };
    column.data_type = of;
    column.options.push(ColumnOptionDef {
        name: None,
        option: ColumnOption::Check(CheckConstraint {
            name: None,
            expr: Box::new(check),
            enforced: None,
        }),
    });
    Ok(())
}

/// SEMI JOIN and ANTI JOIN keep rows of the left table.
fn semi_of_left(table: &mut TableWithJoins) {
    for join in &mut table.joins {
        join.join_operator = match join.join_operator.clone() {
            JoinOperator::Semi(constraint) => JoinOperator::LeftSemi(constraint),
            JoinOperator::Anti(constraint) => JoinOperator::LeftAnti(constraint),
            other => other,
        };
    }
}

/// The longer form of an expression, if it is a short one.
fn longer(expr: &mut Expr) -> Result<Option<Expr>> {
    Ok(match expr {
        Expr::CompoundFieldAccess { root, access_chain } => Some(accessed(
            root.as_ref().clone(),
            std::mem::take(access_chain),
        )),
        Expr::BinaryOp { left, op, right } if *op == BinaryOperator::DuckIntegerDivide => {
            let operands = [left, right].map(|side| side.as_ref().clone());
            Some(quoted_call(WHOLE_QUOTIENT, operands.into()))
        }
        Expr::BinaryOp { left, op, right } if is_comparison(op) => {
            fold_both(left, right)?;
            as_uuids(left, right);
            None
        }
        // DataFusion looks for the columns of a literal in the innermost query alone.
        Expr::Array(array) if array.elem.iter().any(|one| !is_constant(one)) => {
            Some(call("make_array", std::mem::take(&mut array.elem)))
        }
        Expr::BinaryOp { left, op, right } if named_operator(op).is_some() => named_operator(op)
            .map(|name| call(name, vec![left.as_ref().clone(), right.as_ref().clone()])),
        Expr::InList { expr, list, .. } => {
            fold_list(expr, list)?;
            for one in list {
                as_uuids(expr, one);
            }
            None
        }
        Expr::Cast {
            kind,
            expr,
            data_type,
            ..
        } => cast_of(kind, expr, data_type)?,
        Expr::AtTimeZone {
            timestamp,
            time_zone,
        } => Some(quoted_call(
            AT_TIME_ZONE,
            vec![timestamp.as_ref().clone(), time_zone.as_ref().clone()],
        )),
        // DataFusion has no literals of a type that is none of its own: `UUID '…'`, `HUGEINT '5'`.
        Expr::TypedString(TypedString {
            data_type, value, ..
        }) => cast_of(&CastKind::Cast, &mut Expr::Value(value.clone()), data_type)?,
        Expr::Interval(interval) => interval_of(interval)?,
        Expr::Extract { field, expr, .. } if is_called(&field.to_string()) => {
            let function = field.to_string().to_lowercase();
            Some(call(&function, vec![expr.as_ref().clone()]))
        }
        Expr::UnaryOp { op, expr } => match op {
            UnaryOperator::Minus => negated(expr),
            UnaryOperator::BitwiseNot => Some(call(BIT_NOT, vec![expr.as_ref().clone()])),
            _ => None,
        },
        Expr::Function(function) => match array_subqueries::longer(function)? {
            Some(list) => Some(list),
            None => function_of(function)?,
        },
        _ => None,
    })
}

/// A cast to a type that DataFusion has as a function, or under another name.
fn cast_of(kind: &CastKind, expr: &mut Expr, data_type: &mut DataType) -> Result<Option<Expr>> {
    let or_null = matches!(kind, CastKind::TryCast | CastKind::SafeCast);
    let is_unsigned_huge = is_unsigned_huge(data_type)?;
    known_type(data_type);
    Ok(match data_type {
        _ if is_unsigned_huge => {
            let name = if or_null {
                TRY_UNSIGNED_HUGE
            } else {
                UNSIGNED_HUGE
            };
            let number = Expr::Cast {
                kind: kind.clone(),
                expr: Box::new(expr.clone()),
                data_type: huge(),
                array: false,
                format: None,
            };
            Some(quoted_call(name, vec![number]))
        }
        DataType::Uuid => {
            let name = if or_null { TRY_UUID } else { UUID };
            Some(quoted_call(name, vec![expr.clone()]))
        }
        DataType::JSON if or_null => Some(conditional(
            &call("json_valid", vec![expr.clone()]),
            expr,
            &Expr::value(Value::Null),
        )),
        DataType::JSON => Some(quoted_call(JSON, vec![expr.clone()])),
        _ => by_position(kind, expr, data_type),
    })
}

/// `root.a.f(x)[1:]`: names behind anything but a name are fields, calls behind a dot have what stands before for their
/// first argument, slices have both bounds.
pub(crate) fn accessed(root: Expr, chain: Vec<AccessExpr>) -> Expr {
    let mut root = root;
    let mut done: Vec<AccessExpr> = Vec::new();
    let mut is_name = matches!(root, Expr::Identifier(_));
    for access in chain {
        let access = match access {
            AccessExpr::Dot(Expr::Function(function)) => AccessExpr::Dot(called_or_named(function)),
            other => other,
        };
        match access {
            AccessExpr::Dot(Expr::Identifier(field)) if !is_name => {
                done.push(AccessExpr::Subscript(Subscript::Index {
                    index: text(&field.value),
                }));
            }
            AccessExpr::Dot(Expr::Function(mut function)) => {
                let before = with_chain(root, std::mem::take(&mut done));
                prepend(&mut function, before);
                root = Expr::Function(function);
                is_name = false;
            }
            AccessExpr::Subscript(Subscript::Slice {
                lower_bound,
                upper_bound,
                stride,
            }) => {
                is_name = false;
                done.push(AccessExpr::Subscript(Subscript::Slice {
                    lower_bound: Some(lower_bound.unwrap_or_else(|| number(1))),
                    upper_bound: Some(upper_bound.unwrap_or_else(|| number(-1))),
                    stride,
                }));
            }
            other => {
                is_name &= matches!(other, AccessExpr::Dot(Expr::Identifier(_)));
                done.push(other);
            }
        }
    }
    with_chain(root, done)
}

/// A column that has the name of a function without parentheses, such as `current_time`, is a name behind a dot.
fn called_or_named(function: Function) -> Expr {
    match (&function.args, function.name.0.as_slice()) {
        (FunctionArguments::None, [ObjectNamePart::Identifier(name)]) => {
            Expr::Identifier(name.clone())
        }
        _ => Expr::Function(function),
    }
}

fn with_chain(root: Expr, chain: Vec<AccessExpr>) -> Expr {
    if chain.is_empty() {
        return root;
    }
    let names = chain.iter().map(|access| match access {
        AccessExpr::Dot(Expr::Identifier(name)) => Some(name.clone()),
        _ => None,
    });
    match (&root, names.collect::<Option<Vec<Ident>>>()) {
        (Expr::Identifier(first), Some(names)) => {
            Expr::CompoundIdentifier(std::iter::once(first.clone()).chain(names).collect())
        }
        _ => Expr::CompoundFieldAccess {
            root: Box::new(root),
            access_chain: chain,
        },
    }
}

fn prepend(function: &mut Function, argument: Expr) {
    if let FunctionArguments::List(list) = &mut function.args {
        let argument = FunctionArg::Unnamed(FunctionArgExpr::Expr(argument));
        list.args.insert(0, argument);
    }
}

/// DuckDB's names of schemas, which say nothing here.
const SCHEMAS: [&str; 3] = ["main", "pg_catalog", "system"];

fn function_of(function: &mut Function) -> Result<Option<Expr>> {
    if function.name.0.len() > 1 {
        return Ok(method(function));
    }
    let name = function_name(function).unwrap_or_default();
    match takes_lambda(&name) {
        Some(Applied::Transform) => function.name = object(Ident::new("array_transform")),
        Some(Applied::Filter) => function.name = object(Ident::new("array_filter")),
        None => {}
    }
    if name == "list_first" && takes_condition(function) {
        function.name = object(Ident::new("array_first"));
    }
    match name.as_str() {
        "struct_pack" => return Ok(packed(function)),
        "struct_insert" => return Ok(inserted(function)),
        "grouping_id" => function.name = object(Ident::new("grouping")),
        "mode" => return ordered_modes::in_order(function),
        "every" => function.name = object(Ident::new("bool_and")),
        _ => unit_as_text(function, &name),
    }
    let Some(arguments) = plain_arguments(function) else {
        return Ok(None);
    };
    if let Some(applied) = takes_lambda(&name)
        && let [list, Expr::Lambda(lambda)] = arguments.as_slice()
        && let OneOrManyWithParens::Many(names) = &lambda.params
        && let [element, place] = names.as_slice()
    {
        if element.name.value.eq_ignore_ascii_case(&place.name.value) {
            return Err(Error::unsupported(format!(
                "two parameters '{}' of a lambda",
                place.name.value
            )));
        }
        let lambda = NumberedLambda {
            element: &element.name,
            place: &place.name,
            body: &lambda.body,
        };
        return lambda.over(list, applied).map(Some);
    }
    plain_call(&name, &arguments)
}

/// The function that truncates to a unit of centuries.
fn truncation(unit: &str) -> Option<&'static str> {
    match unit.to_lowercase().as_str() {
        "century" | "centuries" => Some(CENTURY),
        "millennium" | "millennia" | "millenniums" => Some(MILLENNIUM),
        _ => None,
    }
}

/// A call without anything beside its arguments in other words.
fn plain_call(name: &str, arguments: &[&Expr]) -> Result<Option<Expr>> {
    Ok(match (name, arguments) {
        ("add" | "subtract" | "multiply" | "divide", [left, right]) => {
            Some(operation(name, left, right))
        }
        ("date_part" | "datepart", [Expr::Array(parts), of]) => date_parts(&parts.elem, of)?,
        ("date_part" | "datepart", [part, of]) if literal_text(part).is_some_and(is_called) => {
            let part = literal_text(part).unwrap_or_default();
            Some(call(&part.to_lowercase(), vec![(*of).clone()]))
        }
        ("date", [of]) => Some(cast((*of).clone(), DataType::Date)),
        ("date_trunc" | "datetrunc", [unit, of])
            if literal_text(unit).is_some_and(|unit| unit.eq_ignore_ascii_case("decade")) =>
        {
            Some(parse_expr(&format!(
                "(date_trunc('year', {of}) - to_years(year({of}) - decade({of}) * 10))"
            ))?)
        }
        ("date_trunc" | "datetrunc", [unit, of])
            if let Some(function) = literal_text(unit).and_then(truncation) =>
        {
            Some(call(function, vec![(*of).clone()]))
        }
        ("list_concat" | "list_cat" | "array_concat" | "array_cat", lists) => {
            without_nulls(name, lists)
        }
        ("if", [condition, yes, no]) => Some(conditional(condition, yes, no)),
        ("try", [expr]) => Some(fallible::tried(expr)?),
        ("from_json" | "json_transform", [json, structure]) => {
            Some(json_types::as_structure(json, structure)?)
        }
        ("encode", [strings]) => Some(cast((*strings).clone(), DataType::Bytea)),
        ("decode", [bytes]) => Some(cast((*bytes).clone(), DataType::Varchar(None))),
        ("regexp_split_to_table", [_, _]) => {
            let parts = arguments.iter().map(|&argument| argument.clone());
            let parts = call("regexp_split_to_array", parts.collect());
            Some(call("unnest", vec![parts]))
        }
        ("timezone", [zone, of]) => Some(quoted_call(
            AT_TIME_ZONE,
            vec![(*of).clone(), (*zone).clone()],
        )),
        ("array_push_front", [list, element]) => Some(call(
            "array_prepend",
            vec![(*element).clone(), (*list).clone()],
        )),
        ("dateadd" | "timestampadd" | "date_add", [unit, count, to])
            if literal_text(unit).is_some() =>
        {
            added(literal_text(unit).unwrap_or_default(), count, to)?
        }
        ("regexp_extract", [text, pattern, Expr::Array(names)]) => {
            named_groups(text, pattern, &names.elem)?
        }
        _ => None,
    })
}

/// NULL adds nothing to a list; DataFusion takes one without a type for no list.
fn without_nulls(name: &str, lists: &[&Expr]) -> Option<Expr> {
    let is_null = |list: &&&Expr| match list {
        Expr::Value(value) => value.value == Value::Null,
        _ => false,
    };
    let mut left: Vec<Expr> = lists
        .iter()
        .filter(|list| !is_null(list))
        .map(|&list| list.clone())
        .collect();
    match left.len() {
        count if count == lists.len() => None,
        0 => Some(Expr::value(Value::Null)),
        1 => left.pop(),
        _ => Some(call(name, left)),
    }
}

/// The struct of several parts of a date, NULL where the date is.
fn date_parts(parts: &[Expr], of: &Expr) -> Result<Option<Expr>> {
    let fields = parts.iter().map(|part| {
        let name = text(literal_text(part)?);
        let part = literal_text(part)?.to_lowercase();
        Some(match is_called(&part) {
            true => format!("{name}, {part}({of})"),
            false => format!("{name}, date_part({name}, {of})"),
        })
    });
    match fields.collect::<Option<Vec<String>>>() {
        Some(fields) if !fields.is_empty() => {
            let fields = fields.join(", ");
            let whole = format!("CASE WHEN ({of}) IS NOT NULL THEN named_struct({fields}) END");
            Ok(Some(Expr::Nested(Box::new(parse_expr(&whole)?))))
        }
        _ => Ok(None),
    }
}

/// Whether a part of a date is the function of its name: date_part has what Arrow knows.
fn is_called(part: &str) -> bool {
    const PARTS: [&str; 14] = [
        "millennium",
        "century",
        "decade",
        "era",
        "julian",
        "weekday",
        "dayofweek",
        "dayofmonth",
        "dayofyear",
        "weekofyear",
        "yearweek",
        "timezone",
        "timezone_hour",
        "timezone_minute",
    ];
    PARTS.contains(&part.to_lowercase().as_str())
}

/// `divide(x, y)` is what its operator is.
fn operation(name: &str, left: &Expr, right: &Expr) -> Expr {
    let op = match name {
        "add" => BinaryOperator::Plus,
        "subtract" => BinaryOperator::Minus,
        "multiply" => BinaryOperator::Multiply,
        _ => BinaryOperator::Divide,
    };
    let [left, right] = [left, right].map(|side| Box::new(Expr::Nested(Box::new(side.clone()))));
    Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }))
}

/// `f(list, x -> …)`.
fn takes_condition(function: &Function) -> bool {
    let arguments = plain_arguments(function);
    arguments.is_some_and(|arguments| matches!(arguments.as_slice(), [_, Expr::Lambda(_)]))
}

/// Units of time that stand without quotes, as in `datediff(day, a, b)`.
const UNITS: [&str; 13] = [
    "century",
    "decade",
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "isoyear",
];

/// Functions whose first argument is a unit of time.
const OF_UNITS: [&str; 12] = [
    "date_diff",
    "datediff",
    "timestampdiff",
    "date_sub",
    "datesub",
    "date_trunc",
    "datetrunc",
    "date_part",
    "datepart",
    "dateadd",
    "timestampadd",
    "date_add",
];

/// Puts a unit in quotes where it is the first argument.
fn unit_as_text(function: &mut Function, name: &str) {
    if !OF_UNITS.contains(&name) {
        return;
    }
    if let FunctionArguments::List(list) = &mut function.args
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(first))) = list.args.first_mut()
        && let Expr::Identifier(unit) = first
        && unit.quote_style.is_none()
        && UNITS.contains(&unit.value.to_lowercase().as_str())
    {
        *first = text(&unit.value.to_lowercase());
    }
    if name == "timestampdiff" {
        function.name = object(Ident::new("date_diff"));
    }
}

/// What a function of a list does with a lambda.
fn takes_lambda(name: &str) -> Option<Applied> {
    match name {
        "list_transform" | "array_transform" | "list_apply" | "array_apply" | "apply" => {
            Some(Applied::Transform)
        }
        "list_filter" | "array_filter" | "filter" => Some(Applied::Filter),
        _ => None,
    }
}

/// `regexp_extract(s, p, ['a', 'b'])` is a struct of the groups 1 and 2.
fn named_groups(of: &Expr, pattern: &Expr, names: &[Expr]) -> Result<Option<Expr>> {
    let mut fields = Vec::new();
    for (name, group) in names.iter().zip(1..) {
        let Some(name) = literal_text(name) else {
            return Err(Error::wrong_type(
                "function 'regexp_extract' takes names of groups as literals, e.g. ['year', 'month']",
            ));
        };
        let groups = vec![of.clone(), pattern.clone(), number(group)];
        fields.extend([text(name), call("regexp_extract", groups)]);
    }
    Ok((!fields.is_empty()).then(|| call("named_struct", fields)))
}

/// `struct_pack(a := 1)` is `named_struct('a', 1)`.
fn packed(function: &Function) -> Option<Expr> {
    match &function.args {
        FunctionArguments::List(list) => named_fields(&list.args),
        _ => None,
    }
}

/// `struct_insert(s, a := 1)` is `struct_concat(s, named_struct('a', 1))`.
fn inserted(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(of)), fields @ ..] = list.args.as_slice()
    else {
        return None;
    };
    let fields = named_fields(fields)?;
    Some(call("struct_concat", vec![of.clone(), fields]))
}

fn named_fields(arguments: &[FunctionArg]) -> Option<Expr> {
    let mut fields = Vec::new();
    for argument in arguments {
        let FunctionArg::Named {
            name,
            arg: FunctionArgExpr::Expr(value),
            ..
        } = argument
        else {
            return None;
        };
        fields.extend([text(&name.value), value.clone()]);
    }
    Some(call("named_struct", fields))
}

/// `s.upper()` is `upper(s)`.
fn method(function: &mut Function) -> Option<Expr> {
    let parts = function.name.0.iter().map(|part| part.as_ident().cloned());
    let mut names = parts.collect::<Option<Vec<Ident>>>()?;
    if matches!(function.args, FunctionArguments::None) {
        return Some(Expr::CompoundIdentifier(names));
    }
    let name = names.pop()?;
    function.name = object(name);
    let is_schema = |name: &Ident| SCHEMAS.contains(&name.value.to_lowercase().as_str());
    if !(names.len() == 1 && names.iter().all(is_schema)) {
        let argument = match names.len() {
            1 => Expr::Identifier(names.pop()?),
            _ => Expr::CompoundIdentifier(names),
        };
        prepend(function, argument);
    }
    function_of(function)
        .ok()
        .flatten()
        .or_else(|| Some(Expr::Function(function.clone())))
}

fn conditional(condition: &Expr, yes: &Expr, no: &Expr) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen {
            condition: condition.clone(),
            result: yes.clone(),
        }],
        else_result: Some(Box::new(no.clone())),
    }
}

/// A cast of `row(1, 'x')`, whose fields have no names, to a struct: field by field.
fn by_position(kind: &CastKind, of: &Expr, to: &DataType) -> Option<Expr> {
    let DataType::Struct(fields, _) = to else {
        return None;
    };
    let values = written_row(of)?;
    if values.len() != fields.len() {
        return None;
    }
    let mut named = Vec::new();
    for (value, field) in values.into_iter().zip(fields) {
        let mut value = Expr::Cast {
            kind: kind.clone(),
            expr: Box::new(value.clone()),
            data_type: field.field_type.clone(),
            array: false,
            format: None,
        };
        if let Ok(Some(inner)) = longer(&mut value) {
            value = inner;
        }
        named.extend([text(&field.field_name.as_ref()?.value), value]);
    }
    Some(call("named_struct", named))
}

/// The digits of a number, with or without parentheses: frames of windows take `INTERVAL '3' DAY` alone.
pub(super) fn literal_number(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
        Expr::Nested(inner) => match inner.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(digits, _) | Value::SingleQuotedString(digits) => {
                    Some(digits.clone())
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Whether an expression is a literal, or a list of literals.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) => true,
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_constant(inner),
        Expr::Array(array) => array.elem.iter().all(is_constant),
        _ => false,
    }
}

/// The function that an operator is.
fn named_operator(op: &BinaryOperator) -> Option<&'static str> {
    match op {
        BinaryOperator::PGOverlap => Some("array_has_any"),
        BinaryOperator::PGStartsWith => Some("starts_with"),
        _ => None,
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::*;
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | Spaceship)
}

/// A text beside a UUID is one as well.
fn as_uuids(left: &mut Expr, right: &mut Expr) {
    let is_uuid = |expr: &Expr| match expr {
        Expr::Function(function) => function_name(function).as_deref() == Some(UUID),
        _ => false,
    };
    match (is_uuid(left), is_uuid(right)) {
        (true, false) if literal_text(right).is_some() => {
            *right = quoted_call(UUID, vec![right.clone()])
        }
        (false, true) if literal_text(left).is_some() => {
            *left = quoted_call(UUID, vec![left.clone()])
        }
        _ => {}
    }
}

/// A call of a function whose name needs quotes.
pub(super) fn quoted_call(name: &str, arguments: Vec<Expr>) -> Expr {
    let mut called = call(name, arguments);
    if let Expr::Function(function) = &mut called {
        function.name = object(quoted(name));
    }
    called
}
