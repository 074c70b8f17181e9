//! One description of an object for its type, reader, writer and schema.

/// Declares an object of a form.
///
/// `open` objects keep members that they do not know, take `null` for an absent optional member,
/// and can be written; `strict` ones are only read, and refuse what they do not know. A line is
/// `"name" => field: Type, Shape;`. In front of these stand members that are not
/// kept: `const "name" = "value";` in open objects, `ignored "name";` in strict ones. Those that are
/// `pub` can be compared.
#[doc(hidden)]
#[macro_export]
macro_rules! __object {
    (
        open
        $(#[doc = $doc:literal])*
        $(#[derive($derive:ident)])?
        pub struct $name:ident {
            $(const $const_name:literal = $const_value:literal;)*
            $(
                $(#[doc = $field_doc:literal])*
                $wire:literal => $field:ident: $type:ty, $shape:ty;
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq $(, $derive)?)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[doc = $field_doc])* pub $field: $type,)*
            /// Members that the form does not know.
            pub extra: $crate::Extra,
        }

        impl $crate::read::Shape for $name {
            type Value = Self;

            fn expected() -> ::std::borrow::Cow<'static, str> {
                "an object".into()
            }

            fn read(
                node: &$crate::read::Node<'_>,
                faults: &mut $crate::read::Faults,
            ) -> Option<Self> {
                const KNOWN: &[&str] = &[$($const_name,)* $($wire,)*];
                let mut object = $crate::read::Object::open(node, KNOWN, true, faults)?;
                $(object.constant($const_name, $const_value, faults);)*
                $(let $field = object.field::<$shape>($wire, faults);)*
                Some(Self { $($field: $field?,)* extra: object.rest() })
            }

            $crate::read::with_schema! {
                fn schema(
                    generator: &mut $crate::read::schemars::SchemaGenerator,
                ) -> $crate::read::schemars::Schema {
                    generator.subschema_for::<Self>()
                }
            }
        }

        impl $crate::read::Write for $name {
            fn write(value: &Self) -> impl $crate::read::serde::Serialize {
                value
            }
        }

        impl $crate::read::serde::Serialize for $name {
            fn serialize<S: $crate::read::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use $crate::read::serde::ser::SerializeMap as _;
                use $crate::read::Write as _;
                let mut map = serializer.serialize_map(None)?;
                $(map.serialize_entry($const_name, $const_value)?;)*
                $(
                    if !<$shape>::is_absent(&self.$field) {
                        map.serialize_entry($wire, &<$shape>::write(&self.$field))?;
                    }
                )*
                for (name, value) in self.extra.iter() {
                    let written = match name {
                        $($const_name => true,)*
                        $($wire => !<$shape>::is_absent(&self.$field),)*
                        _ => false,
                    };
                    if !written {
                        map.serialize_entry(name, value)?;
                    }
                }
                map.end()
            }
        }

        $crate::read::with_schema! {
        impl $crate::read::schemars::JsonSchema for $name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut $crate::read::schemars::SchemaGenerator) -> $crate::read::schemars::Schema {
                let mut schema = $crate::read::ObjectSchema::open(concat!($($doc),*));
                $(schema.constant($const_name, $const_value);)*
                $(schema.field::<$shape>(generator, $wire, concat!($($field_doc),*));)*
                schema.into()
            }
        }
        }
    };
    (strict $(#[doc = $doc:literal])* struct $($rest:tt)*) => {
        $crate::read::object! { @strict [pub(crate)] [] $(#[doc = $doc])* struct $($rest)* }
    };
    (strict $(#[doc = $doc:literal])* pub struct $name:ident $body:tt) => {
        $crate::read::object! {
            @strict [pub] [#[derive(PartialEq)] #[non_exhaustive]]
            $(#[doc = $doc])*
            struct $name $body
        }
    };
    (
        @strict [$vis:vis] [$(#[$meta:meta])*]
        $(#[doc = $doc:literal])*
        struct $name:ident {
            $(ignored $ignored:literal;)*
            $(
                $(#[doc = $field_doc:literal])*
                $wire:literal => $field:ident: $type:ty, $shape:ty;
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default)]
        $(#[$meta])*
        $vis struct $name {
            $($(#[doc = $field_doc])* $vis $field: $type,)*
        }

        impl $crate::read::Shape for $name {
            type Value = Self;

            fn expected() -> ::std::borrow::Cow<'static, str> {
                "an object".into()
            }

            fn read(
                node: &$crate::read::Node<'_>,
                faults: &mut $crate::read::Faults,
            ) -> Option<Self> {
                const KNOWN: &[&str] = &[$($ignored,)* $($wire,)*];
                let mut object = $crate::read::Object::open(node, KNOWN, false, faults)?;
                $(object.field::<$crate::read::Ignored>($ignored, faults);)*
                $(let $field = object.field::<$shape>($wire, faults);)*
                object.refuse_rest(faults);
                Some(Self { $($field: $field?,)* })
            }

            $crate::read::with_schema! {
                fn schema(
                    generator: &mut $crate::read::schemars::SchemaGenerator,
                ) -> $crate::read::schemars::Schema {
                    generator.subschema_for::<Self>()
                }
            }
        }

        $crate::read::with_schema! {
        impl $crate::read::schemars::JsonSchema for $name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut $crate::read::schemars::SchemaGenerator) -> $crate::read::schemars::Schema {
                let mut schema = $crate::read::ObjectSchema::strict(concat!($($doc),*));
                $(
                    schema.field::<$crate::read::Ignored>(
                        generator,
                        $ignored,
                        "Not looked at.",
                    );
                )*
                $(schema.field::<$shape>(generator, $wire, concat!($($field_doc),*));)*
                schema.into()
            }
        }
        }
    };
}

/// Declares a shape: its value, its name in faults, its reader, and its schema.
///
/// A reader of the source alone gives `None` for what is no such value, and that is reported. One
/// of the node and the faults reports faults itself.
#[doc(hidden)]
#[macro_export]
macro_rules! __shape {
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident $(<$(const $limit:ident: $of:ty),+>)? => $value:ty, $expected:expr,
        |$source:ident| $read:expr, $schema:tt
    ) => {
        $crate::read::shape! {
            $(#[$meta])*
            $vis $name $(<$(const $limit: $of),+>)? => $value, $expected,
            |node, faults| {
                let $source = node.source;
                ($read).or_else(|| node.refuse(<Self as $crate::read::Shape>::expected(), faults))
            },
            $schema
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident $(<$(const $limit:ident: $of:ty),+>)? => $value:ty, $expected:expr,
        |$node:ident, $faults:ident| $read:expr, $schema:tt
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $name $(<$(const $limit: $of),+>)?;

        impl $(<$(const $limit: $of),+>)? $crate::read::Shape for $name $(<$($limit),+>)? {
            type Value = $value;

            fn expected() -> ::std::borrow::Cow<'static, str> {
                $expected.into()
            }

            fn read(
                $node: &$crate::read::Node<'_>,
                $faults: &mut $crate::read::Faults,
            ) -> Option<$value> {
                $read
            }

            $crate::read::with_schema! {
                fn schema(
                    _: &mut $crate::read::schemars::SchemaGenerator,
                ) -> $crate::read::schemars::Schema {
                    $crate::read::schemars::json_schema!($schema)
                }
            }
        }
    };
}

/// Says which words stand for the values of an enum on the wire.
#[doc(hidden)]
#[macro_export]
macro_rules! __words {
    ($($name:ty { $($variant:ident = $word:literal $(| $alias:literal)*),* $(,)? })*) => {$(
        impl $crate::read::Words for $name {
            const WORDS: &'static [(&'static str, Self)] =
                &[$(($word, Self::$variant), $(($alias, Self::$variant),)*)*];
        }
    )*};
}

/// Keeps what follows if schemas are made. The feature is this crate's: a crate that uses these macros
/// need not have one of that name.
#[cfg(feature = "schema")]
#[doc(hidden)]
#[macro_export]
macro_rules! __with_schema {
    ($($item:tt)*) => { $($item)* };
}

#[cfg(not(feature = "schema"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __with_schema {
    ($($item:tt)*) => {};
}

pub use {__object as object, __shape as shape, __with_schema as with_schema, __words as words};
