//! Files that other users or programs may use: reads them, and replaces them without losing what others wrote.
mod atomic_replace;
mod error;
mod file;
mod folder;
mod metadata;
mod nfs4;
mod other_programs;
pub(crate) mod other_users;
mod secret;

pub(crate) use self::{
    atomic_replace::{keep_bytes, replace as replace_file},
    error::CliError,
    file::{File, Stamp},
    folder::{Folder, UNFINISHED, beside, make_folder, open_regular},
    other_programs::{in_path, is_program, writer_of},
    other_users::refuse_others,
    secret::read_secret,
};
