//! Signing in and out, and checking a key.

use farebox_door::FormFields;
use farebox_ledger::{CloseSession, CloseSessions, KeyId, Perform, SecretHash, Timestamp};
use farebox_protocol::Family;
use salvo::http::header::SET_COOKIE;
use salvo::prelude::{Request, Response};
use tokio::time::Instant;

use super::{Dashboard, PostedForm, Room, header, html, see_other};
use crate::customer::actor::Viewer;
use crate::customer::page::{self, setup::Checked};
use crate::customer::session;
use crate::customer::views;
use crate::proxy::Failure;

impl Dashboard {
    pub(super) async fn login(
        &self,
        req: &Request,
        form: &FormFields,
        res: &mut Response,
    ) -> Result<(), Failure> {
        match session::key_of(self.ledger(), form.text("key")).await {
            Ok((key, until)) => {
                self.context
                    .rate_limits
                    .admit_visitor(key.customer.id, Instant::now())?;
                self.sign_in(req, res, key.id, until).await
            }
            Err(
                failure @ (Failure::Unauthenticated(_)
                | Failure::KeyState(_)
                | Failure::CustomerState(_)),
            ) => {
                html(
                    res,
                    failure.status(Family::Chat),
                    page::sign_in(&self.context.shop(), Some(&problem(&failure))),
                );
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    pub(super) async fn enter(
        &self,
        req: &Request,
        form: &FormFields,
        res: &mut Response,
    ) -> Result<(), Failure> {
        // The customer may have pasted the whole link.
        let token = form
            .text("token")
            .rsplit('#')
            .next()
            .unwrap_or_default()
            .trim();
        match self
            .ledger()
            .consume_link(SecretHash::of(token), crate::clock::now())
            .await?
        {
            Some(key) => self.sign_in(req, res, key, None).await,
            None => {
                let text = "This link was used, has expired or is incomplete. Ask for a new one, or sign in with your key.";
                html(res, 401, page::enter(&self.context.shop(), Some(text)));
                Ok(())
            }
        }
    }

    async fn sign_in(
        &self,
        req: &Request,
        res: &mut Response,
        key: KeyId,
        until: Option<Timestamp>,
    ) -> Result<(), Failure> {
        if let Some(earlier) = self.viewer(req).await? {
            self.ledger().perform(CloseSession(earlier.token)).await?;
        }
        let token = session::open(self.ledger(), key, until).await?;
        header(
            res,
            SET_COOKIE,
            &session::set_cookie(&token, self.context.is_secure()),
        );
        see_other(res, "/dashboard");
        Ok(())
    }

    pub(super) async fn logout(&self, req: &Request, res: &mut Response) -> Result<(), Failure> {
        if let Some(viewer) = self.viewer(req).await? {
            match self.room {
                Room::Act(PostedForm::LogoutEverywhere) => {
                    self.ledger().perform(CloseSessions(viewer.key.id)).await?
                }
                _ => self.ledger().perform(CloseSession(viewer.token)).await?,
            }
        }
        header(
            res,
            SET_COOKIE,
            &session::set_cookie("", self.context.is_secure()),
        );
        see_other(res, "/dashboard");
        Ok(())
    }

    /// The result of checking a pasted key, or the page's own key.
    pub(super) async fn check(&self, viewer: &Viewer, pasted: &str) -> Result<Checked, Failure> {
        let key = if pasted.trim().is_empty() {
            viewer.key.clone()
        } else {
            match session::key_of(self.ledger(), pasted).await {
                Ok((key, _)) => key,
                Err(
                    failure @ (Failure::Unauthenticated(_)
                    | Failure::KeyState(_)
                    | Failure::CustomerState(_)),
                ) => {
                    return Ok(Checked {
                        good: false,
                        text: format!("{}: {}", failure.status(Family::Chat), problem(&failure)),
                    });
                }
                Err(failure) => return Err(failure),
            }
        };
        Ok(views::checked(&self.context, &key))
    }
}

/// A failed sign-in as a message for the form.
fn problem(failure: &Failure) -> String {
    match failure {
        Failure::Unauthenticated(why) => format!("{}{}.", why[..1].to_uppercase(), &why[1..]),
        other => other.message(),
    }
}
