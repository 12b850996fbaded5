//! Randomness without state: a number is a hash of what it belongs to.
//!
//! In: ids (row, user, column). Out: 64 well mixed bits, and shapes made of them.
//! Invariant: no generator is carried from row to row, so any row can be made first, on any thread.
//! Not here: cryptographic quality.

/// Bits that belong to one id; further draws for the same id take another `stream`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits(pub u64);

impl Bits {
    /// The bits of `id` in `stream`.
    pub fn of(stream: u64, id: u64) -> Self {
        Self(mix(mix(stream.wrapping_add(SEED)) ^ id.wrapping_mul(GOLDEN)))
    }

    /// Fresh bits for the next decision about the same id.
    pub fn next(self) -> Self {
        Self(mix(self.0.wrapping_add(GOLDEN)))
    }

    /// Uniform in [0, 1), 53 bits.
    pub fn unit(self) -> f64 {
        (self.0 >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in [0, bound) for a bound of at least 1.
    pub fn below(self, bound: u64) -> u64 {
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }

    /// True for `per_million` of a million ids.
    pub fn one_in_million(self, per_million: u64) -> bool {
        self.below(1_000_000) < per_million
    }

    /// Skewed in [0, count): P(k) falls as 1 / (k + flat); a larger `flat` makes the head lower.
    pub fn zipf(self, count: u64, flat: f64) -> u64 {
        let reach = 1.0 + count as f64 / flat;
        let drawn = flat * (exp2(self.unit() * log2(reach)) - 1.0);
        (drawn as u64).min(count.saturating_sub(1))
    }
}

const SEED: u64 = 0x6772_6f75_7365; // the letters of "grouse"
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection, so ids never collide here.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// 2^x for 0 <= x < 1,000, to about ten digits.
///
/// Written out because the system's `pow` may round differently from one machine to the next, and
/// one different draw would change the expected rows.
fn exp2(x: f64) -> f64 {
    let whole = x as u64;
    let y = (x - whole as f64) * std::f64::consts::LN_2;
    let series = (1..=11)
        .rev()
        .fold(1.0, |sum, term| 1.0 + sum * y / f64::from(term));
    series * f64::from_bits((whole + 1023) << 52)
}

/// The binary logarithm of x >= 1, to about seven digits; see [`exp2`].
fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52) - 1023;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let series = [13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0]
        .into_iter()
        .fold(0.0, |sum: f64, odd: f64| sum * t * t + 1.0 / odd);
    exponent as f64 + 2.0 * t * series / std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_stay_in_their_range() {
        for id in 0..10_000 {
            let bits = Bits::of(1, id);
            assert!((0.0..1.0).contains(&bits.unit()));
            assert!(bits.below(7) < 7);
            assert!(bits.zipf(9_040, 1.0) < 9_040);
            assert_eq!(bits.zipf(1, 1.0), 0);
        }
    }

    #[test]
    fn the_powers_agree_with_the_system() {
        for x in [1.0, 1.5, 2.0, 3.75, 1000.0, 1e9] {
            assert!((log2(x) - x.log2()).abs() < 1e-6, "log2 {x}");
            let y = x.log2();
            assert!((exp2(y) / x - 1.0).abs() < 1e-9, "exp2 {y}");
        }
    }

    #[test]
    fn the_head_of_a_zipf_is_heavy_and_its_tail_is_reached() {
        let draws: Vec<u64> = (0..200_000)
            .map(|id| Bits::of(2, id).zipf(1_000, 1.0))
            .collect();
        let head = draws.iter().filter(|&&draw| draw == 0).count();
        assert!((15_000..25_000).contains(&head), "head {head}");
        assert!(draws.iter().any(|&draw| draw > 990));
    }
}
