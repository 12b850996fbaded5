//! A key that is a CASE of text literals, as codes of these.
//!
//! In: `CASE WHEN x < 18 THEN 'young' … ELSE 'old' END`. Out: the literals' places, as codes of a dictionary of the literals.
//! Invariant: all batches have one dictionary, in which each literal is once; without ELSE, or where a literal is NULL, the code
//! is. Conditions that cannot fail are computed for all rows and choose in vector code; all others are DataFusion's, which
//! computes each for the rows that those before it left.
//! Not here: the loop (`grouse_kernels::select`), what becomes of codes (`grouse_groupby::keys`).

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, DictionaryArray, StringArray, UInt8Array};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, Column, IsNotNullExpr, IsNullExpr, Literal, NotExpr,
};
use grouse_kernels::select::{Selected, Side};

use crate::expr::columns::applied;
use crate::expr::columns::is_column_compared;
use crate::expr::columns::place_of;
use crate::expr::columns::without_nulls;

/// More conditions are computed for the rows that those before them left.
const CONDITIONS_MAX: usize = 16;

/// The key as codes; `None` if it is none that has them.
pub(crate) fn coded(key: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    let case = key.downcast_ref::<CaseExpr>()?;
    let mut texts = Vec::new();
    let mut place = |result: &Arc<dyn PhysicalExpr>| {
        let literal = result.downcast_ref::<Literal>()?.value();
        let text = literal.try_as_str()?.map(str::to_owned);
        Some(text.map(|text| place_of(&mut texts, &text)))
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
    let are_few = texts.len() < NULL.into() && conditions.len() <= CONDITIONS_MAX;
    let (inputs, made) = if are_few && conditions.iter().all(cannot_fail) {
        (conditions, Made::Conditions(places))
    } else {
        (vec![case_of_places(case, &places)?], Made::Places)
    };
    let of = Coded {
        values: Arc::new(StringArray::from_iter_values(&texts)),
        texts,
        made,
        signature: Signature::variadic_any(Volatility::Immutable),
    };
    let field = Field::new("codes", of.data_type(), true);
    Some(applied(of, inputs, &Arc::new(field)))
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

/// Codes of texts.
#[derive(Debug)]
struct Coded {
    texts: Vec<String>,
    values: ArrayRef,
    made: Made,
    signature: Signature,
}

/// What codes are made of.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Made {
    /// A column of them.
    Places,
    /// A column of truths for each but the last of these places, which is that of rows where none is true.
    Conditions(Vec<Option<usize>>),
}

impl Coded {
    fn data_type(&self) -> DataType {
        let keys = match self.made {
            Made::Places => DataType::Int32,
            Made::Conditions(_) => DataType::UInt8,
        };
        DataType::Dictionary(Box::new(keys), Box::new(DataType::Utf8))
    }
}

impl PartialEq for Coded {
    fn eq(&self, other: &Self) -> bool {
        (&self.texts, &self.made) == (&other.texts, &other.made)
    }
}

impl Eq for Coded {}

impl Hash for Coded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.texts, &self.made).hash(state);
    }
}

impl ScalarUDFImpl for Coded {
    fn name(&self) -> &str {
        "codes"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.data_type())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let values = Arc::clone(&self.values);
        let column = |input: &ColumnarValue| input.clone().into_array(rows);
        let codes: ArrayRef = match &self.made {
            Made::Places => {
                let places = column(&args.args[0])?;
                let places = places.as_primitive::<Int32Type>().clone();
                Arc::new(DictionaryArray::try_new(places, values)?)
            }
            Made::Conditions(places) => {
                let truths = args.args.iter().map(column).collect::<Result<Vec<_>>>()?;
                Arc::new(DictionaryArray::try_new(
                    chosen(&truths, places, rows),
                    values,
                )?)
            }
        };
        Ok(ColumnarValue::Array(codes))
    }
}

/// The place of the first condition that is true of a row, else the last one.
fn chosen(conditions: &[ArrayRef], places: &[Option<usize>], rows: usize) -> UInt8Array {
    let code = |place: &Option<usize>| place.map_or(NULL, |place| place as u8);
    let codes: Vec<u8> = places.iter().map(code).collect();
    let mut chosen: Option<Vec<u8>> = None;
    // The last first: those before it go over it.
    for (condition, code) in conditions.iter().zip(&codes).rev() {
        let truths = without_nulls(condition.as_boolean());
        let words: Vec<u64> = truths.values().bit_chunks().iter_padded().collect();
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
