//! The guard around a model whose answers come in pieces.
mod durable;
mod ends;
mod filter;
mod gone;
mod http;
mod hyper;
mod laws;
mod world;
