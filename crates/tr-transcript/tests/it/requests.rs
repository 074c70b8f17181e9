//! What providers refuse of a whole request, of images among others, and of OpenAI's items.
use crate::members::{anthropic, found, refused, responses};
use serde_json::{Value, json};
use tr_transcript::{Fault, FileCheck, Repair, SessionFile, Transcript, Validator};

#[test]
fn a_model_from_4_6_on_continues_no_answer() {
    let messages = json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": "{"}]);
    let request = |model: &str| json!({"model": model, "max_tokens": 9, "messages": messages});
    for model in ["claude-opus-4-6", "anthropic/claude-sonnet-4.6", "claude-opus-5-20270101"] {
        let words = "This model does not support assistant message prefill. The conversation must end with a user message.";
        assert_eq!(refused(&request(model)), words, "{model}");
    }
    for model in ["claude-haiku-4-5", "claude-opus-4-20250514", "claude-3-7-sonnet-latest", "glm-5"]
    {
        assert_eq!(found(&request(model)), [], "{model}");
    }
}

#[test]
fn a_request_has_four_marks_for_the_cache_at_most() {
    let marked =
        |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    let mut request = json!({
        "model": "claude-opus-4-1",
        "max_tokens": 9,
        "system": [marked("s")],
        "tools": [{"name": "pay", "input_schema": {}, "cache_control": {"type": "ephemeral"}}],
        "messages": anthropic(&json!({"type": "tool_use", "id": "a", "name": "pay", "input": {}})),
    });
    request["messages"][2]["content"][0]["content"] = json!([marked("x"), marked("y")]);
    assert_eq!(found(&request), []);
    request["messages"][2]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
    let words = "A maximum of 4 blocks with cache_control may be provided. Found 5.";
    assert_eq!(refused(&request), words);
}

/// An image of this width, and of one pixel's height.
fn image(width: u32) -> Value {
    let head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    let png = [&head[..], &width.to_be_bytes(), &1_u32.to_be_bytes(), &[8, 2]].concat();
    let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, png);
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
}

/// A session in which a tool answers with two images of each of these widths.
fn gallery(widths: &[u32]) -> Value {
    let mut session = vec![json!({"role": "user", "content": [image(1)]})];
    for (at, &width) in widths.iter().enumerate() {
        let id = format!("a{at}");
        let call = json!({"type": "tool_use", "id": id, "name": "see", "input": {}});
        session.push(json!({"role": "assistant", "content": [call]}));
        let content = [image(width), image(width)];
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
        session.push(json!({"role": "user", "content": [result]}));
    }
    session.into()
}

#[test]
fn among_more_than_20_images_those_over_2000_pixels_are_refused() {
    let words = "content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels";
    let (few, many) = ([2_001, 2_001, 9, 9, 9, 9, 9, 9, 9], [2_001, 9, 9, 9, 9, 9, 9, 9, 9, 2_001]);
    assert_eq!(found(&gallery(&few)), []);
    let two = [2, 20].map(|at| (Fault::RefusedContent, Some(format!("messages.{at}.{words}"))));
    assert_eq!(found(&gallery(&many)), two);

    // A session that is cut back and goes on is judged like a new one.
    let transcript = Transcript::read(&gallery(&many).to_string()).unwrap();
    let messages = transcript.messages();
    for len in 0..messages.len() {
        let mut validator = Validator::with_members_of(&transcript);
        validator.truncate(messages, len);
        messages[len..].iter().for_each(|message| validator.push(message));
        assert_eq!(validator.findings().len(), 2, "{len}");
    }

    let mut mended = transcript;
    let plan = Repair::preserve().with_members().plan(&mended);
    assert_eq!(plan.losses().len(), 2);
    let _ = plan.apply(&mut mended).unwrap();
    assert!(Validator::with_members_of(&mended).is_valid());
    assert!(mended.to_json().contains("[the image that was here was removed: At least one"));
    assert_eq!(mended.to_json().matches("iVBOR").count(), 17);
}

#[test]
fn openai_says_what_it_refuses_of_an_item() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x", "content": [{"type": "reasoning_text", "text": "hm"}]});
    let bad_url = json!([{"type": "input_image", "image_url": "file:///x.png"}]);
    for (item, words) in [
        (
            json!({"type": "custom_tool_call", "id": "fc_1", "call_id": "a", "name": "edit", "input": ""}),
            "Invalid 'input[1].id': 'fc_1'. Expected an ID that begins with 'ctc'.",
        ),
        (
            json!({"type": "message", "role": "user", "id": "019f", "content": "x"}),
            "Invalid 'input[1].id': '019f'. Expected an ID that begins with 'msg'.",
        ),
        (
            reasoning,
            "Invalid 'input[1].content': array too long. Expected an array with maximum length 0, but got an array with length 1 instead.",
        ),
        (
            json!({"type": "message", "role": "user", "content": bad_url}),
            "Invalid 'input[1].content[0].image_url'. Expected a valid URL, but got a value with an invalid format.",
        ),
    ] {
        let mut items = responses(&item);
        if item["call_id"].is_null() {
            items[2] = json!({"type": "message", "role": "assistant", "content": "so"});
        }
        assert_eq!(refused(&items), words);
        let mut transcript = Transcript::read(&items.to_string()).unwrap();
        let plan = Repair::preserve().with_members().plan(&transcript);
        let _ = plan.apply(&mut transcript).unwrap();
        assert_eq!(transcript.len(), 3);
        assert!(Validator::with_members_of(&transcript).is_valid(), "{}", transcript.to_json());
    }
    let search = |kind: &str| json!({"input": [{"type": "web_search_call", "id": "ws_1", "action": {"type": kind}}]});
    assert_eq!(found(&search("find_in_page")), []);
    assert_eq!(found(&search("dream")), [(Fault::UnknownBlock, None)]);
}

/// A rollout of Codex's with a thought of which only the provider knows the content.
fn rollout(provider: &str) -> String {
    let line = |kind: &str, payload: Value| {
        format!("{}\n", json!({"timestamp": "t", "type": kind, "payload": payload}))
    };
    let user = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]});
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [], "content": null});
    let open = json!({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]});
    let answer = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]});
    line("session_meta", json!({"id": "s", "model_provider": provider}))
        + &line("response_item", user)
        + &line("response_item", thought)
        + &line("response_item", open)
        + &line("response_item", answer)
}

#[test]
fn codex_has_nothing_stored_and_other_providers_take_what_openai_refuses() {
    let check = |bytes: &[u8]| FileCheck::new().with_members().run(bytes, |_| {}).unwrap();
    let report = check(rollout("openai").as_bytes());
    let told: Vec<_> =
        report.findings.iter().map(|found| (found.line, found.to_string())).collect();
    assert_eq!(
        told,
        [
            (
                3,
                "encrypted_content that is refused: rs_1 is not stored, and has no encrypted_content"
                    .to_owned()
            ),
            (4, "content that is refused: 1 elements, none are taken".to_owned()),
        ]
    );
    let mut session = SessionFile::read(rollout("openai").into_bytes());
    session.apply(session.plan(Repair::preserve().with_members())).unwrap();
    assert_eq!(session.transcript().unwrap().len(), 3);
    assert!(check(&session.to_bytes()).is_clean());

    let session = SessionFile::read(rollout("ollama").into_bytes());
    assert!(check(&session.to_bytes()).is_clean());
    assert!(session.plan(Repair::preserve().with_members()).is_empty());
}
