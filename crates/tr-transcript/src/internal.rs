//! What the sessions of tr-integrity use of transcripts. It may change at any time.
pub use crate::results::{
    Answer, NewResult, answer, as_text, hold_results, is_aside, is_said, text_of, texts_of,
    with_answer, write_result, write_uses,
};
