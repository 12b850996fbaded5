//! Runs the binary.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What a run left behind.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// The binary, with a home of its own so that no history is touched and no file of the user runs.
pub fn command(arguments: &[&str]) -> Command {
    with_arguments(Command::new(env!("CARGO_BIN_EXE_grouse")), arguments)
}

fn with_arguments(mut command: Command, arguments: &[&str]) -> Command {
    command.args(arguments).stdin(Stdio::null());
    for folder in ["XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
        command.env(folder, env!("CARGO_TARGET_TMPDIR"));
    }
    command
}

/// Runs it with `arguments`.
pub fn grouse(arguments: &[&str]) -> Ran {
    ran(command(arguments).output().expect("the binary starts"))
}

/// Runs it in `folder`.
pub fn grouse_in(folder: &Path, arguments: &[&str]) -> Ran {
    ran(command(arguments)
        .current_dir(folder)
        .output()
        .expect("the binary starts"))
}

/// Runs it with `input` on standard input.
pub fn grouse_fed(input: &str, arguments: &[&str]) -> Ran {
    let mut command = command(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    // A run that fails early does not read to the end.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    ran(child.wait_with_output().expect("the binary ends"))
}

/// Runs it after `ulimit FLAG FILES`: `-Sn` sets the soft limit of open files, `-n` both limits.
pub fn grouse_with_open_files(flag: &str, files: usize, arguments: &[&str]) -> Ran {
    let mut shell = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_grouse");
    shell.args([
        "-c",
        &format!("ulimit {flag} {files} && exec \"$0\" \"$@\""),
        program,
    ]);
    ran(with_arguments(shell, arguments).output().expect("a shell"))
}

fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("the output is text"),
        stderr: String::from_utf8(output.stderr).expect("messages are text"),
    }
}

impl Ran {
    /// The output of a run that has to succeed without a word on standard error.
    #[track_caller]
    pub fn succeeded(self) -> String {
        assert_eq!(
            (self.code, self.stderr.as_str()),
            (Some(0), ""),
            "{}",
            self.stdout
        );
        self.stdout
    }

    /// The message of a run that has to fail with `code` and without output.
    #[track_caller]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(
            (self.code, self.stdout.as_str()),
            (Some(code), ""),
            "{}",
            self.stderr
        );
        self.stderr
    }
}
