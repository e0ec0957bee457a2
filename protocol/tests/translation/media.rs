//! Pictures and documents, including those inside results.

use serde_json::{Value, json};

use super::help::*;

const PNG: &str = "iVBORw0KGgo=";

fn picture() -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}})
}

fn data_url() -> String {
    format!("data:image/png;base64,{PNG}")
}

fn result_with(content: Value) -> Value {
    talking(
        Messages,
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": content}]},
        ]),
    )
}

#[test]
fn b04_documents_are_sent_and_audio_is_refused() {
    let file = json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}});
    let body = talking(Chat, json!([{"role": "user", "content": [file]}]));
    let block = sent(Chat, Messages, &body)["messages"][0]["content"][0].clone();
    let source = json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="});
    assert_eq!(
        block,
        json!({"type": "document", "source": source, "title": "a.pdf"})
    );
    let audio = json!({"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}});
    let bad = refused(
        Chat,
        Messages,
        &talking(Chat, json!([{"role": "user", "content": [audio]}])),
    );
    assert_eq!(bad.param.as_deref(), Some("messages[0].content[0]"));
    let tools = json!([{"type": "custom", "custom": {"name": "sql", "description": "asks"}}]);
    let tool = sent(Chat, Messages, &asking(Chat, &json!({"tools": tools})))["tools"][0].clone();
    assert_eq!(
        (&tool["name"], &tool["input_schema"]["required"]),
        (&json!("sql"), &json!(["input"])),
        "a custom tool stays"
    );
}

#[test]
fn b05_a_picture_of_a_responses_client_reaches_a_chat_model() {
    let part = json!({"type": "input_image", "image_url": data_url(), "detail": "low"});
    let body = talking(
        Responses,
        json!([{"role": "user", "content": [{"type": "input_text", "text": "see"}, part]}]),
    );
    let sent = sent(Responses, Chat, &body);
    assert_eq!(
        sent["messages"][0]["content"][1],
        json!({"type": "image_url", "image_url": {"url": data_url(), "detail": "low"}})
    );
}

#[test]
fn b20_b21_a_picture_in_a_result_reaches_the_model() {
    let sent = sent(
        Messages,
        Chat,
        &result_with(json!([{"type": "text", "text": "shot"}, picture()])),
    );
    assert_eq!(sent["messages"][2]["content"], "shot\n\n[see image below]");
    let shown = &sent["messages"][3];
    assert_eq!(shown["role"], "user");
    assert_eq!(shown["content"][0]["text"], "[image from tool call t1]");
    assert_eq!(shown["content"][1]["image_url"]["url"], data_url());
}

#[test]
fn b22_a_picture_in_a_chat_result_stands_in_the_result() {
    let body = talking(
        Chat,
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "image_url", "image_url": {"url": data_url()}}]},
        ]),
    );
    let block = sent(Chat, Messages, &body)["messages"][2]["content"][0].clone();
    assert_eq!(block["type"], "tool_result");
    assert_eq!(block["content"], json!([picture()]));
}

#[test]
fn b23_pictures_follow_all_results() {
    let result =
        |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": [picture()]});
    let body = talking(
        Messages,
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "t1", "name": "f", "input": {}}, {"type": "tool_use", "id": "t2", "name": "f", "input": {}},
            ]},
            {"role": "user", "content": [result("t1"), result("t2")]},
        ]),
    );
    let sent = sent(Messages, Chat, &body);
    let roles: Vec<&Value> = sent["messages"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "user"]);
    assert_eq!(
        sent["messages"][4]["content"].as_array().map(Vec::len),
        Some(4)
    );
}

#[test]
fn b24_a_result_of_a_picture_alone_has_a_placeholder() {
    let sent = sent(Messages, Chat, &result_with(json!([picture()])));
    assert_eq!(sent["messages"][2]["content"], "[see image below]");
    assert_eq!(sent["messages"].to_string().matches(PNG).count(), 1);
}

#[test]
fn what_a_target_cannot_read_is_refused() {
    let careful = farebox_protocol::translate::Abilities::careful(Chat);
    let body = talking(Messages, json!([{"role": "user", "content": [picture()]}]));
    let bad = translated(Messages, Chat, &careful, &body).expect_err("no vision");
    assert_eq!(bad.code, Some("unsupported_by_model"));
    let body = talking(
        Chat,
        json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/tiff;base64,AA=="}}]}]),
    );
    assert!(refused(Chat, Messages, &body).message.contains("JPEG"));
    let body = talking(
        Chat,
        json!([{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}]),
    );
    assert!(refused(Chat, Messages, &body).message.contains("inline"));
    let url = json!({"type": "document", "source": {"type": "url", "url": "https://x/a.pdf"}});
    assert!(
        refused(
            Messages,
            Chat,
            &talking(Messages, json!([{"role": "user", "content": [url]}]))
        )
        .message
        .contains("inline")
    );
}

#[test]
fn documents_of_text_are_read_as_text() {
    let document = json!({"type": "document", "title": "T", "context": "C", "source": {"type": "text", "media_type": "text/plain", "data": "body"}});
    let sent_chat = sent(
        Messages,
        Chat,
        &talking(Messages, json!([{"role": "user", "content": [document]}])),
    );
    assert_eq!(sent_chat["messages"][0]["content"], "C\n\nT\n\nbody");
    let file = json!({"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,aGk="});
    let block = sent(
        Responses,
        Messages,
        &talking(Responses, json!([{"role": "user", "content": [file]}])),
    )["messages"][0]["content"][0]
        .clone();
    assert_eq!(
        block["source"],
        json!({"type": "text", "media_type": "text/plain", "data": "hi"})
    );
}
