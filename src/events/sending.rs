//! One try of a delivery: a signed POST that follows no redirect and waits 15 s. Only a status of 2xx counts; nothing else of the
//! answer is read.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;

use super::signature::sign;
use crate::clock;
use crate::config::Webhook;
use crate::upstream::plain_client;

/// How long a receiver may take, connecting included.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// Why an event did not arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendError {
    /// 410: the receiver wants no more.
    Gone,
    /// Another status.
    Status(u16),
    /// No answer within 15 s.
    TimedOut,
    /// No connection, or a broken one.
    Unreachable(String),
}

impl fmt::Display for SendError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => write!(out, "it answered 410 Gone"),
            Self::Status(status @ 300..=399) => {
                write!(out, "it answered {status}: redirects are not followed")
            }
            Self::Status(status) => write!(out, "it answered {status}"),
            Self::TimedOut => write!(out, "no answer within {} s", PATIENCE.as_secs()),
            Self::Unreachable(why) => write!(out, "it cannot be reached: {why}"),
        }
    }
}

/// What sends events.
#[derive(Debug, Clone)]
pub struct Sending(reqwest::Client);

impl Sending {
    /// Opens no connection yet.
    ///
    /// # Errors
    /// TLS or the environment's proxy cannot be set up.
    pub fn new() -> Result<Self, String> {
        plain_client().map(Self)
    }

    /// Tries once. `body` is the event's document; `id` stays the same however often it is tried.
    ///
    /// # Errors
    /// [`SendError`] unless the receiver says 2xx.
    pub async fn send(&self, webhook: &Webhook, id: &str, body: &str) -> Result<(), SendError> {
        let timestamp = clock::now().millis() / 1_000;
        let request = self
            .0
            .post(&webhook.url)
            .header("content-type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp.to_string())
            .header("webhook-signature", sign(webhook, id, timestamp, body))
            .body(body.to_owned());
        let answer = match tokio::time::timeout(PATIENCE, request.send()).await {
            Err(_) => return Err(SendError::TimedOut),
            Ok(Err(error)) if error.is_timeout() => return Err(SendError::TimedOut),
            Ok(Err(error)) => return Err(SendError::Unreachable(words(error))),
            Ok(Ok(answer)) => answer,
        };
        match answer.status() {
            status if status.is_success() => Ok(()),
            StatusCode::GONE => Err(SendError::Gone),
            status => Err(SendError::Status(status.as_u16())),
        }
    }
}

/// The causes of an error, without the address, which may contain a token.
fn words(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        words = format!("{words}: {next}");
        cause = next.source();
    }
    words.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::config::{EventFilter, WebhookSecret};

    /// Paused, the clock goes on as soon as everybody waits.
    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_says_nothing_has_15_seconds() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let webhook = Webhook {
            url,
            secrets: vec![secret],
            events: EventFilter::default(),
        };
        let sending = Sending::new().unwrap();
        let begun = tokio::time::Instant::now();
        let sent = sending.send(&webhook, "evt_1", "{}").await;
        assert_eq!(sent, Err(SendError::TimedOut));
        assert_eq!(begun.elapsed().as_secs(), 15);
        drop(listener);
        let sent = sending.send(&webhook, "evt_1", "{}").await;
        assert!(matches!(sent, Err(SendError::Unreachable(_))), "{sent:?}");
    }
}
