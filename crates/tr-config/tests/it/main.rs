//! Catalogs and configurations: what is read, and what is refused.
mod catalog;
mod config;
