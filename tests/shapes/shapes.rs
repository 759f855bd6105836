//! Functions of Rust whose frames have many shapes: panics, drops, closures. It needs only `core` and `alloc`.
#![no_std]
#![crate_type = "lib"]

extern crate alloc;
use alloc::{boxed::Box, string::String, vec::Vec};

extern "C" {
    fn puts(text: *const u8) -> i32;
}

pub struct Guard(i32);

impl Drop for Guard {
    fn drop(&mut self) {
        unsafe { puts(&self.0 as *const i32 as *const u8) };
    }
}

pub trait Shape {
    fn area(&self, scale: u64) -> u64;
    fn name(&self) -> String;
}

pub struct Circle(u64);
pub struct Square { side: u64, more: Vec<u64> }

impl Shape for Circle {
    fn area(&self, scale: u64) -> u64 { self.0 * self.0 * 3 / scale }
    fn name(&self) -> String { String::from("circle") }
}

impl Shape for Square {
    fn area(&self, scale: u64) -> u64 { self.more.iter().map(|one| one * self.side / scale).sum() }
    fn name(&self) -> String { let mut name = String::from("square"); name.push_str(" of sides"); name }
}

#[no_mangle]
pub fn indexes(numbers: &[u32], at: usize) -> u32 {
    numbers[at] + numbers[at / 2]
}

#[no_mangle]
pub fn drops(a: i32, shape: &dyn Shape) -> u64 {
    let _one = Guard(a);
    let two = Guard(a + 1);
    let area = shape.area(a as u64);
    drop(two);
    area + shape.area(7)
}

#[no_mangle]
pub fn sums(shapes: &[Box<dyn Shape>], scale: u64) -> u64 {
    shapes.iter().filter(|one| !one.name().is_empty()).map(|one| one.area(scale)).sum()
}

#[no_mangle]
pub fn makes(n: u64) -> Vec<Box<dyn Shape>> {
    (0..n).map(|i| if i % 2 == 0 { Box::new(Circle(i)) as Box<dyn Shape> }
        else { Box::new(Square { side: i, more: (0..i).collect() }) }).collect()
}

#[no_mangle]
pub fn sorts(numbers: &mut Vec<(u32, u64)>, key: &mut dyn FnMut(&(u32, u64)) -> u64) -> u64 {
    numbers.sort_by_key(|one| key(one));
    numbers.iter().fold(0, |sum, one| sum ^ one.1)
}

#[no_mangle]
pub fn closes(n: u64) -> Box<dyn Fn(u64) -> u64> {
    let table: Vec<u64> = (0..n).collect();
    let guard = Guard(n as i32);
    Box::new(move |at| table[at as usize] + guard.0 as u64)
}

#[no_mangle]
pub fn parses(text: &str) -> Result<i64, String> {
    let mut sum: i64 = 0;
    for word in text.split(',') {
        let number: i64 = word.trim().parse().map_err(|_| String::from(word))?;
        sum = sum.checked_add(number).ok_or_else(|| String::from("too large"))?;
    }
    Ok(sum)
}

#[no_mangle]
pub fn unwraps(one: Option<Box<u64>>, two: Result<u32, String>) -> u64 {
    let _guard = Guard(1);
    *one.unwrap() + u64::from(two.expect("no number"))
}

#[no_mangle]
pub fn large(n: usize, fill: &dyn Fn(&mut [u8])) -> u8 {
    let mut room = [0u8; 20000];
    fill(&mut room);
    room[n]
}

#[repr(align(64))]
pub struct Aligned([u8; 128]);

#[no_mangle]
pub fn aligned(n: usize, fill: &dyn Fn(&mut [u8])) -> u8 {
    let mut room = Aligned([1; 128]);
    fill(&mut room.0);
    room.0[n]
}

pub enum Tree { Leaf(u64), Node(Box<Tree>, Box<Tree>), Many(Vec<Tree>) }

#[no_mangle]
pub fn depth(tree: &Tree) -> u64 {
    match tree {
        Tree::Leaf(n) => *n,
        Tree::Node(left, right) => 1 + depth(left).max(depth(right)),
        Tree::Many(all) => all.iter().map(depth).max().unwrap_or(0),
    }
}

#[no_mangle]
pub fn wide(a: u128, b: u128, n: i32) -> u128 {
    let _guard = Guard(n);
    a * b / (a + b) % (n as u128)
}
