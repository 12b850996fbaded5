//! Multiples of a step, divided by it: a multiplication and a rotation, which also tell the numbers that are none.
//!
//! In: words of 64 bits without a sign. Out: how many steps each is; of one that is no multiple more than of any multiple.
//! Invariant: exact. The inverse of an odd number modulo 2^64 brings its multiples to their quotients. It is one to one,
//! so it brings all others beyond these. Bits that a power of two would shift out come back at the top.
//! Not here: quotients that are rounded (`divide`).

/// What numbers are multiples of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    size: u64,
    inverse: u64,
    shift: u32,
}

impl Step {
    /// The step of all integers.
    pub const ONE: Step = Step {
        size: 1,
        inverse: 1,
        shift: 0,
    };

    /// The step of this size; that of all integers for 0.
    pub fn new(size: u64) -> Step {
        let size = size.max(1);
        let shift = size.trailing_zeros();
        let odd = size >> shift;
        // Right in three bits; each turn doubles them.
        let mut inverse = odd;
        for _ in 0..5 {
            let product = odd.wrapping_mul(inverse);
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(product));
        }
        Step {
            size,
            inverse,
            shift,
        }
    }

    /// The distance from one multiple to the next.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// `number / size` of a multiple, more than `u64::MAX / size` of another number.
    #[inline(always)]
    pub fn times(&self, number: u64) -> u64 {
        number.wrapping_mul(self.inverse).rotate_right(self.shift)
    }

    /// True of multiples.
    #[inline(always)]
    pub fn divides(&self, number: u64) -> bool {
        self.times(number) <= u64::MAX / self.size
    }
}

/// The greatest number of which `known` and all `distances` are multiples; 0 where all are 0. That of most columns is 1 after a
/// few values, and then no other is looked at.
pub fn common(known: u64, distances: impl Iterator<Item = u64>) -> u64 {
    let mut distances = distances;
    let mut found = known;
    while found != 1 {
        let step = Step::new(found);
        let other = match found {
            0 => distances.find(|&distance| distance != 0),
            _ => distances.find(|&distance| !step.divides(distance)),
        };
        match other {
            Some(distance) => found = divisor(found, distance),
            None => break,
        }
    }
    found
}

/// The greatest that divides both.
fn divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::naive;

    fn sizes() -> impl Strategy<Value = u64> {
        let odd = prop_oneof![1..100u64, any::<u64>()];
        (odd, 0..64u32).prop_map(|(odd, zeros)| (odd << zeros).max(1))
    }

    proptest! {
        #[test]
        fn steps_equal_the_naive_ones(
            size in sizes(),
            numbers in prop::collection::vec(prop_oneof![0..1_000u64, any::<u64>()], 0..50),
        ) {
            let step = Step::new(size);
            for number in numbers {
                let near = number.wrapping_mul(size);
                for number in [number, near, near.wrapping_neg(), near.wrapping_add(1), u64::MAX - number] {
                    match naive::times(number, size) {
                        Some(times) => prop_assert_eq!(step.times(number), times),
                        None => prop_assert!(step.times(number) > u64::MAX / size),
                    }
                    prop_assert_eq!(step.divides(number), naive::times(number, size).is_some());
                }
            }
        }

        #[test]
        fn common_steps_equal_the_naive_ones(
            known in prop_oneof![Just(0), 1..2_000u64],
            size in 1..200u64,
            times in prop::collection::vec(0..100u64, 0..50),
        ) {
            let distances: Vec<u64> = times.iter().map(|times| times * size).collect();
            let found = common(known, distances.iter().copied());
            prop_assert_eq!(found, naive::common(known, &distances));
        }
    }

    #[test]
    fn no_distance_has_no_step() {
        assert_eq!(common(0, [0, 0].into_iter()), 0);
        assert_eq!(common(0, [].into_iter()), 0);
        assert_eq!(common(60, [].into_iter()), 60);
    }
}
