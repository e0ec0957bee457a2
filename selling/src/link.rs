//! Links that work once: into the dashboard, and from it to the shop; and their document.

use farebox_ledger::{Act, KeyId, LinkToken, NewLink, Timestamp, clock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::value::{Instant, KeyName, Word, Worded};
use super::{Deed, Doer, NewSecret, SellerAct, Unfit};

/// Make a sign-in link to the dashboard, which works once, for 24 hours; or an owner's way to your shop, once, for 5 minutes
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Link")]
pub struct MakeLink {
    /// Where it leads; to the dashboard unless you say
    pub kind: Option<Word<LinkKind>>,
}

/// Where a link leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// To the dashboard
    SignIn,
    /// From it to the shop
    Shop,
}

impl Worded for LinkKind {
    const ALL: &'static [Self] = &[Self::SignIn, Self::Shop];
}

impl SellerAct for MakeLink {
    type Of = KeyId;

    async fn deed(self, key: KeyId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let kind = self.kind.map_or(LinkKind::SignIn, |Word(kind)| kind);
        Ok(link(key, kind, doer.act()).0)
    }
}

/// A sign-in link to the dashboard; it works once.
pub fn link(key: KeyId, kind: LinkKind, act: Act) -> (Deed, Timestamp) {
    let secret = LinkToken::generate(clock::random());
    let (token, expires) = match kind {
        LinkKind::SignIn => (secret.hash(), LinkToken::expires(act.at)),
        LinkKind::Shop => (secret.shop_hash(), LinkToken::shop_expires(act.at)),
    };
    let new = NewLink {
        key,
        token,
        expires,
        act,
    };
    let shown = match kind {
        LinkKind::SignIn => NewSecret::Link(secret),
        LinkKind::Shop => NewSecret::ShopLink(secret),
    };
    (Deed::showing(new, shown), expires)
}

/// A sign-in link
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Link")]
pub struct LinkDocument {
    /// Whose account it shows
    pub key: KeyName,
    /// The address for the customer's browser; works once, and is shown once
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// When it stops working
    pub expires_at: Instant,
}
