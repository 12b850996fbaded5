//! How JSON files are read, as values of a message.
//!
//! In: a source of JSON files, or its values. Out: the other.
//! Invariant: types, layout, root, strictness, compression and the longest record all travel: each decides what a file means.
//! Not here: projections, which all formats have alike (scan/portable.rs).

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::common::{Result, internal_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::physical_plan::FileSource;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::runtime_env::RuntimeEnv;
use grouse_text::json::columns::Strictness;
use grouse_text::json::splitter::Layout;
use grouse_text::json::types::JsonType;

use super::records::Root;
use super::source::{JsonReading, JsonSource};
use crate::wire::{Apart, WireReader, WireValue};

pub(in crate::scan) const KIND: &str = "json";

const ROOTS: [(&str, Root); 2] = [("object", Root::Object), ("value", Root::Value)];
const LAYOUTS: [(&str, Layout); 2] = [("lines", Layout::Lines), ("values", Layout::Values)];
const STRICTNESS: [(&str, Strictness); 3] = [
    ("strict", Strictness::Strict),
    ("named", Strictness::Named),
    ("lenient", Strictness::Lenient),
];

/// The plain types, which have nothing but their names.
const PLAIN: [(&str, JsonType); 8] = [
    ("boolean", JsonType::Boolean),
    ("integer", JsonType::Integer),
    ("unsigned", JsonType::Unsigned),
    ("wide", JsonType::Wide),
    ("double", JsonType::Double),
    ("text", JsonType::Text),
    ("json", JsonType::Json),
    ("date", JsonType::Date),
];

fn name_of<T: PartialEq>(named: &[(&'static str, T)], value: &T) -> WireValue {
    let found = named.iter().find(|(_, known)| known == value);
    found.map_or("", |(name, _)| name).into()
}

/// The source taken apart, if it is one of JSON.
pub(in crate::scan) fn apart(source: &dyn FileSource) -> Option<Apart> {
    let reading = &source.downcast_ref::<JsonSource>()?.reading;
    let fields = reading.fields.iter();
    let fields = fields.map(|(name, of)| WireValue::List(vec![name.as_str().into(), of_type(of)]));
    let compression = CompressionTypeVariant::from(reading.compression).to_string();
    let values = vec![
        WireValue::List(fields.collect()),
        name_of(&LAYOUTS, &reading.layout),
        name_of(&ROOTS, &reading.root),
        name_of(&STRICTNESS, &reading.strictness),
        compression.as_str().into(),
        reading.record_bytes_max.into(),
    ];
    Some(Apart { kind: KIND, values })
}

/// The source again.
pub(in crate::scan) fn whole(
    values: &mut WireReader,
    schema: &TableSchema,
    runtime: &RuntimeEnv,
) -> Result<Arc<dyn FileSource>> {
    let fields = values.each(|values| {
        let mut field = WireReader::new(values.list()?);
        Ok((field.text()?, type_of(&mut field)?))
    })?;
    let reading = JsonReading {
        fields: Arc::new(fields),
        layout: values.one_of(&LAYOUTS)?,
        root: values.one_of(&ROOTS)?,
        strictness: values.one_of(&STRICTNESS)?,
        compression: values.text()?.parse::<FileCompressionType>()?,
        record_bytes_max: values.count()?,
    };
    let source = JsonSource::new(reading, schema.clone());
    Ok(source.counting(&runtime.memory_pool))
}

fn of_type(of: &JsonType) -> WireValue {
    WireValue::List(match of {
        JsonType::Time(unit) => vec!["time".into(), (&DataType::Time64(*unit)).into()],
        JsonType::Timestamp(unit, zone) => {
            let of = DataType::Timestamp(*unit, zone.clone());
            vec!["timestamp".into(), (&of).into()]
        }
        JsonType::Struct(fields) => {
            let fields = fields.iter();
            let fields =
                fields.map(|(name, of)| WireValue::List(vec![name.as_str().into(), of_type(of)]));
            vec!["struct".into(), WireValue::List(fields.collect())]
        }
        JsonType::List(item) => vec!["list".into(), of_type(item)],
        JsonType::Cast(to, name) => vec!["cast".into(), to.into(), name.as_str().into()],
        plain => vec![name_of(&PLAIN, plain)],
    })
}

fn type_of(values: &mut WireReader) -> Result<JsonType> {
    let mut of = WireReader::new(values.list()?);
    let name = of.text()?;
    Ok(match name.as_str() {
        "time" => match of.data_type()? {
            DataType::Time64(unit) => JsonType::Time(unit),
            other => return internal_err!("{other} is no time of a day"),
        },
        "timestamp" => match of.data_type()? {
            DataType::Timestamp(unit, zone) => JsonType::Timestamp(unit, zone),
            other => return internal_err!("{other} is no timestamp"),
        },
        "struct" => JsonType::Struct(of.each(|values| {
            let mut field = WireReader::new(values.list()?);
            Ok((field.text()?, type_of(&mut field)?))
        })?),
        "list" => JsonType::List(Box::new(type_of(&mut of)?)),
        "cast" => JsonType::Cast(of.data_type()?, of.text()?),
        name => match PLAIN.iter().find(|(known, _)| *known == name) {
            Some((_, plain)) => plain.clone(),
            None => return internal_err!("JSON has no type {name}"),
        },
    })
}
