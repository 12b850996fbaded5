//! Strings in a column of VALUES whose other rows say what they are.
//!
//! In: `VALUES (DATE '2024-01-01'), ('2024-01-05')`. Out: the second as a date, too.
//! Invariant: only strings as they stand in the text beside dates, times and timestamps that name their type.
//! Not here: numbers and strings, which DataFusion brings together.

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, TypedString, Value, ValueWithSpan, Values,
};

/// Gives each string the type that another row of its column names.
pub(super) fn give_types(values: &mut Values) {
    let columns = values.rows.first().map_or(0, |row| row.content.len());
    for column in 0..columns {
        let cells = || values.rows.iter().filter_map(|row| row.content.get(column));
        let Some(kind) = cells().find_map(named_type).cloned() else {
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

fn is_string(cell: &Expr) -> bool {
    let Expr::Value(ValueWithSpan { value, .. }) = cell else {
        return false;
    };
    matches!(value, Value::SingleQuotedString(_))
}
