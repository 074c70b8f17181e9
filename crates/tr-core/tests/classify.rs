//! Classification: the acceptance cases, the labelled corpus, and what holds for any text.
#[path = "classify/cases.rs"]
mod cases;
#[path = "classify/corpus.rs"]
mod corpus;
#[path = "classify/precedence.rs"]
mod precedence;
#[path = "classify/properties.rs"]
mod properties;
