//! Aggregates over the items of a list: `list_sum`, `list_string_agg`, `list_aggregate(list, 'name', …)`.
//!
//! In: lists. Out: for each what the aggregate says of its items.
//! Invariant: the aggregate is the one of the same name over rows, with its types and its NULLs.
//! Not here: `list_min`, `list_product` and others that DataFusion has; its sums and averages are of doubles.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array, new_empty_array};
use datafusion::arrow::compute::{cast, concat, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, EmitTo, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, Literal};

use super::kinds::list_of;
use crate::error::Error;
use crate::expr::function_methods::function_methods;
use crate::functions::aggregates;
use crate::functions::aggregates::standing;
use crate::functions::equal_values::extreme_items;

/// Aggregates that have a function of their own, `list_…`.
const NAMES: [&str; 26] = [
    "sum",
    "avg",
    "count",
    "first",
    "last",
    "median",
    "mode",
    "string_agg",
    "bool_and",
    "bool_or",
    "bit_and",
    "bit_or",
    "bit_xor",
    "stddev_samp",
    "stddev_pop",
    "stddev",
    "var_samp",
    "var_pop",
    "variance",
    "approx_count_distinct",
    "entropy",
    "histogram",
    "kurtosis",
    "kurtosis_pop",
    "skewness",
    "mad",
];

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let of = |name: &str, aggregate: Option<&str>| {
        ScalarUDF::from(ListAggregate {
            name: name.to_owned(),
            aggregate: aggregate.map(str::to_owned),
            signature: Signature::variadic_any(Volatility::Immutable),
        })
    };
    let mut all: Vec<ScalarUDF> = NAMES
        .iter()
        .map(|name| of(&format!("list_{name}"), Some(name)))
        .collect();
    all.push(of("array_sum", Some("sum")));
    all.push(of("array_avg", Some("avg")));
    for name in [
        "list_aggregate",
        "list_aggr",
        "array_aggregate",
        "array_aggr",
    ] {
        all.push(of(name, None));
    }
    all
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ListAggregate {
    name: String,
    /// The aggregate; `None` if the second argument names it.
    aggregate: Option<String>,
    signature: Signature,
}

/// An aggregate for items of one type.
struct ItemAggregate {
    function: Arc<AggregateUDF>,
    /// The items and the further arguments, as the aggregate takes them.
    fields: Vec<FieldRef>,
    arguments: Vec<ScalarValue>,
    returns: FieldRef,
}

fn function_named(name: &str) -> Option<Arc<AggregateUDF>> {
    let is_named = |function: &AggregateUDF| {
        function.name() == name || function.aliases().iter().any(|alias| alias == name)
    };
    let ours = aggregates().into_iter().map(Arc::new);
    let mut all = ours.chain(all_default_aggregate_functions());
    standing::of_name(name).or_else(|| all.find(|function| is_named(function)))
}

impl ListAggregate {
    fn wrong(&self, message: String) -> datafusion::common::DataFusionError {
        let message = format!("function '{}' {message}", self.name);
        Error::wrong_type(message).into()
    }

    fn items(
        &self,
        fields: &[FieldRef],
        literals: &[Option<ScalarValue>],
    ) -> Result<ItemAggregate> {
        let mut arguments = literals.iter().skip(1).map(Option::as_ref);
        let name = match &self.aggregate {
            Some(name) => name.clone(),
            None => match arguments
                .next()
                .flatten()
                .and_then(|name| name.try_as_str().flatten())
            {
                Some(name) => name.to_lowercase(),
                None => {
                    return Err(self.wrong(
                        "takes a list and the name of an aggregate, e.g. 'sum'".to_owned(),
                    ));
                }
            },
        };
        let of = fields.first().map(|field| field.data_type());
        let item = match of {
            Some(
                DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _),
            ) => item.data_type().clone(),
            Some(DataType::Null) => DataType::Null,
            _ => return Err(self.wrong("takes a list".to_owned())),
        };
        let arguments: Option<Vec<ScalarValue>> = arguments.map(|value| value.cloned()).collect();
        let Some(mut arguments) = arguments else {
            return Err(self.wrong("takes literals after the list".to_owned()));
        };
        if name.ends_with("string_agg") && arguments.is_empty() {
            arguments.push(ScalarValue::from(","));
        }
        let function = function_named(&name)
            .ok_or_else(|| self.wrong(format!("knows no aggregate '{name}'")))?;
        let item: FieldRef = Arc::new(Field::new("x", item, true));
        let others = arguments
            .iter()
            .map(|value| Arc::new(Field::new("y", value.data_type(), true)));
        let written: Vec<FieldRef> = std::iter::once(item).chain(others).collect();
        let fields = fields_with_udf(&written, function.as_ref())?;
        let returns = function.return_field(&fields)?;
        Ok(ItemAggregate {
            function,
            fields,
            arguments,
            returns,
        })
    }
}

impl ItemAggregate {
    /// What the aggregate says of each list; of a NULL list nothing.
    fn of_lists(&self, lists: &ListArray) -> Result<ArrayRef> {
        if let Some(extremes) = extreme_items(lists, self.function.name())? {
            return Ok(extremes);
        }
        if self.with_args(|args| Ok(self.function.groups_accumulator_supported(args)))? {
            return self.of_groups(lists);
        }
        let null = ScalarValue::try_new_null(self.returns.data_type())?;
        let values = (0..lists.len()).map(|row| match lists.is_null(row) {
            true => Ok(null.clone()),
            false => self.of_one(&lists.value(row)),
        });
        ScalarValue::iter_to_array(values.collect::<Result<Vec<_>>>()?)
    }

    /// All lists at once, each a group of its items. Groups without rows are none, so that empty lists have a value of their own.
    fn of_groups(&self, lists: &ListArray) -> Result<ArrayRef> {
        let (mut items, mut groups, mut number) = (Vec::new(), Vec::new(), 0);
        for (row, window) in lists.offsets().windows(2).enumerate() {
            if lists.is_valid(row) && window[0] < window[1] {
                items.extend(window[0] as u32..window[1] as u32);
                groups.resize(items.len(), number);
                number += 1;
            }
        }
        let columns = self.columns(&take(lists.values(), &UInt32Array::from(items), None)?)?;
        let mut states = self.with_args(|args| self.function.create_groups_accumulator(args))?;
        states.update_batch(&columns, &groups, None, number)?;
        let of_empty = self.of_one(&lists.values().slice(0, 0))?.to_array()?;
        let of_groups = cast(&states.evaluate(EmitTo::All)?, of_empty.data_type())?;
        let values = concat(&[&of_groups, &of_empty])?;
        let mut next = 0..number as u32;
        let places = (0..lists.len()).map(|row| match lists.is_null(row) {
            true => None,
            false if lists.value_length(row) == 0 => Some(number as u32),
            false => next.next(),
        });
        Ok(take(&values, &places.collect::<UInt32Array>(), None)?)
    }

    fn of_one(&self, values: &ArrayRef) -> Result<ScalarValue> {
        let columns = self.columns(values)?;
        let mut accumulator = self.with_args(|args| self.function.accumulator(args))?;
        accumulator.update_batch(&columns)?;
        accumulator.evaluate()
    }

    /// The columns that the aggregate reads of items.
    fn columns(&self, values: &ArrayRef) -> Result<Vec<ArrayRef>> {
        let mut columns = vec![cast(values, self.fields[0].data_type())?];
        for (value, field) in self.arguments.iter().zip(&self.fields[1..]) {
            let value = value.cast_to(field.data_type())?;
            columns.push(value.to_array_of_size(values.len())?);
        }
        Ok(columns)
    }

    fn with_args<T>(&self, make: impl FnOnce(AccumulatorArgs) -> Result<T>) -> Result<T> {
        let schema = Schema::new(vec![Arc::clone(&self.fields[0])]);
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("x", 0));
        let literals = self
            .arguments
            .iter()
            .zip(&self.fields[1..])
            .map(|(value, field)| {
                let value = value.cast_to(field.data_type())?;
                Ok(Arc::new(Literal::new(value)) as Arc<dyn PhysicalExpr>)
            });
        let exprs = std::iter::once(Ok(column))
            .chain(literals)
            .collect::<Result<Vec<_>>>()?;
        make(AccumulatorArgs {
            return_field: Arc::clone(&self.returns),
            schema: &schema,
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: self.function.name(),
            is_distinct: false,
            exprs: &exprs,
            expr_fields: &self.fields,
        })
    }
}

impl ScalarUDFImpl for ListAggregate {
    function_methods!();

    fn name(&self) -> &str {
        &self.name
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(self.wrong("takes a list".to_owned()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let literals = args.scalar_arguments.iter().map(|literal| literal.cloned());
        let items = self.items(args.arg_fields, &literals.collect::<Vec<_>>())?;
        Ok(Arc::new(Field::new(
            &self.name,
            items.returns.data_type().clone(),
            true,
        )))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let literals = args.args.iter().map(|arg| match arg {
            ColumnarValue::Scalar(value) => Some(value.clone()),
            ColumnarValue::Array(_) => None,
        });
        let items = self.items(&args.arg_fields, &literals.collect::<Vec<_>>())?;
        let lists = args.args[0].to_array(args.number_rows)?;
        let item = match lists.data_type() {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                item.data_type().clone()
            }
            _ => DataType::Null,
        };
        let lists = cast(&lists, &list_of(item))?;
        let values = match lists.is_empty() {
            true => new_empty_array(args.return_field.data_type()),
            false => items.of_lists(lists.as_list::<i32>())?,
        };
        Ok(ColumnarValue::Array(values))
    }
}
