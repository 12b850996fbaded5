//! Asks the processor while the library is loaded: what makes a module for Python is compiled to what it may lack.
//!
//! In: nothing. Out: nothing, or a message and the end of the process, which an illegal instruction would end without one.
//! Invariant: runs before all other code of the library.
//! Not here: what is asked (`grouse::processor`); other systems than Linux, whose loaders have other lists.

#[cfg(target_os = "linux")]
// SAFETY: the loader calls what this list has, functions of this type, once and before anything else of the library.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_ALL: extern "C" fn() = refuse_or_return;

#[cfg(target_os = "linux")]
extern "C" fn refuse_or_return() {
    if let Err(message) = grouse::processor::check() {
        grouse::processor::tell(message);
        std::process::exit(1);
    }
}
