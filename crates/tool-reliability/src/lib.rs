//! The ready stack of reliability layers around a tool service.
