//! One request by HTTP/1.1 to a server in a namespace, and what its metrics say.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::namespace::Namespace;
use crate::support::SimError;

/// The body of the answer to a request; `head` has the request line and headers, each with its
/// line end.
pub(crate) fn exchange(
    namespace: &Namespace,
    to: SocketAddr,
    head: &str,
    body: &str,
) -> Result<String, SimError> {
    let text = namespace.enter(|| -> Result<String, SimError> {
        let mut stream = TcpStream::connect(to)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let length = body.len();
        let rest =
            format!("Host: {to}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(format!("{head}{rest}").as_bytes())?;
        let (mut bytes, mut chunk) = (Vec::new(), [0; 16 << 10]);
        // Some servers leave the connection open all the same.
        while !is_whole(&bytes) {
            match stream.read(&mut chunk)? {
                0 => break,
                length => bytes.extend_from_slice(&chunk[..length]),
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    })??;
    let (head, body) =
        text.split_once("\r\n\r\n").ok_or_else(|| SimError::Said(format!("{to}: cut off")))?;
    if !head.starts_with("HTTP/1.1 200") {
        return Err(SimError::Said(format!("{to}: {text}")));
    }
    Ok(if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        unchunked(body)
    } else {
        body.to_owned()
    })
}

/// Whether a response has as many bytes as its `Content-Length` says.
fn is_whole(response: &[u8]) -> bool {
    let text = String::from_utf8_lossy(response);
    let Some((head, _)) = text.split_once("\r\n\r\n") else { return false };
    let named = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = named
        .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .filter_map(|(_, length)| length.trim().parse::<usize>().ok());
    lengths.next().is_some_and(|length| response.len() >= head.len() + 4 + length)
}

/// The sum of a metric of Prometheus's text format over all its labels that contain `label`.
pub(crate) fn metric_sum(metrics: &str, name: &str, label: &str) -> f64 {
    let of_name = metrics.lines().filter(|line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with([' ', '{'])) && line.contains(label)
    });
    of_name.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}

/// A body without the lengths of its chunks.
fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap_or(0);
        let Some((chunk, rest)) = rest.split_at_checked(length).filter(|_| length > 0) else {
            break;
        };
        whole.push_str(chunk);
        body = rest.trim_start_matches("\r\n");
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_put_together() {
        assert_eq!(unchunked("4\r\nab\r\n\r\n2\r\ncd\r\n0\r\n\r\n"), "ab\r\ncd");
        assert_eq!(unchunked("ff\r\ncut off"), "");
        assert_eq!(unchunked(""), "");
    }

    #[test]
    fn a_metric_is_summed_over_its_labels() {
        let text = "x{way=\"in\"} 2\nx{way=\"out\"} 3\nx_more 9\nx 4\n";
        assert_eq!(metric_sum(text, "x", ""), 9.0);
        assert_eq!(metric_sum(text, "x", "in"), 2.0);
    }
}
