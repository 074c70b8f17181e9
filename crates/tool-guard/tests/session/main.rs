//! `tool-guard session`: agents' sessions that are refused, found and mended.
mod bad_database;
mod bad_input;
mod check;
mod checkpoints;
mod crash;
mod database;
mod folder;
mod full_disk;
mod lines;
mod memory;
mod property;
mod repair;
mod story;
