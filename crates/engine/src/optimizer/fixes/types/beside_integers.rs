//! Literals with a point or an exponent beside integers of 64 bits, where a double might be another number than the one written.
//!
//! In: operands, lists, subqueries, inputs of UNION, INTERSECT and EXCEPT before DataFusion's type coercion. Out: the same, in which
//! such literals are integers or decimals; those in plans beside decimals, too.
//! Invariant: no integer is equal to a literal that is another number: 9007199254740993 is not 9007199254740992.0, though both are
//! one double. A literal that every double tells from all integers, such as 0.5, stays a double, and so do results with it.
//! Not here: operands beside decimals (decimals.rs), literals within lists and structs (nested_literals.rs).

use std::sync::Arc;

use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::logical_plan::{Distinct, Subquery, SubqueryAlias};
use datafusion::logical_expr::{
    Cast, Expr, ExprSchemable, Join, JoinType, LogicalPlan, Projection, Union, Values, Window,
};

use crate::functions::ANY_EQUAL;
use crate::optimizer::fixes::bare;
use crate::optimizer::fixes::types::decimal_columns::with_type;
use crate::optimizer::fixes::types::decimals::{INTEGER_DIGITS, WrittenNumber, decimal_size};

/// The integers of 64 bits beside numbers between them.
pub(super) const BETWEEN: DataType = DataType::Decimal128(INTEGER_DIGITS + 1, 1);

/// Digits behind the point of a decimal with room for any of these integers.
const PLACES: u8 = DECIMAL128_MAX_PRECISION - INTEGER_DIGITS;

/// Below, every integer is a double, and none but itself is taken for it.
const EXACT_END: u64 = 1 << 53;

/// Makes a list of its arguments.
pub(super) const MAKE_LIST: &str = "make_array";

/// Functions that compare the elements of a list, their first argument, with the second one.
const OF_ELEMENTS: [&str; 7] = [
    ANY_EQUAL,
    "array_has",
    "array_position",
    "array_positions",
    "array_remove",
    "array_remove_n",
    "array_remove_all",
];

/// Gives literals that are compared with integers, the first operand with each other one, their own digits where a double might
/// lose some. No result has their type. False if they are left to DataFusion.
pub(super) fn compared(operands: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let literals: Vec<_> = operands
        .iter()
        .map(|operand| among_integers(operand))
        .collect();
    let has_literals = literals.iter().any(Option::is_some);
    let are_apart = literals.first().is_some_and(Option::is_none)
        || literals.iter().skip(1).all(Option::is_none);
    if !has_literals || !are_apart {
        return false;
    }
    let others = operands.iter().zip(&literals);
    let others = others.filter(|(_, literal)| literal.is_none());
    let kinds = others.map(|(operand, _)| operand.get_type(schema).ok());
    let Some(kinds) = kinds.collect::<Option<Vec<DataType>>>() else {
        return false;
    };
    let others = operands.iter().zip(&literals);
    let others = others.filter(|(_, literal)| literal.is_none()).zip(&kinds);
    let far = others.filter(|((operand, _), kind)| may_be_far(operand, kind));
    // One double would make two far integers the same, whatever the literal is.
    let is_needed = literals.iter().flatten().any(|(_, is_needed)| *is_needed) || far.count() > 1;
    if !is_needed {
        return false;
    }
    let has_sign = |kind: &DataType| kind.is_null() || kind.is_signed_integer();
    if !kinds.iter().all(|kind| has_sign(kind) || kind.is_integer()) {
        return false;
    }
    let as_integer = |number: &WrittenNumber| i64::try_from(number.whole()?).ok();
    let numbers = literals.iter().flatten().map(|(number, _)| number);
    let integers = numbers.map(as_integer).collect::<Option<Vec<i64>>>();
    // Integers beside integers need no cast of a column.
    let mut integers = integers
        .filter(|_| kinds.iter().all(has_sign))
        .into_iter()
        .flatten();
    for (operand, literal) in operands.iter_mut().zip(literals) {
        let Some((number, _)) = literal else {
            continue;
        };
        let value = match integers.next() {
            Some(integer) => ScalarValue::Int64(Some(integer)),
            None => number.narrowest(),
        };
        **operand = Expr::Literal(value, None);
    }
    true
}

/// Whether an operand may be an integer that has its double in common with others.
fn may_be_far(operand: &Expr, kind: &DataType) -> bool {
    match operand {
        Expr::Literal(..) => is_far_integer(operand),
        _ => is_wide(kind),
    }
}

/// An integer as it is written, which has its double in common with others.
pub(super) fn is_far_integer(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(value)), _) => value.unsigned_abs() >= EXACT_END,
        Expr::Literal(ScalarValue::UInt64(Some(value)), _) => *value >= EXACT_END,
        _ => false,
    }
}

/// The number that stands among integers where a literal stands, and whether a double might be another one.
pub(super) fn among_integers(expr: &Expr) -> Option<(WrittenNumber, bool)> {
    let (number, is_needed) = WrittenNumber::beside_integers(expr)?;
    Some((number.nearby(), is_needed))
}

/// Whether a decimal has room for a number and all integers of 64 bits.
fn is_within(number: WrittenNumber) -> bool {
    number.whole_digits() <= INTEGER_DIGITS && number.scale() <= PLACES
}

pub(super) fn is_wide(kind: &DataType) -> bool {
    matches!(kind, DataType::Int64 | DataType::UInt64)
}

/// Results of one type, such as those of CASE. Literals with a point beside integers are the decimals that they are written as,
/// where one is beyond the integers that doubles tell apart. False if they are left to DataFusion.
pub(super) fn results(operands: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let written: Vec<Option<WrittenNumber>> = operands
        .iter()
        .map(|operand| WrittenNumber::beside_integers(operand).map(|(number, _)| number))
        .collect();
    let has_far_integer = operands.iter().any(|operand| is_far_integer(operand));
    let has_far = has_far_integer || written.iter().flatten().any(WrittenNumber::is_far);
    if !has_far || written.iter().all(Option::is_none) {
        return false;
    }
    let mut has_integers = has_far_integer;
    for (operand, written) in operands.iter().zip(&written) {
        match (written, operand.get_type(schema)) {
            (Some(number), _) if is_within(*number) => {}
            (None, Ok(kind)) if kind.is_integer() || kind.is_null() => {
                has_integers |= is_wide(&kind) && !matches!(operand, Expr::Literal(..));
            }
            _ => return false,
        }
    }
    if has_integers {
        for (operand, written) in operands.iter_mut().zip(written) {
            if let Some(number) = written {
                **operand = Expr::Literal(number.narrowest(), None);
            }
        }
    }
    has_integers
}

/// A call that compares the elements of a list with a value: a literal beside integers is one, or both are decimals.
pub(super) fn in_elements(call: &mut ScalarFunction, schema: &DFSchema) -> Result<bool> {
    let name = call.func.name();
    if !OF_ELEMENTS.contains(&name) {
        return Ok(false);
    }
    let keeps_elements = name.starts_with("array_remove");
    let [list, value, ..] = call.args.as_mut_slice() else {
        return Ok(false);
    };
    if let Some((number, is_needed)) = among_integers(value) {
        let Some(item) = item_of(&list.get_type(schema)?) else {
            return Ok(false);
        };
        return Ok(match integer(number, &item) {
            Some(integer) if is_needed || keeps_elements => {
                *value = Expr::Literal(integer, None);
                true
            }
            None if is_needed && !keeps_elements => {
                let lists = DataType::List(Arc::new(Field::new_list_field(BETWEEN, true)));
                *list = cast(std::mem::take(list), lists);
                *value = cast(Expr::Literal(number.narrowest(), None), BETWEEN);
                true
            }
            _ => false,
        });
    }
    let is_integer = value.get_type(schema)?.is_integer();
    if is_integer
        && let DataType::List(item) = list.get_type(schema)?
        && let Some(size) = decimal_size(item.data_type())
    {
        let item = item.data_type();
        return Ok(among_decimals((list, value), item, size, keeps_elements));
    }
    match list {
        Expr::ScalarFunction(list)
            if list.func.name() == MAKE_LIST && is_wide(&value.get_type(schema)?) =>
        {
            Ok(in_written_list(value, &mut list.args, schema))
        }
        _ => Ok(false),
    }
}

/// An integer that is looked for among decimals is one of them, if these have room for all integers or can get it.
fn among_decimals(
    (list, value): (&mut Expr, &mut Expr),
    item: &DataType,
    (whole, scale): (u8, u8),
    keeps_elements: bool,
) -> bool {
    let digits = whole.max(INTEGER_DIGITS) + scale;
    if digits > DECIMAL128_MAX_PRECISION || (whole < INTEGER_DIGITS && keeps_elements) {
        return false;
    }
    let kind = match whole < INTEGER_DIGITS {
        true => DataType::Decimal128(digits, scale.cast_signed()),
        false => item.clone(),
    };
    if kind != *item {
        let lists = DataType::List(Arc::new(Field::new_list_field(kind.clone(), true)));
        *list = cast(std::mem::take(list), lists);
    }
    *value = cast(std::mem::take(value), kind);
    true
}

/// An integer that is looked for among the literals of a list.
fn in_written_list(value: &mut Expr, items: &mut [Expr], schema: &DFSchema) -> bool {
    let mut operands = vec![&mut *value];
    operands.extend(items.iter_mut());
    if !compared(&mut operands, schema) {
        return false;
    }
    let is_decimal = |item: &Expr| matches!(item, Expr::Literal(ScalarValue::Decimal128(..), _));
    if items.iter().any(is_decimal) {
        for operand in std::iter::once(value).chain(items) {
            *operand = cast(std::mem::take(operand), BETWEEN);
        }
    }
    true
}

/// The type of a list's elements, if they are integers of 64 bits.
fn item_of(list: &DataType) -> Option<DataType> {
    match list {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item.data_type().clone()).filter(is_wide)
        }
        _ => None,
    }
}

/// The number as an integer of that type, if it is one.
fn integer(number: WrittenNumber, of: &DataType) -> Option<ScalarValue> {
    let whole = number.whole()?;
    match of {
        DataType::UInt64 => Some(ScalarValue::UInt64(Some(u64::try_from(whole).ok()?))),
        _ => Some(ScalarValue::Int64(Some(i64::try_from(whole).ok()?))),
    }
}

pub(super) fn cast(expr: Expr, to: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), to))
}

/// `x IN (SELECT 9007199254740992.0)`, and ANY and ALL alike; whether the subquery was changed.
pub(super) fn beside_subquery(
    expr: &Expr,
    subquery: &mut Subquery,
    schema: &DFSchema,
) -> Result<bool> {
    let plan = &subquery.subquery;
    let Some(form) = key_beside(&expr.get_type(schema)?, plan, 0) else {
        return Ok(false);
    };
    subquery.subquery = Arc::new(as_decimals(plan, 0, form)?);
    Ok(true)
}

/// INTERSECT and EXCEPT, of whose right inputs no row is a result; whether one was changed.
pub(super) fn in_keys(join: &mut Join) -> Result<bool> {
    let mut changed = false;
    if !matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti) {
        return Ok(false);
    }
    for (left, right) in &join.on {
        let Expr::Column(key) = right else {
            continue;
        };
        let Some(at) = join.right.schema().maybe_index_of_column(key) else {
            continue;
        };
        let kind = left.get_type(join.left.schema())?;
        if let Some(form) = key_beside(&kind, &join.right, at) {
            join.right = Arc::new(as_decimals(&join.right, at, form)?);
            changed = true;
        }
    }
    Ok(changed)
}

/// The form in which literals are compared with values of this type, if a double might be another number than one of them.
fn key_beside(kind: &DataType, plan: &LogicalPlan, at: usize) -> Option<NumberForm> {
    let literals = literals_at(plan, at)?;
    if !literals.iter().any(|(_, is_needed)| *is_needed) {
        return None;
    }
    match decimal_size(kind) {
        None => is_wide(kind).then_some(NumberForm::Nearby),
        Some(size) => {
            let sizes = literals.iter().map(|(number, _)| size_of(*number));
            have_room(sizes.chain([size])).then_some(NumberForm::Written)
        }
    }
}

/// What stands in the place of a literal.
#[derive(Clone, Copy)]
enum NumberForm {
    /// The number itself.
    Written,
    /// One between the same integers.
    Nearby,
}

impl NumberForm {
    fn of(self, number: WrittenNumber) -> WrittenNumber {
        match self {
            NumberForm::Written => number,
            NumberForm::Nearby => number.nearby(),
        }
    }
}

fn size_of(number: WrittenNumber) -> (u8, u8) {
    (number.whole_digits(), number.scale())
}

/// Whether one Decimal128 has room for decimals of all these sizes.
fn have_room(sizes: impl Iterator<Item = (u8, u8)>) -> bool {
    let (whole, scale) = joint(sizes);
    whole + scale <= DECIMAL128_MAX_PRECISION
}

/// The digits before and behind the point that decimals of all these sizes need.
fn joint(sizes: impl Iterator<Item = (u8, u8)>) -> (u8, u8) {
    sizes.fold((0, 0), |(whole, scale), size| {
        (size.0.max(whole), size.1.max(scale))
    })
}

/// A UNION of integers, decimals and literals with a point, of which one may be where doubles miss some integers.
pub(super) fn in_union(mut union: Union) -> Result<Union> {
    for at in 0..union.schema.fields().len() {
        let inputs = || union.inputs.iter();
        let kind = |input: &LogicalPlan| input.schema().field(at).data_type().clone();
        let size = |input: &LogicalPlan| match (literals_at(input, at), kind(input)) {
            (Some(literals), _) => Some(joint(literals.iter().map(|(number, _)| size_of(*number)))),
            (None, DataType::Null) => Some((0, 0)),
            (None, kind) if kind.is_integer() => Some((INTEGER_DIGITS, 0)),
            (None, kind) => decimal_size(&kind),
        };
        let sizes: Option<Vec<(u8, u8)>> = inputs().map(|input| size(input)).collect();
        let fits = sizes.is_some_and(|sizes| have_room(sizes.into_iter()));
        let has_exact = inputs().any(|input| is_wide(&kind(input)) || kind(input).is_decimal());
        let is_far = |input: &LogicalPlan| match literals_at(input, at) {
            Some(literals) => literals.iter().any(|(number, _)| number.is_far()),
            None => match cells_at(input, at).as_deref() {
                Some([expr]) => is_far_integer(expr),
                _ => is_wide(&kind(input)),
            },
        };
        if !fits || !has_exact || !inputs().any(|input| is_far(input)) {
            continue;
        }
        for input in &mut union.inputs {
            if literals_at(input, at).is_some() {
                *input = Arc::new(as_decimals(input, at, NumberForm::Written)?);
            }
        }
    }
    Ok(union)
}

/// The numbers of a column that is a literal or rows of them, and of each whether a double might be another one.
fn literals_at(plan: &LogicalPlan, at: usize) -> Option<Vec<(WrittenNumber, bool)>> {
    let cells = cells_at(plan, at)?;
    let literals = cells.iter().filter(|cell| !is_null(uncast(cell)));
    let literals = literals.map(|cell| WrittenNumber::beside_integers(cell));
    let literals = literals.collect::<Option<Vec<_>>>()?;
    (!literals.is_empty()).then_some(literals)
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.is_null())
}

/// VALUES whose cells were cast to doubles: where an integer or a literal is far, its column is one of decimals. Whether one was
/// changed.
pub(super) fn among_values(values: &mut Values) -> Result<bool> {
    let mut types: Vec<Option<DataType>> = Vec::new();
    for (at, field) in values.schema.fields().iter().enumerate() {
        let is_double = field.data_type() == &DataType::Float64;
        types.push(is_double.then(|| decimals_of(values, at)).flatten());
    }
    if types.iter().all(Option::is_none) {
        return Ok(false);
    }
    for row in &mut values.values {
        for (cell, kind) in row.iter_mut().zip(&types) {
            let Some(kind) = kind else {
                continue;
            };
            let written = std::mem::take(uncast_mut(cell));
            let written = match WrittenNumber::of(&written) {
                Some(number) => Expr::Literal(number.narrowest(), None),
                None => written,
            };
            *cell = cast(written, kind.clone());
        }
    }
    for (at, kind) in types.into_iter().enumerate() {
        if let Some(kind) = kind {
            values.schema = Arc::new(with_type(&values.schema, &[at], &kind)?);
        }
    }
    Ok(true)
}

/// The decimal that a column of literals has room in, if one of them is an integer and one is far.
fn decimals_of(values: &Values, at: usize) -> Option<DataType> {
    let (mut whole, mut scale) = (0, 0);
    let (mut has_integer, mut has_far) = (false, false);
    for row in &values.values {
        let written = row.get(at)?;
        let cell = uncast(written);
        let size = match (WrittenNumber::beside_integers(cell), cell) {
            // A double by its cast, or by its exponent.
            (Some((number, _)), _)
                if matches!(written, Expr::Cast(_)) || number.whole_digits() > INTEGER_DIGITS =>
            {
                return None;
            }
            (Some((number, _)), _) => {
                has_far |= number.is_far();
                size_of(number)
            }
            (None, cell) if is_null(cell) => (0, 0),
            (None, Expr::Literal(value, _)) if value.data_type().is_integer() => {
                has_integer = true;
                has_far |= is_far_integer(cell);
                (INTEGER_DIGITS, 0)
            }
            _ => return None,
        };
        (whole, scale) = (size.0.max(whole), size.1.max(scale));
    }
    let fits = whole + scale <= DECIMAL128_MAX_PRECISION;
    let kind = || {
        Some(DataType::Decimal128(
            whole + scale,
            i8::try_from(scale).ok()?,
        ))
    };
    (fits && has_integer && has_far).then(kind).flatten()
}

/// A cell without the cast to the type of its column.
fn uncast(cell: &Expr) -> &Expr {
    match cell {
        Expr::Cast(cast) => &cast.expr,
        cell => cell,
    }
}

fn uncast_mut(cell: &mut Expr) -> &mut Expr {
    match cell {
        Expr::Cast(cast) => &mut cast.expr,
        cell => cell,
    }
}

/// What a column is computed by, one expression or one per written row, unless it is a column of a table or of a grouping.
fn cells_at(plan: &LogicalPlan, at: usize) -> Option<Vec<&Expr>> {
    match plan {
        LogicalPlan::Projection(projection) => match bare(projection.expr.get(at)?) {
            Expr::Column(column) => {
                // What computes with the column has the type that it has.
                let computes = |expr: &Expr| {
                    !matches!(bare(expr), Expr::Column(_)) && expr.column_refs().contains(column)
                };
                if projection.expr.iter().any(computes) {
                    return None;
                }
                let at = projection.input.schema().maybe_index_of_column(column)?;
                cells_at(&projection.input, at)
            }
            expr => Some(vec![expr]),
        },
        LogicalPlan::SubqueryAlias(alias) => cells_at(&alias.input, at),
        LogicalPlan::Distinct(Distinct::All(input)) => cells_at(input, at),
        // Its input's columns come first.
        LogicalPlan::Window(window) => cells_at(&window.input, at),
        LogicalPlan::Values(values) => values.values.iter().map(|row| row.get(at)).collect(),
        _ => None,
    }
}

/// The plan with decimals in the places of the literals that a column is.
fn as_decimals(plan: &LogicalPlan, at: usize, form: NumberForm) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let (mut exprs, mut input) = (projection.expr.clone(), Arc::clone(&projection.input));
            match bare(&exprs[at]) {
                Expr::Column(column) => {
                    let at = input.schema().index_of_column(column)?;
                    input = Arc::new(as_decimals(&input, at, form)?);
                }
                literal => {
                    let name = projection.schema.field(at).name();
                    if let Some((number, _)) = WrittenNumber::beside_integers(literal) {
                        let decimal = form.of(number).narrowest();
                        exprs[at] = Expr::Literal(decimal, None).alias(name);
                    }
                }
            }
            Projection::try_new(exprs, input).map(LogicalPlan::Projection)
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let input = Arc::new(as_decimals(&alias.input, at, form)?);
            SubqueryAlias::try_new(input, alias.alias.clone()).map(LogicalPlan::SubqueryAlias)
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let input = Arc::new(as_decimals(input, at, form)?);
            Ok(LogicalPlan::Distinct(Distinct::All(input)))
        }
        LogicalPlan::Window(window) => {
            let input = Arc::new(as_decimals(&window.input, at, form)?);
            Window::try_new(window.window_expr.clone(), input).map(LogicalPlan::Window)
        }
        LogicalPlan::Values(values) => decimal_rows(values, at, form).map(LogicalPlan::Values),
        other => Ok(other.clone()),
    }
}

/// VALUES with one column of literals as decimals of one type.
fn decimal_rows(values: &Values, at: usize, form: NumberForm) -> Result<Values> {
    let number = |cell: &Expr| WrittenNumber::beside_integers(cell).map(|(n, _)| form.of(n));
    let cells = values.values.iter().filter_map(|row| row.get(at));
    let (whole, scale) = joint(cells.filter_map(number).map(size_of));
    let kind = DataType::Decimal128(whole + scale, scale.cast_signed());
    let mut values = values.clone();
    for cell in values.values.iter_mut().filter_map(|row| row.get_mut(at)) {
        let decimal = match number(cell) {
            Some(number) => Expr::Literal(number.narrowest(), None),
            None => std::mem::take(cell),
        };
        *cell = cast(decimal, kind.clone());
    }
    values.schema = Arc::new(with_type(&values.schema, &[at], &kind)?);
    Ok(values)
}
