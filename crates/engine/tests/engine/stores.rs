//! Servers of every kind, each a small one on loopback: without ranges, without lengths, without HEAD, and buckets.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::server::serve;
use crate::support::{error, rows, sample, session, write_parquet};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use grouse::{Error, Session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const CSV: &[u8] = b"id,name\n1,a\n2,b\n3,c\n";
const JSON: &[u8] =
    b"{\"id\":1,\"name\":\"a\"}\n{\"id\":2,\"name\":\"b\"}\n{\"id\":3,\"name\":\"c\"}\n";

/// What a server does not do.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lacks {
    /// It ignores ranges, as `python3 -m http.server` does.
    Ranges,
    /// It sends no length and closes the connection in the end.
    Length,
    /// It answers 405 to HEAD.
    Head,
    /// It answers nothing but the full address.
    PathOnly,
    /// It sends everybody elsewhere.
    Files,
}

/// Content of files by path; a test may change it.
type Files = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

struct Plain {
    address: String,
    fetched: Arc<AtomicUsize>,
    files: Files,
}

fn plain(session: &Session, lacks: Lacks, files: BTreeMap<String, Vec<u8>>) -> Plain {
    let (files, fetched) = (Arc::new(Mutex::new(files)), Arc::new(AtomicUsize::new(0)));
    let (served, count) = (Arc::clone(&files), Arc::clone(&fetched));
    session.handle().block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(
                    stream,
                    lacks,
                    Arc::clone(&served),
                    Arc::clone(&count),
                ));
            }
        });
        Plain {
            address,
            fetched,
            files,
        }
    })
}

/// One request per connection, as old servers have it.
async fn answer(mut stream: TcpStream, lacks: Lacks, files: Files, fetched: Arc<AtomicUsize>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if !matches!(stream.read(&mut byte).await, Ok(1)) {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut words = head.split_whitespace();
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let file = files
        .lock()
        .unwrap()
        .get(target.trim_start_matches('/'))
        .cloned();
    let text = match &file {
        _ if lacks == Lacks::Head && method == "HEAD" => {
            "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n".to_string()
        }
        None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n".to_string(),
        Some(_) if lacks == Lacks::Files && !target.contains("elsewhere") => {
            format!("HTTP/1.1 302 Found\r\nLocation: /elsewhere{target}\r\nContent-Length: 0\r\n")
        }
        Some(content) => {
            if method == "GET" {
                fetched.fetch_add(content.len(), Ordering::Relaxed);
            }
            match lacks {
                Lacks::Length => "HTTP/1.1 200 OK\r\n".to_string(),
                _ => {
                    let mut tag = DefaultHasher::new();
                    content.hash(&mut tag);
                    format!(
                        "HTTP/1.1 200 OK\r\nETag: \"{:x}\"\r\nContent-Length: {}\r\n",
                        tag.finish(),
                        content.len()
                    )
                }
            }
        }
    };
    let mut bytes = format!("{text}Connection: close\r\n\r\n").into_bytes();
    if method == "GET" && text.contains("200 OK") {
        bytes.extend_from_slice(&file.unwrap_or_default());
    }
    stream.write_all(&bytes).await.ok();
    stream.shutdown().await.ok();
}

fn files() -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let parquet = folder.path().join("s.parquet");
    write_parquet(&parquet, &sample());
    let parquet = std::fs::read(parquet).unwrap();
    BTreeMap::from([
        ("d/s.csv".to_string(), CSV.to_vec()),
        ("d/s.json".to_string(), JSON.to_vec()),
        ("d/s.parquet".to_string(), parquet.clone()),
        ("d/a%20b.csv".to_string(), CSV.to_vec()),
        ("d/s.csv?token=a/b&x=1".to_string(), CSV.to_vec()),
        ("d/s.parquet?X=%2F".to_string(), parquet),
        ("elsewhere/d/s.csv".to_string(), CSV.to_vec()),
        ("d/empty.csv".to_string(), Vec::new()),
    ])
}

const SUMS: &str = "SELECT count(*), sum(id), min(name), max(name) FROM";

#[test]
fn servers_that_lack_something() {
    for lacks in [Lacks::Ranges, Lacks::Length, Lacks::Head, Lacks::PathOnly] {
        let session = session();
        let server = plain(&session, lacks, files());
        for name in [
            "s.csv",
            "s.json",
            "s.parquet",
            "a%20b.csv",
            "s.csv?token=a/b&x=1",
            "s.parquet?X=%2F",
        ] {
            let sql = format!("{SUMS} '{}/d/{name}'", server.address);
            assert_eq!(rows(&session, &sql), ["3|6|a|c"], "{lacks:?} {name}");
            assert_eq!(rows(&session, &sql), ["3|6|a|c"], "{lacks:?} {name} again");
        }
        let missing = error(
            &session,
            &format!("SELECT * FROM '{}/d/none.csv'", server.address),
        );
        assert!(
            matches!(&missing, Error::Io { path, message } if path.ends_with("none.csv") && message == "it does not exist"),
            "{missing:?}"
        );
        let empty = error(
            &session,
            &format!("SELECT * FROM '{}/d/empty.csv'", server.address),
        );
        assert!(empty.to_string().contains("empty.csv"), "{empty:?}");
    }
}

// DataFusion's caches of footers and statistics know versions by size and time: a server's tag, or the bytes, decide here.
#[test]
fn a_file_that_changes_at_equal_size_is_read_anew() {
    let parquet = |ids: [i64; 3]| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.parquet");
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
        write_parquet(&path, &RecordBatch::try_from_iter([("id", ids)]).unwrap());
        std::fs::read(path).unwrap()
    };
    let (old, new) = (parquet([1, 2, 3]), parquet([11, 12, 13]));
    assert_eq!(old.len(), new.len());
    for lacks in [Lacks::Ranges, Lacks::Length] {
        let session = session();
        let files = BTreeMap::from([("s.parquet".to_string(), old.clone())]);
        let server = plain(&session, lacks, files);
        let sql = format!(
            "SELECT count(*), min(id), max(id), count(*) FILTER (WHERE id > 5) FROM '{}/s.parquet'",
            server.address
        );
        let large = format!(
            "SELECT id FROM '{}/s.parquet' WHERE id > 12",
            server.address
        );
        assert_eq!(rows(&session, &sql), ["3|1|3|0"], "{lacks:?}");
        assert!(rows(&session, &large).is_empty(), "{lacks:?}");
        server
            .files
            .lock()
            .unwrap()
            .insert("s.parquet".to_string(), new.clone());
        assert_eq!(rows(&session, &sql), ["3|11|13|3"], "{lacks:?}");
        assert_eq!(rows(&session, &large), ["13"], "{lacks:?}");
    }
}

#[test]
fn redirects_are_followed() {
    let session = session();
    let server = plain(&session, Lacks::Files, files());
    let sql = format!("{SUMS} '{}/d/s.csv'", server.address);
    assert_eq!(rows(&session, &sql), ["3|6|a|c"]);
}

// A server that ignores ranges sends a file once, not once per range.
#[test]
fn files_are_fetched_once() {
    let session = session();
    let mut large = b"id\n".to_vec();
    for id in 0..300_000 {
        large.extend_from_slice(format!("{id}\n").as_bytes());
    }
    let size = large.len();
    let server = plain(
        &session,
        Lacks::Ranges,
        BTreeMap::from([("x.csv".to_string(), large)]),
    );
    let sql = format!("SELECT count(*), sum(id) FROM '{}/x.csv'", server.address);
    assert_eq!(rows(&session, &sql), ["300000|44999850000"]);
    assert!(server.fetched.load(Ordering::Relaxed) <= 2 * size);
}

/// Credentials and endpoints come from the environment only, so the test runs itself again with them.
#[test]
fn buckets() {
    if let Ok(address) = std::env::var("GROUSE_TEST_SERVER") {
        return buckets_at(&address);
    }
    let session = session();
    let parquet = files()["d/s.parquet"].clone();
    let server = serve(
        &session,
        BTreeMap::from([
            ("bucket/p/1.parquet".to_string(), parquet.clone()),
            ("bucket/p/k=07/2.parquet".to_string(), parquet.clone()),
            (
                "datasets/o/n/resolve/main/p/s.csv".to_string(),
                CSV.to_vec(),
            ),
            ("datasets/o/n/resolve/v1/s.csv".to_string(), CSV.to_vec()),
        ]),
    );
    let account = format!(
        "{{\"private_key\":\"x\",\"private_key_id\":\"x\",\"client_email\":\"x\",\"disable_oauth\":true,\"gcs_base_url\":\"{}\"}}",
        server.address
    );
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stores::buckets", "--nocapture"])
        .env("GROUSE_TEST_SERVER", &server.address)
        .env("GOOGLE_SERVICE_ACCOUNT_KEY", account)
        .env("AZURE_STORAGE_ACCOUNT_NAME", "account")
        .env("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
        .env("AZURE_STORAGE_ENDPOINT", &server.address)
        .env("HF_ENDPOINT", &server.address)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn buckets_at(_address: &str) {
    let session = session();
    for address in [
        "gs://bucket/p/1.parquet",
        "az://bucket/p/1.parquet",
        "abfss://bucket/p/1.parquet",
    ] {
        assert_eq!(
            rows(&session, &format!("{SUMS} '{address}'")),
            ["3|6|a|c"],
            "{address}"
        );
    }
    let glob = "SELECT k, count(*) FROM 'gs://bucket/p/*/*.parquet' GROUP BY k";
    assert_eq!(rows(&session, glob), ["7|3"]);
    for address in ["hf://datasets/o/n/p/s.csv", "hf://datasets/o/n@v1/s.csv"] {
        assert_eq!(
            rows(&session, &format!("{SUMS} '{address}'")),
            ["3|6|a|c"],
            "{address}"
        );
    }
    for address in [
        "gs://bucket/none.csv",
        "az://bucket/none.csv",
        "hf://datasets/o/n/none.csv",
    ] {
        let missing = error(&session, &format!("SELECT * FROM '{address}'"));
        assert!(
            matches!(&missing, Error::Io { path, .. } if path.ends_with("none.csv")),
            "{missing:?}"
        );
    }
    for address in [
        "hf://models/o/n/x.csv",
        "hf://datasets/o/n",
        "ftp://h/x.csv",
    ] {
        assert!(
            !error(&session, &format!("SELECT * FROM '{address}'"))
                .to_string()
                .is_empty()
        );
    }
}
