//! `sha1`: the digest of a text or of bytes, as hexadecimal text.
//!
//! In: strings, bytes. Out: 40 digits in lower case, as FIPS 180-4 has them.
//! Invariant: a text has the digest of its bytes in UTF-8.
//! Not here: `md5`, `sha256` and the other digests, DataFusion's.

use datafusion::arrow::array::{ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use super::definition::{CallArguments, rows};
use super::kinds::ParameterKind;

/// Bytes that are mixed into the digest at once.
const BLOCK_BYTES: usize = 64;

/// What a digest begins with.
const START: [u32; 5] = [
    0x6745_2301,
    0xefcd_ab89,
    0x98ba_dcfe,
    0x1032_5476,
    0xc3d2_e1f0,
];

/// The function.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let text = |_: &[DataType]| Ok(DataType::Utf8View);
    let sha1 = rows("sha1", &[&[ParameterKind::Bytes]], text, digests);
    vec![ScalarUDF::from(sha1)]
}

fn digests(call: &CallArguments) -> Result<ArrayRef> {
    match call.args[0].data_type() {
        DataType::BinaryView => {
            let bytes = call.args[0].as_binary_view();
            call.each::<StringViewArray, _>(|row| Ok(Some(sha1(bytes.value(row)))))
        }
        _ => {
            let strings = call.strings(0);
            call.each::<StringViewArray, _>(|row| Ok(Some(sha1(strings.value(row).as_bytes()))))
        }
    }
}

fn sha1(bytes: &[u8]) -> String {
    let mut digest = START;
    let blocks = bytes.chunks_exact(BLOCK_BYTES);
    let mut rest = blocks.remainder().to_vec();
    for block in blocks {
        mix(&mut digest, block);
    }
    // A bit behind the bytes, and their number of bits at the end of the last block.
    rest.push(0x80);
    while rest.len() % BLOCK_BYTES != BLOCK_BYTES - 8 {
        rest.push(0);
    }
    rest.extend((bytes.len() as u64 * 8).to_be_bytes());
    for block in rest.chunks_exact(BLOCK_BYTES) {
        mix(&mut digest, block);
    }
    digest.iter().map(|word| format!("{word:08x}")).collect()
}

fn mix(digest: &mut [u32; 5], block: &[u8]) {
    let mut words = [0_u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes
            .iter()
            .fold(0, |word, byte| (word << 8) | u32::from(*byte));
    }
    for at in 16..80 {
        let mixed = words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16];
        words[at] = mixed.rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *digest;
    for (at, word) in words.into_iter().enumerate() {
        let (chosen, constant) = match at {
            0..20 => ((b & c) | (!b & d), 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let next = [a.rotate_left(5), chosen, e, constant, word];
        let next = next.into_iter().fold(0, u32::wrapping_add);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    for (sum, part) in digest.iter_mut().zip([a, b, c, d, e]) {
        *sum = sum.wrapping_add(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        assert_eq!(sha1(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(sha1(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let two_blocks = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(sha1(two_blocks), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        assert_eq!(
            sha1(&[b'a'; 1_000_000]),
            "34aa973cd4c4daa4f61eeb2bdbad27316534016f"
        );
    }
}
