//! The cache that a core has for itself.
//!
//! In: the operating system's description of the machine. Out: bytes.
//! Not here: numbers of cores; the session decides how many workers there are.

use std::sync::LazyLock;

/// Where Linux describes the second-level cache of the first core.
const L2_SIZE_PATH: &str = "/sys/devices/system/cpu/cpu0/cache/index2/size";
/// Where nothing is known.
const L2_BYTES_DEFAULT: usize = 1 << 20;

/// Bytes of one core's second-level cache; the system is asked once.
pub fn l2_bytes() -> usize {
    static L2_BYTES: LazyLock<usize> = LazyLock::new(|| {
        std::fs::read_to_string(L2_SIZE_PATH)
            .ok()
            .and_then(|text| parse(text.trim()))
            .unwrap_or(L2_BYTES_DEFAULT)
    });
    *L2_BYTES
}

fn parse(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(['K', 'M']);
    let number: usize = digits.parse().ok()?;
    match &text[digits.len()..] {
        "K" => Some(number << 10),
        "M" => Some(number << 20),
        "" => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sizes_are_read_as_the_kernel_writes_them() {
        for (text, bytes) in [
            ("2048K", Some(2 << 20)),
            ("1M", Some(1 << 20)),
            ("512", Some(512)),
            ("?", None),
        ] {
            assert_eq!(parse(text), bytes, "{text}");
        }
    }
}
