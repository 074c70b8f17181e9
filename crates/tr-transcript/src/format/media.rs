//! Images and documents that Anthropic refuses, by their first bytes.
use super::refused::{Refused, Why};
use crate::{
    json::{self, Members, quote},
    validate::Fault,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use imagesize::{ImageType, blob_size, image_type};

/// The provider's limits: the longest base64 text, and the most pixels of a side.
const LONGEST: usize = 5 << 20;
const WIDEST: usize = 8_000;

/// How much of an image is decoded at first; more where its size stands further back.
const HEAD: usize = 64 << 10;

/// Why the provider refuses a block, or a part of a result, if that is an image or a document.
pub(super) fn refused(block: &str) -> Option<Refused> {
    let wire = Members::of(block, &["type", "source"]).ok()?;
    let kind = wire.string("type")?;
    let source = wire.inside("source", &["type", "media_type", "data"]);
    let is_image = match &*kind {
        "image" => true,
        "document" => false,
        _ => return None,
    };
    if source.string("type")? != "base64" {
        return None;
    }
    let (media, data) = (source.string("media_type")?, source.string("data")?);
    let why = if is_image { image(&media, &data) } else { pdf(&media, &data) }?;
    let member = if is_image { "image.source.base64" } else { "document.source.base64" };
    Some(Refused::new(Fault::RefusedContent, member, Why::Media(why.into())))
}

fn image(media: &str, data: &str) -> Option<String> {
    let expected = match media {
        "image/png" => ImageType::Png,
        "image/jpeg" => ImageType::Jpeg,
        "image/gif" => ImageType::Gif,
        "image/webp" => ImageType::Webp,
        _ => {
            let known = "'image/jpeg', 'image/png', 'image/gif' or 'image/webp'";
            return Some(format!("Input should be {known}"));
        }
    };
    if data.is_empty() {
        return Some("image cannot be empty".into());
    }
    if data.len() > LONGEST {
        let len = data.len();
        return Some(format!("image exceeds 5 MB maximum: {len} bytes > {LONGEST} bytes"));
    }
    let unknown = || Some("Could not process image".into());
    let Some(head) = decoded(head_of(data)) else { return unknown() };
    let real = match image_type(&head) {
        Ok(it) if it == expected => {
            // One whose size is not found is not judged.
            let size = |bytes: &[u8]| blob_size(bytes).ok();
            let size = size(&head).or_else(|| size(&decoded(data)?))?;
            return (size.width.max(size.height) > WIDEST).then(|| {
                format!(
                    "At least one of the image dimensions exceed max allowed size: {WIDEST} pixels"
                )
            });
        }
        Ok(ImageType::Png) => "image/png",
        Ok(ImageType::Jpeg) => "image/jpeg",
        Ok(ImageType::Gif) => "image/gif",
        Ok(ImageType::Webp) => "image/webp",
        _ => return unknown(),
    };
    Some(format!(
        "The image was specified using the {media} media type, but the image appears to be a {real} image"
    ))
}

fn pdf(media: &str, data: &str) -> Option<String> {
    let is_pdf = || decoded(head_of(data)).is_some_and(|head| head.starts_with(b"%PDF"));
    match media {
        "application/pdf" if data.is_empty() => Some("PDF cannot be empty".into()),
        "application/pdf" if !is_pdf() => Some("The PDF specified was not valid.".into()),
        _ => None,
    }
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
pub(super) fn without_refused(content: &str) -> Option<String> {
    let parts = json::elements(content).ok()?;
    let mut is_changed = false;
    let parts = parts.into_iter().map(|part| {
        let within = Members::of(part, &["type", "content"]).ok();
        let within = within.filter(|wire| wire.text("type") == "tool_result");
        let within = within.and_then(|wire| without_refused(wire.get("content")?.get()));
        let now = within.map(|content| json::set_member(part, "content", &content));
        let now = now.or_else(|| refused(part).map(|refused| instead(&refused)));
        is_changed |= now.is_some();
        now.unwrap_or_else(|| part.to_owned())
    });
    let parts: Vec<_> = parts.collect();
    is_changed.then(|| format!("[{}]", parts.join(",")))
}

/// The text in the place of a block.
fn instead(refused: &Refused) -> String {
    let kind = refused.member.split('.').next().unwrap_or_default();
    let text = format!("[the {kind} that was here was removed: {}]", refused.told());
    format!(r#"{{"type":"text","text":{}}}"#, quote(&text))
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
        refused(&format!(r#"{{"type":"{kind}","source":{source}}}"#)).map(|it| it.told())
    }

    #[test]
    fn images_and_documents_are_judged_by_their_first_bytes() {
        let fine = png(16, 8_000);
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
