//! Locks: which options a statement may no longer change.
//!
//! In: the options before a `SET` or `RESET`, and after it. Out: nothing, or an error that names the option.
//! Invariant: what closes a session only ever closes further; no statement opens it again.
//! Not here: what is closed (scan/access.rs); options that a session begins with, which its program sets.

use crate::error::{Error, Result};
use crate::runtime::options::{Audience, OptionSpec, SessionOptions};

impl SessionOptions {
    /// Closes the session to files and network, and keeps its options as they are.
    pub fn close(&mut self) {
        self.allow_files = false;
        self.allow_network = false;
        self.lock_options = true;
    }

    /// Whether statements reach fewer files than the process does.
    pub fn is_confined(&self) -> bool {
        !self.allow_files || !self.allowed_directories.is_empty()
    }

    /// An error if a statement may not change the option `name`, whosever it is.
    pub(crate) fn check_settable(&self, name: &str) -> Result<()> {
        if self.lock_options {
            return Err(refused(name, "lock_options is on, so no option changes"));
        }
        let is_for =
            |audience| OptionSpec::find(name).is_some_and(|spec| spec.audience == audience);
        match is_for(Audience::Test) && self.settable != Audience::Test {
            true => Err(refused(
                name,
                "it is for tests of grouse itself, and no statement sets it",
            )),
            false => Ok(()),
        }
    }

    /// An error if these options, which a statement made of those `before`, would open what was closed.
    pub(crate) fn check_change(&self, before: &SessionOptions) -> Result<()> {
        if self.allow_files && !before.allow_files {
            return Err(refused("allow_files", FOR_GOOD));
        }
        if self.allow_network && !before.allow_network {
            return Err(refused("allow_network", FOR_GOOD));
        }
        let folders = &before.allowed_directories;
        if !folders.is_empty() && self.allowed_directories != *folders {
            return Err(refused(
                "allowed_directories",
                "it is set and cannot be changed in this session",
            ));
        }
        if !before.allow_files && self.allowed_directories != *folders {
            return Err(refused(
                "allowed_directories",
                "allow_files is off for this session",
            ));
        }
        if before.is_confined() && self.temp_directory != before.temp_directory {
            return Err(refused(
                "temp_directory",
                "this session reaches only some files, and the program that began it says where temporary ones are",
            ));
        }
        Ok(())
    }
}

const FOR_GOOD: &str = "it was turned off for the whole session";

fn refused(name: &str, message: &str) -> Error {
    Error::invalid(name.to_string(), message.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(before: &SessionOptions, name: &str, value: &str) -> Result<()> {
        before.check_settable(name)?;
        let mut after = before.clone();
        after.set(name, value)?;
        after.check_change(before)
    }

    fn with(settings: &[(&str, &str)]) -> SessionOptions {
        let mut options = SessionOptions::default();
        for (name, value) in settings {
            options.set(name, value).unwrap();
        }
        options
    }

    #[test]
    fn a_session_closes_and_never_opens() {
        let open = SessionOptions::default();
        for (name, value) in [
            ("allow_files", "off"),
            ("allow_network", "off"),
            ("allowed_directories", "/tmp"),
            ("lock_options", "on"),
            ("temp_directory", "/tmp"),
        ] {
            assert_eq!(changed(&open, name, value), Ok(()), "{name}");
        }
        for (before, name, value) in [
            (("allow_files", "off"), "allow_files", "on"),
            (("allow_files", "off"), "allowed_directories", "/"),
            (("allow_files", "off"), "temp_directory", "/tmp/x"),
            (("allow_network", "off"), "allow_network", "true"),
            (
                ("allowed_directories", "/a"),
                "allowed_directories",
                "/a:/b",
            ),
            (("allowed_directories", "/a"), "allowed_directories", ""),
            (("allowed_directories", "/a"), "temp_directory", "/a"),
            (("lock_options", "on"), "lock_options", "off"),
            (("lock_options", "on"), "threads", "1"),
            (
                ("lock_options", "on"),
                "datafusion.execution.batch_size",
                "1",
            ),
        ] {
            let error = changed(&with(&[before]), name, value).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
        assert_eq!(
            changed(&with(&[("allow_files", "off")]), "threads", "1"),
            Ok(())
        );
    }

    #[test]
    fn options_of_tests_are_not_for_statements() {
        let mut options = SessionOptions::default();
        assert!(options.check_settable("GROUSE.group-by-fault").is_err());
        options.settable = Audience::Test;
        assert_eq!(options.check_settable("group_by_fault"), Ok(()));
    }
}
