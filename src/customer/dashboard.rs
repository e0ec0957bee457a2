//! The dashboard and the price page over HTTP: which views need a session, which forms can be posted, and the headers of every page.
//!
//! A secret or a token received here is never sent back. Every POST must come from our own pages.

mod sign_in;

use std::net::IpAddr;
use std::sync::Arc;

use farebox_door::{FormFields, UnreadBody, Visit};
use farebox_ledger::{KeyId, Ledger};
use farebox_protocol::Family;
use maud::Markup;
use salvo::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, LOCATION, SET_COOKIE};
use salvo::http::{HeaderName, HeaderValue, ResBody, StatusCode};
use salvo::prelude::{Depot, Request, Response, handler};
use tokio::time::Instant;

use super::actor::{Actor, Viewer};
use super::assets::Asset;
use super::context::Context;
use super::guest::Guest;
use super::owner::{Owner, OwnerDeed, OwnerFields, OwnerForm, OwnerRefusal};
use super::page::{self, DashboardView, setup::SetupQuery, voucher::Redeeming};
use super::paper::{self, Paper};
use super::redeem::NotRedeemed;
use super::session;
use super::{export, holdings, live, views};
use crate::proxy::Failure;

/// Content security policy: nothing from other origins, nothing inline, no framing.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
/// `same-origin` and not `no-referrer`, with which browsers would post our own forms with the origin `null`.
const HEADERS: [(&str, &str); 5] = [
    ("content-security-policy", POLICY),
    ("referrer-policy", "same-origin"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
];

/// The page or action behind one path of the dashboard.
#[derive(Debug, Clone, Copy)]
pub enum Room {
    /// A view; needs a session.
    View(DashboardView),
    /// One request; needs a session.
    Receipt,
    /// One of the customer's keys; needs an owner's session.
    Key,
    /// A receipt or a correction; needs an owner's session.
    Document,
    /// A monthly statement; needs an owner's session.
    Statement,
    /// Where a voucher's code is typed; needs a session.
    Voucher,
    /// What is on sale, for everybody.
    Prices,
    /// Where one-time links land.
    Enter,
    /// The updates of an open page.
    Live,
    /// A file to download.
    Export(export::Export),
    /// An action.
    Act(PostedForm),
    /// Style or script.
    Asset(&'static Asset),
}

/// The forms that can be posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostedForm {
    /// Sign in with a key.
    Login,
    /// Sign in with a one-time link.
    Enter,
    /// End the session.
    Logout,
    /// End every session of the key.
    LogoutEverywhere,
    /// Check a key.
    Test,
    /// Redeem a voucher.
    Redeem,
    /// What an owner does to its customer's keys and caps.
    Owner(OwnerForm),
}

/// The handler of one path.
#[derive(Debug)]
pub struct Dashboard {
    context: Arc<Context>,
    room: Room,
}

#[handler]
impl Dashboard {
    /// Serves one path.
    #[must_use]
    pub fn new(context: Arc<Context>, room: Room) -> Self {
        Self { context, room }
    }

    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        for (name, value) in HEADERS {
            res.headers_mut().insert(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        res.headers_mut()
            .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let guest = depot.get_typed::<Arc<dyn Guest>>().ok().map(Arc::clone);
        // It is read when whoever sent it may post it.
        let mut arriving = ArrivingForm(Some(UnreadBody::of(depot)));
        let visit = Visit::of(depot).cloned();
        if let Err(failure) = self.answer(req, (guest, visit), &mut arriving, res).await {
            let status = failure.status(Family::Chat);
            html(
                res,
                status,
                page::notice(
                    &self.context.shop(),
                    "Something went wrong",
                    &failure.message(),
                ),
            );
            for (name, value) in failure.headers() {
                header(res, HeaderName::from_static(name), &value);
            }
        }
    }

    async fn answer(
        &self,
        req: &mut Request,
        (guest, visit): (Option<Arc<dyn Guest>>, Option<Visit>),
        form: &mut ArrivingForm,
        res: &mut Response,
    ) -> Result<(), Failure> {
        match self.room {
            Room::Asset(asset) => file(res, asset),
            Room::Prices => views::prices(&self.context).answer(req.headers(), res),
            Room::Enter => html(res, 200, page::enter(&self.context.shop(), None)),
            Room::Act(act)
                if !session::is_own_origin(
                    req.headers(),
                    &self.context.public_url,
                    self.context.address,
                ) =>
            {
                tracing::info!(act = ?act, "refused a form from another origin");
                let text = format!(
                    "This form did not come from the dashboard at {}/dashboard. Open it there.",
                    self.context.public_url
                );
                html(
                    res,
                    403,
                    page::notice(&self.context.shop(), "Refused", &text),
                );
            }
            Room::Act(PostedForm::Login) => self.login(req, &form.read().await?, res).await?,
            Room::Act(PostedForm::Enter) => self.enter(req, &form.read().await?, res).await?,
            Room::Act(PostedForm::Logout | PostedForm::LogoutEverywhere) => {
                self.logout(req, res).await?
            }
            Room::View(_)
            | Room::Receipt
            | Room::Live
            | Room::Export(_)
            | Room::Key
            | Room::Document
            | Room::Statement
            | Room::Voucher
            | Room::Act(PostedForm::Test | PostedForm::Redeem | PostedForm::Owner(_)) => {
                let Some(viewer) = self.viewer(req).await? else {
                    // Whatever cookie it brought: it is worth nothing.
                    let mut send = || self.send_to_sign_in(req, res);
                    match &visit {
                        Some(visit) => visit.as_stranger(&mut send)?,
                        None => send(),
                    }
                    return Ok(());
                };
                if let Some(guest) = &guest {
                    guest.belongs_to(&viewer.key);
                }
                let peer = visit.and_then(|visit| visit.sender.peer());
                self.serve(viewer, peer, (req, form), res).await?;
            }
        }
        Ok(())
    }

    /// The views of a signed-in customer.
    async fn serve(
        &self,
        viewer: Viewer,
        peer: Option<IpAddr>,
        (req, form): (&mut Request, &mut ArrivingForm),
        res: &mut Response,
    ) -> Result<(), Failure> {
        let query = |name: &str| req.query::<String>(name);
        if let Room::Export(what) = self.room {
            // It may run for minutes, so it counts among the key's running requests.
            let pass = self
                .context
                .rate_limits
                .enter_free(&viewer.key, Instant::now())?;
            return export::answer(&self.context, viewer.key, pass, what, &query, res).await;
        }
        if let Room::Document | Room::Statement = self.room {
            return self.paper(&viewer, req, res).await;
        }
        self.context
            .rate_limits
            .admit_visitor(viewer.key.customer.id, Instant::now())?;
        match self.room {
            Room::View(view) if !view.is_for(&viewer.key) => self.only_owners(res),
            Room::View(DashboardView::Keys) => self.keys(&viewer, None, None, res).await?,
            Room::View(DashboardView::Plans) => self.plans(&viewer, None, res).await?,
            Room::Key => self.keys(&viewer, named(req)?, None, res).await?,
            Room::Act(PostedForm::Owner(act)) => {
                let fields = form.read().await?;
                self.manage(act, &viewer, (req, &fields), res).await?;
            }
            Room::Voucher => self.voucher(&viewer, 200, Redeeming::Asked, res),
            Room::Act(PostedForm::Redeem) => {
                self.redeem(&viewer, peer, &form.read().await?, res).await?;
            }
            Room::View(view) => html(
                res,
                200,
                views::view(&self.context, &viewer.key, view, &query).await?,
            ),
            Room::Receipt => {
                let id = req.param::<String>("id").unwrap_or_default();
                let page = views::receipt(&self.context, &viewer.key, &id).await?;
                html(res, 200, page);
            }
            Room::Live => {
                let events = live::events(
                    Arc::clone(&self.context),
                    viewer,
                    live::PageParts::asked(&query),
                )?;
                res.headers_mut()
                    .insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
                res.headers_mut()
                    .insert("x-accel-buffering", HeaderValue::from_static("no"));
                res.body(ResBody::stream(events));
            }
            _ => {
                let fields = form.read().await?;
                let checked = self.check(&viewer, fields.text("key")).await?;
                let asked = SetupQuery::default();
                let page = views::setup(&self.context, &viewer.key, Some(&checked), &asked);
                html(res, 200, page);
            }
        }
        Ok(())
    }

    /// A document or a statement, for an owner. A long month is read for seconds, so it counts among the key's running requests.
    async fn paper(
        &self,
        viewer: &Viewer,
        req: &Request,
        res: &mut Response,
    ) -> Result<(), Failure> {
        let (key, shop) = (&viewer.key, self.context.shop());
        if !key.is_owner {
            self.only_owners(res);
            return Ok(());
        }
        let _pass = self.context.rate_limits.enter_free(key, Instant::now())?;
        let name = req.param::<String>("name").unwrap_or_default();
        let found = match self.room {
            Room::Statement => paper::statement(&self.context, &key.customer, &name).await?,
            _ => paper::document(&self.context, &key.customer, &name).await?,
        };
        match found {
            Paper::Page(content) => {
                let view = DashboardView::Payments;
                html(res, 200, page::signed_in(&shop, view, key, None, &content));
            }
            Paper::File(content_type, text) => {
                res.headers_mut()
                    .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
                let disposition = format!("attachment; filename=\"farebox-{name}\"");
                header(res, CONTENT_DISPOSITION, &disposition);
                res.body(text);
            }
        }
        Ok(())
    }

    /// The owner's views; `told` is why a form was refused.
    async fn keys(
        &self,
        viewer: &Viewer,
        one: Option<KeyId>,
        told: Option<&str>,
        res: &mut Response,
    ) -> Result<(), Failure> {
        match holdings::keys(&self.context, viewer, one, told).await? {
            Some(page) => html(res, if told.is_some() { 422 } else { 200 }, page),
            None => self.only_owners(res),
        }
        Ok(())
    }

    /// An owner's plans; `told` is why a form was refused.
    async fn plans(
        &self,
        viewer: &Viewer,
        told: Option<&str>,
        res: &mut Response,
    ) -> Result<(), Failure> {
        let page = holdings::plans(&self.context, &viewer.key, told).await?;
        html(res, if told.is_some() { 422 } else { 200 }, page);
        Ok(())
    }

    /// Does what a form of an owner asks for, and shows its page again.
    async fn manage(
        &self,
        form: OwnerForm,
        viewer: &Viewer,
        (req, fields): (&Request, &FormFields),
        res: &mut Response,
    ) -> Result<(), Failure> {
        let Some(owner) = Owner::of(Actor::of(&viewer.key, self.ledger())?) else {
            self.only_owners(res);
            return Ok(());
        };
        let field = |name| fields.text(name).to_owned();
        let fields = OwnerFields {
            once: field("once"),
            label: field("label"),
            interval: field("interval"),
            model: field("model"),
            limit: field("limit"),
            overlap: field("overlap"),
            plan: field("plan"),
        };
        let target = named(req)?;
        match owner.act(form, target, &fields).await {
            Ok(OwnerDeed::Secret(key, secret)) => {
                let content = page::keys::secret(&key, &secret);
                let (shop, view) = (self.context.shop(), DashboardView::Keys);
                html(
                    res,
                    200,
                    page::signed_in(&shop, view, &viewer.key, None, &content),
                );
            }
            Ok(OwnerDeed::Way(way)) => {
                let shop = self.context.shop();
                let url = shop.pay_url.as_ref().map(|url| way.shop_url(url));
                let content = page::pay::to_shop(url.as_deref());
                let view = DashboardView::Keys;
                html(
                    res,
                    200,
                    page::signed_in(&shop, view, &viewer.key, None, &content),
                );
            }
            Ok(OwnerDeed::Done) if form == OwnerForm::EndPlan => see_other(res, "/dashboard/plans"),
            Ok(OwnerDeed::Done) => {
                let one = target.map(|key| format!("/dashboard/keys/{key}"));
                see_other(res, one.as_deref().unwrap_or("/dashboard/keys"));
            }
            Err(OwnerRefusal::Told(text)) if form == OwnerForm::EndPlan => {
                self.plans(viewer, Some(&text), res).await?;
            }
            Err(OwnerRefusal::Told(text)) => self.keys(viewer, target, Some(&text), res).await?,
            Err(OwnerRefusal::Failed(failure)) => return Err(*failure),
        }
        Ok(())
    }

    /// Redeems the code of a form. Sending it again is answered with the same credit.
    async fn redeem(
        &self,
        viewer: &Viewer,
        peer: Option<IpAddr>,
        form: &FormFields,
        res: &mut Response,
    ) -> Result<(), Failure> {
        let code = form.text("code");
        let not = match self.context.redeem(&viewer.key, peer, code).await {
            Ok(posted) => {
                self.voucher(viewer, 200, Redeeming::Done(&posted), res);
                return Ok(());
            }
            Err(NotRedeemed::Failed(failure)) => return Err(*failure),
            Err(not) => not,
        };
        let (text, failure) = (not.message(), Failure::from(not));
        let status = match &failure {
            Failure::BadRequest(_) => 422,
            other => other.status(Family::Chat),
        };
        self.voucher(viewer, status, Redeeming::Refused(&text), res);
        for (name, value) in failure.headers() {
            header(res, HeaderName::from_static(name), &value);
        }
        Ok(())
    }

    fn voucher(&self, viewer: &Viewer, status: u16, what: Redeeming<'_>, res: &mut Response) {
        let (shop, view) = (self.context.shop(), DashboardView::Overview);
        let content = page::voucher::page(what);
        let page = page::signed_in(&shop, view, &viewer.key, None, &content);
        html(res, status, page);
    }

    fn only_owners(&self, res: &mut Response) {
        let text = "Payments, plans, keys and caps are shown to the owner keys of a customer, and this is a member's. \
                    Ask whoever gave you this key.";
        html(
            res,
            403,
            page::notice(&self.context.shop(), "Not with this key", text),
        );
    }

    async fn viewer(&self, req: &Request) -> Result<Option<Viewer>, Failure> {
        Ok(session::viewer(self.ledger(), req.headers(), self.context.is_secure()).await?)
    }

    /// Views redirect to the sign-in form; programs and posted forms get an error.
    fn send_to_sign_in(&self, req: &Request, res: &mut Response) {
        let had_cookie = session::has_cookie(req.headers(), self.context.is_secure());
        match self.room {
            Room::View(DashboardView::Overview) => {
                html(
                    res,
                    200,
                    page::sign_in(
                        &self.context.shop(),
                        had_cookie.then_some("Your session has ended. Sign in again."),
                    ),
                );
                if had_cookie {
                    header(
                        res,
                        SET_COOKIE,
                        &session::set_cookie("", self.context.is_secure()),
                    );
                }
            }
            Room::View(_)
            | Room::Receipt
            | Room::Key
            | Room::Document
            | Room::Statement
            | Room::Voucher => see_other(res, "/dashboard"),
            _ => html(
                res,
                401,
                page::sign_in(
                    &self.context.shop(),
                    Some("Your session has ended. Sign in again."),
                ),
            ),
        }
    }

    fn ledger(&self) -> &dyn Ledger {
        self.context.ledger.as_ref()
    }
}

/// A form that may still be on its way.
struct ArrivingForm(Option<UnreadBody>);

impl ArrivingForm {
    /// Reads it, once.
    ///
    /// # Errors
    /// 400, 413 or 415 for one that is not a small form, or does not arrive in time.
    async fn read(&mut self) -> Result<FormFields, Failure> {
        match self.0.take() {
            Some(body) => Ok(body.form().await?),
            None => Ok(FormFields::default()),
        }
    }
}

fn html(res: &mut Response, status: u16, page: Markup) {
    res.status_code(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
    res.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    res.body(page.into_string());
}

fn see_other(res: &mut Response, path: &str) {
    res.status_code(StatusCode::SEE_OTHER);
    header(res, LOCATION, path);
}

/// The key that a path names, if it names one.
///
/// # Errors
/// 404 for what is no key's id: a form would otherwise be about the customer.
fn named(req: &Request) -> Result<Option<KeyId>, Failure> {
    let id = req.param::<String>("key");
    id.map(|id| {
        id.parse()
            .map_err(|_| Failure::NoPath("this is no key's id".to_owned()))
    })
    .transpose()
}

fn file(res: &mut Response, asset: &'static Asset) {
    res.headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(asset.content_type));
    res.headers_mut().insert(
        CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    res.body(asset.text);
}

fn header(res: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        res.headers_mut().insert(name, value);
    }
}
