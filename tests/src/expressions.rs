//! Expressions over the columns of a generated table: keys, aggregates, predicates, each in our words and in DuckDB's.
//!
//! In: a random sequence. Out: [`Expression`] with the peers that can judge it.
//! Invariant: every expression has one right answer on every table (no order that is left open, no value at the edge of its type).
//! Not here: how expressions make a query (queries.rs).

use crate::random::Random;

/// SQL in our words and in DuckDB's.
#[derive(Debug, Clone)]
pub struct Expression {
    /// For us and for DataFusion.
    pub ours: String,
    /// For DuckDB.
    pub duck: String,
    /// Who knows the right answer.
    pub judges: Judges,
    /// What kind of column it gives.
    pub gives: Gives,
}

/// The peers whose answer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judges {
    /// Stock DataFusion and DuckDB.
    Both,
    /// Stock DataFusion only: DuckDB rounds otherwise, or has no such function.
    DataFusion,
    /// DuckDB only: DataFusion is wrong there, or has no such function.
    Duck,
}

/// What is special about a column of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    /// Values that can be ordered, in the same order everywhere.
    Ordered,
    /// Values that can be compared, but not ordered (nested, or floats with NaN).
    Unordered,
    /// A list whose items come in any order.
    AnyOrderList,
    /// A sum that may not fit; then it has to be an error.
    MayOverflow,
}

use Gives::{AnyOrderList, MayOverflow, Ordered, Unordered};
use Judges::{Both, DataFusion, Duck};

impl Expression {
    fn new(ours: impl Into<String>, judges: Judges, gives: Gives) -> Expression {
        let ours = ours.into();
        Expression {
            duck: ours.clone(),
            ours,
            judges,
            gives,
        }
    }

    fn duck(mut self, duck: impl Into<String>) -> Expression {
        self.duck = duck.into();
        self
    }
}

const INTEGERS: [&str; 8] = [
    "tiny", "short", "small", "dense", "wide", "u8", "u32", "u64",
];
const STRINGS: [&str; 5] = ["word", "text", "viewed", "name", "code"];
const OTHERS: [&str; 6] = ["flag", "bytes", "day", "moment", "amount", "exact"];
const NESTED: [&str; 2] = ["list", "pair"];
const FLOATS: [&str; 2] = ["wild", "single"];

/// Keys that are more than a column.
const COMPUTED_KEYS: [&str; 18] = [
    "dense % 7",
    "id % 3",
    "wide % 1000",
    "u32 % 100",
    "dense + 1",
    "wide - wide % 60",
    "small * 12",
    "date_trunc('minute', moment)",
    "substr(word, 1, 3)",
    "length(text)",
    "upper(code)",
    "coalesce(name, word)",
    "date_trunc('month', moment)",
    "CASE WHEN flag THEN tiny END",
    "CASE WHEN dense > 3 AND flag THEN 'big' WHEN small IS NULL THEN 'none' WHEN short < 0 THEN 'big' END",
    "flag AND tiny > 0",
    "day IS NULL",
    "42",
];

const PREDICATES: [&str; 16] = [
    "flag",
    "NOT flag",
    "tiny > 0",
    "small BETWEEN -100000 AND 100000",
    "dense % 2 = 0",
    "id % 3 <> 0",
    "word <> ''",
    "word LIKE '%same%'",
    "text LIKE 'G%'",
    "name IN ('', 'same start ')",
    "code = 'red'",
    "day > DATE '1990-01-01'",
    "moment IS NOT NULL",
    "amount < 0",
    "pair IS NULL",
    "length(text) > 20 OR u8 < 50",
];

const HAVINGS: [&str; 7] = [
    "count(*) > 1",
    "count(*) % 2 = 0",
    "max(id) > 10",
    "sum(small) > 0",
    "count(word) = 0",
    "min(word) > 'a'",
    "count(DISTINCT tiny) > 1",
];

/// A column that can be ordered and compared.
fn scalar(random: &mut Random) -> &'static str {
    let all = [&INTEGERS[..], &STRINGS[..], &OTHERS[..]];
    let index = random.below(INTEGERS.len() + STRINGS.len() + OTHERS.len());
    all.concat()[index]
}

/// A group key.
pub fn key(random: &mut Random) -> Expression {
    match random.below(21) {
        // DuckDB alone judges these.
        20 if random.chance(30) => Expression::new(zoned(random), Duck, Ordered),
        0 => Expression::new(*random.pick(&NESTED), Both, Unordered),
        1 => Expression::new(*random.pick(&FLOATS), Duck, Unordered),
        2..7 => Expression::new(*random.pick(&COMPUTED_KEYS), Both, Ordered),
        _ => Expression::new(scalar(random), Both, Ordered),
    }
}

/// A condition on rows.
pub fn predicate(random: &mut Random) -> &'static str {
    random.pick::<&str>(&PREDICATES)
}

/// A condition on groups.
pub fn having(random: &mut Random) -> &'static str {
    random.pick::<&str>(&HAVINGS)
}

/// An aggregate, at times with FILTER.
pub fn aggregate(random: &mut Random) -> Expression {
    let mut aggregate = match random.below(12) {
        // DataFusion judges none of these.
        _ if random.chance(3) => match random.below(3) {
            0 => of_distinct(random),
            1 => of_zones(random),
            _ => of_intervals(random),
        },
        0..3 => counting(random),
        3..6 => summing(random),
        6..8 => extreme(random),
        8 => statistic(random),
        9 => positional(random),
        10 => listing(random),
        _ => bitwise(random),
    };
    if random.chance(15) {
        let filter = format!(" FILTER (WHERE {})", predicate(random));
        // FILTER is of the aggregate, not of what is computed of it.
        let is_computed = ["length(", ") > INTERVAL", ") = INTERVAL", ") AT TIME"]
            .iter()
            .any(|part| aggregate.ours.contains(part));
        if !is_computed {
            aggregate.ours += &filter;
            aggregate.duck += &filter;
        }
    }
    aggregate
}

fn counting(random: &mut Random) -> Expression {
    let column = scalar(random);
    match random.below(6) {
        0 | 1 => Expression::new("count(*)", Both, Ordered),
        2 => Expression::new(format!("count({column})"), Both, Ordered),
        3 => Expression::new(format!("count(DISTINCT {column})"), Both, Ordered),
        4 => Expression::new(format!("uniq_exact({column})"), Duck, Ordered)
            .duck(format!("count(DISTINCT {column})")),
        _ => Expression::new(format!("count({})", random.pick(&NESTED)), Both, Ordered),
    }
}

fn summing(random: &mut Random) -> Expression {
    let integer = *random.pick(&INTEGERS);
    let predicate = predicate(random);
    match random.below(16) {
        0..4 => Expression::new(format!("sum({integer})"), Both, Ordered),
        4 | 5 => Expression::new("sum(exact)", Both, Ordered),
        6 => Expression::new("sum(amount)", Both, Ordered),
        7 => Expression::new(
            format!(
                "sum({})",
                random.pick(&["small + 1", "dense * 2", "exact * 0.5", "id"])
            ),
            Both,
            Ordered,
        ),
        8 => Expression::new(
            format!("sum(CASE WHEN {predicate} THEN small ELSE 0 END)"),
            Both,
            Ordered,
        ),
        9 => Expression::new(
            format!("sum(DISTINCT {})", random.pick(&["small", "tiny", "u32"])),
            Both,
            Ordered,
        ),
        10 | 11 => Expression::new(format!("avg({integer})"), Both, Ordered),
        12 => Expression::new("avg(exact)", Both, Ordered),
        // DataFusion cuts it.
        13 => Expression::new("avg(amount)", Duck, Unordered),
        14 if random.chance(30) => Expression::new("sum(huge)", Duck, MayOverflow),
        _ => Expression::new(format!("sum({})", random.pick(&FLOATS)), Both, Unordered),
    }
}

fn extreme(random: &mut Random) -> Expression {
    let function = random.pick(&["min", "max"]);
    match random.below(10) {
        0 => Expression::new(
            format!("{function}({})", random.pick(&FLOATS)),
            Duck, // DataFusion tells NaN apart by their sign
            Unordered,
        ),
        _ => Expression::new(format!("{function}({})", scalar(random)), Both, Ordered),
    }
}

fn statistic(random: &mut Random) -> Expression {
    match random.below(8) {
        0 | 1 => {
            let function = random.pick(&["var_samp", "var_pop", "stddev_samp", "stddev_pop"]);
            Expression::new(
                format!("{function}({})", random.pick(&["exact", "small", "tiny"])),
                Both,
                Unordered, // the last bits depend on the order of rows
            )
        }
        2 => Expression::new(
            format!("{}(exact, tiny)", random.pick(&["covar_samp", "covar_pop"])),
            Both,
            Unordered,
        ),
        3 => Expression::new("corr(exact, tiny)", DataFusion, Unordered),
        4 => {
            let function = random.pick(&[
                "regr_slope",
                "regr_intercept",
                "regr_sxx",
                "regr_sxy",
                "regr_count",
            ]);
            Expression::new(format!("{function}(exact, tiny)"), DataFusion, Unordered)
        }
        5 | 6 => Expression::new("median(exact)", Both, Ordered),
        _ => Expression::new(
            "percentile_cont(0.25) WITHIN GROUP (ORDER BY exact)",
            Both,
            Ordered,
        )
        .duck("quantile_cont(exact, 0.25)"),
    }
}

fn positional(random: &mut Random) -> Expression {
    let column = scalar(random);
    let direction = random.pick(&["", " DESC"]);
    match random.below(5) {
        0 | 1 => {
            let (ours, duck) = *random.pick(&[("first_value", "first"), ("last_value", "last")]);
            Expression::new(
                format!("{ours}({column} ORDER BY id{direction})"),
                Both,
                Ordered,
            )
            .duck(format!("{duck}({column} ORDER BY id{direction})"))
        }
        2 => {
            let (ours, duck) = *random.pick(&[("first_value", "first"), ("last_value", "last")]);
            let order = format!("dense{direction} NULLS LAST, id");
            Expression::new(format!("{ours}({column} ORDER BY {order})"), Both, Ordered)
                .duck(format!("{duck}({column} ORDER BY {order})"))
        }
        _ => {
            let function = random.pick(&["max_by", "min_by", "arg_max", "arg_min"]);
            Expression::new(format!("{function}({column}, id)"), Duck, Ordered)
        }
    }
}

fn listing(random: &mut Random) -> Expression {
    let column = *random.pick(&["tiny", "wide", "word", "day", "flag", "name"]);
    match random.below(8) {
        0 => Expression::new(format!("array_agg({column})"), Both, AnyOrderList),
        1 => Expression::new(format!("array_agg(DISTINCT {column})"), Both, AnyOrderList),
        2 | 3 => Expression::new(format!("array_agg({column} ORDER BY id)"), Both, Unordered),
        4 => Expression::new("length(string_agg(DISTINCT word, ', '))", Both, Ordered),
        5 => {
            let direction = random.pick(&["", " DESC"]);
            let order = format!("ORDER BY {column}{direction} NULLS LAST");
            let listed = format!("array_agg(DISTINCT {column} {order})");
            Expression::new(listed, Both, Unordered)
        }
        6 => {
            let direction = random.pick(&["", " DESC"]);
            let listed = format!("array_agg({column} ORDER BY dense{direction} NULLS LAST, id)");
            Expression::new(listed, Both, Unordered)
        }
        _ => Expression::new("string_agg(word, ',' ORDER BY id)", Both, Ordered),
    }
}

/// DISTINCT where few write it.
fn of_distinct(random: &mut Random) -> Expression {
    let (function, column, gives) = *random.pick(&[
        ("min", "word", Ordered),
        ("max", "amount", Ordered),
        ("avg", "tiny", Unordered),
        ("avg", "exact", Unordered),
        ("var_pop", "tiny", Unordered),
        ("stddev_samp", "small", Unordered),
        ("bit_xor", "tiny", Ordered),
        ("bool_and", "flag", Ordered),
        ("median", "exact", Ordered),
        ("count", "pair", Ordered),
        ("count", "wild", Ordered),
    ]);
    Expression::new(format!("{function}(DISTINCT {column})"), Duck, gives)
}

/// Intervals of several forms, 30 days and a month alike; DataFusion orders them by their bits.
fn of_intervals(random: &mut Random) -> Expression {
    let interval = *random.pick(&[
        "(id % 5) * INTERVAL '12 hours' + (id % 2) * INTERVAL '1 day'",
        "CASE WHEN flag THEN INTERVAL '30 days' ELSE INTERVAL '1 month' END",
        "(id % 40) * INTERVAL '1 day' - INTERVAL '1 month'",
    ]);
    let expression = match random.below(3) {
        0 => format!("count(DISTINCT {interval})"),
        1 => format!("max({interval}) > INTERVAL '29 days 23 hours'"),
        _ => format!("min({interval}) = INTERVAL '0 days'"),
    };
    Expression::new(expression, Duck, Ordered)
}

/// The clock of a zone whose hours change, or are not whole, or never change.
fn zoned(random: &mut Random) -> String {
    let zone = random.pick(&[
        "America/New_York",
        "Europe/Berlin",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "America/St_Johns",
    ]);
    format!("(moment AT TIME ZONE 'UTC') AT TIME ZONE '{zone}'")
}

/// Timestamps with a zone.
fn of_zones(random: &mut Random) -> Expression {
    let clock = zoned(random);
    let expression = match random.below(5) {
        0 => format!("count(DISTINCT date_part('hour', {clock}))"),
        1 => format!("max({clock})"),
        2 => format!("sum(date_part('day', {clock}))"),
        3 => format!("count(DISTINCT date_trunc('day', {clock}))"),
        _ => "max(moment AT TIME ZONE 'UTC') AT TIME ZONE 'Asia/Kolkata'".to_string(),
    };
    Expression::new(expression, Duck, Ordered)
}

fn bitwise(random: &mut Random) -> Expression {
    match random.below(3) {
        0 => Expression::new(
            format!("{}(flag)", random.pick(&["bool_and", "bool_or"])),
            Both,
            Ordered,
        ),
        _ => {
            let function = random.pick(&["bit_and", "bit_or", "bit_xor"]);
            Expression::new(
                format!(
                    "{function}({})",
                    random.pick(&["tiny", "small", "wide", "u8"])
                ),
                Both,
                Ordered,
            )
        }
    }
}
