//! What a customer reads whose request is refused for the exposure of its key.

use crate::billing::exposure::ToldStop;

/// What a customer reads whose request is refused for its exposure.
pub(super) fn message(stop: Option<&ToldStop>) -> String {
    let Some(stop) = stop else {
        return "exposure limit: streams of this key's customer wait for their first words, and together their prompts may cost more \
                than may be left unpaid; retry when one of them has begun"
            .to_owned();
    };
    let whose = stop.cause.map_or_else(
        || "this key".to_owned(),
        |cause| format!("this key's customer, most of them of key {cause},"),
    );
    let failed = stop.failed.as_ref().map_or_else(String::new, |slug| {
        format!("; for some of them the provider of {slug:?} sent nothing at all")
    });
    let longer = match stop.minutes {
        0..180 => String::new(),
        180..2_880 => format!(" ({} hours)", stop.minutes.div_ceil(60)),
        _ => format!(" ({} days)", stop.minutes.div_ceil(24 * 60)),
    };
    format!(
        "exposure limit: too many requests of {whose} in the last {} were left early or broke, and were paid only in part{failed}; it is \
         served again in about {} minutes{longer}; read answers to their end, or ask the seller of this key",
        stop.span.name(),
        stop.minutes
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::billing::last_days::ExposureSpan;

    #[test]
    fn a_stopped_key_reads_for_how_long_and_what_failed() {
        let stop = |minutes, failed: Option<&str>| ToldStop {
            span: ExposureSpan::Day,
            minutes,
            cause: None,
            failed: failed.map(str::to_owned),
        };
        let said = message(Some(&stop(12, None)));
        assert!(
            said.contains("this key in the last 24 hours") && said.contains("about 12 minutes;"),
            "{said}"
        );
        let said = message(Some(&stop(1_500, Some("quick"))));
        assert!(
            said.contains("the provider of \"quick\" sent nothing")
                && said.contains("1500 minutes (25 hours)"),
            "{said}"
        );
        assert!(message(Some(&stop(40_000, None))).contains("(28 days)"));
        assert!(message(None).contains("retry when one of them has begun"));
    }
}
