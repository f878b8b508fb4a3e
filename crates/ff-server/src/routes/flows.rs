//! What submitters and operators do with flows: submit one whole, let it grow, release it, cancel it, and read it.

use ff_api::flows::{AddEdges, AddMembers, CancelFlow, SealFlow, SubmitFlow};
use ff_api::graph::{GetFlow, GetFlowGraph, ListFlows, ListMembers};

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new()
        .carrying::<SubmitFlow>()
        .carrying::<AddMembers>()
        .answering::<AddEdges>()
        .answering::<SealFlow>()
        .carrying::<CancelFlow>()
        .answering::<ListFlows>()
        .carrying::<GetFlow>()
        .answering::<ListMembers>()
        .answering::<GetFlowGraph>()
}
