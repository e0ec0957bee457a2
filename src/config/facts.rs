//! What models ask for by their names, wherever they run: for providers whose settings do not say it. The strict doubles in
//! `tests/doubles/` have the sources.

/// A reasoning model of OpenAI's, which refuses `max_tokens`.
pub(crate) fn reasons(model: &str) -> bool {
    is_of(model, &["o1", "o3", "o4", "gpt-5"], "chat")
}

/// A model that refuses an effort beside function tools in chat. Routers send such a request on in another way.
pub(crate) fn refuses_effort_with_tools(model: &str) -> bool {
    model.starts_with("gpt-5.4")
}

/// A model of Anthropic's that thinks whatever it is told, and refuses to be told not to.
pub(crate) fn thinks_always(model: &str) -> bool {
    let series = ["-fable-", "-mythos-", "-opus-5-5"];
    series.iter().any(|series| model.contains(series))
}

/// A reasoning model of xAI's, which refuses stop strings, and both penalties even if they are 0.
pub(crate) fn refuses_stops_and_penalties(model: &str) -> bool {
    is_of(model, &["grok-4", "grok-code"], "non-reasoning")
}

/// Whether a model is of one of these series, and not one of those with this word in their names. Routers put a vendor in front.
fn is_of(model: &str, series: &[&str], except: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default();
    series.iter().any(|series| name.starts_with(series)) && !name.contains(except)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_models_refuse() {
        for model in ["gpt-5.4-mini", "openai/gpt-5.2", "o3-mini", "o4-mini"] {
            assert!(reasons(model), "{model}");
        }
        for model in [
            "gpt-4.1",
            "gpt-5-chat-latest",
            "gpt-oss-20b",
            "grok-4.3",
            "",
        ] {
            assert!(!reasons(model), "{model}");
        }
        assert!(refuses_effort_with_tools("gpt-5.4-mini"));
        assert!(!refuses_effort_with_tools("openai/gpt-5.4-mini"));
        assert!(!refuses_effort_with_tools("gpt-5.2"));
        for model in [
            "claude-fable-5",
            "anthropic.claude-mythos-5",
            "claude-opus-5-5-20260922",
        ] {
            assert!(thinks_always(model), "{model}");
        }
        for model in ["claude-sonnet-5-5", "claude-opus-5", "fable-5", ""] {
            assert!(!thinks_always(model), "{model}");
        }
        for model in ["grok-4", "x-ai/grok-4.6", "grok-code-fast-1"] {
            assert!(refuses_stops_and_penalties(model), "{model}");
        }
        for model in ["grok-4-fast-non-reasoning", "grok-3", ""] {
            assert!(!refuses_stops_and_penalties(model), "{model}");
        }
    }
}
