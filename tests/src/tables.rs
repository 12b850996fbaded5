//! Generated tables: always the same columns, so that any query fits any table; what is in them differs from table to table.
//!
//! In: a random sequence. Out: [`Table`]: record batches, the same rows as a Parquet file, and a name.
//! Invariant: `id` is unique and never NULL. `exact` holds multiples of 1/64, so that its sums do not depend on their order.
//! Sums of `small`, `wide` and `amount` fit their types, those of `huge` may not.
//! Not here: which expressions a query makes of the columns (expressions.rs).

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef, UInt8Type};
use datafusion::datasource::MemTable;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;

use crate::random::Random;

/// A generated table.
#[derive(Debug)]
pub struct Table {
    /// Streams of batches, as an in-memory table has them.
    pub streams: Vec<Vec<RecordBatch>>,
    /// The same rows as a file.
    pub path: PathBuf,
    /// What is special about it, for the report of a difference.
    pub story: String,
    schema: SchemaRef,
}

/// Rows of a table: empty, one, about a batch, several batches.
const ROWS: [usize; 12] = [0, 1, 2, 17, 100, 300, 300, 1000, 1000, 3000, 3000, 9000];

/// How the values of one column are drawn.
#[derive(Debug, Clone, Copy)]
struct Shape {
    distinct: usize,
    null_percent: usize,
    skewed: bool,
    sorted: bool,
}

impl Shape {
    fn random(random: &mut Random, rows: usize) -> Shape {
        Shape {
            distinct: *random.pick(&[1, 2, 10, 10, 200, rows.max(1)]),
            null_percent: *random.pick(&[0, 0, 10, 10, 50, 100]),
            skewed: random.chance(30),
            sorted: random.chance(15),
        }
    }

    /// The index of the distinct value of each row; None is NULL.
    fn indices(&self, random: &mut Random, rows: usize) -> Vec<Option<usize>> {
        let mut indices: Vec<Option<usize>> = (0..rows)
            .map(|_| {
                let index = match self.skewed {
                    // half of the rows in one group, the rest thinning out
                    true => {
                        ((random.unit() * 2.0 - 1.0).max(0.0).powi(3) * self.distinct as f64)
                            as usize
                    }
                    false => random.below(self.distinct),
                };
                (!random.chance(self.null_percent)).then_some(index)
            })
            .collect();
        if self.sorted {
            indices.sort();
        }
        indices
    }
}

impl Table {
    /// Makes a table and writes it to `folder`.
    pub fn generate(random: &mut Random, folder: &Path) -> Table {
        let rows = *random.pick(&ROWS);
        let mut columns: Vec<(&str, ArrayRef)> =
            vec![("id", Arc::new(Int64Array::from_iter_values(0..rows as i64)))];
        let mut story = format!("{rows} rows");
        for (name, make) in COLUMNS {
            let shape = Shape::random(random, rows);
            let indices = shape.indices(random, rows);
            let salt = random.bits();
            columns.push((name, make(&indices, salt)));
            story += &format!(
                "; {name}: {} distinct, {} % NULL",
                shape.distinct, shape.null_percent
            );
        }
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, array)| Field::new(*name, array.data_type().clone(), *name != "id"))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(
            schema.clone(),
            columns.into_iter().map(|(_, array)| array).collect(),
        )
        .expect("columns of equal length");
        let path = folder.join(format!("t{}.parquet", random.bits()));
        write(&batch, &path, random);
        Table {
            streams: split(&batch, random),
            path,
            story,
            schema,
        }
    }

    /// The table in memory.
    pub fn memory(&self) -> Arc<MemTable> {
        Arc::new(MemTable::try_new(self.schema.clone(), self.streams.clone()).expect("one schema"))
    }
}

fn write(batch: &RecordBatch, path: &Path, random: &mut Random) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(*random.pick(&[500, 100_000])))
        .set_dictionary_enabled(random.chance(70))
        .build();
    let file = File::create(path).expect("a file in a folder of ours");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties))
        .expect("types that Parquet has");
    writer.write(batch).expect("room on the disk");
    writer.close().expect("room on the disk");
}

/// The rows as 1 to 5 streams of batches of unequal size, some of them empty.
fn split(batch: &RecordBatch, random: &mut Random) -> Vec<Vec<RecordBatch>> {
    let mut streams = vec![Vec::new(); 1 + random.below(5)];
    let batch_rows_max = *random.pick(&[30, 500, 8192]);
    let mut from = 0;
    while from < batch.num_rows() {
        let rows = random
            .below(batch_rows_max + 1)
            .min(batch.num_rows() - from);
        let stream = random.below(streams.len());
        streams[stream].push(batch.slice(from, rows));
        from += rows;
    }
    streams
}

type Make = fn(&[Option<usize>], u64) -> ArrayRef;

/// Every column but `id`: its name, and its array from the index of each row's distinct value.
const COLUMNS: &[(&str, Make)] = &[
    ("tiny", |indices, salt| {
        Arc::new(values(indices, salt, |bits| bits as i8).collect::<Int8Array>())
    }),
    ("short", |indices, salt| {
        Arc::new(values(indices, salt, |bits| bits as i16).collect::<Int16Array>())
    }),
    ("small", |indices, salt| {
        Arc::new(values(indices, salt, |bits| bits as i32 >> 12).collect::<Int32Array>())
    }),
    ("dense", |indices, _| {
        Arc::new(
            indices
                .iter()
                .map(|index| index.map(|index| index as i64 - 3))
                .collect::<Int64Array>(),
        )
    }),
    ("wide", |indices, salt| {
        Arc::new(values(indices, salt, |bits| bits as i64 >> 16).collect::<Int64Array>())
    }),
    ("huge", |indices, salt| {
        Arc::new(values(indices, salt, |bits| bits as i64).collect::<Int64Array>())
    }),
    ("u8", |indices, salt| {
        Arc::new(values(indices, salt, |bits| bits as u8).collect::<UInt8Array>())
    }),
    ("u32", |indices, salt| {
        Arc::new(values(indices, salt, |bits| bits as u32).collect::<UInt32Array>())
    }),
    ("u64", |indices, salt| {
        Arc::new(values(indices, salt, |bits| bits >> 20).collect::<UInt64Array>())
    }),
    ("flag", |indices, salt| {
        Arc::new(values(indices, salt, |bits| bits & 1 == 0).collect::<BooleanArray>())
    }),
    ("exact", |indices, salt| {
        Arc::new(
            values(indices, salt, |bits| (bits as i16) as f64 / 64.0).collect::<Float64Array>(),
        )
    }),
    ("wild", |indices, salt| {
        Arc::new(values(indices, salt, wild).collect::<Float64Array>())
    }),
    ("single", |indices, salt| {
        Arc::new(values(indices, salt, |bits| wild(bits) as f32).collect::<Float32Array>())
    }),
    ("word", |indices, salt| {
        Arc::new(values(indices, salt, |bits| word(bits, 20)).collect::<StringArray>())
    }),
    ("text", |indices, salt| {
        Arc::new(values(indices, salt, |bits| word(bits, 600)).collect::<StringArray>())
    }),
    ("viewed", |indices, salt| {
        Arc::new(values(indices, salt, |bits| word(bits, 40)).collect::<StringViewArray>())
    }),
    ("bytes", |indices, salt| {
        let bytes: Vec<Option<Vec<u8>>> = values(indices, salt, |bits| {
            (bits & 0x7f7f_7f7f_7f7f_7f7f).to_le_bytes()[..(bits % 9) as usize].to_vec()
        })
        .collect();
        Arc::new(bytes.into_iter().collect::<BinaryArray>())
    }),
    ("day", |indices, salt| {
        Arc::new(
            values(indices, salt, |bits| (bits % 20_000) as i32 - 1_000).collect::<Date32Array>(),
        )
    }),
    ("moment", |indices, salt| {
        Arc::new(
            values(indices, salt, |bits| (bits % (1 << 51)) as i64 - (1 << 48))
                .collect::<TimestampMicrosecondArray>(),
        )
    }),
    ("amount", |indices, salt| {
        let values =
            values(indices, salt, |bits| i128::from(bits as i32)).collect::<Decimal128Array>();
        Arc::new(
            values
                .with_precision_and_scale(12, 2)
                .expect("small values"),
        )
    }),
    ("name", |indices, salt| {
        let words: StringArray = values(indices, salt, |bits| word(bits, 20)).collect();
        cast(
            &words,
            &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        )
        .expect("words")
    }),
    ("code", |indices, salt| Arc::new(codes(indices, salt))),
    ("list", |indices, salt| {
        let lists = values(indices, salt, |bits| {
            let items = (0..bits % 4).map(|at| ((bits >> (at * 3)) & 7) as i32);
            items
                .map(|item| (item != 7).then_some(item))
                .collect::<Vec<_>>()
        });
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))
    }),
    ("pair", |indices, salt| Arc::new(pairs(indices, salt))),
];

/// The distinct value of each row, drawn from its index and the column's salt.
fn values<'a, T>(
    indices: &'a [Option<usize>],
    salt: u64,
    make: impl Fn(u64) -> T + 'a,
) -> impl Iterator<Item = Option<T>> + 'a {
    indices
        .iter()
        .map(move |index| index.map(|index| make(Random::new(salt ^ index as u64).bits())))
}

/// Floats with everything that floats have.
fn wild(bits: u64) -> f64 {
    match bits % 16 {
        0 => f64::NAN,
        1 => -f64::NAN,
        2 => 0.0,
        3 => -0.0,
        4 => f64::INFINITY,
        5 => f64::NEG_INFINITY,
        6..10 => (bits >> 50) as f64,
        _ => (bits as i64 >> 20) as f64 / 1e6,
    }
}

/// Words that are empty, of 11 to 14 bytes (where views end being inline), long, with common starts, beyond ASCII.
fn word(bits: u64, length_max: usize) -> String {
    let length = match bits % 8 {
        0 => 0,
        1..4 => 11 + (bits >> 8) as usize % 4,
        4 => length_max,
        _ => (bits >> 8) as usize % length_max,
    };
    let start = ["", "same start ", "Grüße ", "日本", "%_'\""][(bits >> 32) as usize % 5];
    let tail = format!("{:x}", bits >> 40);
    let mut word: String = start
        .chars()
        .chain(tail.chars().cycle())
        .take(length)
        .collect();
    if length > 20 {
        word.truncate(word.floor_char_boundary(length - 5));
        word += &tail;
    }
    word
}

/// A dictionary of small codes that has a value twice and one that no row has.
fn codes(indices: &[Option<usize>], salt: u64) -> DictionaryArray<UInt8Type> {
    let dictionary: StringArray = ["red", "green", "blue", "red", "", "never"]
        .into_iter()
        .map(Some)
        .collect();
    let keys: UInt8Array = values(indices, salt, |bits| (bits % 5) as u8).collect();
    DictionaryArray::new(keys, Arc::new(dictionary))
}

fn pairs(indices: &[Option<usize>], salt: u64) -> StructArray {
    let numbers: Int32Array = values(indices, salt, |bits| (bits % 5) as i32)
        .map(|value| value.filter(|&value| value != 4))
        .collect();
    let words: StringArray = values(indices, salt, |bits| word(bits >> 3, 14)).collect();
    let valid: NullBuffer = indices.iter().map(Option::is_some).collect();
    let fields = vec![
        Field::new("number", DataType::Int32, true),
        Field::new("word", DataType::Utf8, true),
    ];
    StructArray::new(
        fields.into(),
        vec![Arc::new(numbers), Arc::new(words)],
        Some(valid),
    )
}
