//! `mode(x)`: the most frequent value; `approx_top_k(x, k)`: the k most frequent values, the most frequent first.
//!
//! In: any x that is not NULL. Out: a value, or a list of values; NULL where there are none.
//! Invariant: of values that are equally frequent the least comes first, of `mode` in descending order the greatest. Counts are
//! exact: the name is DuckDB's for an estimate of the same; -0.0 is 0.0 and all NaN are one value.
//! Not here: the operator's way, which groups by keys and values and counts (`exec/distinct_groupings.rs`). What stands here is
//! for windows, for DataFusion's aggregation and for values that the operator cannot order.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{Result, ScalarValue, exec_err, not_impl_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, ReversedUDAF, Signature, Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use grouse_groupby::keys::decoded;
use grouse_groupby::keys::row::canonical_values;
use grouse_groupby::states::TopValues;
use grouse_groupby::states::top_rows::TOP_ROWS_MAX;

use crate::error::to_datafusion;
use crate::expr::function_methods::function_methods;
use crate::wire::{Portable, WireReader, WireValue};

/// Which of values that are equally frequent comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum First {
    Least,
    Greatest,
}

/// `mode` or `approx_top_k`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frequent {
    is_list: bool,
    first: First,
    signature: Signature,
}

impl Frequent {
    pub(in crate::functions) fn mode() -> Self {
        Self {
            is_list: false,
            first: First::Least,
            signature: Signature::any(1, Volatility::Immutable),
        }
    }

    /// `mode() WITHIN GROUP (ORDER BY x DESC)`.
    pub(in crate::functions) fn mode_descending() -> Self {
        Self {
            first: First::Greatest,
            ..Self::mode()
        }
    }

    pub(in crate::functions) fn top_k() -> Self {
        Self {
            is_list: true,
            first: First::Least,
            signature: Signature::any(2, Volatility::Immutable),
        }
    }

    /// What the operator's states are asked for; `None` if those of DataFusion's path have to give it.
    pub(crate) fn wanted(&self, arguments: &[Arc<dyn PhysicalExpr>]) -> Result<Option<TopValues>> {
        let values = self.values_max(arguments)?;
        Ok(match self.is_list {
            false => (self.first == First::Least).then_some(TopValues::Mode),
            true => (values <= TOP_ROWS_MAX).then_some(TopValues::List(values)),
        })
    }

    /// The k of the arguments, 1 for `mode`.
    fn values_max(&self, arguments: &[Arc<dyn PhysicalExpr>]) -> Result<usize> {
        if !self.is_list {
            return Ok(1);
        }
        let literal = arguments.get(1).and_then(|k| k.downcast_ref::<Literal>());
        let k = literal.map(Literal::value);
        let k = k.filter(|k| k.data_type().is_integer());
        let k = k.map(|k| k.cast_to(&DataType::Int64));
        match k.transpose()? {
            Some(ScalarValue::Int64(Some(k))) if k >= 1 => Ok(k as usize),
            _ => plan_err!(
                "approx_top_k takes a whole number of values from 1 on as its second argument, e.g. approx_top_k(x, 3)"
            ),
        }
    }

    fn result_type(&self, value_type: &DataType) -> DataType {
        match self.is_list {
            false => value_type.clone(),
            true => TopValues::List(1).result_type(value_type),
        }
    }
}

impl AggregateUDFImpl for Frequent {
    function_methods!();

    fn name(&self) -> &str {
        match self.is_list {
            false => "mode",
            true => "approx_top_k",
        }
    }

    fn supports_within_group_clause(&self) -> bool {
        !self.is_list
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(self.result_type(decoded(&arg_types[0])))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let value_type = args.exprs[0].data_type(args.schema)?;
        Ok(Box::new(Counts {
            counts: HashMap::new(),
            bytes: 0,
            values_max: self.values_max(args.exprs)?,
            is_list: self.is_list,
            first: self.first,
            is_distinct: args.is_distinct,
            value_type: decoded(&value_type).clone(),
        }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return not_impl_err!("{}(DISTINCT x) over a window", self.name());
        }
        self.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |name, data_type: &DataType| {
            let items = Arc::new(Field::new_list_field(data_type.clone(), true));
            let name = format_state_name(args.name, name);
            Arc::new(Field::new(name, DataType::List(items), true))
        };
        Ok(vec![
            list("values", decoded(args.input_fields[0].data_type())),
            list("counts", &DataType::Int64),
        ])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

impl Portable for Frequent {
    const KIND: &'static str = "frequent";

    fn apart(&self) -> Vec<WireValue> {
        vec![self.is_list.into(), (self.first == First::Greatest).into()]
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        Ok(match (values.flag()?, values.flag()?) {
            (true, _) => Frequent::top_k(),
            (false, true) => Frequent::mode_descending(),
            (false, false) => Frequent::mode(),
        })
    }
}

/// How often each value occurs in one group.
#[derive(Debug)]
pub(in crate::functions) struct Counts {
    counts: HashMap<ScalarValue, i64>,
    /// Bytes of the values.
    bytes: usize,
    values_max: usize,
    is_list: bool,
    first: First,
    /// True if each value counts once.
    is_distinct: bool,
    value_type: DataType,
}

impl Counts {
    /// Counts of values of this type.
    pub(in crate::functions) fn of(value_type: &DataType) -> Counts {
        Counts {
            counts: HashMap::new(),
            bytes: 0,
            values_max: 1,
            is_list: false,
            first: First::Least,
            is_distinct: false,
            value_type: decoded(value_type).clone(),
        }
    }

    /// The values from the least on, with their counts.
    pub(in crate::functions) fn sorted(&self) -> Vec<(&ScalarValue, i64)> {
        let mut all: Vec<_> = self
            .counts
            .iter()
            .map(|(value, count)| (value, *count))
            .collect();
        all.sort_by(|(one, _), (other, _)| one.partial_cmp(other).unwrap_or(Ordering::Equal));
        all
    }

    /// What nested values are ordered by, the same as in the operator's states: their own order overlooks values of
    /// maps and fields that are NULL. None for all others.
    fn order_of(&self, values: &[&ScalarValue]) -> Result<Option<Rows>> {
        let field =
            SortField::new_with_options(self.value_type.clone(), SortOptions::new(false, false));
        let fields = vec![field];
        if values.is_empty()
            || !self.value_type.is_nested()
            || !RowConverter::supports_fields(&fields)
        {
            return Ok(None);
        }
        let column = ScalarValue::iter_to_array(values.iter().map(|value| (*value).clone()))?;
        Ok(Some(RowConverter::new(fields)?.convert_columns(&[column])?))
    }

    fn add(&mut self, column: &ArrayRef, count_of: impl Fn(usize) -> i64) -> Result<()> {
        let column = canonical_values(&cast(column, &self.value_type)?).map_err(to_datafusion)?;
        let nulls = column.logical_nulls();
        for row in 0..column.len() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                continue;
            }
            let value = ScalarValue::try_from_array(&column, row)?;
            match self.counts.get_mut(&value) {
                Some(_) if self.is_distinct => {}
                Some(count) => {
                    *count += count_of(row);
                    if *count == 0 {
                        let removed = self.counts.remove_entry(&value);
                        self.bytes -= removed.map_or(0, |(own, _)| own.size());
                    }
                }
                None => {
                    // A list or struct of its own, not a piece of the batch.
                    let value = value.compacted();
                    self.bytes += value.size();
                    self.counts.insert(value, count_of(row));
                }
            }
        }
        Ok(())
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0], |_| 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0], |_| -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (values, counts) = (states[0].as_list::<i32>(), states[1].as_list::<i32>());
        for (values, counts) in values.iter().zip(counts.iter()) {
            match (values, counts) {
                (Some(values), Some(counts)) => {
                    let counts = counts.as_primitive::<Int64Type>().values().clone();
                    self.add(&values, |row| counts[row])?;
                }
                (None, None) => {}
                _ => return exec_err!("a state of {} values without counts", self.value_type),
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (values, counts): (Vec<_>, Vec<_>) = self.counts.drain().unzip();
        self.bytes = 0;
        let counts: Vec<_> = counts.into_iter().map(ScalarValue::from).collect();
        Ok(vec![
            ScalarValue::List(ScalarValue::new_list(&values, &self.value_type, true)),
            ScalarValue::List(ScalarValue::new_list(&counts, &DataType::Int64, true)),
        ])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let (all, counts): (Vec<&ScalarValue>, Vec<i64>) = self.counts.iter().unzip();
        let order = self.order_of(&all)?;
        let by_count = |one: &usize, other: &usize| {
            let values = || match &order {
                Some(rows) => rows.row(*one).cmp(&rows.row(*other)),
                None => all[*one]
                    .partial_cmp(all[*other])
                    .unwrap_or(Ordering::Equal),
            };
            let values = || match self.first {
                First::Least => values(),
                First::Greatest => values().reverse(),
            };
            counts[*other].cmp(&counts[*one]).then_with(values)
        };
        let mut wanted: Vec<usize> = (0..all.len()).collect();
        if wanted.len() > self.values_max {
            wanted.select_nth_unstable_by(self.values_max - 1, by_count);
            wanted.truncate(self.values_max);
        }
        wanted.sort_unstable_by(by_count);
        let mut values = wanted.into_iter().map(|at| all[at].clone());
        if self.is_list {
            let values: Vec<ScalarValue> = values.collect();
            return match values.is_empty() {
                true => {
                    ScalarValue::try_new_null(&TopValues::List(1).result_type(&self.value_type))
                }
                false => {
                    let list = ScalarValue::new_list(&values, &self.value_type, true);
                    Ok(ScalarValue::List(list))
                }
            };
        }
        values
            .next()
            .map_or_else(|| ScalarValue::try_new_null(&self.value_type), Ok)
    }

    fn size(&self) -> usize {
        let places = self.counts.capacity() * size_of::<(ScalarValue, i64)>();
        size_of_val(self) + places + self.bytes
    }
}
