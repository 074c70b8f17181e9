//! Stops calling a tool that keeps failing.
