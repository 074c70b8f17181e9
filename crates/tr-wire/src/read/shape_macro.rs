//! One description of a value for its type, reader and schema.

/// Declares a shape: its value, its name in faults, its reader, and its schema.
///
/// A reader of the source alone gives `None` for what is no such value, and that is reported. One
/// of the node and the faults reports faults itself. A shape `as` another one is called and described
/// as that is; what follows its reader are further items of it.
#[doc(hidden)]
#[macro_export]
macro_rules! __shape {
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident $(<$(const $limit:ident: $of:ty),+>)? $(as $like:ty)? => $value:ty,
        $($how:tt)*
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $name $(<$(const $limit: $of),+>)?;

        $crate::read::shape! {
            @impl [$(<$(const $limit: $of),+>)?] [$name $(<$($limit),+>)?] [$($like)?] => $value,
            $($how)*
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident<$inner:ident> $(where { $($bound:tt)* })? $(as $like:ty)? => $value:ty,
        $($how:tt)*
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $name<$inner>(::std::marker::PhantomData<$inner>);

        $crate::read::shape! {
            @impl [<$inner: $crate::read::Shape>] [$name<$inner> $(where $($bound)*)?] [$($like)?]
            => $value, $($how)*
        }
    };
    (
        @impl $generics:tt $name:tt [] => $value:ty, $expected:expr,
        |$source:ident| $read:expr, $schema:tt
    ) => {
        $crate::read::shape! {
            @impl $generics $name [] => $value, $expected,
            |node, faults| {
                let $source = node.source;
                ($read).or_else(|| node.refuse(<Self as $crate::read::Shape>::expected(), faults))
            },
            $schema
        }
    };
    (
        @impl $generics:tt $name:tt [] => $value:ty, $expected:expr,
        |$node:ident, $faults:ident| $read:expr, $schema:tt
    ) => {
        $crate::read::shape! {
            @impl $generics $name [] => $value, $expected, |$node, $faults| $read, |_| $schema
        }
    };
    (
        @impl $generics:tt $name:tt [] => $value:ty, $expected:expr,
        |$node:ident, $faults:ident| $read:expr, |$generator:pat_param| $schema:tt
        $(, $($item:tt)*)?
    ) => {
        $crate::read::shape! {
            @impl $generics $name => $value, $expected,
            |$node, $faults| $read, |$generator| $crate::read::schemars::json_schema!($schema),
            $($($item)*)?
        }
    };
    (
        @impl $generics:tt $name:tt [$like:ty] => $value:ty,
        |$node:ident, $faults:ident| $read:expr $(, $($item:tt)*)?
    ) => {
        $crate::read::shape! {
            @impl $generics $name => $value,
            <$like as $crate::read::Shape>::expected(), |$node, $faults| $read,
            |generator| <$like as $crate::read::Shape>::schema(generator), $($($item)*)?
        }
    };
    (
        @impl [$($generics:tt)*] [$($name:tt)*] => $value:ty, $expected:expr,
        |$node:ident, $faults:ident| $read:expr, |$generator:pat_param| $schema:expr, $($item:tt)*
    ) => {
        impl $($generics)* $crate::read::Shape for $($name)* {
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

            $($item)*

            $crate::read::with_schema! {
                fn schema(
                    $generator: &mut $crate::read::schemars::SchemaGenerator,
                ) -> $crate::read::schemars::Schema {
                    $schema
                }
            }
        }
    };
}

pub use __shape as shape;
