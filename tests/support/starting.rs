//! Gateways of tests that start otherwise: behind a proxy, with anchors, with or without knowing how fast their targets are.

use std::time::Duration;

use farebox_protocol::Classes;

use super::{CATALOG, Gateway, Settings, loaded, routes, upstream};

impl Gateway {
    /// Starts a gateway that knows nothing of its targets yet: a customer who leaves stops none of them.
    pub(crate) async fn fresh(catalog: &str, routes: &str) -> Self {
        Self::fresh_with(catalog, routes, |_| {}).await
    }

    /// The same with other settings.
    pub(crate) async fn fresh_with(
        catalog: &str,
        routes: &str,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let (loaded, folder) = (loaded(catalog, routes), tempfile::tempdir().unwrap());
        Self::run(loaded, folder, change).await
    }

    /// Lets it know how fast its targets are: 100 tokens a second.
    pub(super) fn experienced(self) -> Self {
        let (proxy, took) = (&self.front.proxy, Duration::from_secs(2_000));
        for state in proxy.upstreams.states() {
            let target = &state.target;
            (proxy.calibrations).note_stream(target, Classes::STANDARD, 200_000, took);
        }
        self
    }

    /// A gateway in front of a scripted upstream, behind a proxy at this URL.
    pub(crate) async fn published(upstream: &upstream::ScriptedUpstream, public_url: &str) -> Self {
        Self::start_with(CATALOG, &routes(&upstream.base_url()), |settings| {
            settings.public_url = Some(public_url.to_owned())
        })
        .await
    }

    /// The same, with anchors beside its ledger.
    pub(crate) async fn anchored(upstream: &upstream::ScriptedUpstream) -> Self {
        let beside = |settings: &mut Settings| {
            settings.anchors = settings
                .ledger
                .path()
                .map(|path| path.with_file_name("anchors"))
        };
        Self::start_with(CATALOG, &routes(&upstream.base_url()), beside).await
    }
}
