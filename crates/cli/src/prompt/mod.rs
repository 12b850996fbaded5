//! The prompt: statements from a person, edited and remembered.
//! In: a terminal. Out: what was typed, for the shell, until the person leaves.
//! Invariant: a failure ends nothing; Ctrl-C drops what is being typed or stops the query, Ctrl-D leaves. Enter runs what is
//! complete and else begins a line. The history holds whole statements and survives the session, if there is a folder to keep it in.
//! Not here: what a statement or command does.

mod keywords;
mod names;
mod complete;
mod assistant;

use std::fs;
use std::path::PathBuf;

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};

use crate::report::{self, Origin};
use crate::shell::{Shell, Stop};

use assistant::Assistant;
use names::Names;

/// Statements remembered.
const HISTORY_MAX: usize = 10_000;

/// Asks until the person leaves.
pub fn run(shell: &mut Shell) -> Result<(), Stop> {
    let names = Names::new(shell.runner().session().clone());
    let mut editor = match LineEditor::new(names) {
        Ok(editor) => editor,
        Err(error) => {
            report::message(&format!("cannot use the terminal: {error}"));
            return Err(Stop::Failed);
        }
    };
    shell.at_prompt();
    let version = env!("CARGO_PKG_VERSION");
    tell(&format!(
        "grouse {version}. SQL ends with `;`, .help lists commands, Ctrl-D leaves."
    ));
    loop {
        let entered = match editor.read(&shell.settings().prompt) {
            Ok(entered) => entered,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => {
                report::message(&format!("cannot read from the terminal: {error}"));
                return Err(Stop::Failed);
            }
        };
        editor.remember(&entered);
        match shell.feed(entered.as_bytes(), &Origin::Typed) {
            Ok(()) | Err(Stop::Failed | Stop::ReaderGone) => {}
            Err(Stop::Interrupted) => {
                report::note("interrupted");
                shell.runner().interrupts().settled();
            }
            Err(leaves @ Stop::Exit(_)) => return Err(leaves),
        }
        editor.forget_names();
    }
}

/// Writes a line for the person.
pub fn tell(text: &str) {
    use std::io::Write;
    // Where nobody can read it nobody misses it.
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// The folder `grouse` in the one that `variable` names, or in that folder of the home.
pub fn folder(variable: &str, in_home: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|folder| !folder.is_empty());
    let parent = match set(variable) {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(set("HOME")?).join(in_home),
    };
    Some(parent.join("grouse"))
}

/// A line editor with a history file.
struct LineEditor {
    editor: Editor<Assistant, FileHistory>,
    file: Option<PathBuf>,
}

impl LineEditor {
    fn new(names: Names) -> Result<LineEditor, ReadlineError> {
        let config = Config::builder()
            .max_history_size(HISTORY_MAX)?
            .auto_add_history(false)
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Assistant::new(names)));
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

    /// Tables may have other columns now.
    fn forget_names(&mut self) {
        if let Some(assistant) = self.editor.helper() {
            assistant.names().forget();
        }
    }
}

/// `$XDG_STATE_HOME/grouse/history`, by default in `~/.local/state`; its folder is made.
fn history_file() -> Option<PathBuf> {
    let folder = folder("XDG_STATE_HOME", ".local/state")?;
    fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}
