//! Plain async functions as handlers, with up to six arguments.

use std::error::Error;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::extract::FromTask;
use crate::middleware::{TaskError, TaskRequest};

/// What a handler returns: nothing or a result, or an error that fails the task.
pub type HandlerResult<E = Box<dyn Error + Send + Sync>> = Result<Option<Vec<u8>>, E>;

/// An async function whose arguments are [`FromTask`]; implemented for all with up to six.
pub trait Handler<Args>: Send + Sync + 'static {
    /// Runs it for one task.
    fn call(&self, request: TaskRequest) -> BoxFuture<'static, Result<Option<Vec<u8>>, TaskError>>;
}

pub(crate) type BoxedHandler =
    Arc<dyn Fn(TaskRequest) -> BoxFuture<'static, Result<Option<Vec<u8>>, TaskError>> + Send + Sync>;

pub(super) fn boxed<Args, H: Handler<Args>>(handler: H) -> BoxedHandler {
    Arc::new(move |request| handler.call(request))
}

macro_rules! handler {
    ($($arg:ident),*) => {
        impl<F, Fut, E, $($arg,)*> Handler<($($arg,)*)> for F
        where
            F: Fn($($arg),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = HandlerResult<E>> + Send + 'static,
            E: Into<Box<dyn Error + Send + Sync>>,
            $($arg: FromTask + 'static,)*
        {
            fn call(&self, request: TaskRequest) -> BoxFuture<'static, Result<Option<Vec<u8>>, TaskError>> {
                // A handler without arguments takes nothing from it.
                let _ = &request;
                #[expect(clippy::allow_attributes, reason = "there are none without arguments")]
                #[allow(non_snake_case, reason = "arguments are named after their types")]
                let future = {
                    $(
                        let $arg = match $arg::from_task(&request) {
                            Ok(taken) => taken,
                            Err(error) => return Box::pin(std::future::ready(Err(error))),
                        };
                    )*
                    self($($arg),*)
                };
                Box::pin(async move { future.await.map_err(|error| TaskError::of_handler(error.into())) })
            }
        }
    };
}

handler!();
handler!(A1);
handler!(A1, A2);
handler!(A1, A2, A3);
handler!(A1, A2, A3, A4);
handler!(A1, A2, A3, A4, A5);
handler!(A1, A2, A3, A4, A5, A6);
