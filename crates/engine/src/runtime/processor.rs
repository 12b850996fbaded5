//! Whether this machine's processor has the instructions that this build was compiled for (`.cargo/config.toml`).
//!
//! In: nothing. Out: an error that says what to do. To be asked before anything else: the first instruction that is not
//! there kills the process.
//! Invariant: reads the processor itself; the standard library's macro answers what the build assumes.
//! Not here: choosing between loops at run time, which a build for one level does not need.

use std::io::Write;

/// Says what to do if this build needs instructions that the processor lacks.
pub fn check() -> Result<(), &'static str> {
    match has_level() {
        true => Ok(()),
        false => Err(
            "this build of grouse needs a processor with AVX2, BMI2 and FMA (x86-64-v3: Intel since 2013, AMD since 2015); \
             for this one there is the wheel grouse-x86-64-v2, or build it: RUSTFLAGS='-C target-cpu=native' make build",
        ),
    }
}

/// Writes the message to standard error, by code of the standard library alone: other code may need what is not there.
pub fn tell(message: &str) {
    for text in ["error: ", message, "\n"] {
        // Nobody can be told that this fails.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// True of processors of level x86-64-v3, and of builds for others.
#[cfg(all(target_arch = "x86_64", target_feature = "avx2"))]
fn has_level() -> bool {
    use std::arch::x86_64::__cpuid;
    // FMA, MOVBE, OSXSAVE, AVX and F16C; BMI1, AVX2 and BMI2; LZCNT.
    let basic = [12, 22, 27, 28, 29].map(|bit| 1u32 << bit).iter().sum();
    let more = [3, 5, 8].map(|bit| 1u32 << bit).iter().sum();
    let has = |bits: u32, wanted: u32| bits & wanted == wanted;
    __cpuid(0).eax >= 7
        && has(__cpuid(1).ecx, basic)
        && has(__cpuid(7).ebx, more)
        && has(__cpuid(0x8000_0001).ecx, 1 << 5)
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "avx2")))]
fn has_level() -> bool {
    true
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_processor_runs_this_test() {
        assert_eq!(super::check(), Ok(()));
    }
}
