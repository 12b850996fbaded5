//! How CSV files are read, as values of a message.
//!
//! In: a source of CSV files, or its values. Out: the other.
//! Invariant: dialect, forms of values, encoding, layouts and the pieces of files all travel. A scan that keeps the records that it
//! leaves out stays: the table of these is the session's.
//! Not here: projections, which all formats have alike (scan/portable.rs), which pieces there are (source.rs).

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{Result, internal_err, not_impl_err};
use datafusion::datasource::physical_plan::FileSource;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::runtime_env::RuntimeEnv;
use encoding_rs::Encoding;
use grouse_text::csv::columns::Forms;
use grouse_text::csv::grammar::Grammar;
use grouse_text::csv::records::{Misfit, Short};
use grouse_text::csv::values::{DateForm, Order};
use object_store::path::Path;

use super::cuts::Cuts;
use super::decode::{FieldLayout, ReadingRules};
use super::dialect::{Dialect, Header};
use super::source::CsvSource;
use crate::wire::{Apart, WireReader, WireValue};

pub(in crate::scan) const KIND: &str = "csv";

const ORDERS: [(&str, Order); 3] = [
    ("ymd", Order::YearMonthDay),
    ("dmy", Order::DayMonthYear),
    ("mdy", Order::MonthDayYear),
];

/// The source taken apart, if it is one of CSV.
pub(in crate::scan) fn apart(source: &dyn FileSource) -> Option<Result<Apart>> {
    let source = source.downcast_ref::<CsvSource>()?;
    if source.rules.rejects.is_some() || source.rules.misfit == Misfit::List {
        return Some(not_impl_err!(
            "a scan of CSV files that keeps the records which it leaves out"
        ));
    }
    let pieces = source.cuts.iter().map(|(file, cuts)| {
        let (file_bytes, piece_bytes) = cuts.bytes();
        WireValue::List(vec![
            file.as_ref().into(),
            (file_bytes as i64).into(),
            (piece_bytes as i64).into(),
        ])
    });
    let values = vec![of_rules(&source.rules), WireValue::List(pieces.collect())];
    Some(Ok(Apart { kind: KIND, values }))
}

/// The source again.
pub(in crate::scan) fn whole(
    values: &mut WireReader,
    schema: &TableSchema,
    runtime: &RuntimeEnv,
) -> Result<Arc<dyn FileSource>> {
    let mut rules = WireReader::new(values.list()?);
    let found = rules_of(&mut rules)?;
    rules.end()?;
    let pieces = values.each(|values| {
        let mut piece = WireReader::new(values.list()?);
        let file = path_of(&piece.text()?)?;
        let cuts = Cuts::new(piece.count()? as u64, piece.count()?.max(1) as u64);
        Ok((file, Arc::new(cuts)))
    })?;
    let mut source = CsvSource::new(Arc::new(found), schema.clone());
    source.cuts = Arc::new(HashMap::from_iter(pieces));
    Ok(source.counting(&runtime.memory_pool))
}

/// A path as it is in a store.
fn path_of(text: &str) -> Result<Path> {
    match Path::parse(text) {
        Ok(path) => Ok(path),
        Err(error) => internal_err!("{text} is no path: {error}"),
    }
}

fn byte(byte: u8) -> WireValue {
    WireValue::Number(byte.into())
}

fn byte_of(values: &mut WireReader) -> Result<u8> {
    let number = values.number()?;
    match u8::try_from(number) {
        Ok(byte) => Ok(byte),
        Err(_) => internal_err!("{number} is no byte"),
    }
}

fn of_rules(rules: &ReadingRules) -> WireValue {
    let grammar = &rules.dialect.grammar;
    let dates = rules.dates.iter().map(of_date);
    let never_null = rules.never_null.iter().map(|never| (*never).into());
    let layouts = rules.layouts.iter();
    let layouts = layouts
        .map(|(file, layout)| WireValue::List(vec![file.as_ref().into(), of_layout(layout)]));
    WireValue::List(vec![
        byte(grammar.delimiter),
        grammar.quote.map(byte).into(),
        grammar.escape.map(byte).into(),
        grammar.comment.map(byte).into(),
        byte(grammar.line_end),
        (rules.dialect.header == Header::Names).into(),
        rules.dialect.skip.into(),
        of_forms(&rules.forms),
        WireValue::List(dates.collect()),
        WireValue::List(never_null.collect()),
        (rules.short == Short::Fill).into(),
        (rules.misfit == Misfit::Drop).into(),
        rules.record_bytes_max.into(),
        rules.encoding.map(Encoding::name).into(),
        of_layout(&rules.layout),
        WireValue::List(layouts.collect()),
    ])
}

fn rules_of(values: &mut WireReader) -> Result<ReadingRules> {
    let grammar = Grammar {
        delimiter: byte_of(values)?,
        quote: values.optional(byte_of)?,
        escape: values.optional(byte_of)?,
        comment: values.optional(byte_of)?,
        line_end: byte_of(values)?,
    };
    let header = match values.flag()? {
        true => Header::Names,
        false => Header::Absent,
    };
    let skip = values.count()?;
    Ok(ReadingRules {
        dialect: Dialect {
            grammar,
            header,
            skip,
        },
        forms: forms_of(values)?,
        dates: values.each(date_of)?,
        never_null: values.each(WireReader::flag)?,
        short: match values.flag()? {
            true => Short::Fill,
            false => Short::Misfit,
        },
        misfit: match values.flag()? {
            true => Misfit::Drop,
            false => Misfit::Fail,
        },
        record_bytes_max: values.count()?,
        encoding: match values.optional(WireReader::text)? {
            Some(name) => Some(encoding(&name)?),
            None => None,
        },
        layout: layout_of(values)?,
        layouts: HashMap::from_iter(values.each(|values| {
            let mut of = WireReader::new(values.list()?);
            Ok((path_of(&of.text()?)?, layout_of(&mut of)?))
        })?),
        rejects: None,
    })
}

fn encoding(name: &str) -> Result<&'static Encoding> {
    match Encoding::for_label(name.as_bytes()) {
        Some(encoding) => Ok(encoding),
        None => internal_err!("{name} is no encoding"),
    }
}

fn of_forms(forms: &Forms) -> WireValue {
    let nulls = forms.nulls.iter().map(|null| null.as_str().into());
    WireValue::List(vec![
        WireValue::List(nulls.collect()),
        byte(forms.decimal),
        forms.date.as_ref().map(of_date).into(),
        forms.timestamp.as_ref().map(of_date).into(),
    ])
}

fn forms_of(values: &mut WireReader) -> Result<Forms> {
    let mut forms = WireReader::new(values.list()?);
    Ok(Forms {
        nulls: forms.each(WireReader::text)?,
        decimal: byte_of(&mut forms)?,
        date: forms.optional(date_of)?,
        timestamp: forms.optional(date_of)?,
    })
}

fn of_date(form: &DateForm) -> WireValue {
    WireValue::List(match form {
        DateForm::Parts(order, separator) => {
            let mut named = ORDERS.iter();
            let name = named.find(|(_, known)| known == order);
            vec![name.map_or("", |(name, _)| name).into(), byte(*separator)]
        }
        DateForm::Pattern(pattern) => vec!["pattern".into(), pattern.as_ref().into()],
    })
}

fn date_of(values: &mut WireReader) -> Result<DateForm> {
    let mut form = WireReader::new(values.list()?);
    let name = form.text()?;
    if name == "pattern" {
        return Ok(DateForm::Pattern(form.text()?.into()));
    }
    match ORDERS.iter().find(|(known, _)| *known == name) {
        Some((_, order)) => Ok(DateForm::Parts(*order, byte_of(&mut form)?)),
        None => internal_err!("dates are not written as {name}"),
    }
}

fn of_layout(layout: &FieldLayout) -> WireValue {
    let columns = layout.of_columns.iter().map(|field| (*field).into());
    WireValue::List(vec![
        layout.fields.into(),
        WireValue::List(columns.collect()),
    ])
}

fn layout_of(values: &mut WireReader) -> Result<FieldLayout> {
    let mut layout = WireReader::new(values.list()?);
    Ok(FieldLayout {
        fields: layout.count()?,
        of_columns: layout.each(|values| values.optional(WireReader::count))?,
    })
}
