//! Every path of the customers' listener, as data: the service is built from it, and a test calls every path in it.
//!
//! An unknown path is answered with a 404 that names the right base URL. A path that reaches an upstream goes through `generate`,
//! and so through a hold and a settlement; counting tokens is what is free.
//!
//! Rows of docs/interface.md: `two_path_families`.

use std::sync::Arc;

use farebox_door::{BodyRule, Door, DoorPath, FORM, LARGEST_TREE, Method, PathCaller};
use farebox_protocol::{Family, WirePath};

use super::made_keys::{KeysHandler, KeysPath};
use super::models::ModelListing;
use super::{Front, account, free, generate, models, vouchers};
use crate::customer::{
    DIALECTS, Dashboard, DashboardView, Export, ExportFormat, OwnerForm, PostedForm, ProgramQuery,
    Room, SCRIPT, STYLE,
};
use crate::proxy::LARGEST_BODY;

/// One path and how it is called.
#[derive(Debug, Clone, Copy)]
pub struct ServedPath {
    /// How it is called.
    pub method: Method,
    /// Relative to the public base URL, with a leading slash; parameters in braces.
    pub path: &'static str,
    serves: Serves,
}

/// What answers on a path.
#[derive(Debug, Clone, Copy)]
enum Serves {
    Generate(WirePath),
    CountTokens(Family),
    Models(ModelListing),
    Account(ProgramQuery),
    Redeem,
    Keys(KeysPath),
    Dashboard(Room),
    Home,
    Probe,
}

use Method::{Delete, Get, Head, Patch, Post};
use Serves::{Account, CountTokens, Generate, Home, Keys, Models, Probe, Redeem};

/// Every path.
pub fn endpoints() -> Vec<ServedPath> {
    // Paths are matched in this order, and these are most of the traffic.
    let mut all: Vec<_> = WirePath::all()
        .map(|path| at(Post, path.public_path(), Generate(path)))
        .collect();
    all.extend([
        // Some native clients omit the version.
        at(
            Post,
            "/native/messages",
            Generate(WirePath::Family(Family::Messages)),
        ),
        // probes, without a key; before the reads of the same paths
        at(Head, "/", Probe),
        at(Head, "/v1", Probe),
        at(Head, "/native", Probe),
        at(Head, "/api/hello", Probe),
        at(Head, "/native/api/hello", Probe),
        // the key's own account
        at(Get, "/v1/usage", Account(ProgramQuery::Usage)),
        at(Get, "/v1/generation", Account(ProgramQuery::Receipt)),
        at(Get, "/v1/models", Models(ModelListing::All)),
        // Names of other services' models have slashes: the answer is that the model is not found, not that the path is not.
        at(Get, "/v1/models/{*+slug}", Models(ModelListing::One)),
        at(Post, "/v1/vouchers", Redeem),
        // what owner keys make
        at(Get, "/v1/keys", Keys(KeysPath::List)),
        at(Post, "/v1/keys", Keys(KeysPath::Make)),
        at(Get, "/v1/keys/{hash}", Keys(KeysPath::Read)),
        at(Patch, "/v1/keys/{hash}", Keys(KeysPath::Change)),
        at(Delete, "/v1/keys/{hash}", Keys(KeysPath::Delete)),
        // native clients, at {base}/native
        at(Get, "/native/v1/models", Models(ModelListing::Native)),
        at(
            Get,
            "/native/v1/models/{*+slug}",
            Models(ModelListing::NativeOne),
        ),
        at(
            Post,
            "/native/v1/messages/count_tokens",
            CountTokens(Family::Messages),
        ),
        at(
            Post,
            "/v1/responses/input_tokens",
            CountTokens(Family::Responses),
        ),
        // a browser's start page
        at(Get, "/", Home),
    ]);
    // the same account, where other tools look for it
    let places = DIALECTS
        .iter()
        .flat_map(|dialect| dialect.paths.iter().map(move |path| (*path, dialect)));
    all.extend(
        places.map(|(path, dialect)| at(Get, path, Account(ProgramQuery::Account(dialect)))),
    );
    all.extend(dashboard());
    all
}

/// The pages for people.
fn dashboard() -> impl Iterator<Item = ServedPath> {
    let pages = [
        (Get, "/prices", Room::Prices),
        (Get, "/dashboard", Room::View(DashboardView::Overview)),
        (
            Get,
            "/dashboard/requests",
            Room::View(DashboardView::Requests),
        ),
        (Get, "/dashboard/requests/{id}", Room::Receipt),
        (
            Get,
            "/dashboard/payments",
            Room::View(DashboardView::Payments),
        ),
        (Get, "/dashboard/paper/{name}", Room::Document),
        (Get, "/dashboard/statements/{name}", Room::Statement),
        (Get, "/dashboard/setup", Room::View(DashboardView::Setup)),
        (Get, "/dashboard/models", Room::View(DashboardView::Models)),
        (Get, "/dashboard/live", Room::Live),
        (
            Get,
            "/dashboard/usage.csv",
            Room::Export(Export::Usage(ExportFormat::Csv)),
        ),
        (
            Get,
            "/dashboard/usage.json",
            Room::Export(Export::Usage(ExportFormat::Json)),
        ),
        (
            Get,
            "/dashboard/requests.csv",
            Room::Export(Export::Requests(ExportFormat::Csv)),
        ),
        (
            Get,
            "/dashboard/requests.json",
            Room::Export(Export::Requests(ExportFormat::Json)),
        ),
        (Get, "/dashboard/enter", Room::Enter),
        (Post, "/dashboard/enter", Room::Act(PostedForm::Enter)),
        (Post, "/dashboard/login", Room::Act(PostedForm::Login)),
        (Post, "/dashboard/logout", Room::Act(PostedForm::Logout)),
        (
            Post,
            "/dashboard/logout-everywhere",
            Room::Act(PostedForm::LogoutEverywhere),
        ),
        (Post, "/dashboard/test", Room::Act(PostedForm::Test)),
        (Get, "/dashboard/vouchers", Room::Voucher),
        (Post, "/dashboard/vouchers", Room::Act(PostedForm::Redeem)),
        (Get, "/dashboard/page.css", Room::Asset(&STYLE)),
        (Get, "/dashboard/page.js", Room::Asset(&SCRIPT)),
    ];
    pages
        .into_iter()
        .chain(OWNERS)
        .map(|(method, path, room)| at(method, path, Serves::Dashboard(room)))
}

/// What owner keys manage.
const OWNERS: [(Method, &str, Room); 15] = [
    (Get, "/dashboard/keys", Room::View(DashboardView::Keys)),
    (Get, "/dashboard/keys/{key}", Room::Key),
    (Post, "/dashboard/keys", owner(OwnerForm::Make)),
    (
        Post,
        "/dashboard/keys/{key}/rotate",
        owner(OwnerForm::Rotate),
    ),
    (Post, "/dashboard/keys/{key}/block", owner(OwnerForm::Block)),
    (
        Post,
        "/dashboard/keys/{key}/unblock",
        owner(OwnerForm::Unblock),
    ),
    (Post, "/dashboard/keys/{key}/caps", owner(OwnerForm::SetCap)),
    (
        Post,
        "/dashboard/keys/{key}/caps/clear",
        owner(OwnerForm::ClearCap),
    ),
    (Post, "/dashboard/caps", owner(OwnerForm::SetCap)),
    (Post, "/dashboard/caps/clear", owner(OwnerForm::ClearCap)),
    (Post, "/dashboard/low-balance", owner(OwnerForm::LowBalance)),
    (
        Post,
        "/dashboard/auto-top-up/end",
        owner(OwnerForm::EndAutoTopUp),
    ),
    (Post, "/dashboard/shop", owner(OwnerForm::ToShop)),
    (Get, "/dashboard/plans", Room::View(DashboardView::Plans)),
    (Post, "/dashboard/plans/end", owner(OwnerForm::EndPlan)),
];

const fn owner(form: OwnerForm) -> Room {
    Room::Act(PostedForm::Owner(form))
}

const fn at(method: Method, path: &'static str, serves: Serves) -> ServedPath {
    ServedPath {
        method,
        path,
        serves,
    }
}

/// The door of all of them.
pub(super) fn door(front: &Arc<Front>) -> Door {
    let strangers = Arc::clone(&front.strangers);
    let door = Door::new(
        Arc::<Front>::clone(front),
        front.trusted_proxies.clone(),
        strangers,
    );
    endpoints()
        .into_iter()
        .fold(door, |door, endpoint| endpoint.enter(door, front))
}

impl ServedPath {
    /// What it takes, and from whom.
    pub const fn at_the_door(&self) -> DoorPath {
        let (body, caller) = match self.serves {
            Generate(_) | CountTokens(_) => (BodyRule::Json(LARGEST_BODY), PathCaller::Known),
            Models(_) | Account(_) => (BodyRule::Nothing, PathCaller::Known),
            Redeem => (BodyRule::document(FORM), PathCaller::Known),
            Keys(path) if path.has_body() => (BodyRule::document(LARGEST_TREE), PathCaller::Known),
            Keys(_) => (BodyRule::Nothing, PathCaller::Known),
            Serves::Dashboard(Room::Act(PostedForm::Login | PostedForm::Enter)) => {
                (BodyRule::Form, PathCaller::Anybody)
            }
            Serves::Dashboard(Room::Act(_)) => (BodyRule::Form, PathCaller::Known),
            Home | Probe | Serves::Dashboard(Room::Prices | Room::Enter | Room::Asset(_)) => {
                (BodyRule::Nothing, PathCaller::Anybody)
            }
            Serves::Dashboard(_) => (BodyRule::Nothing, PathCaller::Known),
        };
        DoorPath {
            method: self.method,
            path: self.path,
            body,
            caller,
        }
    }

    fn enter(self, door: Door, front: &Arc<Front>) -> Door {
        let (path, front) = (self.at_the_door(), Arc::clone(front));
        match self.serves {
            Generate(asked) => door.path(path, generate::Generate::new(front, asked)),
            CountTokens(family) => door.path(path, free::CountTokens::new(front, family)),
            Models(list) => door.path(path, models::Models::new(front, list)),
            Account(read) => door.path(path, account::AccountHandler::new(front, read)),
            Redeem => door.path(path, vouchers::RedeemHandler::new(front)),
            Keys(of) => door.path(path, KeysHandler::new(front, of)),
            Serves::Dashboard(room) => {
                door.path(path, Dashboard::new(Arc::clone(&front.context), room))
            }
            Home => door.path(path, free::Home::new(front)),
            Probe => door.path(path, free::probe),
        }
    }
}
