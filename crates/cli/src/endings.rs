//! What the ending of a file's name says of it: the format and the compression of results.
//! In: paths. Out: [`Format`], [`Compression`], or why a file of this name is not written.
//! Invariant: no file is written whose ending would say what is not in it.
//! Not here: formats of files that are read, which are the engine's.

use std::path::Path;

use crate::output::Compression;
use crate::print::Format;

/// Endings of files, and their formats.
const ENDINGS: &[(&str, Format)] = &[
    ("txt", Format::Table),
    ("text", Format::Table),
    ("csv", Format::Csv),
    ("tsv", Format::Tsv),
    ("tab", Format::Tsv),
    ("json", Format::Json),
    ("ndjson", Format::Ndjson),
    ("jsonl", Format::Ndjson),
    ("md", Format::Markdown),
    ("markdown", Format::Markdown),
    ("html", Format::Html),
    ("htm", Format::Html),
    ("tex", Format::Latex),
    ("arrow", Format::Arrow),
    ("arrows", Format::Arrow),
    ("feather", Format::Arrow),
    ("ipc", Format::Arrow),
    ("parquet", Format::Parquet),
    ("parq", Format::Parquet),
    ("pq", Format::Parquet),
];

/// Endings of compressed files that are not written.
const OTHER_COMPRESSIONS: &[&str] = &["bz2", "xz", "lz4", "zip", "br", "7z"];

/// Why a file of this name is not written, if `asked` is the format that was asked for.
pub fn refusal(path: &Path, asked: Option<Format>) -> Option<String> {
    let compression = compression_of(path);
    let ending = ending_of(stem_of(path));
    let format = asked.or(format_of(path)).unwrap_or(Format::Table);
    match ending.as_deref() {
        Some(other) if OTHER_COMPRESSIONS.contains(&other) => Some(format!(
            "files are compressed with gzip (.gz) or zstd (.zst), not as .{other}"
        )),
        Some(other) if asked.is_none() && format_of(path).is_none() => {
            let known = ENDINGS.iter().map(|(ending, _)| format!(".{ending}"));
            let known = known.collect::<Vec<_>>().join(", ");
            Some(format!(
                "no format has the ending .{other}; name one with --format, or write {known} (text also with .gz or .zst)"
            ))
        }
        _ if compression != Compression::None && format.is_binary() => Some(format!(
            "{} files are compressed inside; leave .gz or .zst out",
            format.name()
        )),
        _ => None,
    }
}

/// The format that the ending stands for.
pub fn format_of(path: &Path) -> Option<Format> {
    let ending = ending_of(stem_of(path))?;
    let found = ENDINGS.iter().find(|(known, _)| *known == ending);
    found.map(|(_, format)| *format)
}

/// How a file of this name is compressed.
pub fn compression_of(path: &Path) -> Compression {
    match ending_of(path).as_deref() {
        Some("gz" | "gzip") => Compression::Gzip,
        Some("zst" | "zstd") => Compression::Zstd,
        _ => Compression::None,
    }
}

/// The name without the ending of a compression.
fn stem_of(path: &Path) -> &Path {
    match compression_of(path) {
        Compression::None => path,
        _ => path.file_stem().map_or(path, Path::new),
    }
}

fn ending_of(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}
