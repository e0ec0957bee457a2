//! The acts that the console does: their names, what their forms ask for, and what is told before they are done. What an act is, the words of
//! its members and how they are read, `farebox-selling` says.

use farebox_ledger::{CustomerId, GrantId, KeyId, OperationId, Scope, SubscriptionId};
use farebox_selling::customer::{Close, CreateCustomer, EditCustomer, Resume, Suspend};
use farebox_selling::grant::{GiveGrant, TakeGrantBack};
use farebox_selling::key::{Block, EditKey, Revoke, Rotate, SellKey, Unblock};
use farebox_selling::link::MakeLink;
use farebox_selling::member::Member;
use farebox_selling::payment::{Adjust, MoveMoney, Refund, TopUp};
use farebox_selling::plan::{EndPlan, HaveOtherPlan, PausePlan, ResumePlan, SellPlan};
use farebox_selling::{Deed, Doer, SellerAct, Unfit};
use serde::de::DeserializeOwned;

use crate::plan::{ActBody, ActKind, ActPlan};

/// Whom an act is done to, as its plan names it.
trait ActSubject: Sized {
    fn of(plan: &ActPlan) -> Option<Self>;
}

impl ActSubject for () {
    fn of(_: &ActPlan) -> Option<Self> {
        Some(())
    }
}

impl ActSubject for Scope {
    fn of(plan: &ActPlan) -> Option<Self> {
        plan.of
    }
}

impl ActSubject for KeyId {
    fn of(plan: &ActPlan) -> Option<Self> {
        match plan.of {
            Some(Scope::Key(key)) => Some(key),
            Some(Scope::Customer(_)) | None => None,
        }
    }
}

impl ActSubject for CustomerId {
    fn of(plan: &ActPlan) -> Option<Self> {
        match plan.of {
            Some(Scope::Customer(customer)) => Some(customer),
            Some(Scope::Key(_)) | None => None,
        }
    }
}

impl ActSubject for Option<CustomerId> {
    fn of(plan: &ActPlan) -> Option<Self> {
        Some(CustomerId::of(plan))
    }
}

/// The name of the member of a plan that says which grant.
pub(crate) const GRANT: &str = "grant";

impl ActSubject for GrantId {
    fn of(plan: &ActPlan) -> Option<Self> {
        plan.body.get(GRANT)?.as_str()?.parse().ok()
    }
}

/// The name of the member of a plan that says which subscription.
pub(crate) const SUBSCRIPTION: &str = "subscription";

impl ActSubject for SubscriptionId {
    fn of(plan: &ActPlan) -> Option<Self> {
        plan.body.get(SUBSCRIPTION)?.as_str()?.parse().ok()
    }
}

impl ActSubject for OperationId {
    fn of(plan: &ActPlan) -> Option<Self> {
        plan.request
    }
}

fn read<T: DeserializeOwned>(body: &ActBody) -> Result<T, String> {
    T::deserialize(body).map_err(|error: serde_json::Error| error.to_string())
}

async fn deed<A: SellerAct<Of: ActSubject>>(
    plan: &ActPlan,
    doer: &Doer<'_>,
) -> Result<Deed, Unfit> {
    let act: A = read(&plan.body).map_err(Unfit::Wrong)?;
    let of = A::Of::of(plan);
    let of = of.ok_or_else(|| Unfit::Wrong("this cannot be done to it".to_owned()))?;
    act.deed(of, doer).await
}

const fn act<A: SellerAct<Of: ActSubject>>(
    name: &'static str,
    yes: &'static str,
    asks: &'static [&'static str],
) -> ActKind {
    ActKind {
        name,
        yes,
        asks,
        effects: &[],
        permanent: None,
        becomes: "",
        edits: false,
        brings_secret: false,
        members: Member::of::<A>,
        check: |body| read::<A>(body).map(drop),
        after: |body, account| {
            let after = read::<A>(body).ok()?.after(account)?;
            Some(after.map_err(|refusal| refusal.to_string()))
        },
        deed: |plan, doer| Box::pin(deed::<A>(plan, doer)),
    }
}

const fn edits<A: SellerAct<Of: ActSubject>>(
    name: &'static str,
    asks: &'static [&'static str],
) -> ActKind {
    ActKind {
        becomes: "changed",
        edits: true,
        ..act::<A>(name, "save the settings", asks)
    }
}

pub(crate) static TOP_UP: ActKind =
    act::<TopUp>("Top up", "apply the top-up", &["amount", "reference"]);
pub(crate) static ADJUST: ActKind = act::<Adjust>(
    "Adjust",
    "apply the adjustment",
    &["amount", "reason", "reference"],
);
pub(crate) static REFUND: ActKind = act::<Refund>(
    "Refund",
    "apply the refund",
    &["amount", "reason", "reference"],
);
pub(crate) static MOVE: ActKind =
    act::<MoveMoney>("Move", "move the money", &["into", "amount", "reference"]);
pub(crate) static GIVE_GRANT: ActKind = act::<GiveGrant>(
    "Give credit",
    "give the credit",
    &["amount", "reference", "kind", "expires_at", "priority"],
);
pub(crate) static VOID_GRANT: ActKind = ActKind {
    effects: &[(
        "Effect",
        "what is left of it is gone; what running requests hold of it they can still spend",
    )],
    ..act::<TakeGrantBack>("Void grant", "take it back", &[])
};
pub(crate) static SELL_PLAN: ActKind = ActKind {
    effects: &[(
        "Effect",
        "the first period begins at once, or behind what is paid already",
    )],
    ..act::<SellPlan>(
        "Sell plan",
        "sell or give the periods",
        &["plan", "periods", "reference", "given"],
    )
};
pub(crate) static CHANGE_PLAN: ActKind =
    act::<HaveOtherPlan>("Change plan", "change the plan", &["plan", "at_once"]);
pub(crate) static PAUSE_PLAN: ActKind = ActKind {
    effects: &[(
        "Effect",
        "its time stops; what is left of days and allowance stays until it is resumed",
    )],
    ..act::<PausePlan>("Pause plan", "stop its time", &[])
};
pub(crate) static RESUME_PLAN: ActKind = ActKind {
    effects: &[("Effect", "what is left is as long as it was")],
    ..act::<ResumePlan>("Resume plan", "let it go on", &[])
};
pub(crate) static END_PLAN: ActKind = ActKind {
    effects: &[("Effect", "it is renewed no more; what is paid still runs")],
    ..act::<EndPlan>("End plan", "end it", &[])
};
pub(crate) static NEW_KEY: ActKind = ActKind {
    effects: &[(
        "Money",
        "without some, every request is refused until the first top-up",
    )],
    brings_secret: true,
    ..act::<SellKey>(
        "New key",
        "create the key",
        &[
            "label",
            "balance",
            "reference",
            "models",
            "expires_at",
            "rate",
            "concurrency",
        ],
    )
};
pub(crate) static NEW_CUSTOMER: ActKind = act::<CreateCustomer>(
    "New customer",
    "create the customer",
    &[
        "label",
        "external_id",
        "low_balance",
        "rate",
        "concurrency",
        "price_list",
    ],
);
pub(crate) static EDIT: ActKind = edits::<EditKey>(
    "Edit",
    &["label", "models", "expires_at", "rate", "concurrency"],
);
pub(crate) static EDIT_CUSTOMER: ActKind =
    edits::<EditCustomer>("Edit customer", NEW_CUSTOMER.asks);
pub(crate) static ROTATE: ActKind = ActKind {
    effects: &[(
        "Stays",
        "balance, settings and history; dashboard sessions end",
    )],
    brings_secret: true,
    ..act::<Rotate>("Rotate", "make a new secret", &["overlap"])
};
pub(crate) static LINK: ActKind = ActKind {
    effects: &[(
        "Effect",
        "a link that signs in to this key's dashboard once, within 24 hours",
    )],
    brings_secret: true,
    ..act::<MakeLink>("Dashboard link", "make the link", &[])
};
pub(crate) static BLOCK: ActKind = ActKind {
    effects: &[(
        "Effect",
        "new requests are refused at once; running streams end within 10 s",
    )],
    becomes: "BLOCKED",
    ..act::<Block>("Block", "block the key", &[])
};
pub(crate) static UNBLOCK: ActKind = ActKind {
    effects: &[("Effect", "requests are served again while money lasts")],
    becomes: "served",
    ..act::<Unblock>("Unblock", "serve the key again", &[])
};
pub(crate) static REVOKE: ActKind = ActKind {
    effects: &[
        (
            "Effect",
            "requests are refused permanently; running streams end within 10 s",
        ),
        (
            "Balance",
            "stays on the key, as does the history; nothing is deleted",
        ),
    ],
    permanent: Some("revoking cannot be undone; blocking (b) can"),
    becomes: "REVOKED",
    ..act::<Revoke>("Revoke", "revoke the key permanently", &[])
};
pub(crate) static SUSPEND: ActKind = ActKind {
    effects: &[(
        "Effect",
        "requests of all its keys are refused until it is resumed; running streams end within 10 s",
    )],
    ..act::<Suspend>("Suspend", "suspend the customer", &[])
};
pub(crate) static RESUME: ActKind = ActKind {
    effects: &[("Effect", "its keys are served again while money lasts")],
    ..act::<Resume>("Resume", "serve its keys again", &[])
};
pub(crate) static CLOSE: ActKind = ActKind {
    effects: &[(
        "Effect",
        "requests of all its keys are refused permanently; only with nothing held and nothing left",
    )],
    permanent: Some("closing cannot be undone; suspending (b) can"),
    ..act::<Close>("Close", "close the customer permanently", &[])
};

/// Every kind.
pub(crate) static ACTS: [&ActKind; 23] = [
    &TOP_UP,
    &ADJUST,
    &REFUND,
    &MOVE,
    &GIVE_GRANT,
    &VOID_GRANT,
    &SELL_PLAN,
    &CHANGE_PLAN,
    &PAUSE_PLAN,
    &RESUME_PLAN,
    &END_PLAN,
    &NEW_KEY,
    &NEW_CUSTOMER,
    &EDIT,
    &EDIT_CUSTOMER,
    &ROTATE,
    &LINK,
    &BLOCK,
    &UNBLOCK,
    &REVOKE,
    &SUSPEND,
    &RESUME,
    &CLOSE,
];
