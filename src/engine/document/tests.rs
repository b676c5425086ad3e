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

/// Would take 2^100 comparisons if each of the doubled members were compared.
#[test]
fn equality_looks_at_each_member_once() {
    let nested = |innermost: &str| {
        let text = format!("{}{innermost}{}", r#"{"a":0,"a":"#.repeat(100), "}".repeat(100));
        Value::parse(&text).unwrap().to_static()
    };
    assert_eq!(nested("1"), nested("1"));
    assert_ne!(nested("1"), nested("2"));
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
