//! Classification: the acceptance cases, the labelled corpus, and what holds for any text.
mod cases;
mod corpus;
mod precedence;
mod properties;
