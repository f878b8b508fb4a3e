//! The forms generated declarations take; each writes the type, its codec and its samples.

/// A struct that travels as a map of its fields.
macro_rules! wire_struct {
    ( $(#[$meta:meta])* $name:ident { $( $(#[$field_meta:meta])* $field:ident ($key:literal): $ty:ty, )* } ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $( $(#[$field_meta])* pub $field: $ty, )* }

        impl $crate::wire::Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                let present = 0 $( + usize::from(!$crate::wire::Wire::is_absent(&self.$field)) )*;
                $crate::wire::write_map_len(out, present);
                $(
                    if !$crate::wire::Wire::is_absent(&self.$field) {
                        $crate::wire::write_bytes(out, $key.as_bytes());
                        $crate::wire::Wire::write(&self.$field, out);
                    }
                )*
            }
            fn read(value: &rmpv::ValueRef<'_>) -> Result<Self, $crate::wire::DecodeError> {
                #[expect(clippy::allow_attributes, reason = "a struct without fields reads none")]
                #[allow(unused_variables, reason = "a struct without fields reads none")]
                let fields = $crate::wire::Fields::of(value)?;
                Ok(Self { $( $field: fields.read($key)?, )* })
            }
        }

        #[cfg(any(test, feature = "samples"))]
        impl $crate::sample::Sample for $name {
            fn sample(rng: &mut $crate::sample::Rng) -> Self {
                let _ = &rng;
                Self { $( $field: $crate::sample::Sample::sample(rng), )* }
            }
        }
    };
}

/// An enum whose variants are words.
macro_rules! wire_words {
    ( $(#[$meta:meta])* $name:ident { $( $variant:ident = $word:literal, )+ } ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $( #[doc = concat!("`", $word, "`")] $variant, )+ }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [$name] = &[$( $name::$variant, )+];

            /// The word that stands for this value everywhere.
            #[must_use]
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
            type Err = ff_core::types::UnknownWord;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $( $word => Ok($name::$variant), )+
                    _ => Err(ff_core::types::UnknownWord { what: stringify!($name), value: text.to_owned() }),
                }
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                ff_core::openapi::words($name::ALL.iter().map(|word| word.as_str()))
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {}

        $crate::wire::declare::wire_word_codec!($name);
    };
}

/// The codec of an enum whose variants are words, here or in `ff-core`.
macro_rules! wire_word_codec {
    ( $name:ty ) => {
        impl $crate::wire::Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $crate::wire::write_bytes(out, self.as_str().as_bytes());
            }
            fn read(value: &rmpv::ValueRef<'_>) -> Result<Self, $crate::wire::DecodeError> {
                let text = <String as $crate::wire::Wire>::read(value)?;
                text.parse()
                    .map_err(|error: ff_core::types::UnknownWord| $crate::wire::DecodeError::new(error.to_string()))
            }
        }

        #[cfg(any(test, feature = "samples"))]
        impl $crate::sample::Sample for $name {
            fn sample(rng: &mut $crate::sample::Rng) -> Self {
                Self::ALL[rng.below(Self::ALL.len() as u64) as usize]
            }
        }
    };
}

/// A word enum of `ff-core`, with the words its contract lists; different words do not compile.
macro_rules! wire_core_words {
    ( $(#[$meta:meta])* $name:ident { $( $variant:ident = $word:literal, )+ } ) => {
        $crate::wire::declare::wire_word_codec!($name);

        const _: () = {
            let _exhaustive = |value: $name| match value { $( $name::$variant => $word, )+ };
            $( assert!($crate::wire::same_text($name::$variant.as_str(), $word)); )+
        };
    };
}

/// The reply of a function: one variant per outcome, named by the field `is`.
macro_rules! wire_reply {
    (
        $(#[$meta:meta])*
        $name:ident { $( $variant:ident ($word:literal) $( { $( $field:ident ($key:literal): $ty:ty, )* } )?, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $(
                #[doc = concat!("`", $word, "`")]
                $variant $( { $( #[doc = concat!("`", $key, "`")] $field: $ty, )* } )?,
            )+
        }

        impl $crate::wire::Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $( $name::$variant $( { $( $field, )* } )? => {
                        let present = 1 $( $( + usize::from(!$crate::wire::Wire::is_absent($field)) )* )?;
                        $crate::wire::write_map_len(out, present);
                        $crate::wire::write_bytes(out, b"is");
                        $crate::wire::write_bytes(out, $word.as_bytes());
                        $( $(
                            if !$crate::wire::Wire::is_absent($field) {
                                $crate::wire::write_bytes(out, $key.as_bytes());
                                $crate::wire::Wire::write($field, out);
                            }
                        )* )?
                    } )+
                }
            }
            fn read(value: &rmpv::ValueRef<'_>) -> Result<Self, $crate::wire::DecodeError> {
                let fields = $crate::wire::Fields::of(value)?;
                let is: String = fields.read("is")?;
                match is.as_str() {
                    $( $word => Ok($name::$variant $( { $( $field: fields.read($key)?, )* } )?), )+
                    other => Err($crate::wire::DecodeError::new(format!("unknown outcome {other:?}")).within("is")),
                }
            }
        }

        #[cfg(any(test, feature = "samples"))]
        impl $crate::sample::Sample for $name {
            fn sample(rng: &mut $crate::sample::Rng) -> Self {
                let variants: &[fn(&mut $crate::sample::Rng) -> Self] = &[
                    $( |rng| { let _ = &rng; $name::$variant $( { $( $field: $crate::sample::Sample::sample(rng), )* } )? }, )+
                ];
                variants[rng.below(variants.len() as u64) as usize](rng)
            }
        }
    };
}

/// A function of the library: its arguments are a [`crate::Call`].
macro_rules! wire_call {
    ( $name:ident -> $reply:ident, $function:literal, read_only: $read_only:literal ) => {
        impl $crate::call::Call for $name {
            const FUNCTION: &'static str = $function;
            const READ_ONLY: bool = $read_only;
            type Reply = $reply;
            fn encode(&self) -> Vec<u8> {
                let mut out = Vec::new();
                $crate::wire::Wire::write(self, &mut out);
                out
            }
            fn decode_reply(ok: &rmpv::ValueRef<'_>) -> Result<$reply, $crate::wire::DecodeError> {
                $crate::wire::Wire::read(ok)
            }
        }
    };
}

pub(crate) use {wire_call, wire_core_words, wire_reply, wire_struct, wire_word_codec, wire_words};
