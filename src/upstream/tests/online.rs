//! What the check of targets makes of a list of models.

use super::*;
use crate::upstream::online::{OnlineFault, OnlineRequest};

#[tokio::test]
async fn a_model_that_is_not_listed_is_answered_with_the_nearest() {
    // Some vendors say it with a 400 and no code.
    let refusal = Reply::error(400, "invalid_request_error", None, "Nothing like that here");
    let upstream = ScriptedUpstream::tolerant(refusal).await;
    upstream.list(200, &["models/a-mode", "other"]);
    let Desk { upstreams, route } = Desk::before(&[&upstream]);
    let asked = OnlineRequest {
        slug: route.slug.clone(),
        target: route.targets[0].clone(),
        family: Family::Chat,
        call: None,
        account: 0,
        extras: Vec::new(),
        most: Amount::ZERO,
    };
    let upstreams = Arc::new(upstreams);
    let (found, organisations) = upstreams.examine(vec![asked.clone()]).await;
    assert_eq!(organisations, [], "one account");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].fault, OnlineFault::Model);
    assert!(
        found[0].nearest.contains(&"models/a-mode".to_owned()),
        "{found:?}"
    );
    upstream.list(200, &["models/a-model"]);
    let (found, _) = upstreams.examine(vec![asked]).await;
    assert_eq!(
        found[0].fault,
        OnlineFault::Other,
        "it is listed: {found:?}"
    );
}
