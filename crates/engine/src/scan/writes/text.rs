//! Rows as CSV and JSON.
//!
//! In: batches, DataFusion's options of CSV. Out: lines.
//! Invariant: NULL and an empty string are told apart. In CSV NULL is the text that stands for it, without quotes, and a string
//! that is empty or looks like it has quotes. In JSON NULL is written and not left out. Nested values in CSV are JSON, with
//! timestamps, times and intervals as SQL writes them.
//! Not here: compression and files, which DataFusion's writers see to.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::csv::{QuoteStyle, WriterBuilder};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::{
    EncoderOptions, LineDelimited, NullableEncoder, WriterBuilder as JsonBuilder, make_encoder,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::Result as DataFusionResult;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::file_format::csv::CsvSink;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::JsonSink;
use datafusion::datasource::file_format::write::BatchSerializer;
use datafusion::datasource::file_format::write::orchestration::spawn_writer_tasks_and_join;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::execution::TaskContext;
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};

use super::json_values::JsonValues;
use super::request::{JsonLayout, Writes};
use crate::functions::written;
use crate::runtime::accounted::Bytes;
use grouse_text::blobs::write_bytes;

/// Forms of times, unless others are asked for.
const DATETIME: &str = "%Y-%m-%d %H:%M:%S%.f";

/// DataFusion's sink of text with lines of ours.
pub(super) enum TextSink<'a> {
    Csv(&'a CsvSink),
    Json(&'a JsonSink),
}

impl TextSink<'_> {
    pub(super) fn config(&self) -> &FileSinkConfig {
        match self {
            TextSink::Csv(sink) => sink.config(),
            TextSink::Json(sink) => sink.config(),
        }
    }

    pub(super) async fn write(
        &self,
        context: &Arc<TaskContext>,
        feeding: SpawnedTask<DataFusionResult<()>>,
        files: UnboundedReceiver<(Path, Receiver<RecordBatch>)>,
        store: Arc<dyn ObjectStore>,
    ) -> DataFusionResult<u64> {
        let writes = context.session_config().get_extension::<Writes>();
        let (serializer, compression, level): (Arc<dyn BatchSerializer>, FileCompressionType, _) =
            match self {
                TextSink::Csv(sink) => {
                    let options = sink.writer_options();
                    let quoted = writes.map_or_else(Vec::new, |writes| writes.quoted.clone());
                    let lines = CsvLines {
                        options: options.writer_options.clone(),
                        quoted,
                    };
                    let level = options.compression_level;
                    (Arc::new(lines), options.compression.into(), level)
                }
                TextSink::Json(sink) => {
                    let options = sink.writer_options();
                    let level = options.compression_level;
                    let layout = writes.map_or(JsonLayout::Lines, |writes| writes.json);
                    (
                        Arc::new(JsonRows(layout)),
                        options.compression.into(),
                        level,
                    )
                }
            };
        spawn_writer_tasks_and_join(
            context,
            serializer,
            compression,
            level,
            store,
            feeding,
            files,
        )
        .await
    }
}

/// One object per line.
struct JsonRows(JsonLayout);

impl BatchSerializer for JsonRows {
    fn serialize(&self, batch: RecordBatch, initial: bool) -> DataFusionResult<Bytes> {
        let mut bytes = Vec::new();
        let builder = JsonBuilder::new().with_explicit_nulls(true);
        let builder = builder.with_encoder_factory(Arc::new(JsonValues));
        let mut writer = builder.build::<_, LineDelimited>(&mut bytes);
        writer.write(&batch)?;
        writer.finish()?;
        Ok(Bytes::from(match self.0 {
            JsonLayout::Lines => bytes,
            JsonLayout::Array => items(&bytes, initial),
        }))
    }
}

/// Lines as items of an array, of which the first piece opens it and a piece without lines is the end (sink.rs).
fn items(lines: &[u8], initial: bool) -> Vec<u8> {
    let Some(lines) = lines.strip_suffix(b"\n") else {
        let end: &[u8] = if initial { b"[]\n" } else { b"\n]\n" };
        return end.to_vec();
    };
    let mut items = if initial { b"[\n" } else { b",\n" }.to_vec();
    items.reserve(lines.len());
    // Inside of values a line end is written as \n.
    for (nth, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        if nth > 0 {
            items.extend(b",\n");
        }
        items.extend(line);
    }
    items
}

/// Fields with a delimiter between them; those of some columns always have quotes.
struct CsvLines {
    options: WriterBuilder,
    quoted: Vec<String>,
}

impl BatchSerializer for CsvLines {
    fn serialize(&self, batch: RecordBatch, initial: bool) -> DataFusionResult<Bytes> {
        let mut bytes = Vec::new();
        if initial && self.options.header() {
            self.names(&batch.schema(), &mut bytes);
        }
        self.rows(&batch, &mut bytes)?;
        Ok(Bytes::from(bytes))
    }
}

/// What a column gives.
enum Cells<'a> {
    Text(ArrayFormatter<'a>),
    Json(NullableEncoder<'a>),
    Bytes(BinaryArray),
}

impl CsvLines {
    fn names(&self, schema: &Schema, bytes: &mut Vec<u8>) {
        for (nth, field) in schema.fields().iter().enumerate() {
            if nth > 0 {
                bytes.push(self.options.delimiter());
            }
            let kind = match self.kind(field) {
                CellKind::Quoted => CellKind::Quoted,
                _ => CellKind::Text,
            };
            self.field(field.name(), kind, bytes);
        }
        bytes.push(b'\n');
    }

    fn rows(&self, batch: &RecordBatch, bytes: &mut Vec<u8>) -> Result<(), ArrowError> {
        let written = batch.columns().iter().map(|column| self.written(column));
        let written = written.collect::<Result<Vec<_>, _>>()?;
        let format = self.format();
        let options = EncoderOptions::default()
            .with_explicit_nulls(true)
            .with_encoder_factory(Arc::new(JsonValues));
        let schema = batch.schema();
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (field, column) in schema.fields().iter().zip(&written) {
            let cells = match field.data_type() {
                kind if kind.is_nested() => {
                    Cells::Json(make_encoder(field, column.as_ref(), &options)?)
                }
                kind if kind.is_binary() => {
                    Cells::Bytes(cast(column, &DataType::Binary)?.as_binary().clone())
                }
                _ => Cells::Text(ArrayFormatter::try_new(column.as_ref(), &format)?),
            };
            let nulls = column.logical_nulls();
            columns.push((cells, nulls, self.kind(field)));
        }
        let (mut text, mut json) = (String::new(), Vec::new());
        for row in 0..batch.num_rows() {
            for (nth, (cells, nulls, kind)) in columns.iter_mut().enumerate() {
                if nth > 0 {
                    bytes.push(self.options.delimiter());
                }
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    self.null(batch.num_columns(), bytes);
                    continue;
                }
                text.clear();
                match cells {
                    Cells::Text(cells) => write!(text, "{}", cells.value(row))
                        .map_err(|_| unwritable(schema.field(nth).name()))?,
                    Cells::Bytes(cells) => write_bytes(cells.value(row), &mut text),
                    Cells::Json(cells) => {
                        json.clear();
                        cells.encode(row, &mut json);
                        text.push_str(&String::from_utf8_lossy(&json));
                    }
                }
                self.field(&text, *kind, bytes);
            }
            bytes.push(b'\n');
        }
        Ok(())
    }

    fn kind(&self, field: &Field) -> CellKind {
        match self.quoted.contains(field.name()) {
            true => CellKind::Quoted,
            false => CellKind::of(field.data_type()),
        }
    }

    /// Timestamps, times and intervals as SQL writes them, where no option says otherwise.
    fn written(&self, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let options = &self.options;
        let is_given = match column.data_type() {
            DataType::Timestamp(_, None) => options.timestamp_format().is_some(),
            DataType::Timestamp(_, Some(_)) => options.timestamp_tz_format().is_some(),
            DataType::Time32(_) | DataType::Time64(_) => options.time_format().is_some(),
            _ => false,
        };
        match is_given {
            true => Ok(Arc::clone(column)),
            false => written(column).map_err(|error| ArrowError::ExternalError(error.into())),
        }
    }

    /// An empty line would be no row to most readers.
    fn null(&self, columns: usize, bytes: &mut Vec<u8>) {
        let null = self.options.null();
        match null.is_empty() && columns == 1 {
            true => bytes.extend([self.options.quote(), self.options.quote()]),
            false => bytes.extend(null.as_bytes()),
        }
    }

    fn format(&self) -> FormatOptions<'_> {
        let options = &self.options;
        FormatOptions::default()
            .with_display_error(false)
            .with_date_format(options.date_format())
            .with_datetime_format(options.datetime_format().or(Some(DATETIME)))
            .with_timestamp_format(options.timestamp_format())
            .with_timestamp_tz_format(options.timestamp_tz_format())
            .with_time_format(options.time_format())
    }

    fn field(&self, text: &str, kind: CellKind, bytes: &mut Vec<u8>) {
        let (quote, delimiter) = (self.options.quote(), self.options.delimiter());
        let is_special =
            |byte: u8| byte == quote || byte == delimiter || matches!(byte, b'\n' | b'\r');
        let is_quoted = match self.options.quote_style() {
            _ if kind == CellKind::Quoted => true,
            QuoteStyle::Always => true,
            QuoteStyle::NonNumeric => kind == CellKind::Text,
            QuoteStyle::Never => false,
            _ => text.is_empty() || text == self.options.null() || text.bytes().any(is_special),
        };
        if !is_quoted {
            bytes.extend(text.as_bytes());
            return;
        }
        let escape = match self.options.double_quote() {
            true => quote,
            false => self.options.escape(),
        };
        bytes.push(quote);
        for byte in text.bytes() {
            if byte == quote || (byte == escape && escape != quote) {
                bytes.push(escape);
            }
            bytes.push(byte);
        }
        bytes.push(quote);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellKind {
    Number,
    Text,
    /// Whatever it is.
    Quoted,
}

impl CellKind {
    fn of(kind: &DataType) -> CellKind {
        match kind {
            DataType::Dictionary(_, values) => CellKind::of(values),
            kind if kind.is_numeric() => CellKind::Number,
            _ => CellKind::Text,
        }
    }
}

fn unwritable(column: &str) -> ArrowError {
    ArrowError::CsvError(format!("a value of column '{column}' has no form as text"))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int32Array, StringArray};

    use super::*;

    fn lines(builder: WriterBuilder, strings: Vec<Option<&str>>) -> String {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1; strings.len()]));
        let strings: ArrayRef = Arc::new(StringArray::from(strings));
        let batch = RecordBatch::try_from_iter([("n", numbers), ("t", strings)]).unwrap();
        let lines = CsvLines {
            options: builder,
            quoted: Vec::new(),
        };
        let bytes = lines.serialize(batch, true).unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn null_and_an_empty_string_are_told_apart() {
        let strings = vec![None, Some(""), Some("x"), Some("NA"), Some("a,\"b\"")];
        let plain = lines(WriterBuilder::new(), strings.clone());
        assert_eq!(plain, "n,t\n1,\n1,\"\"\n1,x\n1,NA\n1,\"a,\"\"b\"\"\"\n");
        let named = lines(WriterBuilder::new().with_null("NA".into()), strings);
        assert_eq!(
            named,
            "n,t\n1,NA\n1,\"\"\n1,x\n1,\"NA\"\n1,\"a,\"\"b\"\"\"\n"
        );
    }

    #[test]
    fn another_escape_is_written_before_itself_too() {
        let builder = WriterBuilder::new().with_double_quote(false);
        let found = lines(builder.with_escape(b'\\'), vec![Some("a\"b\\,")]);
        assert_eq!(found, "n,t\n1,\"a\\\"b\\\\,\"\n");
    }
}
