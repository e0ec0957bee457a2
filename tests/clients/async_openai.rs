//! One question to a slug by async-openai, with BASE, KEY, SLUG and CASE in the environment, as programs.py does.

use std::env;
use std::error::Error;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::types::chat::{
    ChatCompletionMessageToolCalls, ChatCompletionRequestAssistantMessageArgs,
    ChatCompletionRequestMessage, ChatCompletionRequestToolMessageArgs,
    ChatCompletionRequestUserMessageArgs, ChatCompletionResponseMessage, ChatCompletionTool,
    ChatCompletionTools, CreateChatCompletionRequestArgs, FunctionObjectArgs,
};
use futures::StreamExt;
use serde_json::json;

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Asker {
    client: Client<OpenAIConfig>,
    slug: String,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let config = OpenAIConfig::new()
        .with_api_base(format!("{}/v1", env::var("BASE")?))
        .with_api_key(env::var("KEY")?);
    let asker = Asker {
        client: Client::with_config(config),
        slug: env::var("SLUG")?,
    };
    let case = env::var("CASE")?;
    let prompt = match case.as_str() {
        "tool" => r#"weather {"city": "Bonn"}"#,
        "middle" => "Write 3000 words",
        "broken" => "Write 50 words",
        _ => "Say hello",
    };
    let question = ChatCompletionRequestUserMessageArgs::default()
        .content(prompt)
        .build()?;
    let mut messages: Vec<ChatCompletionRequestMessage> = vec![question.into()];
    if case != "plain" && case != "tool" {
        return asker.stream(messages).await;
    }
    let mut answer = asker.whole(&messages).await?;
    if let Some(calls) = answer.tool_calls.take() {
        let said = ChatCompletionRequestAssistantMessageArgs::default()
            .tool_calls(calls.clone())
            .build()?;
        messages.push(said.into());
        for call in calls {
            let ChatCompletionMessageToolCalls::Function(call) = call else {
                continue;
            };
            let result = ChatCompletionRequestToolMessageArgs::default()
                .tool_call_id(call.id)
                .content("sunny in Bonn")
                .build()?;
            messages.push(result.into());
        }
        answer = asker.whole(&messages).await?;
    }
    println!("{}", answer.content.unwrap_or_default());
    Ok(())
}

impl Asker {
    async fn whole(
        &self,
        messages: &[ChatCompletionRequestMessage],
    ) -> Outcome<ChatCompletionResponseMessage> {
        let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let function = FunctionObjectArgs::default()
            .name("weather")
            .parameters(parameters)
            .build()?;
        let request = CreateChatCompletionRequestArgs::default()
            .model(&self.slug)
            .messages(messages)
            .tools(vec![ChatCompletionTools::Function(ChatCompletionTool {
                function,
            })])
            .build()?;
        let answer = self.client.chat().create(request).await?;
        let first = answer.choices.into_iter().next();
        Ok(first.ok_or("no choice")?.message)
    }

    async fn stream(&self, messages: Vec<ChatCompletionRequestMessage>) -> Outcome<()> {
        let request = CreateChatCompletionRequestArgs::default()
            .model(&self.slug)
            .messages(messages)
            .build()?;
        let mut chunks = self.client.chat().create_stream(request).await?;
        while let Some(chunk) = chunks.next().await {
            for choice in chunk?.choices {
                print!("{}", choice.delta.content.unwrap_or_default());
            }
        }
        Ok(())
    }
}
