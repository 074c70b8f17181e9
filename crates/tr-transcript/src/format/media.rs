//! Images and documents that Anthropic refuses, by their first bytes.
use super::refused::{Applies, DOCUMENT, IMAGE, PIXELS, Refused, URL, Why};
use crate::json::{self, Members, quote};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use imagesize::{ImageType, blob_size, image_type};
use std::borrow::Cow;

/// The provider's limits: the longest base64 text, and the most pixels of a side.
const LONGEST: usize = 5 << 20;
const WIDEST: usize = 8_000;

/// The most pixels of a side among many images.
const WIDE: usize = 2_000;

/// How much of an image is decoded at first; more where its size stands further back.
const HEAD: usize = 64 << 10;

/// The types of images that the provider takes.
const TYPES: [(&str, ImageType); 4] = [
    ("image/png", ImageType::Png),
    ("image/jpeg", ImageType::Jpeg),
    ("image/gif", ImageType::Gif),
    ("image/webp", ImageType::Webp),
];

/// How many images a block is, or a result has, and why the provider refuses one of them, or a document.
pub(super) fn seen(block: &str) -> (usize, Option<Refused>) {
    let wire = Members::of(block, &["type", "source", "content"]).unwrap_or_default();
    match &*wire.text("type") {
        "image" => (1, image(&wire)),
        "document" => (0, document(&wire)),
        "tool_result" => {
            let content = wire.get("content").and_then(|raw| json::elements(raw.get()).ok());
            let parts = content.unwrap_or_default().into_iter().map(seen);
            parts.fold((0, None), |(images, first), (more, next)| {
                // What is always refused, before what is refused among many.
                let first = first.filter(|it: &Refused| it.why != Why::Wide || next.is_none());
                (images + more, first.or(next))
            })
        }
        _ => (0, None),
    }
}

/// The type and the data of a block in base64.
fn source<'t>(wire: &Members<'t>) -> Option<(Cow<'t, str>, Cow<'t, str>)> {
    let source = wire.inside("source", &["type", "media_type", "data"]);
    let source = Some(source).filter(|source| source.text("type") == "base64")?;
    Some((source.string("media_type")?, source.string("data")?))
}

fn image(wire: &Members<'_>) -> Option<Refused> {
    let (media, data) = source(wire)?;
    let unread = unread_image(&media, &data);
    let unread = unread.map(|why| Refused::content(IMAGE, Why::Said(why.into())));
    unread.or_else(|| too_wide(&data))
}

/// An image whose size is not found is not judged.
fn too_wide(data: &str) -> Option<Refused> {
    let size = |bytes: Vec<u8>| blob_size(&bytes).ok();
    let size = size(decoded(head_of(data))?).or_else(|| size(decoded(data)?))?;
    let side = size.width.max(size.height);
    if side <= WIDEST {
        return (side > WIDE).then(Refused::wide);
    }
    let why =
        format!("At least one of the image dimensions exceed max allowed size: {WIDEST} pixels");
    Some(Refused::content(PIXELS, Why::Said(why.into())))
}

fn unread_image(media: &str, data: &str) -> Option<String> {
    if !TYPES.iter().any(|(name, _)| *name == media) {
        let known = "'image/jpeg', 'image/png', 'image/gif' or 'image/webp'";
        return Some(format!("Input should be {known}"));
    }
    if data.is_empty() {
        return Some("image cannot be empty".into());
    }
    if data.len() > LONGEST {
        let len = data.len();
        return Some(format!("image exceeds 5 MB maximum: {len} bytes > {LONGEST} bytes"));
    }
    let unknown = || Some("Could not process image".into());
    let Some(head) = decoded(head_of(data)) else { return unknown() };
    let found = image_type(&head).ok();
    match TYPES.iter().find(|(_, it)| Some(*it) == found) {
        Some((real, _)) => (*real != media).then(|| format!(
            "The image was specified using the {media} media type, but the image appears to be a {real} image"
        )),
        None => unknown(),
    }
}

fn document(wire: &Members<'_>) -> Option<Refused> {
    let (media, data) = source(wire)?;
    let is_pdf = || decoded(head_of(&data)).is_some_and(|head| head.starts_with(b"%PDF"));
    let why = match &*media {
        "application/pdf" if data.is_empty() => "PDF cannot be empty",
        "application/pdf" if !is_pdf() => "The PDF specified was not valid.",
        _ => return None,
    };
    Some(Refused::content(DOCUMENT, Why::Said(why.into())))
}

/// Why OpenAI refuses the image in the part `at` of the list `list`, by its URL. An image without data is
/// refused where `needs_data` says so.
pub(super) fn refused_url(list: &str, at: usize, url: &str, needs_data: bool) -> Option<Refused> {
    let why = match url.split_once(':') {
        Some(("data", data)) if needs_data && data.ends_with(',') => {
            "The image data you provided does not represent a valid image."
        }
        Some(("http" | "https" | "data", _)) => return None,
        _ => "Expected a valid URL, but got a value with an invalid format.",
    };
    let member = format!("{list}[{at}].{URL}");
    Some(Refused::content(member, Why::Said(why.into())))
}

/// The beginning of a text.
fn head_of(text: &str) -> &[u8] {
    let bytes = text.as_bytes();
    &bytes[..bytes.len().min(HEAD)]
}

/// The bytes of a base64 text, which may have line breaks in it and be cut off.
fn decoded(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    let mut text = text.as_ref().to_vec();
    text.retain(|byte| !byte.is_ascii_whitespace() && *byte != b'=');
    text.truncate(text.len() / 4 * 4);
    STANDARD.decode(text).ok()
}

/// The content with a text in the place of each image or document that the provider refuses; `None` if there is none.
pub(super) fn without_refused(content: &str, applies: Applies) -> Option<String> {
    changed(content, |_, part| {
        let wire = Members::of(part, &["type", "content"]).unwrap_or_default();
        if wire.text("type") == "tool_result" {
            let content = without_refused(wire.get("content")?.get(), applies)?;
            return Some(json::set_member(part, "content", &content));
        }
        let refused = seen(part).1.filter(|refused| applies.to(refused))?;
        Some(instead("text", &refused))
    })
}

/// A list with those parts changed for which `change` has another text; `None` if there are none.
fn changed(list: &str, change: impl Fn(usize, &str) -> Option<String>) -> Option<String> {
    let parts = json::elements(list).ok()?;
    let now: Vec<_> = parts.iter().enumerate().map(|(at, part)| change(at, part)).collect();
    now.iter().any(Option::is_some).then(|| {
        let all = now.into_iter().zip(parts).map(|(now, part)| now.unwrap_or_else(|| part.into()));
        format!("[{}]", all.collect::<Vec<_>>().join(","))
    })
}

/// A message with a text, of the type `kind`, in the place of each part of its member `list` that is refused.
pub(super) fn instead_of(
    message: &str,
    list: &str,
    kind: &str,
    refused: impl Fn(usize, &str) -> Option<Refused>,
) -> Option<String> {
    let members = json::members(message).ok()?;
    let instead = |at, part: &str| refused(at, part).map(|refused| instead(kind, &refused));
    Some(json::set_member(message, list, &changed(members.get(list)?.get(), instead)?))
}

/// The text in the place of a part.
fn instead(kind: &str, refused: &Refused) -> String {
    let what = if refused.member == *DOCUMENT { "document" } else { "image" };
    let text = format!("[the {what} that was here was removed: {}]", refused.told());
    format!(r#"{{"type":"{kind}","text":{}}}"#, quote(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PNG's beginning.
    fn png(width: u32, height: u32) -> String {
        let head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        STANDARD.encode([&head[..], &width.to_be_bytes(), &height.to_be_bytes(), &[8, 2]].concat())
    }

    fn why(kind: &str, media: &str, data: &str) -> Option<String> {
        let source = format!(r#"{{"type":"base64","media_type":"{media}","data":"{data}"}}"#);
        seen(&format!(r#"{{"type":"{kind}","source":{source}}}"#)).1.map(|it| it.told())
    }

    #[test]
    fn images_and_documents_are_judged_by_their_first_bytes() {
        let fine = png(16, 2_000);
        assert_eq!(why("image", "image/png", &fine), None);
        assert_eq!(why("text", "image/png", ""), None);
        // With line breaks, cut off behind its size, or of an unknown size.
        for unjudged in [&*fine.replacen('R', "R\\n", 2), &fine[..fine.len() - 3], &png(1, 1)[..20]]
        {
            assert_eq!(why("image", "image/png", unjudged), None, "{unjudged}");
        }
        for (media, data, expected) in [
            ("image/png", "", "image cannot be empty"),
            ("image/bmp", &*fine, "Input should be 'image/jpeg'"),
            (
                "image/jpeg",
                &*fine,
                "image/jpeg media type, but the image appears to be a image/png",
            ),
            ("image/png", "PCFET0NUWVBFIGh0bWw+", "Could not process image"),
            ("image/png", "not base64!", "Could not process image"),
            ("image/png", &*png(8_001, 1), "dimensions exceed max allowed size: 8000 pixels"),
            ("image/png", &*png(1, 2_001), "for many-image requests: 2000 pixels"),
            ("image/png", &*"A".repeat(LONGEST + 4), "image exceeds 5 MB maximum: 5242884 bytes"),
        ] {
            let why = why("image", media, data).unwrap();
            assert!(why.contains(expected), "{why}");
        }
        assert_eq!(why("document", "application/pdf", &STANDARD.encode("%PDF-1.7")), None);
        assert_eq!(why("document", "application/pdf", "").unwrap(), "PDF cannot be empty");
        assert!(why("document", "application/pdf", &fine).unwrap().contains("not valid"));
        assert_eq!(why("document", "text/plain", "aGk="), None);
    }
}
