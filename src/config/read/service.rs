//! Reads what is said of a service: `limit`, `stops` and `speed`.

use farebox_toml::{Code, Entry, Fields, KEYS, Report};
use toml::de::DeValue;

use crate::config::{LimitBinds, ServiceWords, Speeds};

/// A faster one is a typing mistake.
const FASTEST: u32 = 100_000;

/// Reads what a target says; `None` if something in it is wrong.
pub(super) fn read_target_words(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
) -> Option<ServiceWords> {
    let limit = fields.given(report, "limit", read_limit_binds);
    let speed = fields.given(report, "speed", |value, report| {
        read_speeds(value, report, &fields.what)
    });
    Some(ServiceWords {
        limit: limit?,
        stops: None,
        speed: speed?.unwrap_or_default(),
    })
}

/// Reads what a provider's table says; `None` if something in it is wrong.
pub(super) fn read_provider_words(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
) -> Option<ServiceWords> {
    let words = read_target_words(fields, report);
    let stops = fields.given(report, "stops", Entry::boolean);
    Some(ServiceWords {
        stops: stops?,
        ..words?
    })
}

fn read_limit_binds(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<LimitBinds> {
    if let DeValue::Integer(_) = value.node() {
        value.expected(report, "a string").help(
            "`limit` says what an output limit bounds there: \"all\", \"text\" or \"none\"; the most output is `max_output`, in the `limits` of the model",
        );
        return None;
    }
    let words = LimitBinds::EVERY.map(|binds| (binds.name(), binds));
    value.word(report, &words)
}

/// Reads `speed = 150`, or `speed = { standard = 150, fast = 400 }`.
fn read_speeds(value: Entry<'_, '_>, report: &mut Report<'_>, what: &str) -> Option<Speeds> {
    let DeValue::Table(_) = value.node() else {
        return read_speed(value, report).map(Speeds::all);
    };
    let fields = value.fields(report, &format!("the `speed` of {what}"), &KEYS.speed)?;
    let [standard, flex, fast] =
        ["standard", "flex", "fast"].map(|name| fields.given(report, name, read_speed));
    Some(Speeds {
        standard: standard?,
        flex: flex?,
        fast: fast?,
    })
}

pub(super) fn read_speed(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<u32> {
    value.small(report, 1..=FASTEST).map(|speed| speed.value)
}

/// Notes a speed in the catalog: how fast a model is depends on who runs it.
pub(super) fn note_speed(report: &mut Report<'_>, fields: &Fields<'_, '_>, speed: Option<u32>) {
    let (Some(speed), Some(value)) = (speed, fields.get("speed")) else {
        return;
    };
    report
        .add(
            Code::SpeedOfModel,
            value.key,
            format!("the `speed` in {} decides what is charged where nobody counted, and nothing that is held", fields.what),
        )
        .help(format!(
            "how fast a model is depends on who runs it: `speed = {speed}` in the target or its provider wins over this one, also by class: speed = {{ standard = {speed}, fast = … }}"
        ));
}
