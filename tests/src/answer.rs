//! An answer: the rows of one query, and whether another engine's answer is the same.
//!
//! In: a session and SQL, or rows of a peer. Out: [`Answer`]; [`difference`] says in words what differs.
//! Invariant: floats within 1e-9, lists without order as multisets, rows without order as multisets, ties at a LIMIT as sets.
//! Not here: what a value is (cell.rs), which engines are asked (oracle.rs).

use std::collections::HashMap;

use arrow::array::RecordBatch;
use futures::TryStreamExt;
use grouse::{Error, Params, Session};

use crate::cell::Cell;

/// Rows of cells.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// In the order in which the engine gave them.
    pub rows: Vec<Vec<Cell>>,
}

/// What about an answer is certain.
#[derive(Debug, Clone, Default)]
pub struct Certain {
    /// Columns that the rows are ordered by.
    pub ordered_by: Vec<usize>,
    /// Columns with lists whose items have no order.
    pub unordered_lists: Vec<usize>,
    /// The rows are this many of the whole answer, any of equal rank.
    pub limit: Option<usize>,
}

impl Answer {
    /// The rows of `batches`.
    pub fn of(batches: &[RecordBatch]) -> Answer {
        let row = |batch: &RecordBatch, row| {
            batch
                .columns()
                .iter()
                .map(|column| Cell::of(column, row))
                .collect()
        };
        Answer {
            rows: batches
                .iter()
                .flat_map(|batch| (0..batch.num_rows()).map(move |at| row(batch, at)))
                .collect(),
        }
    }

    /// The answer of a session to one statement.
    pub fn ask(session: &Session, sql: &str) -> Result<Answer, Error> {
        Ok(Answer::of(&batches(session, sql)?))
    }

    /// The same where a runtime runs already.
    pub async fn of_session(session: &Session, sql: &str, params: Params) -> Result<Answer, Error> {
        Ok(Answer::of(&collect(session, sql, params).await?))
    }

    /// The same with the items of lists without order sorted.
    fn canonical(mut self, certain: &Certain) -> Answer {
        for row in &mut self.rows {
            for &column in &certain.unordered_lists {
                if let Cell::List(items) = &mut row[column] {
                    items.sort_by_cached_key(|item| {
                        let mut key = String::new();
                        item.exact_key(&mut key);
                        key
                    });
                }
            }
        }
        self
    }
}

/// The batches of a session's answer to one statement.
pub fn batches(session: &Session, sql: &str) -> Result<Vec<RecordBatch>, Error> {
    session
        .handle()
        .block_on(collect(session, sql, Params::None))
}

async fn collect(session: &Session, sql: &str, params: Params) -> Result<Vec<RecordBatch>, Error> {
    let query = session.query_with(sql, params).await?;
    query.execute()?.try_collect().await.map_err(Error::from)
}

/// How `ours` differs from `theirs`; `whole` is the peer's answer without the LIMIT, where there is one.
pub fn difference(
    ours: &Answer,
    theirs: &Answer,
    whole: Option<&Answer>,
    certain: &Certain,
) -> Option<String> {
    let width = |answer: &Answer| answer.rows.first().map(Vec::len);
    if let (Some(left), Some(right)) = (width(ours), width(theirs))
        && left != right
    {
        return Some(format!("{left} columns, not {right}"));
    }
    if ours.rows.len() != theirs.rows.len() {
        return Some(format!(
            "{} rows, not {}",
            ours.rows.len(),
            theirs.rows.len()
        ));
    }
    for (at, (left, right)) in ours.rows.iter().zip(&theirs.rows).enumerate() {
        if let Some(&column) = certain
            .ordered_by
            .iter()
            .find(|&&column| !left[column].is_like(&right[column]))
        {
            return Some(format!(
                "row {at} is out of order: column {column} is {:?}, not {:?}",
                left[column], right[column]
            ));
        }
    }
    let ours = ours.clone().canonical(certain);
    let theirs = whole.unwrap_or(theirs).clone().canonical(certain);
    missing_row(&ours, &theirs).map(|row| format!("a row that the peer does not have: {row:?}"))
}

/// A row of `ours` that has no partner among `theirs`, each of which is the partner of one row only.
fn missing_row(ours: &Answer, theirs: &Answer) -> Option<Vec<Cell>> {
    let columns = ours.rows.first().map_or(0, Vec::len);
    let exact: Vec<usize> = (0..columns)
        .filter(|&column| {
            !ours
                .rows
                .iter()
                .chain(&theirs.rows)
                .any(|row| row[column].has_float())
        })
        .collect();
    let key = |row: &[Cell]| {
        let mut key = String::new();
        exact
            .iter()
            .for_each(|&column| row[column].exact_key(&mut key));
        key
    };
    let mut waiting: HashMap<String, Vec<&Vec<Cell>>> = HashMap::new();
    for row in &theirs.rows {
        waiting.entry(key(row)).or_default().push(row);
    }
    for row in &ours.rows {
        let partners = waiting.get_mut(&key(row));
        let partner = partners
            .as_ref()
            .and_then(|rows| rows.iter().position(|other| alike(row, other)));
        match (partners, partner) {
            (Some(rows), Some(at)) => rows.swap_remove(at),
            _ => return Some(row.clone()),
        };
    }
    None
}

fn alike(left: &[Cell], right: &[Cell]) -> bool {
    left.iter()
        .zip(right)
        .all(|(left, right)| left.is_like(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: &[&[Cell]]) -> Answer {
        Answer {
            rows: rows.iter().map(|row| row.to_vec()).collect(),
        }
    }

    #[test]
    fn rows_without_order_are_a_multiset() {
        let (one, two) = ([Cell::Int(1), Cell::Float(0.5)], [Cell::Int(2), Cell::Null]);
        let certain = Certain::default();
        assert_eq!(
            difference(
                &answer(&[&one, &two]),
                &answer(&[&two, &one]),
                None,
                &certain
            ),
            None
        );
        assert!(
            difference(
                &answer(&[&one, &one]),
                &answer(&[&one, &two]),
                None,
                &certain
            )
            .is_some()
        );
        assert!(difference(&answer(&[&one]), &answer(&[&one, &one]), None, &certain).is_some());
    }

    #[test]
    fn ties_at_a_limit_are_a_set() {
        let row = |key, count| [Cell::Int(key), Cell::Int(count)];
        let certain = Certain {
            ordered_by: vec![1],
            limit: Some(1),
            ..Certain::default()
        };
        let whole = answer(&[&row(1, 5), &row(2, 5), &row(3, 4)]);
        let differs = |ours: [Cell; 2]| {
            difference(
                &answer(&[&ours]),
                &answer(&[&row(1, 5)]),
                Some(&whole),
                &certain,
            )
        };
        assert_eq!(differs(row(2, 5)), None);
        assert!(differs(row(3, 4)).is_some(), "a lesser row");
        assert!(differs(row(9, 5)).is_some(), "a row that does not exist");
    }

    #[test]
    fn lists_without_order() {
        let list = |items: &[i128]| {
            [Cell::List(
                items.iter().map(|&item| Cell::Int(item)).collect(),
            )]
        };
        let certain = Certain {
            unordered_lists: vec![0],
            ..Certain::default()
        };
        assert_eq!(
            difference(
                &answer(&[&list(&[1, 2, 2])]),
                &answer(&[&list(&[2, 1, 2])]),
                None,
                &certain
            ),
            None
        );
        assert!(
            difference(
                &answer(&[&list(&[1, 1, 2])]),
                &answer(&[&list(&[2, 1, 2])]),
                None,
                &certain
            )
            .is_some()
        );
        let ordered = Certain::default();
        assert!(
            difference(
                &answer(&[&list(&[1, 2])]),
                &answer(&[&list(&[2, 1])]),
                None,
                &ordered
            )
            .is_some()
        );
    }
}
