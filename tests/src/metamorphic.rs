//! Queries that have to agree with each other: what one says about a table follows from what others say.
//!
//! In: a random sequence. Out: [`Relation`]s: two strings whose answers are the same rows, and why.
//! Invariant: every relation holds on every table, whatever is NULL, NaN or -0.0 in it; no peer is asked.
//! Not here: tables (tables.rs), comparing (answer.rs).
//!
//! Ternary logic partitioning: rows for which a predicate is true, false and NULL are all rows. Non-optimising reference: a
//! predicate in WHERE keeps the rows for which it is true in the select list. Both are Rigger's and Su's (SQLancer, 2020).

use crate::random::Random;

/// Two queries with the same rows.
#[derive(Debug, Clone)]
pub struct Relation {
    /// Why they are the same.
    pub why: &'static str,
    /// One of them.
    pub left: String,
    /// The other one.
    pub right: String,
}

/// Columns with operands of their own type.
const COMPARED: [(&str, &[&str]); 12] = [
    ("tiny", &["small", "0", "-1", "u8", "NULL", "1.5"]),
    ("dense", &["wide", "0", "3", "tiny + 1", "2.5", "u64"]),
    ("u64", &["dense", "u8", "0", "wide"]),
    (
        "exact",
        &["wild", "0.0", "-0.0", "dense", "single", "'NaN'::DOUBLE"],
    ),
    (
        "wild",
        &[
            "exact",
            "-0.0::DOUBLE",
            "single",
            "'NaN'::DOUBLE",
            "-wild",
            "NULL",
        ],
    ),
    ("amount", &["exact", "0", "1.25", "tiny", "amount * 2"]),
    ("word", &["text", "viewed", "''", "name", "code", "NULL"]),
    ("code", &["name", "'red'", "word", "''"]),
    (
        "day",
        &[
            "DATE '1990-01-01'",
            "CAST(moment AS DATE)",
            "day + INTERVAL '1 day'",
            "NULL",
        ],
    ),
    (
        "moment",
        &[
            "TIMESTAMP '1970-01-01 00:00:00'",
            "day",
            "moment + INTERVAL '1 month'",
        ],
    ),
    ("list", &["[1, 2]", "[NULL]", "list", "[]"]),
    ("pair", &["pair", "named_struct('number', 1, 'word', NULL)"]),
];

const COMPARISONS: [&str; 8] = [
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "IS DISTINCT FROM",
    "IS NOT DISTINCT FROM",
];

const SIMPLE: [&str; 16] = [
    "flag",
    "NULL::BOOLEAN",
    "word LIKE '%same%'",
    "viewed NOT LIKE 'G%'",
    "text ILIKE '%SAME%'",
    "name IS NULL",
    "flag IS NOT TRUE",
    "(flag = (tiny > 0)) IS UNKNOWN",
    "small BETWEEN tiny AND dense",
    "wide NOT BETWEEN -5 AND NULL",
    "length(text) % 2 = 0",
    "CASE WHEN flag THEN tiny > 0 WHEN small > 0 THEN NULL ELSE word < text END",
    "coalesce(flag, dense > 0)",
    "nullif(flag, tiny > 0)",
    "regexp_like(word, 'a.*b|[0-9]+')",
    "date_part('month', day) = 2",
];

const LISTS: [(&str, &str); 8] = [
    ("tiny", "(1, 2, NULL)"),
    ("dense", "(0, 1, 2, 3, 4, 5, 6)"),
    ("wild", "(0.0, 1.5)"),
    ("wild", "(-0.0::DOUBLE, 'NaN'::DOUBLE, 1.0, 2.0, 3.0)"),
    ("word", "('', 'same start ', NULL)"),
    ("code", "('red', 'green', '', 'x', 'y', 'z')"),
    ("exact", "(SELECT wild FROM t WHERE id < 20)"),
    ("dense", "(SELECT tiny FROM t WHERE id % 3 = 0)"),
];

const KEYS: [&str; 12] = [
    "tiny",
    "dense % 7",
    "wild",
    "single",
    "word",
    "code",
    "flag",
    "list",
    "pair",
    "date_trunc('month', moment)",
    "amount",
    "coalesce(name, word)",
];

/// A condition that is true, false or NULL of each row.
pub fn predicate(random: &mut Random, depth: usize) -> String {
    if depth > 0 && random.chance(45) {
        let (left, right) = (predicate(random, depth - 1), predicate(random, depth - 1));
        return match random.below(5) {
            0 | 1 => format!("({left} AND {right})"),
            2 | 3 => format!("({left} OR {right})"),
            _ => format!("(NOT {left})"),
        };
    }
    match random.below(10) {
        0..5 => {
            let (column, others) = *random.pick(&COMPARED);
            let other = random.pick(others);
            format!("({column} {} {other})", random.pick(&COMPARISONS))
        }
        5 | 6 => {
            let (column, list) = *random.pick(&LISTS);
            let not = random.pick(&["", "NOT "]);
            format!("({column} {not}IN {list})")
        }
        _ => format!("({})", random.pick(&SIMPLE)),
    }
}

/// Any relation over the table `t`.
pub fn relation(random: &mut Random) -> Relation {
    let p = predicate(random, 2);
    let parts = [p.clone(), format!("NOT {p}"), format!("{p} IS NULL")];
    let key = *random.pick(&KEYS);
    match random.below(12) {
        0 => each_part(&parts, "SELECT id FROM t", |part| {
            format!("SELECT id FROM t WHERE {part}")
        }),
        1 => each_part(
            &parts,
            &format!("SELECT DISTINCT {key} AS k FROM t"),
            |part| format!("SELECT {key} AS k FROM t WHERE {part}"),
        )
        .distinct(),
        2 => totals(&parts, key),
        3 => {
            let groups =
                format!("SELECT {key} AS k, count(*) AS c, max(small) AS m FROM t GROUP BY 1");
            let having = *random.pick(&["c > 1", "m > 0", "k IS NULL", "c % 2 = 0 OR m IS NULL"]);
            let parts = [
                having.to_string(),
                format!("NOT ({having})"),
                format!("({having}) IS NULL"),
            ];
            each_part(&parts, &groups, |part| {
                format!("SELECT * FROM ({groups}) AS g WHERE {part}")
            })
        }
        6 => {
            let rows = "SELECT l.id, r.id AS other FROM t AS l JOIN (SELECT id, dense FROM t WHERE id < 50) AS r ON l.dense = r.dense";
            let of_l =
                |part: &String| format!("{rows} AND l.id IN (SELECT id FROM t WHERE {part})");
            each_part(&parts, rows, of_l)
        }
        7 => multiplicities(random, &p),
        4 | 5 => kept(random, &p, key),
        _ => looked_up(random, &p, key),
    }
}

/// Rows that a predicate keeps, said in two ways.
fn kept(random: &mut Random, p: &str, key: &str) -> Relation {
    match random.below(2) {
        0 => Relation {
            why: "WHERE keeps the rows for which the predicate is true",
            left: format!("SELECT count(*) FROM t WHERE {p}"),
            right: format!(
                "SELECT coalesce(sum(CASE WHEN b THEN 1 ELSE 0 END), 0) FROM (SELECT {p} AS b FROM t) AS q"
            ),
        },
        _ => Relation {
            why: "FILTER keeps the rows for which the predicate is true",
            left: format!("SELECT {key} AS k, count(*) FILTER (WHERE {p}) FROM t GROUP BY 1"),
            right: format!(
                "SELECT k, count(b) FROM (SELECT {key} AS k, CASE WHEN {p} THEN 1 END AS b FROM t) AS q GROUP BY k"
            ),
        },
    }
}

/// Rows that others decide: correlated, in a list, joined, in one window.
fn looked_up(random: &mut Random, p: &str, key: &str) -> Relation {
    match random.below(4) {
        0 => Relation {
            why: "a correlated count is that of the group, or 0",
            left: format!(
                "SELECT id, (SELECT count(*) FROM t AS u WHERE u.dense = t.dense AND u.id % 2 = 0) AS c FROM t WHERE {p}"
            ),
            right: format!(
                "SELECT id, coalesce(c, 0) FROM (SELECT * FROM t WHERE {p}) AS q LEFT JOIN (SELECT dense AS d, count(*) AS c FROM t WHERE id % 2 = 0 GROUP BY 1) AS g ON g.d = q.dense"
            ),
        },
        1 => Relation {
            why: "IN is EXISTS of an equal row",
            left: format!(
                "SELECT id FROM t WHERE {p} AND wild IN (SELECT exact FROM t WHERE flag)"
            ),
            right: format!(
                "SELECT id FROM t WHERE {p} AND EXISTS (SELECT 1 FROM t AS u WHERE u.flag AND u.exact = t.wild)"
            ),
        },
        2 => Relation {
            why: "the column of a FULL JOIN USING is that of the side that has one",
            left: format!(
                "SELECT dense, l.id, r.id AS other FROM (SELECT dense, id FROM t WHERE {p}) AS l FULL JOIN (SELECT dense, id FROM t WHERE id < 30) AS r USING (dense)"
            ),
            right: format!(
                "SELECT coalesce(l.dense, r.dense), l.id, r.id AS other FROM (SELECT dense, id FROM t WHERE {p}) AS l FULL JOIN (SELECT dense, id FROM t WHERE id < 30) AS r ON l.dense = r.dense"
            ),
        },
        _ => Relation {
            why: "a window over all rows of a key is its group",
            left: format!(
                "SELECT DISTINCT k, c FROM (SELECT {key} AS k, count(*) OVER (PARTITION BY {key}) AS c FROM t WHERE {p}) AS q"
            ),
            right: format!("SELECT {key} AS k, count(*) AS c FROM t WHERE {p} GROUP BY 1"),
        },
    }
}

impl Relation {
    /// The parts have a row in common where the whole has it once.
    fn distinct(mut self) -> Relation {
        self.right = self.right.replace(" UNION ALL ", " UNION ");
        self
    }
}

fn each_part(parts: &[String; 3], whole: &str, of: impl Fn(&String) -> String) -> Relation {
    let rows: Vec<String> = parts.iter().map(of).collect();
    Relation {
        why: "a predicate is true, false or NULL",
        left: whole.to_string(),
        right: rows.join(" UNION ALL "),
    }
}

/// Aggregates of the parts, put together.
fn totals(parts: &[String; 3], key: &str) -> Relation {
    let of = |part: &str| {
        format!(
            "SELECT {key} AS k, count(*) AS c, sum(small) AS s, min(word) AS l, max(wild) AS m, count(DISTINCT id) AS d FROM t{part} GROUP BY 1"
        )
    };
    let rows: Vec<String> = parts
        .iter()
        .map(|part| of(&format!(" WHERE {part}")))
        .collect();
    Relation {
        why: "aggregates of parts put together are those of the whole",
        left: of(""),
        right: format!(
            "SELECT k, sum(c), sum(s), min(l), max(m), sum(d) FROM ({}) AS q GROUP BY k",
            rows.join(" UNION ALL ")
        ),
    }
}

/// EXCEPT ALL and INTERSECT ALL against the counts of each row.
fn multiplicities(random: &mut Random, p: &str) -> Relation {
    let columns = *random.pick(&["tiny", "code, flag", "wild", "list", "dense % 5, name"]);
    let (left, right) = (
        format!("SELECT {columns} FROM t WHERE {p}"),
        format!("SELECT {columns} FROM t WHERE id % 3 = 0"),
    );
    let minus = format!("{left} EXCEPT ALL {right}");
    let both = format!("{left} INTERSECT ALL {right}");
    Relation {
        why: "a row is in EXCEPT ALL or in INTERSECT ALL, as often as it is there",
        left: left.clone(),
        right: format!("({minus}) UNION ALL ({both})"),
    }
}
