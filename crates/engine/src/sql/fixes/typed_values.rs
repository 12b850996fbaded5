//! Strings in a column of VALUES whose other rows say what they are.
//!
//! In: `VALUES (DATE '2024-01-01'), ('2024-01-05')`. Out: the second as a date, too.
//! Invariant: only strings as they stand in the text beside dates, times and timestamps that name their type; beside a date and a
//! timestamp they are timestamps.
//! Not here: numbers and strings, which DataFusion brings together; values that are inserted, which have the types of the columns.

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, TimezoneInfo, TypedString, Value, ValueWithSpan, Values,
};

/// Gives each string the type that another row of its column names.
pub(in crate::sql) fn give_types(values: &mut Values) {
    let columns = values.rows.first().map_or(0, |row| row.content.len());
    for column in 0..columns {
        let cells = || values.rows.iter().filter_map(|row| row.content.get(column));
        let Some(kind) = cells()
            .filter_map(named_type)
            .max_by_key(|kind| rank(kind))
            .cloned()
        else {
            continue;
        };
        for row in &mut values.rows {
            if let Some(cell) = row.content.get_mut(column).filter(|cell| is_string(cell)) {
                let string = cell.clone();
                *cell = Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(string),
                    data_type: kind.clone(),
                    array: false,
                    format: None,
                };
            }
        }
    }
}

fn named_type(cell: &Expr) -> Option<&DataType> {
    let data_type = match cell {
        Expr::TypedString(TypedString { data_type, .. }) | Expr::Cast { data_type, .. } => {
            data_type
        }
        _ => return None,
    };
    let is_time = matches!(
        data_type,
        DataType::Date | DataType::Time(..) | DataType::Timestamp(..) | DataType::Datetime(..)
    );
    is_time.then_some(data_type)
}

/// Which type has the values of another, too.
fn rank(kind: &DataType) -> usize {
    match kind {
        DataType::Timestamp(_, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => 2,
        DataType::Timestamp(..) | DataType::Datetime(..) => 1,
        _ => 0,
    }
}

fn is_string(cell: &Expr) -> bool {
    let Expr::Value(ValueWithSpan { value, .. }) = cell else {
        return false;
    };
    matches!(value, Value::SingleQuotedString(_))
}
