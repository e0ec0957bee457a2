//! The paths on which a program manages the keys that its owner key makes.

use std::sync::Arc;

use farebox_door::UnreadBody;
use farebox_protocol::{BadRequest, Family, paths};
use salvo::http::header::CACHE_CONTROL;
use salvo::http::{HeaderValue, StatusCode};
use salvo::prelude::{Depot, Request, Response, handler};
use tokio::time::Instant;

use super::request_id::Arrival;
use super::{Front, auth, body, failure, once};
use crate::customer::{KeyPage, MadeAnswer, MadeCall};
use crate::proxy::{Failure, RefusedFacts};

/// What a path does with keys that an owner key makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeysPath {
    List,
    Make,
    Read,
    Change,
    Delete,
}

impl KeysPath {
    /// Whether a body says what to do.
    pub(super) const fn has_body(self) -> bool {
        match self {
            Self::Make | Self::Change => true,
            Self::List | Self::Read | Self::Delete => false,
        }
    }
}

pub(super) struct KeysHandler {
    front: Arc<Front>,
    path: KeysPath,
}

#[handler]
impl KeysHandler {
    pub(super) fn new(front: Arc<Front>, path: KeysPath) -> Self {
        Self { front, path }
    }

    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let (mut known, arrival) = (RefusedFacts::on_free_path(), Arrival::of(depot));
        res.headers_mut()
            .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self.answer(req, depot, &mut known).await {
            Ok(answer) => {
                res.status_code(StatusCode::from_u16(answer.status).unwrap_or_default());
                if answer.is_replay {
                    failure::headers(res, vec![("idempotent-replayed", "true".to_owned())]);
                }
                failure::json(res, answer.body);
            }
            Err(failed) => failure::answer(
                res,
                &self.front.refused(failed, Family::Chat, &arrival, known),
                Family::Chat,
                &arrival,
            ),
        }
    }

    async fn answer(
        &self,
        req: &Request,
        depot: &mut Depot,
        known: &mut RefusedFacts,
    ) -> Result<MadeAnswer, Failure> {
        let front = &self.front;
        let key = auth::authenticate(front, req, depot, Family::Chat, known).await?;
        let _pass = front.rate_limits.enter_free(&key, Instant::now())?;
        let maker = front.context.key_maker(&key)?;
        let read = if self.path.has_body() {
            let unread = UnreadBody::of(depot);
            Some(body::read(unread, &front.body_room, &key, None).await?)
        } else {
            None
        };
        let sent = read.as_ref().map_or(&[][..], |read| &read.bytes);
        let hash: String = req.param("hash").unwrap_or_default();
        let (page, once) = (page(req, self.path)?, idempotency_key(req)?);
        let call = match self.path {
            KeysPath::List => MadeCall::List(&page),
            KeysPath::Make => MadeCall::Make(sent, once.as_deref()),
            KeysPath::Read => MadeCall::Read(&hash),
            KeysPath::Change => MadeCall::Change(&hash, sent),
            KeysPath::Delete => MadeCall::Delete(&hash),
        };
        maker.answer(call).await
    }
}

/// The parameters of a list; the other paths take none.
fn page(req: &Request, path: KeysPath) -> Result<KeyPage, Failure> {
    let mut page = KeyPage::default();
    for (name, value) in req.queries().iter() {
        let number = || {
            let number = value.parse().ok();
            let told = || Failure::bad_query(name, format!("{name} is a whole number"));
            number.ok_or_else(told).map(Some)
        };
        match (path, name.as_str()) {
            (KeysPath::List, "include_disabled") => {
                page.with_disabled = match value.as_str() {
                    "true" | "1" | "" => true,
                    "false" | "0" => false,
                    _ => return Err(Failure::bad_query(name, "write true or false".to_owned())),
                };
            }
            (KeysPath::List, "limit") => page.limit = number()?,
            (KeysPath::List, "offset") => page.offset = number()?,
            (KeysPath::List, "after") => page.after = Some(value.clone()),
            (KeysPath::List, other) => {
                let message =
                    "unknown parameter; this path takes include_disabled, limit, offset, after";
                return Err(Failure::bad_query(
                    &paths::shortened(other),
                    message.to_owned(),
                ));
            }
            (_, other) => {
                let message = "unknown parameter; this path takes none".to_owned();
                return Err(Failure::bad_query(&paths::shortened(other), message));
            }
        }
    }
    if page.limit == Some(0) {
        return Err(Failure::bad_query(
            "limit",
            "a page has at least one key".to_owned(),
        ));
    }
    Ok(page)
}

/// The caller's own name for what it sends, the same when it sends it again.
fn idempotency_key(req: &Request) -> Result<Option<String>, Failure> {
    let Some(sent) = req.headers().get("idempotency-key") else {
        return Ok(None);
    };
    let name = once::name(sent);
    let name = name.ok_or_else(|| BadRequest::at("idempotency-key", once::A_NAME))?;
    Ok(Some(name))
}
