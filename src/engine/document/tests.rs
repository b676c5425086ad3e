use super::*;

#[test]
fn absent_null_and_wrong_type_read_as_null() {
    let value = Value::parse(r#"{"a":null,"b":[{"c":1}],"s":"x"}"#).unwrap();
    assert!(value["a"].is_null() && value["zz"].is_null() && value["s"]["t"].is_null());
    assert_eq!(value.at(&["b", "0", "c"]).as_i64(), Some(1));
    assert!(value.at(&["b", "7"]).is_null());
}

#[test]
fn the_last_of_doubled_members_wins_as_in_go() {
    assert_eq!(Value::parse(r#"{"a":1,"a":2}"#).unwrap()["a"].as_i64(), Some(2));
}

#[test]
fn integers_keep_their_digits_and_floats_are_no_integers() {
    let value = Value::parse(r#"[9223372036854775807,3.0,1e3,18446744073709551615]"#).unwrap();
    assert_eq!(value.to_string(), "[9223372036854775807,3.0,1000.0,18446744073709551615]");
    assert_eq!(value.items()[1].as_i64(), None);
    assert_eq!(value.items()[2].as_i64(), None);
}

#[test]
fn managed_fields_stay_raw_and_escapes_are_decoded() {
    let value = Value::parse(r#"{"metadata":{"managedFields":[ {"a":1} ],"n\u0061me":"a\nb"}}"#).unwrap();
    assert!(matches!(&value["metadata"]["managedFields"], Value::Raw(text) if text == r#"[ {"a":1} ]"#));
    assert_eq!(value["metadata"]["name"].as_str(), Some("a\nb"));
}

#[test]
fn two_hundred_levels_are_an_error_not_a_stack_overflow() {
    let text = format!("{}{}", "[".repeat(200), "]".repeat(200));
    assert!(Value::parse(&text).unwrap_err().to_string().contains("recursion limit"));
}

#[test]
fn equality_ignores_member_order_and_nulls() {
    let a = Value::parse(r#"{"a":1,"b":{"c":null}}"#).unwrap();
    let b = Value::parse(r#"{"b":{},"a":1}"#).unwrap();
    assert_eq!(a, b);
    assert_ne!(a, Value::parse(r#"{"a":1}"#).unwrap());
    assert_ne!(Value::parse(r#"{"a":1,"b":2}"#).unwrap(), Value::parse(r#"{"a":1}"#).unwrap());
}

#[test]
fn equality_counts_the_last_of_doubled_members() {
    let parse = |text: &'static str| Value::parse(text).unwrap();
    assert_eq!(parse(r#"{"a":1,"a":2}"#), parse(r#"{"a":2}"#));
    assert_ne!(parse(r#"{"a":1,"a":2}"#), parse(r#"{"a":1}"#));
    assert_eq!(parse(r#"{"a":1,"a":null}"#), parse("{}"));
    assert_ne!(parse(r#"{"a":null,"a":1}"#), parse("{}"));
}

#[test]
fn set_makes_parents_and_remove_drops_emptied_ones() {
    let mut value = Value::parse(r#"{"spec":{"containers":[{"name":"a"}]}}"#).unwrap();
    let path = ["spec", "containers", "0", "lifecycle", "preStop"];
    value.set(&path, Value::from("x"));
    assert_eq!(value.to_string(), r#"{"spec":{"containers":[{"name":"a","lifecycle":{"preStop":"x"}}]}}"#);
    value.remove(&path, 3);
    assert_eq!(value.to_string(), r#"{"spec":{"containers":[{"name":"a"}]}}"#);
}

/// `{"k0":0,"k1":1,…}`, in the order of these numbers.
fn wide(numbers: impl Iterator<Item = usize>) -> String {
    let members: Vec<String> = numbers.map(|number| format!("\"k{number}\":{number}")).collect();
    format!("{{{}}}", members.join(","))
}

#[test]
fn j07_many_members_are_sorted_and_the_last_of_doubled_ones_is_kept() {
    let text = wide((0..1000).rev()).replacen("\"k999\":999", "\"k7\":1,\"k999\":999,\"k7\":2", 1);
    let value = Value::parse(&text).unwrap();
    let names: Vec<&str> = value.members().map(|(name, _)| name).collect();
    assert!(names.len() == 1000 && names.is_sorted());
    assert_eq!((value["k7"].as_i64(), value["k999"].as_i64(), value["k1000"].as_i64()), (Some(7), Some(999), None));
    assert_eq!(value, Value::parse(&wide(0..1000)).unwrap());
    assert_ne!(value, Value::parse(&wide(1..1001)).unwrap());
    let text = wide(0..100).replace('}', ",\"k5\":8}");
    let doubled = Value::parse(&text).unwrap();
    assert_eq!((doubled["k5"].as_i64(), doubled.members().count()), (Some(8), 100));
}

#[test]
fn members_come_and_go_beyond_the_few_that_are_looked_at_one_by_one() {
    let mut value = Value::parse("{}").unwrap();
    for number in (0..200).rev() {
        value.set(&[format!("k{number}")], Value::from(number));
    }
    value.set(&["k77"], Value::from(-1));
    value.remove(&["k78"], 0);
    assert_eq!((value["k77"].as_i64(), value["k78"].as_i64(), value["k199"].as_i64()), (Some(-1), None, Some(199)));
    assert_eq!(value.members().count(), 199);
    assert_eq!(value.to_static(), value);
}

/// Comparing both of the doubled members at every level would take 2^100 steps.
#[test]
fn j07_doubled_members_do_not_double_the_work_at_every_level() {
    let nested = |first: &str| format!("{}0{}", first.repeat(100), "}".repeat(100));
    let a = nested(r#"{"a":1,"b":2,"a":"#);
    let b = nested(r#"{"b":2,"a":1,"a":"#);
    let (a, b) = (Value::parse(&a).unwrap(), Value::parse(&b).unwrap());
    assert_eq!(a, b);
    assert_eq!(a, a.to_static());
}
