//! Standard Webhooks: what a receiver checks to know that an event is ours and recent.
//!
//! `HMAC-SHA256` over `id.timestamp.body` with each secret, in base64 behind `v1,`; while a secret is replaced there are two,
//! separated by a space.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::config::Webhook;

/// The value of `webhook-signature`.
pub(super) fn sign(webhook: &Webhook, id: &str, timestamp: i64, body: &str) -> String {
    let signed = webhook.secrets.iter().filter_map(|secret| {
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret.bytes()).ok()?;
        mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
        Some(format!(
            "v1,{}",
            STANDARD.encode(mac.finalize().into_bytes())
        ))
    });
    signed.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{EventFilter, WebhookSecret};

    /// The example of the specification's own libraries.
    #[test]
    fn the_known_example_has_its_signature() {
        let secret = |text| WebhookSecret::parse(text).unwrap();
        let known = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let mut webhook = Webhook {
            url: "https://shop.example/hook".to_owned(),
            secrets: vec![known.clone()],
            events: EventFilter::default(),
        };
        let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", r#"{"test": 2432232314}"#);
        let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(sign(&webhook, id, 1_614_265_330, body), signature);
        webhook
            .secrets
            .push(secret("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="));
        let both = sign(&webhook, id, 1_614_265_330, body);
        let both: Vec<&str> = both.split(' ').collect();
        assert_eq!((both.len(), both[0]), (2, signature));
        assert_ne!(both[0], both[1]);
    }
}
