//! Files made wrong at the places that their format believes: lengths, counts, offsets, separators, nesting.
//!
//! In: a good file, its format, random numbers. Out: one that differs from it in up to four places.
//! Invariant: what comes out follows from the seed alone. Framing around a change is kept in most cases, so that readers get
//! as far as the change.
//! Not here: what the engine says of such files (`damaged`).

use std::ops::Range;

use crate::random::Random;

/// A format that has mutations of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Thrift in a footer and before each page.
    Parquet,
    /// Flatbuffers in messages and a footer.
    Arrow,
    /// Fields and separators.
    Csv,
    /// An object per line.
    Json,
    /// Headers of compressed text: magic, flags, windows.
    Packed,
}

/// Values that stand where a count, a length or an offset is expected.
const EXTREMES: [u64; 14] = [
    0,
    1,
    2,
    7,
    0x7f,
    0xff,
    0x7fff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 40,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// Fields of CSV, and values of JSON once they are quoted, that few readers are asked for.
const FIELDS: [&str; 22] = [
    "",
    "\"",
    "\"\"\"",
    "\\",
    "NULL",
    "NaN",
    "-inf",
    "1e999999",
    "-0",
    "0x10",
    "99999999999999999999999999999999999999999",
    "0.00000000000000000000000000000000000000000000001",
    "9223372036854775808",
    "true",
    "2024-02-30",
    "99999-01-01",
    "-4714-11-24 00:00:00",
    "23:59:60.999999999",
    "2024-01-01T00:00:00+99:99",
    "\u{feff}",
    "\u{0}",
    "\r",
];

/// Values of JSON.
const VALUES: [&str; 16] = [
    "null",
    "{}",
    "[]",
    "[null]",
    "[[[]]]",
    "{\"\":{}}",
    "1e999999",
    "-",
    "1.",
    "01",
    "123456789012345678901234567890123456789012345678901234567890",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"\\",
    "nul",
    "[1,\"a\",{\"b\":2}]",
];

/// The file with one to four changes.
pub fn damaged(format: Format, whole: &[u8], random: &mut Random) -> Vec<u8> {
    let mut file = whole.to_vec();
    for _ in 0..=random.below(4) {
        if file.is_empty() {
            break;
        }
        if random.chance(30) {
            change_bytes(&mut file, 0..whole.len(), random);
            continue;
        }
        match format {
            Format::Parquet => change_parquet(&mut file, random),
            Format::Arrow => change_arrow(&mut file, random),
            Format::Csv => change_csv(&mut file, random),
            Format::Json => change_json(&mut file, random),
            Format::Packed => change_packed(&mut file, random),
        }
    }
    file
}

/// A change that knows nothing of the format, within these bytes.
fn change_bytes(file: &mut Vec<u8>, within: Range<usize>, random: &mut Random) {
    let end = within.end.min(file.len());
    if within.start >= end {
        return;
    }
    let at = within.start + random.below(end - within.start);
    let some = (at + 1 + random.below(64)).min(end);
    match random.below(8) {
        0 => file[at] ^= 1 << random.below(8),
        1 => file[at] = *random.pick(&[0, 1, 0x7f, 0x80, 0xfe, 0xff]),
        2 => drop(file.drain(at..some)),
        3 => {
            let copy = file[at..some].to_vec();
            drop(file.splice(at..at, copy));
        }
        4 => {
            let from = random.below(end);
            let length = (some - at).min(end - from);
            file.copy_within(from..from + length, at);
        }
        5 => put(file, at, *random.pick(&EXTREMES), 4),
        6 => put(file, at, *random.pick(&EXTREMES), 8),
        _ if random.chance(20) => file.truncate(at),
        _ => file[at..some].fill(*random.pick(&[0, 0xff])),
    }
}

/// Writes a little-endian number of so many bytes, as far as the file goes.
fn put(file: &mut [u8], at: usize, value: u64, bytes: usize) {
    let end = (at + bytes).min(file.len());
    if at < end {
        file[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
    }
}

fn read_u32(file: &[u8], at: usize) -> Option<usize> {
    let bytes = file.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize)
}

/// A number as Thrift's compact protocol writes it.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// The bytes of the varint that begins at a place.
fn varint_at(file: &[u8], at: usize) -> Range<usize> {
    let length = file[at..].iter().take(10).position(|byte| byte & 0x80 == 0);
    at..at + length.map_or(1, |last| last + 1)
}

fn change_parquet(file: &mut Vec<u8>, random: &mut Random) {
    let Some(length) = file.len().checked_sub(8).and_then(|at| read_u32(file, at)) else {
        return change_bytes(file, 0..usize::MAX, random);
    };
    let end = file.len() - 8;
    let Some(start) = end.checked_sub(length).filter(|start| *start < end) else {
        return change_bytes(file, 0..usize::MAX, random);
    };
    match random.below(10) {
        0 => put(file, end, *random.pick(&EXTREMES), 4),
        // What a page's header says: it begins with the type, an i32 of field 1.
        1..5 => {
            let heads = (4..start.saturating_sub(24)).filter(|&at| is_page_header(&file[at..]));
            let heads: Vec<usize> = heads.collect();
            if heads.is_empty() {
                return change_bytes(file, 4..start, random);
            }
            let at = *random.pick(&heads) + 1 + random.below(20);
            let number = varint_at(file, at);
            match random.chance(70) {
                // As long as it was: the places of all other pages stay right.
                true => same_length(file, number, random),
                false => {
                    file[at] = file[at].wrapping_add(random.pick(&[1, 2, 0x10, 0xf0]).to_owned())
                }
            }
        }
        // The footer, whose length stays true.
        _ => {
            let at = start + random.below(length);
            let before = file.len();
            match random.below(4) {
                0 => change_bytes(file, at..(at + 64).min(end), random),
                1 => {
                    let number = varint_at(file, at);
                    same_length(file, number, random);
                }
                _ => {
                    let number = varint_at(file, at);
                    let number = number.start..number.end.min(end);
                    let value = varint(*random.pick(&EXTREMES));
                    drop(file.splice(number, value));
                }
            }
            let now = (length + file.len()).checked_sub(before);
            if let (Some(now), Some(at)) = (now, file.len().checked_sub(8)) {
                put(file, at, now as u64, 4);
            }
        }
    }
}

/// Type, size, compressed size: three fields of i32, each one further than the last.
fn is_page_header(bytes: &[u8]) -> bool {
    let second = varint_at(bytes, 1).end;
    bytes[0] == 0x15 && second < bytes.len() && bytes[second] == 0x15 && bytes[1] < 8
}

/// Another number of as many bytes.
fn same_length(file: &mut [u8], number: Range<usize>, random: &mut Random) {
    let last = number.end - 1;
    for at in number {
        let bits = *random.pick(&[0, 1, 0x3f, 0x40, 0x7e, 0x7f]);
        file[at] = if at < last { bits | 0x80 } else { bits };
    }
}

fn change_arrow(file: &mut Vec<u8>, random: &mut Random) {
    let heads = (0..file.len().saturating_sub(16)).step_by(8);
    let heads: Vec<usize> = heads.filter(|&at| file[at..at + 4] == [0xff; 4]).collect();
    let tail = file.len().saturating_sub(10);
    let footer = read_u32(file, tail).unwrap_or(0).min(tail);
    match random.below(10) {
        0 => put(file, tail, *random.pick(&EXTREMES), 4),
        1..4 => {
            // A table, an offset or a vector's length of the footer.
            let at = (tail - footer + random.below(footer.max(1))) & !3;
            put(file, at, *random.pick(&EXTREMES), *random.pick(&[4, 8]));
        }
        _ if heads.is_empty() => change_bytes(file, 0..usize::MAX, random),
        4 => {
            let at = *random.pick(&heads) + 4;
            put(file, at, *random.pick(&EXTREMES), 4);
        }
        5 => {
            // A message where another one is expected.
            let (from, to) = (*random.pick(&heads), *random.pick(&heads));
            let length = (8 + random.below(512)).min(file.len() - from.max(to));
            file.copy_within(from..from + length, to);
        }
        _ => {
            let head = *random.pick(&heads);
            let length = read_u32(file, head + 4).unwrap_or(0).clamp(8, 4096);
            // Metadata, and the lengths that compressed buffers behind it begin with.
            let at = (head + 8 + random.below(length + 64)) & !7;
            let bytes = *random.pick(&[4, 8]);
            match random.chance(50) {
                true => put(file, at, *random.pick(&EXTREMES), bytes),
                false => {
                    let one = file.get_mut(at + random.below(8));
                    one.into_iter()
                        .for_each(|byte| *byte = byte.wrapping_add(1));
                }
            }
        }
    }
}

/// The places of any of these bytes.
fn places(file: &[u8], of: &[u8]) -> Vec<usize> {
    let all = file.iter().enumerate();
    all.filter(|(_, byte)| of.contains(byte))
        .map(|(at, _)| at)
        .collect()
}

fn change_csv(file: &mut Vec<u8>, random: &mut Random) {
    let signs = places(file, b",\n");
    if signs.is_empty() {
        return change_bytes(file, 0..usize::MAX, random);
    }
    let at = random.below(signs.len());
    let field = signs[at] + 1..signs.get(at + 1).map_or(file.len(), |next| *next);
    let text: Vec<u8> = match random.below(12) {
        0 => b"x".repeat(1 << random.below(18)),
        1 => b",".repeat(1 << random.below(12)),
        2 => b"\"".repeat(1 + random.below(5)),
        3 => b"\n".repeat(1 << random.below(10)),
        4 => vec![0xff, 0xfe, b'a'],
        5 => vec![0xc3],
        6 => [b"\"", &file[field.clone()], b"\n\""].concat(),
        7 => b"9".repeat(1 + random.below(400)),
        _ => random.pick(&FIELDS).as_bytes().to_vec(),
    };
    match random.below(6) {
        0 => {
            file.remove(signs[at]);
        }
        1 => file[signs[at]] = *random.pick(b",\n\r\";\t|"),
        2 => drop(file.splice(field.start..field.start, text)),
        _ => drop(file.splice(field, text)),
    }
}

fn change_json(file: &mut Vec<u8>, random: &mut Random) {
    let signs = places(file, b"{}[]:,\"\n");
    let values = places(file, b":");
    if values.is_empty() {
        return change_bytes(file, 0..usize::MAX, random);
    }
    let sign = *random.pick(&signs);
    let value = *random.pick(&values) + 1;
    let end = signs.iter().find(|&&sign| sign > value);
    let value = value..end.map_or(file.len(), |end| *end);
    match random.below(9) {
        0 => {
            file.remove(sign);
        }
        1 => file[sign] = *random.pick(b"{}[]:,\"\n\\ \0"),
        2 => {
            let again = vec![file[sign]; 1 << random.below(8)];
            drop(file.splice(sign..sign, again));
        }
        3 => {
            let depth = 1 << random.below(14);
            let (open, close) = *random.pick(&[("[", "]"), ("{\"a\":", "}")]);
            let nested = [open.repeat(depth), "1".to_owned(), close.repeat(depth)].concat();
            drop(file.splice(value, nested.into_bytes()));
        }
        4 => {
            let field = random.pick(&FIELDS);
            drop(file.splice(value, format!("\"{field}\"").into_bytes()));
        }
        5 => {
            let long = format!("\"{}\"", "x".repeat(1 << random.below(18)));
            drop(file.splice(value, long.into_bytes()));
        }
        6 => {
            // The same name twice, or many new ones.
            let names = (0..1 << random.below(9)).map(|at| format!("\"k{at}\":{at},"));
            let names: String = names.collect();
            let objects = places(file, b"{");
            let at = objects.first().map_or(0, |at| at + 1);
            drop(file.splice(at..at, names.into_bytes()));
        }
        _ => drop(file.splice(value, random.pick(&VALUES).bytes())),
    }
}

/// What an xz file begins with, and where its first block begins.
const XZ: &[u8] = b"\xfd7zXZ\0";
const XZ_BLOCK: usize = 12;
/// Bytes of headers of all kinds.
const HEAD_BYTES: usize = 32;

fn change_packed(file: &mut Vec<u8>, random: &mut Random) {
    match random.below(4) {
        // The window of xz, whose header stays sound.
        0..2 if file.starts_with(XZ) => change_xz_block(file, random),
        // A member behind the first, or one that is cut.
        2 => {
            let end = random.below(file.len() + 1);
            file.extend_from_within(..end);
        }
        3 => change_bytes(file, HEAD_BYTES..usize::MAX, random),
        _ => change_bytes(file, 0..HEAD_BYTES, random),
    }
}

/// Another byte in the header of the first block, which has its checksum behind it.
fn change_xz_block(file: &mut [u8], random: &mut Random) {
    let length = file
        .get(XZ_BLOCK)
        .map_or(0, |words| usize::from(*words) * 4);
    let end = XZ_BLOCK + length;
    if length < 8 || end + 4 > file.len() {
        return;
    }
    // The size of the window lies behind flags, the filter and the length of its properties.
    let at = match random.chance(70) {
        true => XZ_BLOCK + 4,
        false => XZ_BLOCK + 1 + random.below(length - 1),
    };
    file[at] = random.bits() as u8 & 0x3f;
    let sum = crc32(&file[XZ_BLOCK..end]);
    put(file, end, u64::from(sum), 4);
}

/// The checksum of xz's headers.
fn crc32(bytes: &[u8]) -> u32 {
    let sum = bytes.iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| match sum & 1 {
            1 => sum >> 1 ^ 0xedb8_8320,
            _ => sum >> 1,
        })
    });
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever it is given, also what is no file of the format at all.
    #[test]
    fn a_seed_gives_a_file() {
        let text = b"a,b\n1,\"x\"\n2,y\n".to_vec();
        let json = b"{\"a\": 1, \"b\": [\"x\"]}\n{\"a\": 2, \"b\": []}\n".to_vec();
        let mut binary: Vec<u8> = b"PAR1".to_vec();
        binary.extend((0..600u32).flat_map(|at| [0x15, (at % 5) as u8, 0x15, at as u8]));
        binary.extend(200u32.to_le_bytes());
        binary.extend(b"PAR1");
        for (format, whole) in [
            (Format::Csv, &text),
            (Format::Json, &json),
            (Format::Parquet, &binary),
            (Format::Arrow, &binary),
            (Format::Parquet, &text),
            (Format::Arrow, &json),
            (Format::Json, &binary),
            (Format::Packed, &text),
            (Format::Packed, &binary),
        ] {
            let of = |seed| damaged(format, whole, &mut Random::new(seed));
            let different = (0..60).filter(|&seed| {
                assert_eq!(of(seed), of(seed), "{format:?} {seed}");
                of(seed) != *whole
            });
            assert!(different.count() > 50, "{format:?}");
        }
    }
}
