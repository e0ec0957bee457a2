//! Counting the tokens of a native request without running it. Free: nothing is held, and the answer is one number.

use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::Key;
use farebox_protocol::{Edits, Family, messages};
use tokio::time::timeout;

use super::{Failure, Proxy, capabilities, documents, holder, resolve};
use crate::clock;
use crate::config::Target;
use crate::metering::estimate;
use crate::upstream::{AnswerContent, Call, Operation, Prepared};

/// How long an upstream may take to count before our own estimate is the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks the model's upstream, or estimates when it must not or cannot be asked.
///
/// # Errors
/// As for a request: a bad body, an unknown model.
pub async fn tokens(
    proxy: &Proxy,
    key: &Key,
    body: &Bytes,
    headers: Vec<(String, Bytes)>,
    ask_upstream: bool,
) -> Result<u64, Failure> {
    let config = proxy.config.current();
    let mut seen = messages::inspect_count(body, clock::seed())?;
    let model = resolve(&config, &seen.model, key, Family::Messages)?;
    capabilities::check_flags(&model, Family::Messages, &headers)?;
    if ask_upstream {
        let (family, operation) = (Family::Messages, Operation::CountTokens);
        let call = Call { route: &model.route, holder: holder(key.id), caller: family, family, operation, stream: false };
        let prepare = |target: &Target| {
            let edits = Edits { model: &target.model, limit: None, pass: &target.provider.pass };
            let body = Family::Messages.protocol().patch(body, &seen, &edits);
            Prepared { body: Bytes::from(body), headers: headers.clone() }
        };
        if let Ok(Ok(answer)) = timeout(PATIENCE, proxy.upstreams.dispatch(call, &prepare)).await
            && let AnswerContent::Whole(answer, ..) = answer.content
            && let Some(tokens) = counted(&answer)
        {
            return Ok(tokens);
        }
    }
    documents::read(body, &mut seen).await;
    Ok(estimate::input(&seen.content, &model.limits).input)
}

fn counted(answer: &[u8]) -> Option<u64> {
    serde_json::from_slice::<serde_json::Value>(answer).ok()?.get("input_tokens")?.as_u64()
}
