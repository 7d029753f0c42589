//! Values of kernels' parameters, as Rust writes them.

use std::fmt::Error;

use serde::Serialize;
use serde::ser::{self, Impossible, Serializer};

/// A value as Rust writes it, without the paths of types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// A number or a truth value.
    Scalar(String),
    /// An array.
    Array(Vec<Literal>),
    /// A structure, or a variant of an enumeration.
    Type {
        /// The type.
        name: &'static str,
        /// The variant.
        variant: Option<&'static str>,
        /// Its fields, by name.
        fields: Vec<(&'static str, Literal)>,
        /// Its only field, if that has no name.
        inner: Option<Box<Literal>>,
    },
    /// An optional value.
    Option(Option<Box<Literal>>),
}

impl Literal {
    /// The parameters of a kernel.
    ///
    /// # Panics
    /// If they are of types that no kernel has so far: strings, maps, tuples of several types.
    pub fn new(parameters: &impl Serialize) -> Self {
        #[expect(
            clippy::expect_used,
            reason = "whether a type is known does not depend on a plan; a test has all kernels"
        )]
        parameters.serialize(Writer).expect("parameters of types that are known")
    }

    /// The name of the type of a structure.
    pub fn type_name(&self) -> &'static str {
        match self {
            Literal::Type { name, .. } => name,
            _ => "",
        }
    }

    fn unit(name: &'static str, variant: Option<&'static str>) -> Self {
        Literal::Type { name, variant, fields: Vec::new(), inner: None }
    }
}

struct Writer;

/// The parts of a value that has several.
struct Parts {
    name: &'static str,
    variant: Option<&'static str>,
    items: Vec<Literal>,
    fields: Vec<(&'static str, Literal)>,
}

impl Parts {
    fn new(name: &'static str, variant: Option<&'static str>) -> Self {
        Parts { name, variant, items: Vec::new(), fields: Vec::new() }
    }

    fn finish(self) -> Result<Literal, Error> {
        let Parts { name, variant, fields, .. } = self;
        Ok(Literal::Type { name, variant, fields, inner: None })
    }
}

impl ser::SerializeTuple for Parts {
    type Ok = Literal;
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.items.push(value.serialize(Writer)?);
        Ok(())
    }

    fn end(self) -> Result<Literal, Error> {
        Ok(Literal::Array(self.items))
    }
}

impl ser::SerializeStruct for Parts {
    type Ok = Literal;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        self.fields.push((key, value.serialize(Writer)?));
        Ok(())
    }

    fn end(self) -> Result<Literal, Error> {
        self.finish()
    }
}

impl ser::SerializeStructVariant for Parts {
    type Ok = Literal;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        ser::SerializeStruct::serialize_field(self, key, value)
    }

    fn end(self) -> Result<Literal, Error> {
        self.finish()
    }
}

/// A number of any kind, as [`std::fmt::Debug`] has it.
macro_rules! scalars {
    ($($method:ident $type:ty),*) => {
        $(fn $method(self, value: $type) -> Result<Literal, Error> {
            Ok(Literal::Scalar(format!("{value:?}")))
        })*
    };
}

impl Serializer for Writer {
    type Ok = Literal;
    type Error = Error;
    type SerializeSeq = Impossible<Literal, Error>;
    type SerializeTuple = Parts;
    type SerializeTupleStruct = Impossible<Literal, Error>;
    type SerializeTupleVariant = Impossible<Literal, Error>;
    type SerializeMap = Impossible<Literal, Error>;
    type SerializeStruct = Parts;
    type SerializeStructVariant = Parts;

    scalars!(
        serialize_bool bool, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64, serialize_f64 f64
    );

    fn serialize_f32(self, value: f32) -> Result<Literal, Error> {
        Ok(Literal::Scalar(match value {
            f32::INFINITY => "f32::INFINITY".into(),
            f32::NEG_INFINITY => "f32::NEG_INFINITY".into(),
            value if value.is_nan() => "f32::NAN".into(),
            value => format!("{value:?}"),
        }))
    }

    fn serialize_none(self) -> Result<Literal, Error> {
        Ok(Literal::Option(None))
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Literal, Error> {
        Ok(Literal::Option(Some(Box::new(value.serialize(Writer)?))))
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<Literal, Error> {
        Ok(Literal::unit(name, None))
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Literal, Error> {
        Ok(Literal::unit(name, Some(variant)))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Literal, Error> {
        let inner = Some(Box::new(value.serialize(Writer)?));
        Ok(Literal::Type { name, variant: Some(variant), fields: Vec::new(), inner })
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts, Error> {
        Ok(Parts::new("", None))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Parts, Error> {
        Ok(Parts::new(name, None))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts, Error> {
        Ok(Parts::new(name, Some(variant)))
    }

    fn serialize_char(self, _: char) -> Result<Literal, Error> {
        Err(Error)
    }

    fn serialize_str(self, _: &str) -> Result<Literal, Error> {
        Err(Error)
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<Literal, Error> {
        Err(Error)
    }

    fn serialize_unit(self) -> Result<Literal, Error> {
        Err(Error)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: &T,
    ) -> Result<Literal, Error> {
        Err(Error)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Error> {
        Err(Error)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Error> {
        Err(Error)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        Err(Error)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Error> {
        Err(Error)
    }
}
