//! The distinct values of a key that is a CASE of string literals: the literals.
//!
//! In: `CASE WHEN x < 18 THEN 'young' … ELSE 'old' END`. Out: the literals' places, as codes of a dictionary of the literals.
//! Invariant: all batches have one dictionary, in which each literal is once; without ELSE, or where a literal is NULL, the code
//! is. Conditions that cannot fail are computed for all rows and choose in vector code; all others are DataFusion's, which
//! computes each for the rows that those before it left.
//! Not here: the loop (`grouse_kernels::select`), what becomes of codes (`grouse_groupby::keys`).

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, StringArray, UInt8Array};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, Column, IsNotNullExpr, IsNullExpr, Literal, NotExpr,
};
use grouse_kernels::select::{Selected, Side};

use super::{DistinctValues, ValueSource, with_dictionary};
use crate::expr::columns::{is_column_compared, place_of, without_nulls};

/// More conditions are computed for the rows that those before them left.
const CONDITIONS_MAX: usize = 16;

/// The key as codes; `None` if it is none that has them.
pub(super) fn coded(key: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    let case = key.downcast_ref::<CaseExpr>()?;
    let mut strings = Vec::new();
    let mut place = |result: &Arc<dyn PhysicalExpr>| {
        let literal = result.downcast_ref::<Literal>()?.value();
        let string = literal.try_as_str()?.map(str::to_owned);
        Some(string.map(|string| place_of(&mut strings, &string)))
    };
    let results = case.when_then_expr().iter();
    let places = results.map(|(_, then)| place(then));
    let mut places = places.collect::<Option<Vec<_>>>()?;
    places.push(match case.else_expr() {
        Some(otherwise) => place(otherwise)?,
        None => None,
    });
    let conditions = case.when_then_expr().iter().map(|(when, _)| when);
    let conditions = conditions.map(|when| match case.expr() {
        Some(value) => condition(value, when),
        None => Arc::clone(when),
    });
    let conditions: Vec<_> = conditions.collect();
    let are_few = strings.len() < NULL.into() && conditions.len() <= CONDITIONS_MAX;
    let (inputs, code_source, keys) = if are_few && conditions.iter().all(cannot_fail) {
        (conditions, CodeSource::Conditions(places), DataType::UInt8)
    } else {
        let places = case_of_places(case, &places)?;
        (vec![places], CodeSource::Places, DataType::Int32)
    };
    let values = StringArray::from(strings).into();
    let source = ValueSource::Literals(Literals {
        values,
        code_source,
    });
    let codes = DataType::Dictionary(Box::new(keys), Box::new(DataType::Utf8));
    Some(DistinctValues::codes(inputs, source, codes))
}

/// `CASE value WHEN when`, as the condition that it is.
fn condition(value: &Arc<dyn PhysicalExpr>, when: &Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    let (value, when) = (Arc::clone(value), Arc::clone(when));
    Arc::new(BinaryExpr::new(value, Operator::Eq, when))
}

/// True of conditions on columns and literals.
fn cannot_fail(condition: &Arc<dyn PhysicalExpr>) -> bool {
    if condition.is::<Column>() || is_column_compared(condition) {
        return true;
    }
    let operation = condition.downcast_ref::<BinaryExpr>();
    let joins = operation.is_some_and(|of| matches!(of.op(), Operator::And | Operator::Or));
    let tests = condition.is::<NotExpr>()
        || condition.is::<IsNullExpr>()
        || condition.is::<IsNotNullExpr>();
    (joins || tests) && condition.children().into_iter().all(cannot_fail)
}

/// The CASE whose results are places.
fn case_of_places(case: &CaseExpr, places: &[Option<usize>]) -> Option<Arc<dyn PhysicalExpr>> {
    let place = |place: &Option<usize>| -> Arc<dyn PhysicalExpr> {
        let place = place.map(|place| place as i32);
        Arc::new(Literal::new(ScalarValue::Int32(place)))
    };
    let (otherwise, thens) = places.split_last()?;
    let whens = case
        .when_then_expr()
        .iter()
        .map(|(when, _)| Arc::clone(when));
    let results = whens.zip(thens.iter().map(place)).collect();
    let otherwise = case.else_expr().map(|_| place(otherwise));
    let places = CaseExpr::try_new(case.expr().cloned(), results, otherwise).ok()?;
    Some(Arc::new(places))
}

/// Stands for NULL among places of one byte.
const NULL: u8 = u8::MAX;

/// The literals, and how rows come by them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Literals {
    values: Arc<StringArray>,
    code_source: CodeSource,
}

/// What codes are made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CodeSource {
    /// A column of them.
    Places,
    /// A column of booleans for each but the last of these places, which is that of rows where none is true.
    Conditions(Vec<Option<usize>>),
}

impl Eq for Literals {}

impl Hash for Literals {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.code_source.hash(state);
    }
}

impl Literals {
    /// The code of each row's literal.
    pub(super) fn codes(&self, inputs: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let values: ArrayRef = self.values.clone();
        match &self.code_source {
            CodeSource::Places => with_dictionary(inputs[0].as_primitive::<Int32Type>(), values),
            CodeSource::Conditions(places) => {
                with_dictionary(&chosen(inputs, places, rows), values)
            }
        }
    }
}

/// The place of the first condition that is true of a row, else the last one.
fn chosen(conditions: &[ArrayRef], places: &[Option<usize>], rows: usize) -> UInt8Array {
    let code = |place: &Option<usize>| place.map_or(NULL, |place| place as u8);
    let codes: Vec<u8> = places.iter().map(code).collect();
    let mut chosen: Option<Vec<u8>> = None;
    // The last first: those before it go over it.
    for (condition, code) in conditions.iter().zip(&codes).rev() {
        let is_true = without_nulls(condition.as_boolean());
        let words: Vec<u64> = is_true.values().bit_chunks().iter_padded().collect();
        let others = match &chosen {
            Some(chosen) => Side::Column(chosen),
            None => Side::Value(codes[conditions.len()]),
        };
        chosen = Some(u8::select(&words, rows, Side::Value(*code), others));
    }
    let chosen = chosen.unwrap_or_default();
    let nulls = codes.contains(&NULL).then(|| {
        let is_valid = |row| chosen[row] != NULL;
        NullBuffer::new(BooleanBuffer::collect_bool(rows, is_valid))
    });
    UInt8Array::new(chosen.into(), nulls)
}
