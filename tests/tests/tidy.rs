//! The house style as far as a machine can check it; each rule says what to do instead.
//!
//! In: the files that git tracks, or would. Out: one line per breach, all of them at once.
//! Not here: formatting and lints (rustfmt, clippy), licences (cargo-deny).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines of a Rust file before its tests.
const FILE_LINES_MAX: usize = 800;
/// Lines of a function, from `fn` to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;
/// Lines of a module doc.
const DOC_LINES_MAX: usize = 15;
/// Words of a sentence in a comment.
const SENTENCE_WORDS_MAX: usize = 30;
/// Files of Rust that lie in one folder.
const FOLDER_FILES_MAX: usize = 40;

/// Documents that name files.
const DOCUMENTS: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];

/// The only files with `unsafe` in them: every block there has a SAFETY comment, which clippy checks.
const UNSAFE_FILES: &[&str] = &[
    "crates/kernels/src/prefetch.rs",
    "crates/kernels/src/booleans.rs",
    "crates/groupby/src/keys/bytes.rs",
    "crates/engine/src/functions/patterns/parts.rs",
    "crates/allocator/src/lib.rs",
    "crates/cli/src/interrupt.rs",
    "crates/python/src/processor.rs",
    "crates/cli/tests/cli/signals.rs",
    "crates/cli/tests/cli/terminal.rs",
    "fuzz/targets/c_stream.rs",
];

/// Names that say nothing of what a file holds.
const EMPTY_NAMES: [&str; 9] = [
    "util", "utils", "helper", "helpers", "common", "manager", "handler", "misc", "stuff",
];

/// What is not finished; in two parts, so that this file does not find itself.
const UNFINISHED: [(&str, &str); 6] = [
    ("todo", "!("),
    ("unimplemented", "!("),
    ("dbg", "!("),
    ("FIX", "ME"),
    ("XX", "X:"),
    ("#[ign", "ore"),
];

/// Hosts of package registries: clients know them, the tree does not name them.
const REGISTRY_HOSTS: [(&str, &str); 5] = [
    ("crates", ".io"),
    ("pypi", ".org"),
    ("pythonhosted", ".org"),
    ("npmjs", ".com"),
    ("anaconda", ".org"),
];

/// Files of the house itself that have to be there.
const REQUIRED: [&str; 9] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE",
    "Makefile",
    "rust-toolchain.toml",
    ".ci/run",
];

struct Source {
    path: String,
    text: String,
}

impl Source {
    /// Ours and written by hand, not generated.
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The part before the unit tests; integration tests are tests from the first line.
    fn product(&self) -> &str {
        match self.path.contains("/tests/") {
            true => "",
            false => self.text.split("#[cfg(test)]\nmod ").next().unwrap_or(""),
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources() -> Vec<Source> {
    let listing = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git");
    assert!(
        listing.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&listing.stderr)
    );
    let names = String::from_utf8(listing.stdout).expect("file names in UTF-8");
    let read = |path: &str| {
        Some(Source {
            path: path.to_string(),
            text: fs::read_to_string(root().join(path)).ok()?,
        })
    };
    let sources: Vec<Source> = names.lines().filter_map(read).collect();
    assert!(
        sources.iter().filter(|source| source.is_rust()).count() > 10,
        "the tree was not found"
    );
    sources
}

/// Fails with every breach that `rule` finds.
fn check(rule: impl Fn(&Source) -> Vec<String>) {
    let breaches: Vec<String> = sources()
        .iter()
        .flat_map(|source| {
            rule(source)
                .into_iter()
                .map(|breach| format!("{}{breach}", source.path))
        })
        .collect();
    assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
}

#[test]
fn required_files_are_there() {
    let missing: Vec<&str> = REQUIRED
        .into_iter()
        .filter(|name| !root().join(name).is_file())
        .collect();
    assert!(missing.is_empty(), "missing: {missing:?}");
}

#[test]
fn every_file_says_what_it_is() {
    check(|source| {
        let doc = source
            .text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .count();
        match (source.is_rust(), doc) {
            (false, _) => vec![],
            (true, 0) => vec![
                ": no module doc on the first line (what it is, In, Out, Invariant, Not here)"
                    .to_string(),
            ],
            (true, lines) if lines > DOC_LINES_MAX => vec![format!(
                ": module doc of {lines} lines, {DOC_LINES_MAX} at most"
            )],
            _ => vec![],
        }
    });
}

#[test]
fn sentences_are_short() {
    check(|source| match source.is_rust() {
        true => long_sentences(&source.text),
        false => vec![],
    });
}

/// Sentences of comments, which go on over neighbouring lines; each item of a list begins anew.
fn long_sentences(text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let (mut kind, mut start, mut words, mut is_code) = ("", 0, 0, false);
    let mut end = |start: usize, words: &mut usize| {
        if *words > SENTENCE_WORDS_MAX {
            breaches.push(format!(
                ":{start}: sentence of {words} words, {SENTENCE_WORDS_MAX} at most: make two of it"
            ));
        }
        *words = 0;
    };
    for (at, line) in text.lines().enumerate() {
        let (own, comment) = comment(line);
        is_code = is_code && own == kind;
        if own != kind || comment.is_empty() || begins_an_item(comment) {
            end(start, &mut words);
        }
        kind = own;
        if comment.starts_with("```") {
            is_code = !is_code;
        } else if !is_code && !comment.starts_with('|') {
            for word in comment.split_whitespace() {
                start = if words == 0 { at + 1 } else { start };
                words += 1;
                let word = word.trim_end_matches(['"', '\'', ')', '`']);
                if word.ends_with(['.', '?', '!']) {
                    end(start, &mut words);
                }
            }
        }
    }
    end(start, &mut words);
    breaches
}

/// What kind of comment a line is, and its text; nothing for code.
fn comment(line: &str) -> (&'static str, &str) {
    let line = line.trim_start();
    let kinds = ["///", "//!", "//"].into_iter();
    let of = |kind| Some((kind, line.strip_prefix(kind)?.trim()));
    kinds.filter_map(of).next().unwrap_or(("", ""))
}

/// Whether a line of a comment begins an item of a list, a heading, a table or an example.
fn begins_an_item(comment: &str) -> bool {
    let number = comment.trim_start_matches(|c: char| c.is_ascii_digit());
    comment.starts_with(['-', '*', '#', '|'])
        || comment.starts_with("```")
        || number.len() < comment.len() && number.starts_with(". ")
}

#[test]
fn sentences_are_counted() {
    let long = "word ".repeat(SENTENCE_WORDS_MAX);
    let halves = format!("/// {long}\n/// more.\nfn f() {{}}\n");
    assert_eq!(long_sentences(&halves).len(), 1);
    assert_eq!(
        long_sentences(&format!("// {long}\n/// Other kind.\n")).len(),
        0
    );
    assert_eq!(
        long_sentences(&format!("//! - {long}\n//! - item\n")).len(),
        1
    );
    assert_eq!(
        long_sentences(&format!("// One (two.) {long}\n// ```\n// code\n// ```\n")).len(),
        0
    );
    assert_eq!(
        long_sentences(&format!("let x = 1; // {long}{long}\n")).len(),
        0
    );
}

/// A folder that nobody can read at one look becomes several.
#[test]
fn folders_are_small() {
    let mut files: HashMap<String, usize> = HashMap::new();
    for source in sources().iter().filter(|source| source.is_rust()) {
        let folder = source
            .path
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        *files.entry(folder.to_string()).or_default() += 1;
    }
    let heaps = files.iter().filter(|(_, files)| **files > FOLDER_FILES_MAX);
    let heaps: Vec<String> = heaps
        .map(|(folder, files)| {
            format!("{folder}: {files} files, {FOLDER_FILES_MAX} at most: make folders by step or subject")
        })
        .collect();
    assert!(heaps.is_empty(), "\n{}", heaps.join("\n"));
}

/// Files that documents name are there; `engine/sql` is short for `crates/engine/src/sql`.
#[test]
fn files_that_documents_name_are_there() {
    let sources = sources();
    let paths = sources.iter().map(|source| format!("/{}", source.path));
    let paths: Vec<String> = paths
        .flat_map(|path| [path.replacen("/src/", "/", 1), path])
        .collect();
    let mut missing = Vec::new();
    for source in sources
        .iter()
        .filter(|source| DOCUMENTS.contains(&source.path.as_str()))
    {
        for name in named_files(&source.text) {
            let end = format!("/{name}");
            if !paths.iter().any(|path| match name.ends_with('/') {
                true => path.contains(&end),
                false => path.ends_with(&end),
            }) {
                missing.push(format!("{}: there is no {name}", source.path));
            }
        }
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

/// Files and folders that stand between backquotes, but for patterns and for what builds make.
fn named_files(text: &str) -> Vec<&str> {
    let is_name = |name: &str| {
        name.starts_with(char::is_alphanumeric)
            && !name.starts_with("target/")
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || "._-/".contains(c))
    };
    let endings = [
        ".rs", ".md", ".txt", ".py", ".slt", ".sql", ".html", ".toml", ".sh", "/",
    ];
    let spans = text
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    spans
        .filter(|name| is_name(name) && endings.iter().any(|ending| name.ends_with(ending)))
        .collect()
}

#[test]
fn named_files_are_found() {
    let text = "In `engine/sql/mod.rs` and `fixes/` of `a<b>.rs`, `x = 1`, `target/` and\n`mod.rs`, `/`.\n";
    assert_eq!(named_files(text), ["engine/sql/mod.rs", "fixes/", "mod.rs"]);
}

#[test]
fn files_are_short() {
    check(|source| match source.product().lines().count() {
        lines if source.is_rust() && lines > FILE_LINES_MAX => {
            vec![format!(
                ": {lines} lines before its tests, {FILE_LINES_MAX} at most: split it along the data flow"
            )]
        }
        _ => vec![],
    });
}

#[test]
fn functions_are_short() {
    check(|source| {
        if source.is_rust() {
            long_functions(source.product())
        } else {
            vec![]
        }
    });
}

/// Functions by indentation: rustfmt closes each at the column where its line begins.
fn long_functions(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut breaches = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let words: Vec<&str> = line
            .split_whitespace()
            .take_while(|word| !word.starts_with('('))
            .collect();
        let Some(position) = words.iter().position(|word| *word == "fn") else {
            continue;
        };
        if words[..position]
            .iter()
            .any(|word| word.starts_with("//") || word.contains('"'))
        {
            continue;
        }
        let close = format!("{}}}", " ".repeat(indent));
        let length = lines[at..].iter().position(|line| {
            *line == close
                || line.ends_with(';')
                    && line.starts_with(&close[..indent])
                    && !line[indent..].starts_with(' ')
        });
        if let Some(length) = length
            && length + 1 > FUNCTION_LINES_MAX
            && !lines[at.saturating_sub(4)..at]
                .iter()
                .any(|line| line.contains("too_many_lines"))
        {
            breaches.push(format!(
                ":{}: function of {} lines, {FUNCTION_LINES_MAX} at most",
                at + 1,
                length + 1
            ));
        }
    }
    breaches
}

#[test]
fn the_function_counter_counts() {
    let body = "    work();\n".repeat(FUNCTION_LINES_MAX);
    assert_eq!(
        long_functions(&format!("fn long() {{\n{body}}}\n")).len(),
        1
    );
    assert_eq!(
        long_functions(&format!(
            "fn short() {{\n    work();\n}}\nstruct Other {{\n{body}}}\n"
        ))
        .len(),
        0
    );
    assert_eq!(
        long_functions(&format!("trait A {{\n    fn declared();\n{body}}}\n")).len(),
        0
    );
}

/// The engine's rooms are folders, whose files stand inside.
#[test]
fn rooms_of_the_engine_are_folders() {
    check(|source| {
        let file = source.path.strip_prefix("crates/engine/src/");
        match file.is_some_and(|file| !file.contains('/') && file != "lib.rs") {
            true => {
                vec![": put it into a room, as its mod.rs if it is the room's face".to_string()]
            }
            false => vec![],
        }
    });
}

/// A crate's rooms stand on floors: lib.rs lists its modules from the ground up.
#[test]
fn rooms_name_only_rooms_below_them() {
    let sources = sources();
    let faces = sources.iter().filter_map(|source| {
        let path = source
            .path
            .strip_suffix("lib.rs")
            .or(source.path.strip_suffix("main.rs"))?;
        let is_crate = path.starts_with("crates/") && path.ends_with("/src/");
        is_crate.then(|| (path, modules(&source.text)))
    });
    let faces: Vec<(&str, Vec<&str>)> = faces.collect();
    assert!(faces.len() > 5, "the crates were not found");
    let mut breaches = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        for (folder, rooms) in &faces {
            if let Some(path) = source.path.strip_prefix(folder) {
                breaches.extend(climbs(path, source.product(), rooms));
            }
        }
    }
    assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
}

/// The modules that a file declares, in order.
fn modules(text: &str) -> Vec<&str> {
    let names = text.lines().filter_map(|line| {
        let name = line.strip_suffix(';')?;
        let name = name.strip_prefix("pub ").unwrap_or(name);
        let name = name.strip_prefix("pub(crate) ").unwrap_or(name);
        name.strip_prefix("mod ")
    });
    names.collect()
}

/// Names of rooms that stand above the one of the file at `path`, by `crate::` or by `super::` from its own face.
fn climbs(path: &str, text: &str, rooms: &[&str]) -> Vec<String> {
    let own = path.split(['/', '.']).next().unwrap_or("");
    let Some(floor) = rooms.iter().position(|room| *room == own) else {
        return Vec::new(); // the crate's face
    };
    let is_face =
        path.strip_prefix(own) == Some(".rs") || path.strip_prefix(own) == Some("/mod.rs");
    let mut breaches = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or("");
        let by_crate = code
            .match_indices("crate::")
            .map(|(start, word)| &code[start + word.len()..]);
        let by_super = code
            .match_indices("super::")
            .map(|(start, word)| &code[start + word.len()..]);
        for rest in by_crate.chain(by_super.filter(|_| is_face)) {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let name = &rest[..end.unwrap_or(rest.len())];
            if rooms[floor + 1..].contains(&name) {
                breaches.push(format!(
                    "{path}:{}: {own} names {name}, which stands above it in lib.rs",
                    at + 1
                ));
            }
        }
    }
    breaches
}

#[test]
fn climbs_are_found() {
    let rooms = modules("mod low;\npub mod high;\npub(crate) mod top;\n");
    assert_eq!(rooms, ["low", "high", "top"]);
    let climbing = "use crate::high::Thing; // crate::top\nfn f() { crate::top::g() }\n";
    assert_eq!(climbs("low/part.rs", climbing, &rooms).len(), 2);
    assert_eq!(climbs("high.rs", climbing, &rooms).len(), 1);
    assert_eq!(climbs("top/mod.rs", "use super::low;", &rooms).len(), 0);
    assert_eq!(climbs("low.rs", "use super::top;", &rooms).len(), 1);
}

/// A name says what a type is only if no other type of its crate has it.
#[test]
fn type_names_are_defined_once_in_a_crate() {
    let sources = sources();
    let mut first: HashMap<(&str, &str), String> = HashMap::new();
    let mut breaches = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let Some((folder, _)) = source.path.split_once("/src/") else {
            continue;
        };
        for (line, name) in type_names(source.product()) {
            let place = format!("{}:{line}", source.path);
            match first.entry((folder, name)) {
                Entry::Vacant(entry) => drop(entry.insert(place)),
                Entry::Occupied(entry) => breaches.push(format!(
                    "{place}: {name} is defined at {}, too: name each after what it is",
                    entry.get()
                )),
            }
        }
    }
    assert!(first.len() > 100, "the types were not found");
    assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
}

/// The types that a file defines, each with its line; no associated ones.
fn type_names(text: &str) -> Vec<(usize, &str)> {
    let names = text.lines().enumerate().filter_map(|(at, line)| {
        let code = line.trim_start();
        let is_indented = code.len() < line.len();
        let code = match code.strip_prefix("pub(") {
            Some(rest) => rest.split_once(") ")?.1,
            None => code.strip_prefix("pub ").unwrap_or(code),
        };
        let code = code.strip_prefix("unsafe ").unwrap_or(code);
        let (keyword, rest) = code.split_once(' ')?;
        let is_type = match keyword {
            "struct" | "enum" | "trait" | "union" => true,
            "type" => !is_indented,
            _ => false,
        };
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let name = &rest[..end.unwrap_or(rest.len())];
        (is_type && !name.is_empty()).then_some((at + 1, name))
    });
    names.collect()
}

#[test]
fn type_names_are_found() {
    let text = "pub(in crate::low) struct A<'a> {\n}\nunsafe trait B: Copy {\n    type No;\n}\npub type C = A;\n\
                fn f() {\n    enum D {}\n    let structure = 1;\n}\n";
    assert_eq!(type_names(text), [(1, "A"), (3, "B"), (6, "C"), (8, "D")]);
}

#[test]
fn names_say_what_is_inside() {
    check(|source| {
        let stem = Path::new(&source.path)
            .file_stem()
            .map(|stem| stem.to_string_lossy().to_lowercase())
            .unwrap_or_default();
        let folder = Path::new(&source.path)
            .parent()
            .and_then(Path::file_name)
            .map(|name| name.to_string_lossy().to_lowercase());
        match EMPTY_NAMES.contains(&stem.as_str())
            || folder.is_some_and(|name| EMPTY_NAMES.contains(&name.as_str()))
        {
            true => vec![": name it after what it holds".to_string()],
            false => vec![],
        }
    });
}

#[test]
fn nothing_is_unfinished() {
    check(|source| {
        let named = UNFINISHED.map(|(start, end)| format!("{start}{end}"));
        match source.path.starts_with("crates/")
            || source.path.starts_with("tests/")
            || source.path.starts_with("bench/")
        {
            true => lines_with(&source.text, &named, "unfinished or left over"),
            false => vec![],
        }
    });
}

#[test]
fn code_is_not_commented_out() {
    check(|source| {
        let is_code = |line: &str| {
            let Some(comment) = line.trim_start().strip_prefix("// ") else {
                return false;
            };
            let statement = comment.ends_with(';')
                && (comment.contains(" = ") || comment.contains("("))
                && !comment.contains(". ");
            let block = comment.ends_with('{')
                && ["if ", "for ", "fn ", "while ", "match ", "impl "]
                    .iter()
                    .any(|word| comment.starts_with(word));
            statement && !comment.starts_with(char::is_uppercase) || block
        };
        let lines = source
            .text
            .lines()
            .enumerate()
            .filter(|(_, line)| source.is_rust() && is_code(line));
        lines
            .map(|(at, _)| format!(":{}: commented-out code; history keeps it", at + 1))
            .collect()
    });
}

#[test]
fn unsafe_stays_in_its_files() {
    let word = format!("un{}", "safe");
    check(|source| {
        let uses = |line: &str| {
            let code = line.split("//").next().unwrap_or("");
            code.split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|part| part == word)
                && !code.contains('"')
        };
        let allowed = UNSAFE_FILES.contains(&source.path.as_str());
        let lines = source
            .text
            .lines()
            .enumerate()
            .filter(|(_, line)| source.is_rust() && !allowed && uses(line));
        lines
            .map(|(at, _)| {
                format!(
                    ":{}: {word} outside of the files that tests/tests/tidy.rs lists",
                    at + 1
                )
            })
            .collect()
    });
}

#[test]
fn no_registry_is_named() {
    let hosts = REGISTRY_HOSTS.map(|(name, end)| format!("{name}{end}"));
    check(|source| match source.path.as_str() {
        // cargo writes its sources into the lock file itself
        "Cargo.lock" => vec![],
        _ => lines_with(&source.text, &hosts, "names the host of a package registry"),
    });
}

#[test]
fn tests_do_not_reach_into_product_settings_by_environment() {
    check(|source| {
        match source.path.starts_with("crates/kernels/")
            || source.path.starts_with("crates/groupby/")
            || source.path.starts_with("crates/text/")
        {
            true => lines_with(
                source.product(),
                &["env::var".to_string()],
                "a library reads no environment variable: make it an option",
            ),
            false => vec![],
        }
    });
}

fn lines_with(text: &str, wanted: &[String], complaint: &str) -> Vec<String> {
    let found = text
        .lines()
        .enumerate()
        .filter(|(_, line)| wanted.iter().any(|word| line.contains(word)));
    found
        .map(|(at, line)| format!(":{}: {complaint}: {}", at + 1, line.trim()))
        .collect()
}
