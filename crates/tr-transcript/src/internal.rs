//! What the sessions of tr-integrity use of transcripts: where the result of a use stands, and how one is
//! written, for those who add results one by one. It may change at any time.
pub use crate::format::{NewResult, is_of_messages};
use crate::{
    format::{Format, Results},
    json::Piece,
    message::{Kind, Message},
    repair::{Repair, zone},
    transcript::Transcript,
    validate::Validator,
};

/// Where the result of a use stands.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The message.
    pub at: usize,
    block: usize,
    /// Whether a repair or a recovery wrote it.
    pub is_placeholder: bool,
}

/// Whether a message says nothing of its own, so that it may stand between uses and their results.
#[must_use]
pub fn is_aside(format: Format, message: &Message) -> bool {
    message.is_aside(format.rules())
}

/// The texts of the uses of `id` in a message.
pub fn texts_of<'m>(message: &'m Message, id: &str) -> impl Iterator<Item = &'m str> {
    let is_meant = move |kind: &Kind| matches!(kind, Kind::Use { id: used, .. } if **used == *id);
    let uses = message.blocks().iter().filter(move |block| is_meant(&block.kind));
    uses.map(|block| message.text(&block.span))
}

/// The text of the use of `id` in a message; empty if there is none.
#[must_use]
pub fn text_of<'m>(message: &'m Message, id: &str) -> &'m str {
    texts_of(message, id).next().unwrap_or_default()
}

/// The result of the use of `id` in the message at `used`: a placeholder, if there is one.
#[must_use]
pub fn answer(
    transcript: &Transcript,
    validator: &Validator,
    used: usize,
    id: &str,
) -> Option<Answer> {
    let (format, messages) = (transcript.format(), transcript.messages());
    let uses = messages[used].blocks().iter();
    let names_pair = format.rules().names_pair;
    let mut keys =
        uses.filter(|block| matches!(&block.kind, Kind::Use { id: used, .. } if **used == *id));
    let key = keys.find_map(|block| block.kind.key(names_pair))?;
    let zone = match format.rules().results {
        Results::Items => {
            let at = validator.answer_to(used, id)?;
            at..at + 1
        }
        _ => zone(format, messages, used),
    };
    let blocks = zone.flat_map(|at| (0..messages[at].blocks().len()).map(move |block| (at, block)));
    let mut answers = blocks.filter_map(|(at, block)| {
        let kind = &messages[at].blocks()[block].kind;
        let is_placeholder = matches!(kind, Kind::Result { synthetic: true, .. });
        let is_it =
            kind.is_result() && kind.key(names_pair).is_some_and(|result| key.pairs(&result));
        is_it.then_some(Answer { at, block, is_placeholder })
    });
    let first = answers.next()?;
    Some([first].into_iter().chain(answers).find(|it| it.is_placeholder).unwrap_or(first))
}

/// The message of a result with this one in its place.
#[must_use]
pub fn with_answer(transcript: &Transcript, answer: Answer, text: &str) -> Message {
    let (format, message) = (transcript.format(), &transcript.messages()[answer.at]);
    let piece = |nth: usize| {
        let part = &message.blocks()[nth];
        let is_it = nth == answer.block;
        let text = if is_it { text.to_owned() } else { format.listed(message, part, None) };
        Piece { was: Some(nth), text }
    };
    let pieces: Vec<_> = (0..message.blocks().len()).map(piece).collect();
    format.rewrite(message, &pieces).expect("its blocks are there")
}

/// Whether a message has a result with the content of this written one.
#[must_use]
pub fn is_said(format: Format, message: &Message, result: &str) -> bool {
    let says = |message: &Message| {
        let content = message.blocks().iter().find_map(|block| match &block.kind {
            Kind::Result { content, .. } => content.clone(),
            _ => None,
        });
        content.map(|span| message.text(&span).to_owned())
    };
    let alone = alone(format, result);
    alone.messages().iter().filter_map(says).any(|content| message.raw().contains(&content))
}

/// A written result without its use, as text.
#[must_use]
pub fn as_text(format: Format, result: &str) -> Vec<Message> {
    Repair::preserve().plan(&alone(format, result)).messages().to_vec()
}

fn alone(format: Format, result: &str) -> Transcript {
    let mut alone = Transcript::new(format);
    format.hold_results(&[result.to_owned()]).into_iter().for_each(|it| alone.push(it));
    alone
}

/// Writes a result. `used` is the message of its use, if the transcript has it.
#[must_use]
pub fn write_result(format: Format, used: Option<&Message>, result: NewResult<'_>) -> String {
    format.form().write_result(&result, used.map_or("", |message| text_of(message, result.id)))
}
