//! The prompt: lines from a person, edited and remembered.
//! In: a terminal. Out: pieces for the shell, one after the other, until the person leaves.
//! Invariant: a failure ends nothing; Ctrl-C drops the line being edited or stops the query, Ctrl-D leaves.
//! The history holds whole statements and survives the session, if there is a folder to keep it in.
//! Not here: what a piece does.

use std::fs;
use std::path::PathBuf;

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};

use crate::report::{self, Origin};
use crate::script::Assembler;
use crate::shell::{Shell, Stop};

const PROMPT: &str = "grouse> ";
const PROMPT_MORE: &str = "   ...> ";
/// Statements remembered.
const HISTORY_MAX: usize = 10_000;

/// Asks until the person leaves.
pub fn run(shell: &mut Shell) -> Result<(), Stop> {
    let mut editor = match LineEditor::new() {
        Ok(editor) => editor,
        Err(error) => {
            report::message(&format!("cannot use the terminal: {error}"));
            return Err(Stop::Failed);
        }
    };
    let version = env!("CARGO_PKG_VERSION");
    println_quietly(&format!(
        "grouse {version}. SQL ends with `;`, .help lists commands, Ctrl-D leaves."
    ));
    let mut assembler = Assembler::default();
    let mut statement = String::new();
    loop {
        let prompt = if assembler.is_blank() {
            PROMPT
        } else {
            PROMPT_MORE
        };
        let entered = match editor.read(prompt) {
            Ok(entered) => entered,
            Err(ReadlineError::Interrupted) => {
                assembler.clear();
                statement.clear();
                continue;
            }
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => {
                report::message(&format!("cannot read from the terminal: {error}"));
                return Err(Stop::Failed);
            }
        };
        if !statement.is_empty() {
            statement.push('\n');
        }
        statement.push_str(&entered);
        if entered.trim().is_empty() && assembler.is_blank() {
            statement.clear();
        }
        // An entry out of the history may have several lines.
        for line in entered.split('\n') {
            let Some(piece) = assembler.push(line) else {
                continue;
            };
            editor.remember(&std::mem::take(&mut statement));
            match shell.run(&piece, &Origin::Typed) {
                Ok(()) | Err(Stop::Failed | Stop::ReaderGone) => {}
                Err(Stop::Interrupted) => {
                    report::note("interrupted");
                    shell.runner().interrupts().settled();
                }
                Err(Stop::Exit) => return Ok(()),
            }
            // Lines count within the statement that is being typed.
            assembler = Assembler::default();
        }
    }
}

/// A line editor with a history file.
struct LineEditor {
    editor: Editor<(), FileHistory>,
    file: Option<PathBuf>,
}

impl LineEditor {
    fn new() -> Result<LineEditor, ReadlineError> {
        let config = Config::builder()
            .max_history_size(HISTORY_MAX)?
            .auto_add_history(false)
            .build();
        let mut editor = Editor::with_config(config)?;
        let file = history_file();
        if let Some(file) = &file {
            // The first session has no history.
            let _ = editor.load_history(file);
        }
        Ok(LineEditor { editor, file })
    }

    fn read(&mut self, prompt: &str) -> Result<String, ReadlineError> {
        self.editor.readline(prompt)
    }

    fn remember(&mut self, statement: &str) {
        let statement = statement.trim();
        if statement.is_empty() || !matches!(self.editor.add_history_entry(statement), Ok(true)) {
            return;
        }
        // Appended at once, so that sessions side by side and sessions that are killed lose nothing.
        if let Some(file) = &self.file {
            let _ = self.editor.append_history(file);
        }
    }
}

/// `$XDG_STATE_HOME/grouse/history`, by default in `~/.local/state`; its folder is made.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").filter(|folder| !folder.is_empty());
    let folder = match state {
        Some(folder) => PathBuf::from(folder),
        None => {
            PathBuf::from(std::env::var_os("HOME").filter(|h| !h.is_empty())?).join(".local/state")
        }
    };
    let folder = folder.join("grouse");
    fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

fn println_quietly(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{text}");
}
