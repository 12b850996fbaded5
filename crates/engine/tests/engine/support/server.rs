//! A web server on loopback: files by GET and HEAD with ranges, and S3's ListObjectsV2 for the paths below a bucket.

use std::collections::BTreeMap;
use std::sync::Arc;

use grouse::Session;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A running server; it stops with the session's runtime.
pub struct Server {
    /// `http://127.0.0.1:port`.
    pub address: String,
}

/// Serves `files` (path without the first `/` -> content) on the session's runtime.
pub fn serve(session: &Session, files: BTreeMap<String, Vec<u8>>) -> Server {
    let files = Arc::new(files);
    session.handle().block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer_all(stream, Arc::clone(&files)));
            }
        });
        Server { address }
    })
}

async fn answer_all(mut stream: TcpStream, files: Arc<BTreeMap<String, Vec<u8>>>) {
    let mut buffer = Vec::new();
    loop {
        let head_end = loop {
            if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            let mut chunk = [0; 4096];
            match stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(read) => buffer.extend_from_slice(&chunk[..read]),
            }
        };
        let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
        buffer.drain(..head_end + 4);
        if stream.write_all(&answer(&head, &files)).await.is_err() {
            return;
        }
    }
}

fn answer(head: &str, files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut parts = head.split_whitespace();
    let (method, target) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = percent_decode(path.trim_start_matches('/'));
    let body = method == "GET";
    if query.contains("list-type=2") {
        let list = list_objects(path.trim_end_matches('/'), query, files);
        return response(
            "200 OK",
            "Content-Type: application/xml\r\n",
            list.as_bytes(),
            body,
        );
    }
    let Some(content) = files.get(&path) else {
        return response("404 Not Found", "", b"", body);
    };
    let stamp =
        "Last-Modified: Sat, 21 Nov 2026 10:00:00 GMT\r\nETag: \"1\"\r\nAccept-Ranges: bytes\r\n";
    match range(head, content.len()) {
        Some((start, end)) => {
            let headers = format!(
                "{stamp}Content-Range: bytes {start}-{}/{}\r\n",
                end - 1,
                content.len()
            );
            response("206 Partial Content", &headers, &content[start..end], body)
        }
        None => response("200 OK", stamp, content, body),
    }
}

fn response(status: &str, headers: &str, content: &[u8], body: bool) -> Vec<u8> {
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n",
        content.len()
    )
    .into_bytes();
    if body {
        bytes.extend_from_slice(content);
    }
    bytes
}

fn range(head: &str, length: usize) -> Option<(usize, usize)> {
    let line = head
        .lines()
        .find(|line| line.to_ascii_lowercase().starts_with("range:"))?;
    let (start, end) = line.split_once("bytes=")?.1.trim().split_once('-')?;
    match (start.parse::<usize>(), end.parse::<usize>()) {
        (Ok(start), Ok(end)) => Some((start, (end + 1).min(length))),
        (Ok(start), Err(_)) => Some((start, length)),
        (Err(_), Ok(last)) => Some((length.saturating_sub(last), length)),
        (Err(_), Err(_)) => None,
    }
}

fn list_objects(bucket: &str, query: &str, files: &BTreeMap<String, Vec<u8>>) -> String {
    let prefix = query
        .split('&')
        .find_map(|part| part.strip_prefix("prefix="))
        .map(percent_decode);
    let prefix = prefix.unwrap_or_default();
    let mut contents = String::new();
    for (path, content) in files {
        let Some(key) = path.strip_prefix(&format!("{bucket}/")) else {
            continue;
        };
        if key.starts_with(&prefix) {
            contents.push_str(&format!(
                "<Contents><Key>{key}</Key><LastModified>2026-11-21T10:00:00.000Z</LastModified><ETag>\"1\"</ETag><Size>{}</Size></Contents>",
                content.len()
            ));
        }
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult><Name>{bucket}</Name><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
    )
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap()
}
