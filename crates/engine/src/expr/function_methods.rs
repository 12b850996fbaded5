//! Methods of functions that are the same in all of ours.
//!
//! In: a function's name, if it is always the same. Out: these methods of `ScalarUDFImpl` and `AggregateUDFImpl`.
//! Not here: what a function computes.

/// `function_methods!("tried")` within an `impl` says the function's name, and its signature, a field of it.
/// `function_methods!()` leaves the name to the `impl`.
macro_rules! function_methods {
    ($name:expr) => {
        fn name(&self) -> &str {
            $name
        }

        $crate::expr::function_methods::function_methods!();
    };
    () => {
        fn signature(&self) -> &::datafusion::logical_expr::Signature {
            &self.signature
        }
    };
}

pub(crate) use function_methods;
