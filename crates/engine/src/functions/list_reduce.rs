//! `list_reduce(list, lambda a, x: a + x [, initial])`: a list folded into one value.
//!
//! In: lists, a lambda of what is folded so far and the next element, perhaps what to begin with.
//! Out: the last result; the first element of a list of one without a beginning; NULL for a list that is NULL.
//! Invariant: the lambda sees the elements in their order; all rows take a step at once, so that it runs once per place and
//! not once per element.
//! Not here: list_transform and list_filter, which are DataFusion's.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, UInt64Array, new_empty_array, new_null_array,
};
use datafusion::arrow::compute::{cast, interleave, take, take_arrays};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef,
};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature,
    HigherOrderUDF, HigherOrderUDFImpl, LambdaArgument, LambdaParametersProgress, ValueOrLambda,
    Volatility,
};

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ListReduce {
    signature: HigherOrderSignature,
    aliases: Vec<String>,
}

/// The function, to be registered.
pub(super) fn list_reduce() -> Arc<HigherOrderUDF> {
    Arc::new(HigherOrderUDF::new_from_impl(ListReduce {
        signature: HigherOrderSignature::user_defined(Volatility::Immutable),
        aliases: vec!["array_reduce".to_string(), "reduce".to_string()],
    }))
}

fn element(data_type: &DataType) -> Result<FieldRef> {
    match data_type {
        DataType::List(field) | DataType::LargeList(field) => Ok(Arc::clone(field)),
        other => plan_err!("list_reduce takes a list, not {other}"),
    }
}

/// The type of what is folded so far where it is a decimal: each step would have a digit more than the one before it.
fn folded_decimal(element: &FieldRef, initial: Option<&FieldRef>) -> Option<DataType> {
    let types = [Some(element), initial].into_iter().flatten();
    let types: Vec<&DataType> = types.map(|field| field.data_type()).collect();
    let are_decimals =
        types.iter().all(|of| is_exact(of)) && types.iter().any(|of| of.is_decimal());
    let is_wide = types
        .iter()
        .any(|of| matches!(of, DataType::Decimal256(..)));
    let scale = types.iter().map(|of| scale_of(of)).max().unwrap_or(0);
    are_decimals.then_some(match is_wide {
        true => DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale),
        false => DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale),
    })
}

/// Whether numbers of a type are decimals, or may be.
fn is_exact(of: &DataType) -> bool {
    of.is_decimal() || of.is_integer() || of.is_null()
}

/// Digits behind the point.
fn scale_of(of: &DataType) -> i8 {
    match of {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale,
        _ => 0,
    }
}

impl HigherOrderUDFImpl for ListReduce {
    fn name(&self) -> &str {
        "list_reduce"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn coerce_value_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let Some((list, initial)) = types.split_first() else {
            return plan_err!("list_reduce takes a list and a lambda");
        };
        let list = match list {
            DataType::ListView(field) | DataType::FixedSizeList(field, _) => {
                DataType::List(Arc::clone(field))
            }
            DataType::LargeListView(field) => DataType::LargeList(Arc::clone(field)),
            DataType::Null => DataType::new_list(DataType::Null, true),
            other => other.clone(),
        };
        element(&list)?;
        Ok(std::iter::once(list)
            .chain(initial.iter().cloned())
            .collect())
    }

    /// What is folded so far has at first the type of the beginning, or of the elements, and then that of the result; decimals
    /// have all digits from the beginning.
    fn lambda_parameters(
        &self,
        _step: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        let (list, result, initial) = match fields {
            [ValueOrLambda::Value(list), ValueOrLambda::Lambda(result)] => (list, result, None),
            [
                ValueOrLambda::Value(list),
                ValueOrLambda::Lambda(result),
                ValueOrLambda::Value(initial),
            ] => (list, result, Some(initial)),
            _ => {
                return plan_err!(
                    "list_reduce takes a list, a lambda of two parameters and perhaps a beginning"
                );
            }
        };
        let element = element(list.data_type())?;
        let nullable = |field: &FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
        let decimal = folded_decimal(&element, initial);
        let decimal = decimal.map(|of| Arc::new(Field::new(element.name(), of, true)));
        Ok(match (result, decimal) {
            (Some(result), Some(decimal)) if is_exact(result.data_type()) => {
                LambdaParametersProgress::Complete(vec![vec![decimal, element]])
            }
            (Some(result), _) => {
                LambdaParametersProgress::Complete(vec![vec![nullable(result), element]])
            }
            (None, decimal) => {
                let folded = decimal.unwrap_or_else(|| nullable(initial.unwrap_or(&element)));
                LambdaParametersProgress::Partial(vec![Some(vec![folded, element])])
            }
        })
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef> {
        let (list, result, initial) = match args.arg_fields {
            [
                ValueOrLambda::Value(list),
                ValueOrLambda::Lambda(result),
                others @ ..,
            ] => match others.first() {
                Some(ValueOrLambda::Value(initial)) => (list, result, Some(initial)),
                _ => (list, result, None),
            },
            _ => return plan_err!("list_reduce takes a lambda as its second argument"),
        };
        let result = result.data_type();
        let decimal = folded_decimal(&element(list.data_type())?, initial);
        let folded = match decimal.filter(|_| is_exact(result)) {
            Some(decimal) if scale_of(result) > scale_of(&decimal) => {
                return plan_err!(
                    "a step of list_reduce has {} digits behind the point, and what it begins with {}; cast one of the two",
                    scale_of(result),
                    scale_of(&decimal)
                );
            }
            Some(decimal) => decimal,
            None => result.clone(),
        };
        Ok(Arc::new(Field::new("", folded, true)))
    }

    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let (list, lambda, initial) = match args.args.as_slice() {
            [ValueOrLambda::Value(list), ValueOrLambda::Lambda(lambda)] => (list, lambda, None),
            [
                ValueOrLambda::Value(list),
                ValueOrLambda::Lambda(lambda),
                ValueOrLambda::Value(initial),
            ] => (list, lambda, Some(initial.to_array(rows)?)),
            _ => return exec_err!("list_reduce takes a list, a lambda and perhaps a beginning"),
        };
        let list = list.to_array(rows)?;
        let (values, spans) = spans(&list)?;
        let fold = ListFold {
            lambda,
            values: &values,
            spans: &spans,
            data_type: args.return_field.data_type(),
        };
        Ok(ColumnarValue::Array(fold.run(initial)?))
    }
}

/// Where the elements of a row lie.
type ElementSpan = Option<(usize, usize)>;

/// All elements, and where those of each row lie: none for a list that is NULL.
fn spans(list: &ArrayRef) -> Result<(ArrayRef, Vec<ElementSpan>)> {
    fn of<O: datafusion::arrow::array::OffsetSizeTrait>(
        list: &ArrayRef,
    ) -> (ArrayRef, Vec<ElementSpan>) {
        let list = list.as_list::<O>();
        let offsets = list.value_offsets().windows(2);
        let spans = offsets.enumerate().map(|(row, ends)| {
            list.is_valid(row)
                .then(|| (ends[0].as_usize(), ends[1].as_usize()))
        });
        (Arc::clone(list.values()), spans.collect())
    }
    match list.data_type() {
        DataType::List(_) => Ok(of::<i32>(list)),
        DataType::LargeList(_) => Ok(of::<i64>(list)),
        other => exec_err!("list_reduce takes a list, not {other}"),
    }
}

struct ListFold<'a> {
    lambda: &'a LambdaArgument,
    values: &'a ArrayRef,
    spans: &'a [ElementSpan],
    data_type: &'a DataType,
}

/// Rows that are not done: the row, the next element, the end.
type Open = Vec<(usize, usize, usize)>;

impl ListFold<'_> {
    fn run(&self, initial: Option<ArrayRef>) -> Result<ArrayRef> {
        // The first result is NULL, which rows of NULL keep.
        let mut results: Vec<ArrayRef> = vec![new_null_array(self.data_type, 1)];
        let mut places: Vec<(usize, usize)> = vec![(0, 0); self.spans.len()];
        let known = self.spans.iter().enumerate();
        let mut open: Open = known
            .filter_map(|(row, span)| span.map(|(start, end)| (row, start, end)))
            .collect();
        let mut folded = match initial {
            Some(initial) => take(
                &cast(&initial, self.data_type)?,
                &indices(open.iter().map(|&(row, ..)| row)),
                None,
            )?,
            None => {
                if open.iter().any(|(_, start, end)| start == end) {
                    return exec_err!(
                        "list_reduce of an empty list needs a value to begin with, as third argument"
                    );
                }
                let first = take(
                    self.values,
                    &indices(open.iter().map(|&(_, start, _)| start)),
                    None,
                )?;
                open.iter_mut().for_each(|(_, next, _)| *next += 1);
                cast(&first, self.data_type)?
            }
        };
        loop {
            let done = |&(_, next, end): &(usize, usize, usize)| next == end;
            for (place, row) in open.iter().enumerate().filter(|(_, one)| done(one)) {
                places[row.0] = (results.len(), place);
            }
            results.push(Arc::clone(&folded));
            let kept: Vec<usize> = (0..open.len())
                .filter(|&place| !done(&open[place]))
                .collect();
            if kept.is_empty() {
                break;
            }
            folded = take(&folded, &indices(kept.iter().copied()), None)?;
            open.retain(|one| !done(one));
            folded = self.step(folded, &mut open)?;
        }
        if places.is_empty() {
            return Ok(new_empty_array(self.data_type));
        }
        let results: Vec<&dyn Array> = results.iter().map(AsRef::as_ref).collect();
        Ok(interleave(&results, &places)?)
    }

    /// One more element of each open row.
    fn step(&self, folded: ArrayRef, open: &mut Open) -> Result<ArrayRef> {
        let next = take(
            self.values,
            &indices(open.iter().map(|&(_, next, _)| next)),
            None,
        )?;
        let rows = indices(open.iter().map(|&(row, ..)| row));
        let result = self.lambda.evaluate(
            &[&|| Ok(Arc::clone(&folded)), &|| Ok(Arc::clone(&next))],
            |captured| Ok(take_arrays(captured, &rows, None)?),
        )?;
        open.iter_mut().for_each(|(_, next, _)| *next += 1);
        Ok(cast(&result.into_array(open.len())?, self.data_type)?)
    }
}

fn indices(places: impl Iterator<Item = usize>) -> UInt64Array {
    places.map(|place| place as u64).collect()
}
