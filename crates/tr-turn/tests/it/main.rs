//! Plans and turns.
mod acts;
mod cases;
mod plan;
mod random;
