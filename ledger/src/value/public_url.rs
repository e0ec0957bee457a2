//! The gateway's address as customers see it, the base of sign-in links and settings. One parser for gateway and console.

/// Parses a public URL as an operator writes it, without the paths that are appended to it.
///
/// # Errors
/// When it is incomplete; the text says how to write it.
pub fn parse_public_url(text: &str) -> Result<String, String> {
    if !text.starts_with("https://") && !text.starts_with("http://") {
        return Err("write the whole URL, as in https://llm.example.com".to_owned());
    }
    Ok(gateway_root(text).to_owned())
}

/// A gateway's address without the paths that clients append to it.
pub fn gateway_root(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    ["/native/v1", "/v1", "/native"]
        .iter()
        .find_map(|end| url.strip_suffix(end))
        .unwrap_or(url)
}

/// An address with one more pair in its query.
pub fn with_query(url: &str, pair: &str) -> String {
    let (page, place) = url.split_once('#').unwrap_or((url, ""));
    let joint = if page.contains('?') { '&' } else { '?' };
    let hash = if place.is_empty() { "" } else { "#" };
    format!("{page}{joint}{pair}{hash}{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_is_the_base_of_both_paths() {
        for given in [
            "https://a.example",
            "https://a.example/",
            "https://a.example/v1",
            "https://a.example/native/v1/",
        ] {
            assert_eq!(parse_public_url(given).as_deref(), Ok("https://a.example"));
        }
        assert!(
            parse_public_url("a.example")
                .unwrap_err()
                .contains("https://")
        );
    }
}
