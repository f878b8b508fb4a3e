//! Words that programs compare with text.

use crate::generated::{AttemptType, SuspensionReason};

macro_rules! as_text {
    ( $( $name:ty ),+ ) => { $(
        impl PartialEq<str> for $name {
            fn eq(&self, text: &str) -> bool {
                self.as_str() == text
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, text: &&str) -> bool {
                self.as_str() == *text
            }
        }
    )+ };
}

as_text!(AttemptType, SuspensionReason);
