//! The specification: every kernel again as the plainest loop that is right.
//!
//! In / Out: as the kernel of the same name.
//! Not here: speed.

use std::ops::{Div, Rem};

use crate::chain::{ChainStep, Literal};
use crate::compare::Comparison;
use crate::narrow::Operand;
use crate::select::Side;

/// `hash::hash_words`, word by word with big integers.
pub fn hash_words(words: &[u64]) -> u64 {
    let mut hash: u64 = 0x2d35_8dcc_aa6c_78a5;
    for pair in words.chunks(2) {
        let (a, b) = match *pair {
            [a, b] => (
                a ^ 0x8bb8_4b93_962e_acc9 ^ hash,
                b ^ 0x4b33_a62e_d433_d4a3 ^ hash.rotate_left(32),
            ),
            [a] => (a ^ hash, 0x4d5a_2da5_1de1_aa47),
            _ => unreachable!("chunks of one or two"),
        };
        hash = fold(a, b);
    }
    hash
}

/// `hash::hash_bytes`.
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let read = |at: usize| (0..8).fold(0u64, |word, i| word | u64::from(bytes[at + i]) << (8 * i));
    if bytes.len() <= 12 {
        let view = bytes
            .iter()
            .enumerate()
            .fold(bytes.len() as u128, |view, (i, &byte)| {
                view | u128::from(byte) << (32 + 8 * i)
            });
        return hash_words(&[view as u64, (view >> 64) as u64]);
    }
    let mut hash = 0x2d35_8dcc_aa6c_78a5 ^ bytes.len() as u64;
    if bytes.len() < 16 {
        return fold(
            read(0) ^ 0x4b33_a62e_d433_d4a3,
            read(bytes.len() - 8) ^ hash,
        );
    }
    let last = bytes.len() - 16;
    for at in (0..last).step_by(16) {
        hash = fold(read(at) ^ 0x8bb8_4b93_962e_acc9, read(at + 8) ^ hash);
    }
    fold(read(last) ^ 0x4b33_a62e_d433_d4a3, read(last + 8) ^ hash)
}

/// `hash::mix`.
pub fn mix(hash: u64) -> u64 {
    fold(hash ^ 0x8bb8_4b93_962e_acc9, 0x4b33_a62e_d433_d4a3)
}

/// `scatter::destinations` followed by `scatter::scatter` of the hashes themselves.
pub fn sort_by_partition(hashes: &[u64], bits: u32) -> Vec<u64> {
    let mut sorted = hashes.to_vec();
    sorted.sort_by_key(|hash| u128::from(*hash) >> (64 - bits));
    sorted
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product % (1 << 64)) as u64 ^ (product / (1 << 64)) as u64
}

/// `narrow::product`.
pub fn narrow_product(a: Operand<'_>, b: Operand<'_>) -> Option<Vec<i128>> {
    rows(a, b)?.map(|(a, b)| a.checked_mul(b)).collect()
}

/// `narrow::sum`.
pub fn narrow_sum(a: Operand<'_>, scale_a: i64, b: Operand<'_>, scale_b: i64) -> Option<Vec<i128>> {
    let scaled = |value: i128, scale: i64| value.checked_mul(scale.into());
    rows(a, b)?
        .map(|(a, b)| scaled(a, scale_a)?.checked_add(scaled(b, scale_b)?))
        .collect()
}

/// `multiples::Step::times` of a multiple; `None` of other numbers.
pub fn times(number: u64, step: u64) -> Option<u64> {
    number.is_multiple_of(step).then(|| number / step)
}

/// `multiples::common`: all common divisors are tried.
pub fn common(known: u64, distances: &[u64]) -> u64 {
    let all = || distances.iter().chain([&known]);
    let least = all().copied().filter(|&number| number > 0).min();
    let divides = |size: &u64| all().all(|number| number.is_multiple_of(*size));
    let mut sizes = (1..=least.unwrap_or(0)).rev();
    sizes.find(divides).unwrap_or(0)
}

/// `divide::Divisor::quotients` of one word.
pub fn quotient<T: Div<Output = T>>(word: T, divisor: T) -> T {
    word / divisor
}

/// `divide::Divisor::remainders` of one word.
pub fn remainder<T: Rem<Output = T>>(word: T, divisor: T) -> T {
    word % divisor
}

/// `byte_pack::BytePacking::pack` of all words, of which there is one.
pub fn byte_pack(words: &[u64]) -> Vec<u8> {
    let differs = |&byte: &usize| {
        let of = |word: u64| word.to_le_bytes()[byte];
        words.iter().any(|&word| of(word) != of(words[0]))
    };
    let (Some(lowest), Some(highest)) = ((0..8).find(differs), (0..8).rev().find(differs)) else {
        return Vec::new();
    };
    let kept = words
        .iter()
        .map(|word| word.to_le_bytes()[lowest..=highest].to_vec());
    kept.flatten().collect()
}

/// `compare::Compared::compared`.
pub fn compared<T: PartialOrd>(rows: &[T], comparison: Comparison, with: T) -> Vec<u64> {
    let mut bits = vec![0; rows.len().div_ceil(64)];
    for (at, row) in rows.iter().enumerate() {
        let is_true = match comparison {
            Comparison::Equal => *row == with,
            Comparison::NotEqual => *row != with,
            Comparison::Less => *row < with,
            Comparison::LessOrEqual => *row <= with,
            Comparison::Greater => *row > with,
            Comparison::GreaterOrEqual => *row >= with,
        };
        bits[at / 64] |= u64::from(is_true) << (at % 64);
    }
    bits
}

/// `booleans::words` of booleans.
pub fn words(booleans: &[bool]) -> Vec<u64> {
    let mut words = vec![0; booleans.len().div_ceil(64)];
    for (row, &is_true) in booleans.iter().enumerate() {
        words[row / 64] |= u64::from(is_true) << (row % 64);
    }
    words
}

/// `lookup::bits`.
pub fn bits(codes: &[u32], booleans: &[bool]) -> Vec<u64> {
    let mut bits = vec![0; codes.len().div_ceil(64)];
    for (row, &code) in codes.iter().enumerate() {
        if booleans[code as usize] {
            bits[row / 64] |= 1 << (row % 64);
        }
    }
    bits
}

/// `places::places`.
pub fn places(block: &[u8; 64], wanted: [u8; 3]) -> u64 {
    let is_set = |at: usize| u64::from(wanted.contains(&block[at])) << at;
    (0..64).map(is_set).sum()
}

/// `select::Selected::select`.
pub fn select<T: Copy>(words: &[u64], rows: usize, set: Side<'_, T>, unset: Side<'_, T>) -> Vec<T> {
    let one = |row: usize| match if words[row / 64] >> (row % 64) & 1 == 1 {
        set
    } else {
        unset
    } {
        Side::Column(column) => column[row],
        Side::Value(value) => value,
    };
    (0..rows).map(one).collect()
}

/// `characters::characters` of a text in UTF-8.
pub fn characters(text: &[u8]) -> usize {
    String::from_utf8_lossy(text).chars().count()
}

/// `word::Word::in_views` of one text.
pub fn contains(text: &[u8], word: &[u8]) -> bool {
    (0..=text.len()).any(|at| text[at..].starts_with(word))
}

/// `like::LikePattern` as written: `%` tries every rest.
pub fn like(text: &str, pattern: &str) -> bool {
    let mut wanted = pattern.chars();
    let Some(first) = wanted.next() else {
        return text.is_empty();
    };
    let literal = match first {
        '%' => {
            let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            return starts.any(|at| like(&text[at..], wanted.as_str()));
        }
        '_' => {
            let mut left = text.chars();
            return left.next().is_some() && like(left.as_str(), wanted.as_str());
        }
        '\\' => wanted.next().unwrap_or('\\'),
        literal => literal,
    };
    let left = text.strip_prefix(literal);
    left.is_some_and(|left| like(left, wanted.as_str()))
}

/// `chain::Chain::matched` of any steps, from byte `at` on: every way, longer runs and earlier strings first.
pub fn chain(steps: &[ChainStep], text: &[u8], at: usize, places: &mut [usize]) -> Option<usize> {
    let Some((step, others)) = steps.split_first() else {
        return Some(at);
    };
    let left = &text[at..];
    let lengths: Vec<usize> = match step {
        ChainStep::Literal(literal) => match left.starts_with(literal.bytes()) {
            true => vec![literal.bytes().len()],
            false => vec![],
        },
        ChainStep::Run(set, min) => {
            let leading = left.iter().take_while(|&&byte| set.has(byte)).count();
            (*min..=leading).rev().collect()
        }
        ChainStep::OneOf(strings) => {
            let possible = strings.iter().map(Literal::bytes);
            let possible = possible.filter(|one| left.starts_with(one));
            possible.map(<[u8]>::len).collect()
        }
        ChainStep::Open(group) => {
            places[2 * group] = at;
            vec![0]
        }
        ChainStep::Close(group) => {
            places[2 * group + 1] = at;
            vec![0]
        }
        ChainStep::End => match left.is_empty() {
            true => vec![0],
            false => vec![],
        },
    };
    let mut ends = lengths.into_iter();
    ends.find_map(|length| chain(others, text, at + length, places))
}

/// Both sides of each row, if all values fit 64 bits.
fn rows(a: Operand<'_>, b: Operand<'_>) -> Option<impl Iterator<Item = (i128, i128)>> {
    let length = |side| match side {
        Operand::Wide(column) => Some(column.len()),
        Operand::Narrow(words) | Operand::Moved { narrow: words, .. } => Some(words.len()),
        Operand::Value(_) => None,
    };
    let rows = length(a).or(length(b))?;
    let values = |side| match side {
        Operand::Wide(column) => column.to_vec(),
        Operand::Narrow(words) => words.iter().map(|&word| word.into()).collect(),
        Operand::Moved {
            narrow: words,
            is_negated,
            by,
        } => {
            let sign = if is_negated { -1 } else { 1 };
            let moved = |&word: &i64| i128::from(by) + sign * i128::from(word);
            words.iter().map(moved).collect()
        }
        Operand::Value(value) => vec![value; rows],
    };
    let is_narrow = |value: i128| i64::try_from(value).is_ok();
    let are_narrow = |side| match side {
        Operand::Value(value) => is_narrow(value),
        column => values(column).into_iter().all(is_narrow),
    };
    let are_narrow = are_narrow(a) && are_narrow(b);
    let (a, b) = (values(a), values(b));
    (are_narrow && a.len() == b.len()).then(|| a.into_iter().zip(b))
}
