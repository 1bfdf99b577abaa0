//! Arrays of PostgreSQL. A value is held as array_send writes it (arrayfuncs.c): number of dimensions, whether there are
//! NULLs, the element type's OID, length and lower bound of each dimension, then each element with its length (-1: NULL).
//! Whatever upstream stores can be held and printed; what is computed on arrays is for one dimension.

use std::cmp::Ordering;

use super::binary::{self, decode_text};
use super::network::{self, Kind};
use super::text::{self, ParseError};
use super::{FormatSettings, PgType, Value};

/// The element types of which arrays are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Element {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Text,
    Varchar,
    Date,
    Timestamp,
    Timestamptz,
    Uuid,
    Inet,
    Cidr,
    Json,
    Jsonb,
}

/// One line per element type: itself, the OID of its array type, that type's `typname` and name.
const TYPES: [(Element, PgType, u32, &str, &str); 17] = [
    (Element::Bool, PgType::Bool, 1000, "_bool", "boolean[]"),
    (Element::Int2, PgType::Int2, 1005, "_int2", "smallint[]"),
    (Element::Int4, PgType::Int4, 1007, "_int4", "integer[]"),
    (Element::Int8, PgType::Int8, 1016, "_int8", "bigint[]"),
    (Element::Float4, PgType::Float4, 1021, "_float4", "real[]"),
    (Element::Float8, PgType::Float8, 1022, "_float8", "double precision[]"),
    (Element::Numeric, PgType::Numeric, 1231, "_numeric", "numeric[]"),
    (Element::Text, PgType::Text, 1009, "_text", "text[]"),
    (Element::Varchar, PgType::Varchar, 1015, "_varchar", "character varying[]"),
    (Element::Date, PgType::Date, 1182, "_date", "date[]"),
    (Element::Timestamp, PgType::Timestamp, 1115, "_timestamp", "timestamp without time zone[]"),
    (Element::Timestamptz, PgType::Timestamptz, 1185, "_timestamptz", "timestamp with time zone[]"),
    (Element::Uuid, PgType::Uuid, 2951, "_uuid", "uuid[]"),
    (Element::Inet, PgType::Inet, 1041, "_inet", "inet[]"),
    (Element::Cidr, PgType::Cidr, 651, "_cidr", "cidr[]"),
    (Element::Json, PgType::Json, 199, "_json", "json[]"),
    (Element::Jsonb, PgType::Jsonb, 3807, "_jsonb", "jsonb[]"),
];

impl Element {
    fn line(self) -> &'static (Self, PgType, u32, &'static str, &'static str) {
        &TYPES[self as usize]
    }

    pub fn pg_type(self) -> PgType {
        self.line().1
    }

    /// The element that values of `pg_type` are, if arrays of it are held.
    pub fn of(pg_type: PgType) -> Option<Self> {
        TYPES.iter().find(|line| line.1 == pg_type).map(|line| line.0)
    }

    pub(super) fn array_oid(self) -> u32 {
        self.line().2
    }

    pub(super) fn array_typname(self) -> &'static str {
        self.line().3
    }

    pub(super) fn array_name(self) -> &'static str {
        self.line().4
    }

    /// Whether values are equal exactly where their bytes are.
    pub fn is_bytewise(self) -> bool {
        self.is_compared() && !matches!(self, Self::Float4 | Self::Float8 | Self::Numeric)
    }

    /// Whether values are compared here at all: json has no operators for it, and jsonb an order and equality of its own.
    pub fn is_compared(self) -> bool {
        !matches!(self, Self::Json | Self::Jsonb)
    }
}

/// MAXDIM.
const DIMENSIONS_MAX: usize = 6;
const HEADER_BYTES: usize = 12;
const DIMENSION_BYTES: usize = 8;

/// Length and lower bound of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    pub length: i32,
    pub lower: i32,
}

impl Dimension {
    pub fn upper(self) -> i32 {
        self.lower.wrapping_add(self.length).wrapping_sub(1)
    }
}

/// A value that [`validated`] has seen, taken apart without copying.
#[derive(Clone, Copy, Debug)]
pub struct ArrayView<'a> {
    dimensions: &'a [u8],
    elements: &'a [u8],
    has_bitmap: bool,
}

impl<'a> ArrayView<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        let count = read_i32(bytes, 0) as usize;
        let (head, elements) = bytes.split_at(HEADER_BYTES + count * DIMENSION_BYTES);
        Self { dimensions: &head[HEADER_BYTES..], elements, has_bitmap: read_i32(bytes, 4) != 0 }
    }

    /// What array_send says of NULLs: there may be some, or were in what the array is a part of (ARR_HASNULL).
    pub fn has_bitmap(self) -> bool {
        self.has_bitmap
    }

    /// Number of dimensions; 0 for an empty array.
    pub fn depth(self) -> usize {
        self.dimensions.len() / DIMENSION_BYTES
    }

    /// The first is 0.
    pub fn dimension(self, number: usize) -> Option<Dimension> {
        let at = number.checked_mul(DIMENSION_BYTES).filter(|at| at + DIMENSION_BYTES <= self.dimensions.len())?;
        Some(Dimension { length: read_i32(self.dimensions, at), lower: read_i32(self.dimensions, at + 4) })
    }

    /// Number of elements.
    pub fn len(self) -> usize {
        if self.depth() == 0 {
            return 0;
        }
        (0..self.depth()).filter_map(|number| self.dimension(number)).map(|d| d.length as usize).product()
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The elements' bytes in storage order, None for NULL.
    pub fn elements(self) -> Elements<'a> {
        Elements { rest: self.elements }
    }
}

#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = Option<&'a [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.rest.split_first_chunk::<4>()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            self.rest = rest;
            return Some(None);
        };
        let (element, rest) = rest.split_at(length);
        self.rest = rest;
        Some(Some(element))
    }
}

fn read_i32(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Order of two elements, by the type's btree operators; strings by bytes.
fn compare_elements(element: Element, a: &[u8], b: &[u8]) -> Ordering {
    match element {
        Element::Bool | Element::Text | Element::Varchar | Element::Uuid => a.cmp(b),
        // Big-endian, the sign first.
        Element::Int2 | Element::Int4 | Element::Int8 | Element::Date | Element::Timestamp | Element::Timestamptz => {
            let key = |bytes: &[u8]| bytes.first().map(|first| first ^ 0x80);
            key(a).cmp(&key(b)).then_with(|| a.cmp(b))
        }
        Element::Float4 | Element::Float8 | Element::Numeric | Element::Inet | Element::Cidr => {
            let decode = |bytes| binary::decode(element.pg_type(), -1, bytes);
            match (decode(a), decode(b)) {
                (Ok(Value::Float4(a)), Ok(Value::Float4(b))) => compare_floats(a.into(), b.into()),
                (Ok(Value::Float8(a)), Ok(Value::Float8(b))) => compare_floats(a, b),
                (Ok(Value::Numeric(a)), Ok(Value::Numeric(b))) => a.cmp(b),
                (Ok(Value::Network(a)), Ok(Value::Network(b))) => a.cmp(&b),
                _ => {
                    debug_assert!(false, "validated when it came in");
                    a.cmp(b)
                }
            }
        }
        Element::Json | Element::Jsonb => {
            debug_assert!(false, "the binder compares none");
            a.cmp(b)
        }
    }
}

/// float8_cmp_internal: NaN is greatest and its own equal, -0 is 0.
fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Whether two elements are equal by the type's `=`.
pub fn same_element(element: Element, a: &[u8], b: &[u8]) -> bool {
    if element.is_bytewise() { a == b } else { compare_elements(element, a, b).is_eq() }
}

/// array_cmp: by elements, NULL being greater than any value, then by number of elements, dimensions and bounds.
pub fn compare(element: Element, a: ArrayView<'_>, b: ArrayView<'_>) -> Ordering {
    for pair in a.elements().zip(b.elements()) {
        let order = match pair {
            (Some(a), Some(b)) => compare_elements(element, a, b),
            (a, b) => a.is_none().cmp(&b.is_none()),
        };
        if order.is_ne() {
            return order;
        }
    }
    let shape = |array: ArrayView<'_>| {
        let dimensions: Vec<Dimension> = (0..array.depth()).filter_map(|number| array.dimension(number)).collect();
        (array.len(), array.depth(), dimensions)
    };
    let ((a_len, a_depth, a_dimensions), (b_len, b_depth, b_dimensions)) = (shape(a), shape(b));
    let lengths = a_dimensions.iter().map(|a| a.length).cmp(b_dimensions.iter().map(|b| b.length));
    let bounds = a_dimensions.iter().map(|a| a.lower).cmp(b_dimensions.iter().map(|b| b.lower));
    a_len.cmp(&b_len).then(a_depth.cmp(&b_depth)).then(lengths).then(bounds)
}

/// array_recv: checks everything, elements included. Says truly whether there are NULLs: array_send may say so of an array
/// that only once had one. Elements become what their type's send makes of what its recv took: digits beyond a numeric's scale are cut
/// off there, any byte but 0 is true.
pub fn validated(element: Element, bytes: &[u8]) -> Result<Vec<u8>, ParseError> {
    let (mut is_canonical, mut sent) = (true, Vec::new());
    let array = checked(element, bytes, |own| {
        let value = binary::decode(element.pg_type(), -1, own)?;
        if is_canonical {
            sent.clear();
            write_element(&value, element, &mut sent);
            is_canonical = sent.get(4..) == Some(own);
        }
        Ok(())
    })?;
    if is_canonical {
        return Ok(array);
    }
    let view = ArrayView::of(&array);
    let mut canonical = array[..HEADER_BYTES + view.dimensions.len()].to_vec();
    for item in view.elements() {
        let value = item.map_or(Ok(Value::Null), |item| binary::decode(element.pg_type(), -1, item))?;
        write_element(&value, element, &mut canonical);
    }
    Ok(canonical)
}

/// As [`validated`], of what upstream's array_send made: JSON is not read again, nor is it refused where this does not know it.
pub fn stored(element: Element, bytes: &[u8]) -> Result<Vec<u8>, ParseError> {
    checked(element, bytes, |own| binary::decode_stored(element.pg_type(), own).map(drop))
}

/// The array's bytes, if `check` finds nothing wrong with any element.
fn checked(
    element: Element,
    bytes: &[u8],
    mut check: impl FnMut(&[u8]) -> Result<(), ParseError>,
) -> Result<Vec<u8>, ParseError> {
    let wrong = || ParseError::Raises("incorrect binary data format".into());
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or_else(wrong)?;
    let count = usize::try_from(read_i32(header, 0)).ok().filter(|count| *count <= DIMENSIONS_MAX).ok_or_else(wrong)?;
    if read_i32(header, 8) as u32 != element.pg_type().oid() || !matches!(read_i32(header, 4), 0 | 1) {
        return Err(wrong());
    }
    let dimensions = bytes.get(HEADER_BYTES..HEADER_BYTES + count * DIMENSION_BYTES).ok_or_else(wrong)?;
    let mut wanted = usize::from(count > 0);
    for dimension in dimensions.chunks_exact(DIMENSION_BYTES) {
        let length = usize::try_from(read_i32(dimension, 0)).ok().filter(|length| *length > 0).ok_or_else(wrong)?;
        read_i32(dimension, 4).checked_add(length as i32).ok_or_else(wrong)?;
        wanted = wanted.checked_mul(length).ok_or_else(wrong)?;
    }
    let mut owned = bytes.to_vec();
    let mut rest = &bytes[HEADER_BYTES + dimensions.len()..];
    let (mut found, mut has_null) = (0, false);
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        rest = match i32::from_be_bytes(*length) {
            -1 => {
                has_null = true;
                after
            }
            length => {
                let length = usize::try_from(length).map_err(|_| wrong())?;
                let own = after.get(..length).ok_or_else(wrong)?;
                check(own)?;
                if let Some(kind) = Kind::of(element.pg_type()) {
                    let start = bytes.len() - after.len();
                    network::mark_kind(kind, &mut owned[start..start + length]);
                }
                &after[length..]
            }
        };
        found += 1;
    }
    if !rest.is_empty() || found != wanted {
        return Err(wrong());
    }
    owned[4..8].copy_from_slice(&i32::from(has_null).to_be_bytes());
    Ok(owned)
}

/// Appends an array of one dimension that begins at 1; `elements` are `count` elements with their lengths.
pub fn write_vector(element: Element, count: usize, has_null: bool, elements: &[u8], out: &mut Vec<u8>) {
    write_header(element, has_null, &[Dimension { length: count as i32, lower: 1 }][..usize::from(count > 0)], out);
    out.extend_from_slice(elements);
}

/// Appends an array of one dimension, or of none if it is empty.
pub fn write_array(element: Element, dimension: Dimension, has_null: bool, elements: &[u8], out: &mut Vec<u8>) {
    write_header(element, has_null, &[dimension][..usize::from(dimension.length > 0)], out);
    out.extend_from_slice(elements);
}

fn write_header(element: Element, has_null: bool, dimensions: &[Dimension], out: &mut Vec<u8>) {
    out.extend_from_slice(&(dimensions.len() as i32).to_be_bytes());
    out.extend_from_slice(&i32::from(has_null).to_be_bytes());
    out.extend_from_slice(&element.pg_type().oid().to_be_bytes());
    for dimension in dimensions {
        out.extend_from_slice(&dimension.length.to_be_bytes());
        out.extend_from_slice(&dimension.lower.to_be_bytes());
    }
}

/// Appends one element with its length.
pub fn write_element(value: &Value, element: Element, out: &mut Vec<u8>) {
    if value.is_null() {
        return out.extend_from_slice(&(-1i32).to_be_bytes());
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    binary::write(value, element.pg_type(), out);
    let length = (out.len() - start - 4) as i32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// array_in, for one dimension that begins at 1 and elements without escapes; the rest is not understood here.
pub fn parse(element: Element, text: &str, settings: &FormatSettings) -> Result<Vec<u8>, ParseError> {
    parse_by(element, text, |item| text::parse(element.pg_type(), -1, item, settings))
}

/// As [`parse`], of what upstream's array_out printed.
pub fn parse_stored(element: Element, text: &str, settings: &FormatSettings) -> Result<Vec<u8>, ParseError> {
    parse_by(element, text, |item| text::parse_stored(element.pg_type(), item, settings))
}

fn parse_by(
    element: Element,
    text: &str,
    read: impl Fn(&str) -> Result<Value, ParseError>,
) -> Result<Vec<u8>, ParseError> {
    let beyond = || ParseError::beyond("array literal");
    let items = plain_items(text).ok_or_else(beyond)?;
    let (mut elements, mut has_null) = (Vec::new(), false);
    for item in &items {
        let value = match item {
            Some(item) => read(item)?,
            None => Value::Null,
        };
        has_null |= value.is_null();
        write_element(&value, element, &mut elements);
    }
    let mut out = Vec::with_capacity(HEADER_BYTES + DIMENSION_BYTES + elements.len());
    write_vector(element, items.len(), has_null, &elements, &mut out);
    Ok(out)
}

/// The items of a one-dimensional array literal, None for NULL; None in all if it is anything but a plain one.
pub fn plain_items(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim_matches(is_space).strip_prefix('{')?.strip_suffix('}')?;
    if inner.trim_matches(is_space).is_empty() {
        return Some(Vec::new());
    }
    let mut items = Vec::new();
    let mut rest = inner;
    loop {
        rest = rest.trim_start_matches(is_space);
        let item = if let Some(quoted) = rest.strip_prefix('"') {
            let (item, after) = quoted_item(quoted)?;
            rest = after.trim_start_matches(is_space);
            Some(item)
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            let bare = rest[..end].trim_end_matches(is_space);
            rest = &rest[end..];
            if bare.is_empty() || bare.contains(['{', '}', '"', '\\']) {
                return None;
            }
            (!bare.eq_ignore_ascii_case("null")).then(|| bare.to_owned())
        };
        items.push(item);
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => return rest.is_empty().then_some(items),
        }
    }
}

/// After an opening quote: the item up to the closing one, a backslash before what is meant literally.
fn quoted_item(quoted: &str) -> Option<(String, &str)> {
    let mut item = String::new();
    let mut characters = quoted.char_indices();
    loop {
        match characters.next()? {
            (at, '"') => return Some((item, &quoted[at + 1..])),
            (_, '\\') => item.push(characters.next()?.1),
            (_, character) => item.push(character),
        }
    }
}

/// array_isspace.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

/// Appends what array_out prints.
pub fn write_text(bytes: &[u8], element: Element, settings: &FormatSettings, out: &mut Vec<u8>) {
    let view = ArrayView::of(bytes);
    let dimensions: Vec<Dimension> = (0..view.depth()).filter_map(|number| view.dimension(number)).collect();
    if dimensions.is_empty() {
        return out.extend_from_slice(b"{}");
    }
    if dimensions.iter().any(|dimension| dimension.lower != 1) {
        for dimension in &dimensions {
            out.extend_from_slice(format!("[{}:{}]", dimension.lower, dimension.upper()).as_bytes());
        }
        out.push(b'=');
    }
    let mut item = Vec::new();
    for (number, bytes) in view.elements().enumerate() {
        // A dimension begins wherever the number is a multiple of how many elements it has.
        let mut size = 1;
        let opens = |size: &mut usize, dimension: &Dimension| {
            *size *= dimension.length as usize;
            number % *size == 0
        };
        let opened = dimensions.iter().rev().take_while(|dimension| opens(&mut size, dimension)).count();
        if number > 0 {
            out.extend(std::iter::repeat_n(b'}', opened));
            out.push(b',');
        }
        out.extend(std::iter::repeat_n(b'{', opened));
        match bytes {
            None => out.extend_from_slice(b"NULL"),
            Some(bytes) => {
                item.clear();
                write_element_text(bytes, element, settings, &mut item);
                quote(&item, out);
            }
        }
    }
    out.extend(std::iter::repeat_n(b'}', dimensions.len()));
}

/// The value of an element of an array that is held. A rounded time may lie just beyond what is received from outside
/// (timestamp.c, AdjustTimestampForTypmod).
pub fn element_value(element: PgType, bytes: &[u8]) -> Result<Value, ParseError> {
    match (element, bytes.try_into().map(i64::from_be_bytes)) {
        (PgType::Timestamp, Ok(time)) => Ok(Value::Timestamp(time)),
        (PgType::Timestamptz, Ok(time)) => Ok(Value::Timestamptz(time)),
        _ => binary::decode_stored(element, bytes),
    }
}

/// Appends what the element's output function prints.
pub fn write_element_text(bytes: &[u8], element: Element, settings: &FormatSettings, out: &mut Vec<u8>) {
    match element {
        Element::Text | Element::Varchar => out.extend_from_slice(bytes),
        _ => match element_value(element.pg_type(), bytes) {
            Ok(value) => text::write(&value, element.pg_type(), settings, out),
            Err(_) => debug_assert!(false, "validated when it came in"),
        },
    }
}

fn quote(item: &[u8], out: &mut Vec<u8>) {
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',' | b' ' | b'\t'..=b'\r');
    if !item.is_empty() && !item.eq_ignore_ascii_case(b"null") && !item.iter().any(is_special) {
        return out.extend_from_slice(item);
    }
    out.push(b'"');
    for byte in item {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

/// The text of an element of a string type.
pub fn element_str(bytes: &[u8]) -> &str {
    decode_text(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(element: Element, text: &str) -> String {
        let settings = FormatSettings::default();
        let bytes = parse(element, text, &settings).expect(text);
        assert_eq!(validated(element, &bytes).as_deref(), Ok(bytes.as_slice()), "{text}");
        let mut out = Vec::new();
        write_text(&bytes, element, &settings, &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn literals_print_as_array_out_prints_them() {
        assert_eq!(printed(Element::Int4, "{1, 2,NULL}"), "{1,2,NULL}");
        assert_eq!(printed(Element::Int4, " { } "), "{}");
        assert_eq!(
            printed(Element::Text, r#"{a,"b c","",null,"NULL","q\"x\\y","{"}"#),
            r#"{a,"b c","",NULL,"NULL","q\"x\\y","{"}"#
        );
        assert_eq!(printed(Element::Bool, "{t,false}"), "{t,f}");
        assert_eq!(printed(Element::Date, "{2024-02-29}"), "{2024-02-29}");
        assert!(parse(Element::Int4, "{{1},{2}}", &FormatSettings::default()).is_err());
    }

    #[test]
    fn several_dimensions_and_bounds_print() {
        let mut bytes = Vec::new();
        let dimensions = [Dimension { length: 2, lower: 1 }, Dimension { length: 3, lower: 1 }];
        write_header(Element::Int4, false, &dimensions, &mut bytes);
        (1..=6).for_each(|number| write_element(&Value::Int4(number), Element::Int4, &mut bytes));
        let text = |bytes: &[u8]| {
            let mut out = Vec::new();
            write_text(bytes, Element::Int4, &FormatSettings::default(), &mut out);
            String::from_utf8(out).expect("UTF-8")
        };
        assert!(validated(Element::Int4, &bytes).is_ok());
        assert_eq!(text(&bytes), "{{1,2,3},{4,5,6}}");
        let mut shifted = Vec::new();
        write_header(Element::Int4, false, &[Dimension { length: 2, lower: -1 }], &mut shifted);
        (1..=2).for_each(|number| write_element(&Value::Int4(number), Element::Int4, &mut shifted));
        assert_eq!(text(&shifted), "[-1:0]={1,2}");
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let whole = parse(Element::Text, "{a,NULL,bcd}", &FormatSettings::default()).unwrap();
        for end in 0..whole.len() {
            assert!(validated(Element::Text, &whole[..end]).is_err());
            for byte in [0, 1, 127, 255] {
                let mut damaged = whole.clone();
                damaged[end] = byte;
                if let Ok(bytes) = validated(Element::Text, &damaged) {
                    write_text(&bytes, Element::Text, &FormatSettings::default(), &mut Vec::new());
                }
            }
        }
    }
}
