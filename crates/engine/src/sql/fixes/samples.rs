//! TABLESAMPLE: some rows of a table, chosen by chance.
//!
//! In: a table factor with a sample. Out: the plan of the table with a filter or a limit above it.
//! Invariant: rows are chosen before any condition of the query sees them. BERNOULLI and SYSTEM take each row by itself;
//! a number of rows, and `reservoir(p%)`, is exact. With REPEATABLE the same rows of the same table are chosen, by any
//! number of workers: a row's chance follows from its values, equal rows are counted.
//! Not here: how a sample is written (token_forms/samples.rs).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, UInt64Array};
use datafusion::arrow::compute::is_null;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::hash_utils::{RandomState, create_hashes};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, WindowFunctionDefinition, cast, lit,
};
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, FunctionArg, FunctionArgExpr, FunctionArguments, TableFactor, TableSample,
    TableSampleKind, TableSampleQuantity, TableSampleSeed, TableSampleUnit, Value,
};

use crate::error::Error;
use crate::expr::function_methods::function_methods;
use crate::sql::tokens::token_forms::RESERVOIR;

/// Columns that a sample adds for a while.
const CHANCE: &str = "sample chance";
const VALUES: &str = "sample values";
const COPY: &str = "sample copy";
const PLACE: &str = "sample place";
const ROWS: &str = "sample rows";

/// Plans tables with a sample.
#[derive(Debug)]
pub(crate) struct SamplePlanner;

impl RelationPlanner for SamplePlanner {
    fn plan_relation(
        &self,
        mut relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let sample = match &mut relation {
            TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. } => {
                sample.take()
            }
            _ => None,
        };
        let Some(sample) = sample else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let (TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) =
            sample;
        let wanted = WantedSample::new(*sample, context)?;
        let table = context.plan(relation)?;
        let plan = sampled(table, wanted, context)?;
        let planned = PlannedRelation::new(plan, None);
        Ok(RelationPlanning::Planned(Box::new(planned)))
    }
}

/// A sample that is understood.
struct WantedSample {
    amount: Amount,
    seed: Option<u64>,
}

enum Amount {
    /// Each row with this chance, of 100.
    Chance(Expr),
    /// This share of the rows, of 100.
    Share(Expr),
    Rows(Expr),
}

impl WantedSample {
    fn new(sample: TableSample, context: &mut dyn RelationPlannerContext) -> Result<WantedSample> {
        let TableSample {
            modifier: _,
            name,
            quantity,
            seed,
            bucket,
            offset,
        } = sample;
        if bucket.is_some() || offset.is_some() {
            return unsupported(
                "a sample of buckets, or with OFFSET; write TABLESAMPLE BERNOULLI (10)",
            );
        }
        let Some(TableSampleQuantity {
            parenthesized: _,
            value,
            unit,
        }) = quantity
        else {
            return unsupported("a sample without a size; write TABLESAMPLE BERNOULLI (10)");
        };
        let exact = reservoir(&value);
        let value = exact.clone().unwrap_or(value);
        check(&value, unit.as_ref())?;
        let amount = context.sql_to_expr(value, &DFSchema::empty())?;
        let amount = match (unit, name) {
            (Some(TableSampleUnit::Percent), _) if exact.is_some() => Amount::Share(amount),
            (Some(TableSampleUnit::Percent), _) | (None, Some(_)) => Amount::Chance(amount),
            (Some(TableSampleUnit::Rows), None) => Amount::Rows(amount),
            (Some(TableSampleUnit::Rows), Some(_)) => {
                return unsupported(
                    "BERNOULLI and SYSTEM with a number of rows; write TABLESAMPLE reservoir(1000 ROWS)",
                );
            }
            (None, None) => {
                return unsupported("a sample without a unit; write 10 PERCENT or 10 ROWS");
            }
        };
        Ok(WantedSample {
            amount,
            seed: seed.map(seed_of).transpose()?,
        })
    }
}

fn unsupported<T>(message: &str) -> Result<T> {
    let message = message.to_string();
    Err(Error::unsupported(message).into())
}

/// The percentage of `reservoir(10) PERCENT`, as token_forms writes it.
fn reservoir(value: &SqlExpr) -> Option<SqlExpr> {
    let SqlExpr::Function(function) = value else {
        return None;
    };
    let FunctionArguments::List(arguments) = &function.args else {
        return None;
    };
    match (function.name.0.as_slice(), arguments.args.as_slice()) {
        ([name], [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))])
            if name.as_ident().is_some_and(|name| name.value == RESERVOIR) =>
        {
            Some(inner.clone())
        }
        _ => None,
    }
}

fn check(value: &SqlExpr, unit: Option<&TableSampleUnit>) -> Result<()> {
    let SqlExpr::Value(value) = value else {
        return Ok(());
    };
    let Value::Number(digits, _) = &value.value else {
        return unsupported("a sample whose size is no number");
    };
    let number: f64 = digits.parse().unwrap_or(f64::NAN);
    match unit {
        Some(TableSampleUnit::Rows) if number.fract() != 0.0 || number.is_nan() => unsupported(
            &format!("a sample of {digits} rows; their number is a whole one"),
        ),
        Some(TableSampleUnit::Rows) => Ok(()),
        _ if (0.0..=100.0).contains(&number) => Ok(()),
        _ => unsupported(&format!(
            "a sample of {digits} percent; it lies between 0 and 100"
        )),
    }
}

fn seed_of(seed: TableSampleSeed) -> Result<u64> {
    let digits = seed.value.value.to_string();
    match digits.parse::<u64>() {
        Ok(seed) => Ok(seed),
        Err(_) => unsupported(&format!(
            "the seed {digits} of a sample; it is a whole number from 0"
        )),
    }
}

/// The rows of `table` that are chosen.
fn sampled(
    table: LogicalPlan,
    wanted: WantedSample,
    context: &dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = table
        .schema()
        .columns()
        .into_iter()
        .map(Expr::Column)
        .collect();
    let WantedSample { amount, seed } = wanted;
    let random = match seed {
        None => random(context)?,
        Some(seed) => return seeded(table, columns, amount, seed),
    };
    if let Amount::Chance(percent) = amount {
        let share = cast(percent, DataType::Float64) / lit(100.0);
        return LogicalPlanBuilder::from(table)
            .filter(random.lt(share))?
            .build();
    }
    let mut with_chance = columns.clone();
    with_chance.push(random.alias(CHANCE));
    let chances = LogicalPlanBuilder::from(table).project(with_chance)?;
    counted(chances, columns, amount)
}

fn random(context: &dyn RelationPlannerContext) -> Result<Expr> {
    match context.context_provider().get_function_meta("random") {
        Some(random) => Ok(random.call(Vec::new())),
        None => unsupported("a sample in a session without the function random()"),
    }
}

/// Rows whose chance follows from the seed, their values and how many equal rows came before.
fn seeded(
    table: LogicalPlan,
    columns: Vec<Expr>,
    amount: Amount,
    seed: u64,
) -> Result<LogicalPlan> {
    let hash = ScalarUDF::new_from_impl(SampleHash::default());
    let mut values = vec![lit(seed)];
    values.extend(columns.iter().cloned());
    let mut with_values = columns.clone();
    with_values.push(hash.call(values).alias(VALUES));
    let copies = number_rows()
        .partition_by(vec![added(VALUES)])
        .build()?
        .alias(COPY);
    let hashed = vec![lit(seed), added(VALUES), added(COPY)];
    let mut with_chance = columns.clone();
    with_chance
        .push((cast(hash.call(hashed), DataType::Float64) / lit(2f64.powi(64))).alias(CHANCE));
    let chances = LogicalPlanBuilder::from(table)
        .project(with_values)?
        .window(vec![copies])?
        .project(with_chance)?;
    match amount {
        Amount::Chance(percent) => {
            let share = cast(percent, DataType::Float64) / lit(100.0);
            chances
                .filter(added(CHANCE).lt(share))?
                .project(columns)?
                .build()
        }
        amount => counted(chances, columns, amount),
    }
}

/// The rows with the smallest chances: so many, or such a share of all.
fn counted(chances: LogicalPlanBuilder, columns: Vec<Expr>, amount: Amount) -> Result<LogicalPlan> {
    let place = number_rows()
        .order_by(vec![added(CHANCE).sort(true, false)])
        .build()?
        .alias(PLACE);
    let numbered = match amount {
        Amount::Rows(rows) => {
            let rows = cast(rows, DataType::UInt64);
            chances
                .window(vec![place])?
                .filter(added(PLACE).lt_eq(rows))?
        }
        Amount::Share(percent) | Amount::Chance(percent) => {
            let all = WindowFunction::new(
                WindowFunctionDefinition::AggregateUDF(count_udaf()),
                vec![lit(1_i64)],
            );
            let all = Expr::from(all).alias(ROWS);
            let before = cast(added(PLACE), DataType::Float64) * lit(100.0);
            let share = cast(added(ROWS), DataType::Float64) * cast(percent, DataType::Float64);
            chances
                .window(vec![place, all])?
                .filter(before.lt_eq(share))?
        }
    };
    numbered.project(columns)?.build()
}

/// A column that the sample has added.
fn added(name: &str) -> Expr {
    Expr::Column(Column::from_name(name))
}

fn number_rows() -> Expr {
    let number = WindowFunctionDefinition::WindowUDF(row_number_udwf());
    Expr::from(WindowFunction::new(number, Vec::new()))
}

/// A number from the values of a row: with the same seed the same one, in whatever batch the row comes.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SampleHash {
    signature: Signature,
}

impl Default for SampleHash {
    fn default() -> SampleHash {
        SampleHash {
            signature: Signature::variadic_any(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for SampleHash {
    function_methods!("sample_hash");

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = args.args.iter();
        let mut arrays: Vec<ArrayRef> = arrays
            .map(|value| value.to_array(args.number_rows))
            .collect::<Result<_>>()?;
        // DataFusion's hash passes over NULL, so (NULL, 1) and (1, NULL) would be one.
        let nulls: Vec<BooleanArray> = arrays
            .iter()
            .filter(|array| array.null_count() > 0)
            .map(|array| is_null(array))
            .collect::<std::result::Result<_, _>>()?;
        arrays.extend(nulls.into_iter().map(|nulls| Arc::new(nulls) as ArrayRef));
        let mut hashes = vec![0; args.number_rows];
        create_hashes(&arrays, &RandomState::with_seed(0), &mut hashes)?;
        let mixed = hashes.into_iter().map(mixed);
        Ok(ColumnarValue::Array(Arc::new(
            UInt64Array::from_iter_values(mixed),
        )))
    }
}

/// The finisher of SplitMix64: all bits of the result depend on all of the hash.
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
