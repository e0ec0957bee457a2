//! What must not get out, in every form and at every edge.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::spelling::Spelling;
use super::*;

fn forms(secret: &str) -> Vec<SecretForms> {
    vec![SecretForms::of_secrets([secret])]
}

fn known() -> RedactedTerms<'static> {
    RedactedTerms {
        slug: "sonnet-public",
        models: ["big-model-4-5-20250929", "sim"].map(Spelling::of).into(),
        providers: vec!["acme", "messages"],
        hosts: vec!["api.acme.example"],
        secrets: forms("verysecretvalue"),
    }
}

#[track_caller]
fn becomes(text: &str, expected: &str) {
    assert_eq!(exit(text, &known(), LONGEST_MESSAGE, names_out), expected);
}

#[test]
fn model_names_become_the_slug() {
    becomes(
        "model: big-model-4-5-20250929 is not allowed",
        "model: sonnet-public is not allowed",
    );
    becomes(
        "`Big-Model-4-5` and vendor/big-model-4-5:free.",
        "`sonnet-public` and vendor/sonnet-public.",
    );
    becomes("it is simple; sim.", "it is simple; sonnet-public.");
    becomes("my-sim stays", "my-sim stays");
    becomes("max for sonnet-public: 5", "max for sonnet-public: 5");
}

#[test]
fn hosts_and_links_go_and_the_customers_own_stay() {
    becomes("see https://docs.acme.example/errors?x=1.", "see [url].");
    becomes(
        "cannot fetch https://cdn.customer.example/a.png, sorry",
        "cannot fetch https://cdn.customer.example/a.png, sorry",
    );
    becomes(
        "upstream API.acme.example:443 said no",
        "upstream [host]:443 said no",
    );
}

#[test]
fn providers_go_unless_they_are_part_of_a_field_name() {
    becomes("the Acme API", "the [provider] API");
    becomes(
        "Unexpected value(s) `x-2025-06-27` for the `acme-beta` header",
        "Unexpected value(s) `x-2025-06-27` for the `acme-beta` header",
    );
    becomes(
        "messages.0.content: Input should be a list",
        "messages.0.content: Input should be a list",
    );
}

#[test]
fn keys_and_ids_go_and_tool_ids_stay() {
    becomes("key verysecretvalue is wrong", "key [key] is wrong");
    becomes(
        "Incorrect API key provided: sk-abcd****wxyz.",
        "Incorrect API key provided: [key]",
    );
    becomes(
        "in organization org-AbC123xyz on tokens",
        "in organization [id] on tokens",
    );
    becomes("proj_abcdef12 req_011CSHoEeqs5C35K2UUqR7Fy", "[id] [id]");
    becomes(
        "include your request ID 4f9e2c1a-77 in it",
        "include your request ID [id] in it",
    );
    becomes("the request id is missing", "the request id is missing");
    becomes(
        "`tool_use` ids without results: toolu_01abc, call_9",
        "`tool_use` ids without results: toolu_01abc, call_9",
    );
    becomes("req_ and org-x", "req_ and org-x");
}

#[test]
fn other_text_is_untouched_and_odd_text_is_safe() {
    for text in [
        "",
        "ß → 模型 🚀",
        "max_tokens: 5 > 4",
        "https://",
        "sk-",
        "request id",
        "request id:",
    ] {
        becomes(text, text);
    }
    let long = "é".repeat(100_000);
    assert_eq!(
        exit(&long, &known(), LONGEST_MESSAGE, names_out)
            .chars()
            .count(),
        LONGEST_MESSAGE
    );
}

#[test]
fn an_unknown_event_stays_the_json_that_it_was() {
    becomes(
        r#"{"path":"C:\\Users\\svc","at":"http:\/\/10.0.0.7:80\/v1","text":"a:\n/usr/x.py\n","n":200000}"#,
        r#"{"path":"[path]","at":"http://[host]/v1","text":"a:\n[path]\n","n":200000}"#,
    );
    becomes(
        r#"{"at":"gpu\u002d7.svc\u002ecluster.local","text":"failed at\n10.0.0.7\n","plain":"C\u002b\u002b"}"#,
        r#"{"at":"[host]","text":"failed at\n[host]\n","plain":"C\u002b\u002b"}"#,
    );
}

#[test]
fn every_field_is_scrubbed() {
    let error = UpstreamError {
        kind: Some("invalid_request_error".to_owned()),
        code: Some("acme".to_owned()),
        param: Some("big-model-4-5".to_owned()),
        message: "api.acme.example".to_owned(),
    };
    let clean = error_for_customer(&error, &known());
    assert_eq!(clean.kind.as_deref(), Some("invalid_request_error"));
    assert_eq!(clean.code.as_deref(), Some("[provider]"));
    assert_eq!(clean.param.as_deref(), Some("sonnet-public"));
    assert_eq!(clean.message, "[host]");
}

#[test]
fn the_operator_reads_names_but_no_secrets_and_no_control_characters() {
    assert_eq!(
        text_for_operator("big-model\u{1b}[31m verysecretvalue", &known()),
        "big-model [31m [key]"
    );
}

proptest::proptest! {
    #[test]
    fn nothing_known_survives_in_any_surroundings(before in "\\PC{0,40}", behind in "\\PC{0,40}", which in 0_usize..3) {
        let secret = ["verysecretvalue", " api.acme.example ", " req_011CSHoEeqs5 "][which];
        let clean = exit(&format!("{before}{secret}{behind}"), &known(), LONGEST_MESSAGE, names_out);
        proptest::prop_assert!(!clean.contains(secret.trim()), "{}", clean);
        let _ = text_for_operator(&clean, &known());
    }
}

/// What an upstream may tell of itself, alone in words.
const IDENTIFIERS: [&str; 14] = [
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/prod",
    "account 123456789012",
    "project number 483920174655",
    "projects/my-shop-prod/locations/eu",
    "subscription 0b1f6471-1bf0-4dda-aec3-111122223333",
    "org-AbC123xyz789",
    "10.20.30.40:8443",
    "gpu-7.internal:8000",
    "vllm-0.pool.local",
    "eu.api.acme.example",
    "/usr/lib/python3/site-packages/server.py",
    "big-model-4-5-20250929",
    "vendor/big-model-4.5",
    "BIG_MODEL_4_5",
];

/// Words that clients match on, and what resembles an identifier.
const HARMLESS: [&str; 22] = [
    "messages.3.content.0:",
    "maximum context length is 200000 tokens,",
    "`max_tokens`: 4096 > 2048",
    "input[0].content[1].type",
    "2026-11-23T08:12:00Z",
    "v1.2.3",
    "either/or",
    "POST /v1/chat/completions",
    "fn main() { let x = a::b(c[::1]); }",
    "https://cdn.customer.example/a%20b.png?x=1",
    "your account's organization",
    "limit 30000000 per minute for this project",
    "0.123456789012",
    "toolu_01A09q90qw90lq917835lq9",
    "call_9hT3xYzAbCdEf",
    "1763885520123",
    "{\"type\":\"object\",\"minItems\":1}",
    "ß → 模型",
    "printf(\"%20s %d%%\")",
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
    "e3b0c44298fc1c149afbf4c8996fb924",
    "tools.0.custom.input_schema: JSON schema is invalid.",
];

/// The ways to write a text that the redaction undoes, and the whole that shows it.
fn written(text: &str, way: usize, shift: usize) -> String {
    let percent = |plain: fn(u8) -> bool| {
        let coded = text.bytes().map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        });
        coded.collect::<String>()
    };
    let inner = format!("{}{text} ok", &"at "[..shift.min(3)]);
    match way {
        0 => text.to_owned(),
        1 => text.to_ascii_uppercase().replace("/USR/LIB", "/usr/lib"),
        2 => percent(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)),
        3 => percent(|_| false),
        4 => STANDARD_NO_PAD.encode(inner),
        5 => URL_SAFE_NO_PAD.encode(inner),
        6 => hex::encode(inner),
        _ => percent(|_| false).replace('%', "%25"),
    }
}

proptest::proptest! {
    #[test]
    fn no_planted_identifier_survives_in_any_of_its_codings(
        which in 0..IDENTIFIERS.len(), way in 0_usize..8, shift in proptest::sample::select(vec![0_usize, 3]),
        before in 0..HARMLESS.len(), behind in 0..HARMLESS.len(),
    ) {
        let planted = written(IDENTIFIERS[which], way, shift);
        let (before, behind) = (HARMLESS[before], HARMLESS[behind]);
        let clean = exit(&format!("{before}. {planted} {behind}"), &known(), LONGEST_MESSAGE, names_out);
        proptest::prop_assert!(!clean.contains(&planted), "{} left {}", planted, clean);
        proptest::prop_assert!(clean.starts_with(before) && clean.ends_with(behind), "{}", clean);
    }

    #[test]
    fn text_without_identifiers_is_unchanged(words in proptest::collection::vec(proptest::sample::select(HARMLESS.to_vec()), 0..12)) {
        let text = words.join(". ");
        proptest::prop_assert_eq!(exit(&text, &known(), LONGEST_MESSAGE, names_out), text);
    }
}

/// No ten consecutive characters of the secret are left, in any of its forms.
fn leaks(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    b"verysecretvalue"
        .windows(10)
        .any(|piece| text.contains(std::str::from_utf8(piece).unwrap()))
}

#[test]
fn a_secret_is_found_at_every_edge_of_what_is_kept() {
    for longest in [LONGEST_REASON, LONGEST_MESSAGE, WINDOW] {
        for shift in 0..40 {
            let text = format!(
                "{}verysecretvalue and more",
                " .".repeat((longest - shift) / 2)
            );
            for clean in [
                exit(&text, &known(), LONGEST_MESSAGE, names_out),
                text_for_operator(&text, &known()),
            ] {
                assert!(!leaks(&clean), "{longest} - {shift}");
            }
        }
    }
    // Many short replacements move the edge of the window into the kept text.
    for shift in 0..30 {
        let text = format!("{}{}", ".".repeat(shift), "verysecretvalue".repeat(10_000));
        assert!(
            !leaks(&exit(&text, &known(), LONGEST_MESSAGE, names_out)),
            "{shift}"
        );
    }
}

#[test]
fn of_secrets_that_overlap_nothing_stays() {
    let known = RedactedTerms {
        secrets: vec![SecretForms::of_secrets(["abcdefgh", "fghijklmnop", "hijk"])],
        ..RedactedTerms::default()
    };
    let clean = |text| without_secrets(text, &known);
    assert_eq!(clean("x ABCDEFGHIJKLMNOP y"), "x [key] y");
    assert_eq!(clean("abcdefghfghijklmnop"), "[key][key]");
    assert_eq!(clean("abcdefg hij"), "abcdefg hij");
}

#[test]
fn a_secret_is_found_in_every_form_that_programs_write() {
    let secret = "sk-Top/Secret+value_1";
    let known = RedactedTerms {
        secrets: forms(secret),
        ..known()
    };
    let in_base64 = |before: &str| STANDARD_NO_PAD.encode(format!("{before}{secret} and more"));
    let written = [
        secret.to_ascii_uppercase(),
        "sk-Top%2FSecret%2Bvalue_1".to_owned(),
        "sk%2dTop%2fSecret%2bvalue%5f1".to_owned(),
        hex::encode_upper(secret),
        in_base64(""),
        in_base64("a"),
        in_base64("Authorization: Bearer "),
        URL_SAFE_NO_PAD.encode(format!("ab{secret}")),
    ];
    for text in written {
        let clean = text_for_operator(&format!("x {text} y"), &known);
        assert!(clean.contains("[key]"), "{text} became {clean}");
    }
}

#[test]
fn a_text_of_nothing_but_beginnings_costs_no_square() {
    let begun = std::time::Instant::now();
    for word in [
        "sk- ",
        "req_ ",
        "request id ",
        "http:// ",
        "verysecretvalue ",
        "api.acme.example ",
        "big",
        "arn:",
        "projects/",
        "/usr/",
        "!/usr",
        "a:\\",
        "10.0.0.",
        "account ",
        "%41",
        "QUJDREVG",
    ] {
        let text = word.repeat(WINDOW / word.len());
        let _ = exit(&text, &known(), LONGEST_MESSAGE, names_out);
    }
    // Quadratic time would take many seconds without optimisation.
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn nothing_forges_a_line_or_turns_it_around() {
    let text = "a\nb\r\u{85}\u{9b}2J\u{202e}c\u{2066}\u{2028}d\u{7f}\u{0}";
    for clean in [
        exit(text, &known(), LONGEST_MESSAGE, names_out),
        text_for_operator(text, &known()),
        answer_id(text, &SecretForms::default()).to_string(),
    ] {
        assert_eq!(clean, "a b   2J c  d  ");
    }
    assert!(!text_for_operator("verysecret\u{202e}value", &known()).contains("secretvalue"));
}

#[test]
fn a_model_is_found_without_its_vendor() {
    let known = RedactedTerms {
        models: vec![Spelling::of("vendor/deep-model-9")],
        ..known()
    };
    assert_eq!(
        exit("deep-model-9 is busy", &known, LONGEST_MESSAGE, names_out),
        "sonnet-public is busy"
    );
}

#[test]
fn an_answers_id_is_scrubbed_before_it_is_shortened() {
    let secrets = SecretForms::of_secrets(["verysecretvalue"]);
    let becomes = |id: &str| answer_id(id, &secrets).to_string();
    for plain in [
        "chatcmpl-9hT3",
        "resp_0a1b",
        "msg_01-x",
        "task-12345678901",
        "",
    ] {
        assert_eq!(becomes(plain), plain);
    }
    assert_eq!(becomes("msg_verySecretvalue_1"), "msg_[key]_1");
    assert_eq!(becomes("sk-abcd****wxyz"), "[key]");
    assert!(!leaks(&becomes(&format!(
        "msg_{}",
        hex::encode("verysecretvalue")
    ))));
    assert!(!leaks(&becomes(
        &STANDARD_NO_PAD.encode("id verysecretvalue")
    )));
    for front in LONGEST_WORD - 20..=LONGEST_WORD {
        assert!(
            !leaks(&becomes(&format!("{}verysecretvalue", "x".repeat(front)))),
            "{front}"
        );
    }
}
