//! `grouse-kernels`: each loop that runs once per row, alone, beside its plain twin and the machine's memory.
//!
//! In: flags. Out: first the bytes per second that one thread reads and copies. Then a line per kernel: nanoseconds per row,
//! bytes per second read and written, their share of the copy's, nanoseconds of the twin.
//! Invariant: one thread, batches as queries have them, which the core's cache holds; the best of some rounds counts.
//! Not here: whether a kernel is right; its tests hold it against `naive`.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{
    ArrayRef, AsArray, Float64Array, Int16Array, Int32Array, Int64Array, StringViewArray,
};
use arrow::datatypes::{DataType, Field, Int32Type};
use clap::Parser;
use grouse_groupby::TableKind;
use grouse_groupby::keys::{DirectTable, GroupId, KeyLayout};
use grouse_groupby::states::{self, Aggregate, Extreme, Groups};
use grouse_kernels::byte_pack::{self, BytePacking, SPARE_BYTES};
use grouse_kernels::chain::{ByteSet, Chain, ChainStep, Literal, STRINGS_MAX};
use grouse_kernels::compare::{self, Compared, Comparison};
use grouse_kernels::divide::Divisor;
use grouse_kernels::narrow::{self, Operand};
use grouse_kernels::select::{Selected, Side};
use grouse_kernels::word::{LetterCase, Word};
use grouse_kernels::{characters, hash, lookup, naive, scatter};

#[path = "random.rs"]
#[allow(
    dead_code,
    reason = "shared with the generator, which draws more shapes"
)]
mod random;
use random::Bits;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROWS: usize = 8_192;
/// Far beyond any cache.
const MEMORY_WORDS: usize = 32 << 20;
/// A round calls a kernel until it has taken so long.
const ROUND_S: f64 = 0.01;

/// Times the loops that run once per row.
#[derive(Parser)]
#[command(name = "grouse-kernels", version)]
struct KernelFlags {
    /// Timed runs of each; the best counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only kernels whose name contains this
    #[arg(long, default_value = "")]
    kernels: String,
}

type Run = Box<dyn FnMut()>;

struct Kernel {
    name: String,
    /// Bytes read and written per row.
    bytes: usize,
    run: Run,
    /// The plainest loop that does the same, of the same batch.
    twin: Option<Run>,
}

fn main() -> ExitCode {
    let flags = KernelFlags::parse();
    let (read, copied) = memory(flags.rounds);
    println!("one thread reads {read:.1} GB/s of memory and copies {copied:.1} (read and written)");
    println!(
        "{:<32} {:>8} {:>8} {:>8} {:>10}",
        "kernel", "ns/row", "GB/s", "of copy", "twin ns"
    );
    let kernels = [kernels(), divisions(), keys(), updates()];
    let kernels = kernels.into_iter().flatten();
    for mut kernel in kernels.filter(|kernel| kernel.name.contains(&flags.kernels)) {
        let ns = 1e9 * best_seconds(flags.rounds, &mut kernel.run) / ROWS as f64;
        let twin = kernel.twin.as_mut();
        let twin = twin.map(|twin| 1e9 * best_seconds(flags.rounds, twin) / ROWS as f64);
        let speed = kernel.bytes as f64 / ns;
        println!(
            "{:<32} {ns:>8.2} {speed:>8.1} {:>7.0}% {:>10}",
            kernel.name,
            100.0 * speed / copied,
            twin.map_or_else(String::new, |ns| format!("{ns:.2}")),
        );
    }
    ExitCode::SUCCESS
}

/// Seconds of one call, of the best round.
fn best_seconds(rounds: usize, run: &mut Run) -> f64 {
    let round = |run: &mut Run| {
        let (started, mut calls) = (Instant::now(), 0);
        loop {
            run();
            calls += 1;
            let seconds = started.elapsed().as_secs_f64();
            if seconds > ROUND_S {
                return seconds / f64::from(calls);
            }
        }
    };
    (0..rounds.max(1))
        .map(|_| round(run))
        .fold(f64::INFINITY, f64::min)
}

/// Gigabytes per second that one thread reads, and that it reads and writes as it copies.
fn memory(rounds: usize) -> (f64, f64) {
    let from = vec![1u64; MEMORY_WORDS];
    let gigabytes = (MEMORY_WORDS * 8) as f64 / 1e9;
    let mut to = from.clone();
    let source = from.clone();
    let mut read: Run = Box::new(move || {
        let sum = from.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
        black_box(sum);
    });
    let mut copy: Run = Box::new(move || black_box(&mut to).copy_from_slice(&source));
    (
        gigabytes / best_seconds(rounds, &mut read),
        2.0 * gigabytes / best_seconds(rounds, &mut copy),
    )
}

fn kernel<A, B>(
    name: &str,
    bytes: usize,
    mut run: impl FnMut() -> A + 'static,
    twin: impl FnMut() -> B + 'static,
) -> Kernel {
    let mut twin = twin;
    Kernel {
        name: name.to_owned(),
        bytes,
        run: Box::new(move || {
            black_box(run());
        }),
        twin: Some(Box::new(move || {
            black_box(twin());
        })),
    }
}

/// Random words, the same in each run.
fn words(column: u64, below: u64) -> Arc<[u64]> {
    (0..ROWS as u64)
        .map(|row| Bits::of(column, row).below(below))
        .collect()
}

fn kernels() -> Vec<Kernel> {
    let all = words(1, u64::MAX);
    let hashes = words(2, u64::MAX);
    let small = words(3, 1 << 20);
    let mut kernels = vec![
        hash_of::<1>("hash of 1 word"),
        hash_of::<2>("hash of 2 words"),
        hash_of::<4>("hash of 4 words"),
    ];
    kernels.push(hash_of_strings());
    kernels.push(matches_of_addresses());
    kernels.push(characters_of_addresses());
    kernels.push(word_in_addresses());
    let (a, b) = (hashes.clone(), hashes.clone());
    kernels.push(kernel(
        "destinations, 256 partitions",
        12,
        move || scatter::destinations(&a, 8),
        move || naive::sort_by_partition(&b, 8),
    ));
    let to = scatter::destinations(&hashes, 8).rows;
    let (mut out, mut plain, again, values) =
        (vec![0; ROWS], vec![0; ROWS], to.clone(), all.clone());
    kernels.push(kernel(
        "scatter of words",
        20,
        move || scatter::scatter(&all, &to, &mut out),
        move || {
            for (row, to) in again.iter().enumerate() {
                plain[*to as usize] = values[row];
            }
        },
    ));
    kernels.extend(decimals(&small));
    kernels.extend(packing(&small));
    kernels.extend(booleans(&small));
    kernels.extend(comparisons(&small));
    kernels.extend(selects(&hashes, &small));
    kernels
}

fn booleans(small: &[u64]) -> [Kernel; 2] {
    let by_code = |name: &str, values: usize| {
        let codes: Arc<[u32]> = small
            .iter()
            .map(|word| (word % values as u64) as u32)
            .collect();
        let booleans: Arc<[bool]> = (0..values).map(|code| code % 3 == 0).collect();
        let (codes_2, booleans_2) = (codes.clone(), booleans.clone());
        kernel(
            name,
            4,
            move || lookup::bits(&codes, &booleans),
            move || naive::bits(&codes_2, &booleans_2),
        )
    };
    [
        by_code("boolean by code, 100 values", 100),
        by_code("boolean by code, 8 values", 8),
    ]
}

fn selects(bits: &Arc<[u64]>, words: &Arc<[u64]>) -> [Kernel; 2] {
    let narrow: Arc<[u16]> = words.iter().map(|word| *word as u16).collect();
    let (narrow_2, words, words_2) = (narrow.clone(), words.clone(), words.clone());
    let bits: [_; 4] = std::array::from_fn(|_| bits.clone());
    let [of_narrow, of_narrow_2, of_words, of_words_2] = bits;
    [
        kernel(
            "select of 2 bytes",
            4,
            move || u16::select(&of_narrow, ROWS, Side::Column(&narrow), Side::Value(0)),
            move || naive::select(&of_narrow_2, ROWS, Side::Column(&narrow_2), Side::Value(0)),
        ),
        kernel(
            "select of words",
            16,
            move || u64::select(&of_words, ROWS, Side::Column(&words), Side::Value(0)),
            move || naive::select(&of_words_2, ROWS, Side::Column(&words_2), Side::Value(0)),
        ),
    ]
}

fn comparisons(small: &[u64]) -> [Kernel; 3] {
    let narrow: Arc<[i16]> = small.iter().map(|word| (word % 3) as i16).collect();
    let views: Arc<[u128]> = narrow.iter().map(|value| u128::from(*value == 0)).collect();
    let (twin_narrow, twin_views, twin_views_2) = (narrow.clone(), views.clone(), views.clone());
    let views_2 = views.clone();
    [
        kernel(
            "integers of 2 bytes that are not 0",
            2,
            move || i16::compared(&narrow, Comparison::NotEqual, 0),
            move || naive::compared(&twin_narrow, Comparison::NotEqual, 0),
        ),
        kernel(
            "views of strings that are not empty",
            16,
            move || compare::views_equal(&views, b"", false),
            move || naive::compared(&twin_views, Comparison::NotEqual, 0),
        ),
        kernel(
            "views of a short text",
            16,
            move || compare::views_equal(&views_2, b"\0", true),
            move || naive::compared(&twin_views_2, Comparison::Equal, 1),
        ),
    ]
}

fn hash_of<const N: usize>(name: &str) -> Kernel {
    let keys: Arc<[[u64; N]]> = words(4, u64::MAX).iter().map(|word| [*word; N]).collect();
    let (twin_keys, mut hashes) = (keys.clone(), Vec::with_capacity(ROWS));
    kernel(
        name,
        8 * N + 8,
        move || {
            hashes.clear();
            hash::hash_packed(&keys, &mut hashes);
            hashes[ROWS - 1]
        },
        move || {
            twin_keys
                .iter()
                .map(|key| naive::hash_words(key))
                .collect::<Vec<_>>()
        },
    )
}

fn hash_of_strings() -> Kernel {
    let strings: Arc<[u8]> = words(5, u64::MAX)
        .iter()
        .flat_map(|word| [*word; 3])
        .flat_map(u64::to_le_bytes)
        .collect();
    let twin_texts = strings.clone();
    kernel(
        "hash of strings of 24 bytes",
        32,
        move || strings.chunks(24).map(hash::hash_bytes).collect::<Vec<_>>(),
        move || {
            twin_texts
                .chunks(24)
                .map(naive::hash_bytes)
                .collect::<Vec<_>>()
        },
    )
}

/// The host of an address, as `^https?://(?:www\.)?([^/]+)/.*$` finds it.
fn matches_of_addresses() -> Kernel {
    let literal = |text: &str| Literal::new(text.as_bytes());
    let but = |byte: u8| ByteSet::new(move |other| other != byte);
    let steps: Arc<[ChainStep]> = Arc::new([
        ChainStep::Literal(literal("http")),
        ChainStep::OneOf([literal("s"), literal("")].into()),
        ChainStep::Literal(literal("://")),
        ChainStep::OneOf([literal("www."), literal("")].into()),
        ChainStep::Open(0),
        ChainStep::Run(but(b'/'), 1),
        ChainStep::Close(0),
        ChainStep::Literal(literal("/")),
        ChainStep::Run(but(b'\n'), 0),
        ChainStep::End,
    ]);
    let chain = Chain::new(steps.to_vec(), 1).expect("runs that end where their bytes do");
    // Of all kinds and lengths in turn a processor learns what comes next.
    let text = |row: usize| {
        let draw = |stream, below| Bits::of(stream, row as u64).below(below) as usize;
        let start = ["http://", "http://www.", "https://", "https://www."][draw(4, 4)];
        let (host, path) = (4 + draw(5, 20), 16 + draw(6, 44));
        format!("{start}{row:0host$}.org/{row:0path$}")
    };
    let strings: Arc<[String]> = (0..ROWS).map(text).collect();
    let twin_texts = strings.clone();
    let column = StringViewArray::from_iter_values(strings.iter());
    let (mut found, mut twin_places) = (chain.found(), [0; 2]);
    kernel(
        "matches in addresses of 64 bytes",
        64,
        move || {
            let buffers: Vec<&[u8]> = column
                .data_buffers()
                .iter()
                .map(|buffer| &**buffer)
                .collect();
            let views = column.views().chunks(STRINGS_MAX);
            let blocks = strings
                .chunks(STRINGS_MAX)
                .zip(views)
                .map(|(block, views)| {
                    let mut held = [&b""[..]; STRINGS_MAX];
                    for (held, text) in held.iter_mut().zip(block) {
                        *held = text.as_bytes();
                    }
                    let are_clear = chain.is_clear(views, &buffers);
                    chain.matched(&held[..block.len()], are_clear, &mut found);
                    let matches = (0..block.len()).filter(|at| found.end(*at).is_some());
                    matches.map(|at| found.group(at, 0).end).sum::<usize>()
                });
            blocks.sum::<usize>()
        },
        move || {
            let matches = twin_texts.iter().filter_map(|text| {
                naive::chain(&steps, text.as_bytes(), 0, &mut twin_places)?;
                Some(twin_places[1])
            });
            matches.sum::<usize>()
        },
    )
}

/// Texts of 64 bytes, also as a column of views.
fn addresses() -> (Arc<[String]>, StringViewArray) {
    let text = |row: usize| format!("http://site-{row:05}.org/{:041}", row * row);
    let strings: Arc<[String]> = (0..ROWS).map(text).collect();
    let column = StringViewArray::from_iter_values(strings.iter());
    (strings, column)
}

fn buffers(column: &StringViewArray) -> Vec<&[u8]> {
    let buffers = column.data_buffers().iter();
    buffers.map(|buffer| buffer.as_slice()).collect()
}

fn characters_of_addresses() -> Kernel {
    let (strings, column) = addresses();
    kernel(
        "characters of strings of 64 bytes",
        64,
        move || characters::of_views(column.views(), &buffers(&column)),
        move || {
            let strings = strings.iter().map(|text| text.as_bytes());
            strings.map(naive::characters).collect::<Vec<_>>()
        },
    )
}

fn word_in_addresses() -> Kernel {
    let (strings, column) = addresses();
    let bytes = b"google";
    let word = Word::new(bytes, LetterCase::AsWritten);
    kernel(
        "a word that strings of 64 bytes have not",
        64,
        move || word.in_views(column.views(), &buffers(&column)),
        move || {
            let strings = strings.iter().map(|text| text.as_bytes());
            let contain = |text| naive::contains(text, bytes);
            strings.map(contain).collect::<Vec<_>>()
        },
    )
}

fn decimals(small: &[u64]) -> [Kernel; 5] {
    let column: Arc<[i128]> = small.iter().map(|word| i128::from(*word)).collect();
    let words: Arc<[i64]> = small.iter().map(|word| *word as i64).collect();
    let (a, b, c, d) = (column.clone(), column.clone(), column.clone(), column);
    let (e, f, g, h) = (words.clone(), words.clone(), words.clone(), words.clone());
    let (i, j) = (words.clone(), words);
    fn moved(words: &[i64]) -> Operand<'_> {
        Operand::Moved {
            narrow: words,
            is_negated: true,
            by: 100,
        }
    }
    [
        kernel(
            "product of narrow decimals",
            48,
            move || narrow::product(Operand::Wide(&a), Operand::Wide(&a)),
            move || naive::narrow_product(Operand::Wide(&b), Operand::Wide(&b)),
        ),
        kernel(
            "1 - x of narrow decimals",
            32,
            move || narrow::sum(Operand::Value(100), 1, Operand::Wide(&c), -1),
            move || naive::narrow_sum(Operand::Value(100), 1, Operand::Wide(&d), -1),
        ),
        kernel(
            "product of decimals in words",
            32,
            move || narrow::product(Operand::Narrow(&e), Operand::Narrow(&e)),
            move || naive::narrow_product(Operand::Narrow(&f), Operand::Narrow(&f)),
        ),
        kernel(
            "1 - x of decimals in words",
            24,
            move || narrow::sum(Operand::Value(100), 1, Operand::Narrow(&g), -1),
            move || naive::narrow_sum(Operand::Value(100), 1, Operand::Narrow(&h), -1),
        ),
        kernel(
            "x * (1 - x) of decimals in words",
            32,
            move || narrow::product(Operand::Narrow(&i), moved(&i)),
            move || naive::narrow_product(Operand::Narrow(&j), moved(&j)),
        ),
    ]
}

fn packing(small: &Arc<[u64]>) -> [Kernel; 2] {
    let (a, b, c) = (small.clone(), small.clone(), small.clone());
    let packing = BytePacking::new(small[0], (1 << 20) - 1);
    let mut packed = naive::byte_pack(small);
    packed.extend([0; SPARE_BYTES]);
    let mut out = Vec::with_capacity(ROWS * 3 + SPARE_BYTES);
    [
        kernel(
            "bytes packed, 3 of 8",
            8 + 3,
            move || {
                let mut bits = [0];
                byte_pack::differing(a.as_chunks::<1>().0, &[a[0]], &mut bits);
                out.clear();
                packing.pack(a.iter().copied(), ROWS, &mut out);
                bits
            },
            move || naive::byte_pack(&b),
        ),
        kernel(
            "bytes unpacked, 3 of 8",
            3 + 8,
            move || packing.unpack(&packed, ROWS).collect::<Vec<u64>>(),
            move || c.to_vec(),
        ),
    ]
}

fn divisions() -> Vec<Kernel> {
    let narrow: Arc<[i64]> = words(6, 1 << 30).iter().map(|word| *word as i64).collect();
    let wide: Arc<[i64]> = words(7, u64::MAX).iter().map(|word| *word as i64).collect();
    let by = Divisor::new(10_000).expect("neither 0 nor -1");
    let mut kernels = Vec::new();
    for (name, column) in [("below 2^31", narrow), ("of 64 bits", wide)] {
        let divisor = black_box(10_000);
        let (a, b, c, d) = (column.clone(), column.clone(), column.clone(), column);
        kernels.push(kernel(
            &format!("quotient, {name}"),
            16,
            move || by.quotients(&a),
            move || {
                b.iter()
                    .map(|word| naive::quotient(*word, divisor))
                    .collect::<Vec<_>>()
            },
        ));
        kernels.push(kernel(
            &format!("remainder, {name}"),
            16,
            move || by.remainders(&c),
            move || {
                d.iter()
                    .map(|word| naive::remainder(*word, divisor))
                    .collect::<Vec<_>>()
            },
        ));
    }
    kernels
}

/// Keys as queries have them -> what the table compares, and its hash.
fn keys() -> Vec<Kernel> {
    let word = |column, below| words(column, below);
    let long: ArrayRef = Arc::new(Int64Array::from_iter_values(
        word(8, u64::MAX).iter().map(|word| *word as i64),
    ));
    let int: ArrayRef = Arc::new(Int32Array::from_iter_values(
        word(9, 1 << 30).iter().map(|word| *word as i32),
    ));
    let short: ArrayRef = Arc::new(Int16Array::from_iter_values(
        word(10, 1 << 14).iter().map(|word| *word as i16),
    ));
    let text: ArrayRef = Arc::new(StringViewArray::from_iter_values(
        word(11, 1 << 20).iter().map(u64::to_string),
    ));
    let of = |name: &str, bytes, columns: Vec<ArrayRef>| {
        let fields = columns
            .iter()
            .map(|column| Arc::new(Field::new("key", column.data_type().clone(), false)));
        let layout = KeyLayout::new(&fields.collect::<Vec<_>>(), TableKind::Auto).expect("keys");
        let mut hashes = Vec::with_capacity(ROWS);
        Kernel {
            name: name.to_owned(),
            bytes,
            run: Box::new(move || {
                black_box(layout.encode(&columns, ROWS, &mut hashes)).expect("keys");
            }),
            twin: None,
        }
    };
    let mut table = DirectTable::new(&[DataType::Int32], 1 << 20, 1 << 20);
    let small: ArrayRef = Arc::new(Int32Array::from_iter_values(
        word(9, 9_000).iter().map(|word| *word as i32),
    ));
    let plain = small.clone();
    let columns = [small];
    let mut groups = Vec::with_capacity(ROWS);
    let mut seen = vec![0u32; 9_000];
    vec![
        of("key BIGINT", 8 + 8 + 8, vec![long]),
        of(
            "key INT, SMALLINT",
            6 + 8 + 8,
            vec![Arc::clone(&int), short],
        ),
        of(
            "key INT, VARCHAR",
            4 + 16 + 32 + 8,
            vec![int, Arc::clone(&text)],
        ),
        of("key VARCHAR", 16 + 16 + 8, vec![text]),
        kernel(
            "direct table, 9,000 keys",
            4 + 4,
            move || {
                groups.clear();
                table.assign(&columns, &mut groups).is_ok()
            },
            move || {
                let keys = plain.as_primitive::<Int32Type>().values().iter();
                keys.map(|key| {
                    let slot = &mut seen[*key as usize];
                    *slot = (*slot).max(1);
                    *slot
                })
                .collect::<Vec<u32>>()
            },
        ),
    ]
}

/// Values into the states of one group, of few and of many.
fn updates() -> Vec<Kernel> {
    let integers: Arc<[i64]> = words(12, 1 << 40).iter().map(|word| *word as i64).collect();
    let floats: Arc<[f64]> = integers.iter().map(|value| *value as f64).collect();
    let (int, float) = (DataType::Int64, DataType::Float64);
    let aggregates = [
        ("count", states::count("count")),
        ("sum of BIGINT", states::sum("sum", &int, &int)),
        ("avg of BIGINT", states::avg("avg", &int, &float)),
        (
            "min of BIGINT",
            states::min_max("min", Extreme::Min, &int, &int),
        ),
        ("sum of DOUBLE", states::sum("sum", &float, &float)),
        (
            "max of DOUBLE",
            states::min_max("max", Extreme::Max, &float, &float),
        ),
    ];
    let mut kernels = Vec::new();
    for (name, aggregate) in aggregates {
        let aggregate = aggregate.expect("native states");
        for groups in [1, 16, 10_000] {
            let column: ArrayRef = match name.ends_with("DOUBLE") {
                true => Arc::new(Float64Array::from_iter_values(floats.iter().copied())),
                false => Arc::new(Int64Array::from_iter_values(integers.iter().copied())),
            };
            kernels.push(update(name, &*aggregate, column, &integers, groups));
        }
    }
    kernels
}

fn update(
    name: &str,
    aggregate: &dyn Aggregate,
    column: ArrayRef,
    values: &Arc<[i64]>,
    groups: usize,
) -> Kernel {
    let mut states = aggregate.states().expect("native states");
    let ids: Arc<[GroupId]> = words(13, groups as u64)
        .iter()
        .map(|id| GroupId(*id as u32))
        .collect();
    let (twin_ids, values) = (ids.clone(), values.clone());
    let mut sums = vec![0i64; groups];
    let label = match groups {
        1 => format!("{name}, no keys"),
        _ => format!("{name}, {groups} groups"),
    };
    kernel(
        &label,
        if groups == 1 { 8 } else { 8 + 4 },
        move || {
            let groups_of = match groups {
                1 => Groups::One(ROWS),
                _ => Groups::Ids(&ids),
            };
            states.update(std::slice::from_ref(&column), None, groups_of, groups)
        },
        move || {
            for (id, value) in twin_ids.iter().zip(&*values) {
                let sum = &mut sums[id.0 as usize];
                *sum = sum.wrapping_add(*value);
            }
        },
    )
}
