//! A body that is too large is refused as such, whatever it says.

use farebox_doubles::{Vendor, judge_body};

#[test]
fn a_body_over_32_mb_is_a_413_in_the_service_s_words() {
    for (bytes, fits) in [(32 << 20, true), ((32 << 20) + 1, false)] {
        let shell = r#"{"model":"claude-sonnet-5-5","max_tokens":9,"messages":[{"role":"user","content":""}]}"#;
        let words = "x".repeat(bytes - shell.len());
        let body = shell.replace(r#""content":"""#, &format!(r#""content":"{words}""#));
        assert_eq!(body.len(), bytes);
        let judged = judge_body(Vendor::Anthropic, "/v1/messages", body.as_bytes());
        let status = judged.as_ref().err().map(|refusal| refusal.status);
        assert_eq!(status, (!fits).then_some(413), "{bytes} bytes");
        if let Err(refusal) = judged {
            assert!(
                refusal.body.contains("request_too_large"),
                "{}",
                refusal.body
            );
        }
    }
}
