"""Programs of many inlined calls, which run for a part of a second and are recorded."""

CONTAINERS = """\
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>
#define HARD __attribute__((noinline))
namespace shapes {
struct Shape { virtual ~Shape() = default; virtual double area() const = 0; };
struct Square : Shape {
    double side;
    explicit Square(double s) : side(s) {}
    double area() const override { return side * side; }
};
struct Round : Shape {
    double radius;
    explicit Round(double r) : radius(r) {}
    double area() const override { double sum = 0; for (int i = 1; i < 200; i++) sum += radius / i; return sum; }
};
namespace { inline int mix(int x) { x ^= x << 13; x ^= x >> 17; return x ^ (x << 5); } }
template <class T> struct Tree {
    struct Node { T value; std::unique_ptr<Node> left, right; };
    std::unique_ptr<Node> root;
    void put(T value) {
        auto *at = &root;
        while (*at) at = value < (*at)->value ? &(*at)->left : &(*at)->right;
        *at = std::make_unique<Node>(Node{std::move(value), nullptr, nullptr});
    }
    template <class F> static void visit(const Node *n, const F &f) {
        if (n) { visit(n->left.get(), f); f(n->value); visit(n->right.get(), f); }
    }
};
}
HARD long sorting(int n) {
    std::vector<int> all;
    int x = 1;
    for (int i = 0; i < n; i++) all.push_back(x = shapes::mix(x));
    std::sort(all.begin(), all.end(), [](int a, int b) { return shapes::mix(a) < shapes::mix(b); });
    std::stable_sort(all.begin(), all.end());
    return std::accumulate(all.begin(), all.end(), 0L, [](long a, int b) { return a + b; });
}
HARD long maps(int n) {
    std::map<std::string, int> names;
    std::unordered_map<int, std::vector<int>> more;
    for (int i = 0; i < n; i++) { names[std::to_string(shapes::mix(i))] = i; more[i % 997].push_back(i); }
    long sum = 0;
    for (auto &[key, value] : names) sum += value ^ key.size();
    for (auto &[key, value] : more)
        sum += std::count_if(value.begin(), value.end(), [k = key](int v) { return v % 3 == k % 3; });
    return sum;
}
HARD long trees(int n) {
    shapes::Tree<std::string> tree;
    int x = 7;
    for (int i = 0; i < n; i++) { x = shapes::mix(x); tree.put(std::to_string(x)); }
    long sum = 0;
    tree.visit(tree.root.get(), [&](const std::string &s) { sum += std::hash<std::string>()(s) & 7; });
    return sum;
}
HARD long virtuals(int n) {
    std::vector<std::unique_ptr<shapes::Shape>> all;
    double sum = 0;
    for (int i = 0; i < n; i++)
        if (i & 1) all.push_back(std::make_unique<shapes::Square>(i));
        else all.push_back(std::make_unique<shapes::Round>(i));
    std::function<double(const shapes::Shape &)> f = [](const shapes::Shape &s) { return s.area(); };
    for (auto &one : all) sum += f(*one);
    return long(sum);
}
int main() {
    long sum = 0;
    for (int i = 0; i < 240; i++) sum += sorting(20000) + maps(4000) + trees(4000) + virtuals(3000);
    return sum & 1;
}
"""
TEXT = """\
#include <algorithm>
#include <iostream>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <variant>
#include <vector>
#define HARD __attribute__((noinline))
struct Parser {
    using Value = std::variant<long, std::string, std::vector<long>>;
    std::string text;
    size_t at = 0;
    explicit Parser(std::string given) : text(std::move(given)) {}
    bool take(char c) { if (at < text.size() && text[at] == c) { at++; return true; } return false; }
    std::optional<long> number() {
        long value = 0;
        size_t start = at;
        while (at < text.size() && text[at] >= '0' && text[at] <= '9') value = value * 10 + (text[at++] - '0');
        return at > start ? std::optional(value) : std::nullopt;
    }
    long factor() { if (take('(')) { long value = sum(); take(')'); return value; } return number().value_or(0); }
    long product() { long value = factor(); while (take('*')) value = (value * factor()) % 1000003; return value; }
    long sum() { long value = product(); while (take('+')) value += product(); return value; }
    Value value() {
        if (take('"')) {
            std::string s;
            while (at < text.size() && text[at] != '"') s += text[at++];
            take('"');
            return s;
        }
        if (take('[')) {
            std::vector<long> all;
            do all.push_back(sum()); while (take(','));
            take(']');
            return all;
        }
        return sum();
    }
};
struct Length {
    long operator()(long x) const { return x; }
    long operator()(const std::string &s) const { return long(s.size()); }
    long operator()(const std::vector<long> &v) const { long n = 0; for (long x : v) n += x; return n; }
};
HARD long parsing(int n) {
    std::string list = "[";
    for (int i = 0; i < n; i++) list += std::to_string(i) + "*(" + std::to_string(i) + "+2),";
    list += "1]";
    return std::visit(Length{}, Parser(list).value()) + std::visit(Length{}, Parser("\\"" + list + "\\"").value());
}
HARD long streams(int n) {
    std::ostringstream out;
    for (int i = 0; i < n; i++) out << i << ", " << i * 0.5 << '\\n';
    std::istringstream in(out.str());
    std::string word;
    std::set<std::string> words;
    while (in >> word) words.insert(word);
    return long(words.size());
}
HARD long patterns(int n) {
    std::regex pattern("([a-z]+)-([0-9]+)");
    long sum = 0;
    std::smatch match;
    for (int i = 0; i < n; i++) {
        std::string line = "name-" + std::to_string(i);
        if (std::regex_match(line, match, pattern)) sum += long(match[2].length());
    }
    return sum;
}
int main() {
    long sum = 0;
    for (int i = 0; i < 600; i++) sum += parsing(4000) + streams(1500) + patterns(200);
    return sum & 1;
}
"""
NUMBERS = """\
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <numeric>
#include <thread>
#include <tuple>
#include <utility>
#include <valarray>
#include <vector>
#define HARD __attribute__((noinline))
template <class L, class R> struct Sum {
    const L &l; const R &r;
    double operator[](size_t i) const { return l[i] + r[i]; }
};
template <class L, class R> struct Product {
    const L &l; const R &r;
    double operator[](size_t i) const { return l[i] * r[i]; }
};
struct Row {
    std::vector<double> all;
    explicit Row(size_t n, double x = 0) : all(n, x) {}
    double operator[](size_t i) const { return all[i]; }
    template <class E> Row &operator=(const E &e) {
        for (size_t i = 0; i < all.size(); i++) all[i] = std::sin(e[i]);
        return *this;
    }
};
template <class L, class R> Sum<L, R> operator+(const L &l, const R &r) { return {l, r}; }
template <class L, class R> Product<L, R> operator*(const L &l, const R &r) { return {l, r}; }
template <size_t N> struct Matrix {
    std::array<std::array<double, N>, N> rows{};
    double &at(size_t i, size_t k) { return rows[i][k]; }
    const double &at(size_t i, size_t k) const { return rows[i][k]; }
    friend Matrix operator*(const Matrix &a, const Matrix &b) {
        Matrix c;
        for (size_t i = 0; i < N; i++)
            for (size_t k = 0; k < N; k++)
                for (size_t j = 0; j < N; j++) c.at(i, j) += a.at(i, k) * b.at(k, j);
        return c;
    }
};
template <class... T, size_t... I> double folded(const std::tuple<T...> &t, std::index_sequence<I...>) {
    return (... + std::sqrt(double(std::get<I>(t))));
}
HARD double expressions(size_t n) {
    Row a(n, 1), b(n, 2), c(n, 3);
    for (int i = 0; i < 20; i++) { c = a * b + c; a = b + c * a; }
    return c[0];
}
HARD double matrices(int n) {
    Matrix<24> a, b;
    for (size_t i = 0; i < 24; i++) { a.at(i, i) = 0.5; b.at(i, 23 - i) = 0.25; }
    for (int i = 0; i < n; i++) a = a * b;
    return a.at(3, 3);
}
HARD double complexes(int n) {
    std::vector<std::complex<double>> all(256);
    for (int k = 0; k < n; k++)
        for (size_t i = 0; i < all.size(); i++) all[i] = std::exp(all[i] * std::complex<double>(0, 0.1)) / 2.0;
    auto t = std::make_tuple(n, 2.5, 'c', 7L);
    auto sum = std::accumulate(all.begin(), all.end(), std::complex<double>());
    return std::abs(sum) + folded(t, std::index_sequence_for<int, double, char, long>{});
}
int main() {
    double sums[2] = {};
    std::thread first([&] { for (int i = 0; i < 800; i++) sums[0] += expressions(2000) + matrices(100); });
    std::thread second([&] { for (int i = 0; i < 800; i++) sums[1] += complexes(60); });
    first.join();
    second.join();
    return sums[0] + sums[1] == 0.5;
}
"""
RUST = """\
use std::collections::{BTreeMap, HashMap};
trait Shape { fn area(&self) -> f64; }
struct Square(f64);
struct Round(f64);
impl Shape for Square { fn area(&self) -> f64 { self.0 * self.0 } }
impl Shape for Round { fn area(&self) -> f64 { (1..200).map(|i| self.0 / i as f64).sum() } }
fn mix(x: u32) -> u32 { let x = x ^ (x << 13); let x = x ^ (x >> 17); x ^ (x << 5) }
#[inline(never)] fn sorting(n: u32) -> u64 {
    let mut all: Vec<u32> = (1..n).map(mix).collect();
    all.sort_by_key(|x| mix(*x));
    all.sort_unstable();
    all.iter().filter(|x| **x % 3 == 0).map(|x| *x as u64).sum()
}
#[inline(never)] fn maps(n: u32) -> usize {
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    let mut more: HashMap<u32, Vec<u32>> = HashMap::new();
    for i in 0..n { names.insert(mix(i).to_string(), i); more.entry(i % 997).or_default().push(i); }
    let most = more.values().map(|all| all.iter().max().map_or(0, |x| *x as usize)).sum::<usize>();
    names.keys().map(|key| key.len()).sum::<usize>() + most
}
#[inline(never)] fn shapes(n: u32) -> f64 {
    let all: Vec<Box<dyn Shape>> = (0..n)
        .map(|i| -> Box<dyn Shape> { if i % 2 == 0 { Box::new(Square(i as f64)) } else { Box::new(Round(i as f64)) } })
        .collect();
    all.iter().map(|one| one.area()).fold(0.0, |a, b| a + b)
}
#[inline(never)] fn text(n: u32) -> usize {
    let lines: Vec<String> = (0..n).map(|i| format!("{} {:?} {:.2}", i, Some(i), i as f64 / 3.0)).collect();
    lines.iter().flat_map(|line| line.split_whitespace()).filter_map(|word| word.parse::<u32>().ok()).count()
}
fn main() {
    let mut sum = 0;
    for _ in 0..300 { sum += sorting(20000) as usize + maps(4000) + shapes(3000) as usize + text(3000); }
    println!("{}", sum);
}
"""
