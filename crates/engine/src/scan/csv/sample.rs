//! Samples: more rows than a file's beginning has, for the types of columns.
//!
//! In: a table whose types come from the beginnings of its files, the number of rows to look at.
//! Out: the table with types that hold all these rows.
//! Invariant: files are read in bounded memory.
//! Not here: what a type is (guess.rs).

use object_store::GetOptions;

use super::blocks::{Block, Blocks};
use super::dialect::Header;
use super::input::Input;
use super::options::CsvOptions;
use super::table::CsvTable;
use crate::error::{Error, Result};
use crate::scan::decompression::Decompression;
use crate::scan::location::Found;
use grouse_text::csv::columns::Cells;
use grouse_text::csv::guess::{Guess, see_all};
use grouse_text::csv::records::{Misfit, RecordShape, Table};

/// Rows that are held at once.
const ROWS_AT_ONCE: usize = 8_192;

/// The table after so many of its rows were seen.
pub(crate) async fn look_further(
    table: CsvTable,
    found: &Found,
    decompression: &Decompression,
    (mut rows_left, options): (usize, &CsvOptions),
) -> Result<CsvTable> {
    let mut guesses = table.guesses.clone();
    for file in &found.files {
        let options = GetOptions::default();
        let result = found.store.get_opts(&file.meta.location, options).await;
        let result = result.map_err(|error| crate::error::from_datafusion::object_store(&error))?;
        let rules = &table.rules;
        let input = Input::new(result, &file.meta, &file.name, decompression)?;
        let input = input.encoded(rules.encoding);
        let mut blocks = Blocks::new(input, rules.dialect.clone(), rules.record_bytes_max);
        let layout = rules.layout(&file.meta.location);
        let shape = RecordShape {
            short: rules.short,
            misfit: Misfit::Drop,
            ..RecordShape::all(rules.dialect.grammar, layout.fields)
        };
        let mut seen = vec![Guess::default(); layout.fields];
        while let Some(block) = blocks.next().await.map_err(Error::from)? {
            look_at(&block, &shape, &table, (&mut seen, &mut rows_left));
            if rows_left == 0 {
                break;
            }
        }
        for (guess, field) in guesses.iter_mut().zip(&layout.of_columns) {
            if let Some(field) = field {
                guess.merge(&seen[*field]);
            }
        }
        if rows_left == 0 {
            break;
        }
    }
    table.with_guesses(guesses, options)
}

fn look_at(
    block: &Block,
    shape: &RecordShape,
    table: &CsvTable,
    (seen, rows_left): (&mut [Guess], &mut usize),
) {
    let bytes = block.text.as_bytes();
    let mut at = match block.header {
        Header::Names => shape.after_first(bytes, 0),
        Header::Absent => 0,
    };
    let mut fields = Table::default();
    while at < bytes.len() && *rows_left > 0 {
        let rows = ROWS_AT_ONCE.min(*rows_left);
        match shape.read(bytes, at, rows, &mut fields) {
            Ok(next) => at = next,
            Err(_) => return,
        }
        *rows_left -= fields.rows();
        let cells = Cells {
            table: &fields,
            slot: 0,
            text: &block.text,
            grammar: &shape.grammar,
            forms: &table.rules.forms,
        };
        see_all(seen, cells);
    }
}
