//! Enums whose values are one fixed word each: on the wire, in the store and in JSON.

/// The text is not a word of the enum.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what}: {value:?}")]
pub struct UnknownWord {
    /// The name of the enum, e.g. `blocking reason`.
    pub what: &'static str,
    pub value: String,
}

/// Declares an enum whose variants are words: `as_str`, `ALL`, `Display`, `FromStr` and serde by that word.
macro_rules! text_enum {
    (
        $(#[$meta:meta])*
        $name:ident as $what:literal { $( $(#[$variant_meta:meta])* $variant:ident = $word:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $( $(#[$variant_meta])* $variant, )+ }

        impl $name {
            /// All values, in declaration order.
            pub const ALL: &'static [$name] = &[$( $name::$variant, )+];

            /// The word of this value everywhere.
            pub const fn as_str(self) -> &'static str {
                match self { $( $name::$variant => $word, )+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::types::UnknownWord;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $( $word => Ok($name::$variant), )+
                    _ => Err($crate::types::UnknownWord { what: $what, value: text.to_owned() }),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(|error: $crate::types::UnknownWord| {
                    let words: Vec<&str> = Self::ALL.iter().map(|word| word.as_str()).collect();
                    serde::de::Error::custom(format_args!("{error}, expected one of {}", words.join(", ")))
                })
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $crate::openapi::words($name::ALL.iter().map(|word| word.as_str()))
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {}
    };
}

pub(crate) use text_enum;
