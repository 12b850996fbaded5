//! Generated queries: grouped, global, DISTINCT, grouping sets, grouping of a grouping, over filtered, joined and sorted input.
//!
//! In: a random sequence. Out: [`Query`]: its text in our words and DuckDB's, who judges it, what is certain about the answer.
//! Invariant: all input comes from the table `t`; `id` stays unique in every input.
//! Not here: keys and aggregates (expressions.rs).

use crate::answer::Certain;
use crate::expressions::{Expression, Gives, Judges, aggregate, having, key, predicate};
use crate::random::Random;

/// A query with what its answer has to be like.
#[derive(Debug, Clone)]
pub struct Query {
    /// For us and for DataFusion.
    pub ours: String,
    /// For DuckDB.
    pub duck: String,
    /// The same without LIMIT, if it has one: ours, DuckDB's.
    pub whole: Option<(String, String)>,
    /// What is certain about the answer.
    pub certain: Certain,
    /// DataFusion's answer counts.
    pub datafusion_judges: bool,
    /// DuckDB's answer counts.
    pub duck_judges: bool,
    /// A sum may not fit; then it has to be an error.
    pub may_overflow: bool,
}

/// Inputs in which every row of `t` appears at most once.
const INPUTS: [&str; 7] = [
    "t",
    "t",
    "t",
    "(SELECT * FROM t WHERE id % 2 = 0 UNION ALL SELECT * FROM t WHERE id % 2 = 1) AS t",
    "(SELECT * FROM t ORDER BY id DESC LIMIT 50) AS t",
    "(SELECT * FROM t ORDER BY dense NULLS LAST, id) AS t",
    "(SELECT l.* FROM t AS l JOIN (SELECT DISTINCT dense FROM t) AS r ON l.dense = r.dense) AS t",
];

/// Windows over groups that have one answer whatever their order.
const WINDOWS: [&str; 4] = [
    "sum(count(*)) OVER ()",
    "count(*) * 100 - sum(count(*)) OVER ()",
    "rank() OVER (ORDER BY count(*) DESC)",
    "max(count(*)) OVER (ORDER BY count(*) ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
];

/// A query under construction.
struct Draft {
    keys: Vec<Expression>,
    aggregates: Vec<Expression>,
    /// Keys are columns `k0`, `k1`, ... of a subquery, not expressions of their own.
    named: bool,
    input: &'static str,
    filter: String,
    groups: Groups,
    /// A column more: a window over the groups.
    window: Option<&'static str>,
}

/// The GROUP BY clause.
enum Groups {
    Global,
    Plain,
    Sets(String),
}

impl Query {
    /// Any query that a peer can judge: parts that only one of them knows may meet in one.
    pub fn random(random: &mut Random) -> Query {
        loop {
            let query = match random.below(20) {
                0 => distinct(random),
                1 => nested(random),
                _ => grouped(random),
            };
            if query.datafusion_judges || query.duck_judges {
                return query;
            }
        }
    }
}

impl Draft {
    fn random(random: &mut Random) -> Draft {
        let keys: Vec<Expression> = (0..*random.pick(&[0, 1, 1, 1, 2, 2, 3, 4]))
            .map(|_| key(random))
            .collect();
        let fewest = usize::from(keys.is_empty());
        let aggregates = (0..fewest + random.below(5))
            .map(|_| aggregate(random))
            .collect();
        let groups = match keys.len() {
            0 => Groups::Global,
            2.. if random.chance(20) => Groups::Sets(sets(random, keys.len())),
            _ => Groups::Plain,
        };
        let named = matches!(groups, Groups::Sets(_))
            || keys.iter().any(|key| key.ours == "42")
            || random.chance(30);
        let filter = if random.chance(30) {
            format!(" WHERE {}", predicate(random))
        } else {
            String::new()
        };
        Draft {
            keys,
            aggregates,
            named,
            input: random.pick::<&str>(&INPUTS),
            filter,
            window: (!matches!(groups, Groups::Sets(_)) && random.chance(10))
                .then(|| *random.pick(&WINDOWS)),
            groups,
        }
    }

    fn text(&self, word: fn(&Expression) -> &str) -> String {
        let key = |at: usize| {
            if self.named {
                format!("k{at}")
            } else {
                word(&self.keys[at]).to_string()
            }
        };
        let mut columns: Vec<String> = (0..self.keys.len())
            .map(|at| format!("{} AS c{at}", key(at)))
            .collect();
        let aggregates = self.aggregates.iter().enumerate();
        columns.extend(aggregates.map(|(at, aggregate)| format!("{} AS a{at}", word(aggregate))));
        if let Groups::Sets(_) = self.groups {
            columns.push("grouping(k0) AS g0, grouping(k1) AS g1".to_string());
        }
        columns.extend(self.window.map(|window| format!("{window} AS w0")));
        let input = match self.named {
            true => {
                let keys: Vec<String> = self
                    .keys
                    .iter()
                    .enumerate()
                    .map(|(at, key)| format!("{} AS k{at}", word(key)))
                    .collect();
                format!("(SELECT *, {} FROM {} ) AS q", keys.join(", "), self.input)
            }
            false => format!("{} ", self.input),
        };
        let groups = match &self.groups {
            Groups::Global => String::new(),
            Groups::Plain => format!(
                " GROUP BY {}",
                (0..self.keys.len()).map(key).collect::<Vec<_>>().join(", ")
            ),
            Groups::Sets(sets) => format!(" GROUP BY {sets}"),
        };
        format!(
            "SELECT {} FROM {input}{}{groups}",
            columns.join(", "),
            self.filter
        )
    }

    fn columns(&self) -> impl Iterator<Item = &Expression> {
        self.keys.iter().chain(&self.aggregates)
    }

    /// The finished query with a tail for both dialects and a LIMIT.
    fn finish(&self, tail: &str, ordered_by: Vec<usize>, limit: Option<usize>) -> Query {
        let text = |word| format!("{}{tail}", self.text(word));
        let (ours, duck) = (
            text(|expression| &expression.ours),
            text(|expression| &expression.duck),
        );
        let limited =
            |whole: &str| limit.map_or(whole.to_string(), |limit| format!("{whole} LIMIT {limit}"));
        let lists = self
            .columns()
            .enumerate()
            .filter(|(_, column)| column.gives == Gives::AnyOrderList);
        let (sets, unordered) = (
            matches!(self.groups, Groups::Sets(_)),
            ordered_by.is_empty(),
        );
        let constant = self.keys.iter().any(|key| key.ours == "42");
        Query {
            certain: Certain {
                ordered_by,
                unordered_lists: lists.map(|(at, _)| at).collect(),
                limit,
            },
            // DataFusion takes a key that is constant or equal to another before grouping for the same in all grouping sets.
            // It does not sort by it, and in several streams gives groups twice.
            datafusion_judges: self.columns().all(|column| column.judges != Judges::Duck)
                && (!sets || unordered && self.filter.is_empty() && !constant),
            // DuckDB 2.0 gives all rows of grouping sets where a LIMIT asks for the first of them in any order.
            duck_judges: self
                .columns()
                .all(|column| column.judges != Judges::DataFusion)
                && (limit.is_none() || !unordered || !sets),
            may_overflow: self
                .columns()
                .any(|column| column.gives == Gives::MayOverflow),
            whole: limit.map(|_| (ours.clone(), duck.clone())),
            ours: limited(&ours),
            duck: limited(&duck),
        }
    }
}

fn sets(random: &mut Random, keys: usize) -> String {
    let names: Vec<String> = (0..keys).map(|at| format!("k{at}")).collect();
    match random.below(4) {
        0 => format!("ROLLUP ({})", names.join(", ")),
        1 => format!("CUBE ({})", names.join(", ")),
        2 => format!("GROUPING SETS (({}), (k0), ())", names.join(", ")),
        _ => format!("GROUPING SETS ((k1), ({}))", names.join(", ")),
    }
}

fn grouped(random: &mut Random) -> Query {
    let draft = Draft::random(random);
    let overflows = draft
        .columns()
        .any(|column| column.gives == Gives::MayOverflow);
    let mut tail = String::new();
    // A group that overflows may be one that HAVING or LIMIT would drop: then either outcome is right.
    if !overflows && random.chance(20) {
        tail += &format!(" HAVING {}", having(random));
    }
    let sortable: Vec<usize> = draft
        .columns()
        .enumerate()
        .filter(|(_, column)| column.gives == Gives::Ordered)
        .map(|(at, _)| at)
        .collect();
    let mut ordered_by = Vec::new();
    if !sortable.is_empty() && random.chance(40) {
        let terms: Vec<String> = (0..1 + random.below(3))
            .map(|_| {
                let column = *random.pick(&sortable);
                ordered_by.push(column);
                let name = match column.checked_sub(draft.keys.len()) {
                    None => format!("c{column}"),
                    Some(aggregate) => format!("a{aggregate}"),
                };
                format!(
                    "{name} {} NULLS {}",
                    random.pick(&["ASC", "DESC"]),
                    random.pick(&["FIRST", "LAST"])
                )
            })
            .collect();
        tail += &format!(" ORDER BY {}", terms.join(", "));
    }
    let limit_percent = if ordered_by.is_empty() { 8 } else { 50 };
    let limit =
        (!overflows && random.chance(limit_percent)).then(|| *random.pick(&[0, 1, 3, 10, 100]));
    draft.finish(&tail, ordered_by, limit)
}

fn distinct(random: &mut Random) -> Query {
    let mut draft = Draft {
        aggregates: Vec::new(),
        window: None,
        groups: Groups::Global,
        named: false,
        ..Draft::random(random)
    };
    draft.keys.retain(|key| key.ours != "42");
    if draft.keys.is_empty() {
        draft.keys.push(key(random));
    }
    let mut query = draft.finish("", Vec::new(), None);
    for text in [&mut query.ours, &mut query.duck] {
        *text = text.replacen("SELECT ", "SELECT DISTINCT ", 1);
    }
    query
}

/// Counts the groups of a grouping, by its first key where that can be done.
fn nested(random: &mut Random) -> Query {
    let mut draft = Draft::random(random);
    draft
        .aggregates
        .retain(|aggregate| aggregate.gives == Gives::Ordered);
    if draft.columns().next().is_none() {
        let key = key(random);
        // Bare, a constant in GROUP BY would name a column by its position.
        draft.named |= key.ours == "42";
        draft.keys.push(key);
        draft.groups = Groups::Plain;
    }
    let mut query = draft.finish("", Vec::new(), None);
    let by_key = !draft.keys.is_empty() && random.chance(60);
    for text in [&mut query.ours, &mut query.duck] {
        *text = match by_key {
            true => format!("SELECT c0, count(*) FROM ({text}) AS inner_groups GROUP BY c0"),
            false => format!("SELECT count(*) FROM ({text}) AS inner_groups"),
        };
    }
    query
}
