//! Repairs an invalid transcript: plan first, then apply.
mod action;
mod doubt;
mod items;
mod join;
mod names;
mod pairs;
mod plan;
mod preserve;
mod remove;
mod settings;
mod zone;

pub use self::{
    action::{ActionKind, Loss, LossKind, RepairAction},
    plan::{RepairPlan, RepairResult, StalePlan},
    settings::{Repair, RepairMode},
};
pub(crate) use self::{names::Names, zone::zone};
