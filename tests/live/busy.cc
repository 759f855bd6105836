// Threads busy with what C++ brings: templates that call back, exceptions under way, destructors, regular expressions.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static volatile unsigned long sink;

struct Guard {
    std::string text{"a string long enough to need memory of its own"};
    ~Guard() { sink = sink + text.size(); }
};

[[gnu::noinline]] static void thrown(int depth) {
    Guard guard;
    if (depth) thrown(depth - 1);
    else throw std::runtime_error(guard.text);
}

static void exceptions() {
    for (int depth = 1;; depth = depth * 3 % 31 + 1) {
        try {
            thrown(depth);
        } catch (const std::exception &error) {
            sink = sink + error.what()[0];
        }
    }
}

static void sorting() {
    std::vector<std::string> words;
    for (int i = 0; i < 1000; i++) words.push_back(std::to_string(i * 7919 % 1000));
    for (;;) {
        std::sort(words.begin(), words.end(), [](const auto &a, const auto &b) { return a.back() < b.back(); });
        std::stable_sort(words.begin(), words.end(), std::greater<>());
    }
}

static void matching() {
    const std::regex pattern("(\\w+)\\s+(\\d+)(x|y)*z?");
    for (;;) {
        std::smatch found;
        const std::string text = "some words and then number 12345xyxyxyz at the end";
        sink = sink + std::regex_search(text, found, pattern);
    }
}

static void streaming() {
    for (double value = 1;; value = value > 1e30 ? 1 : value * 1.1) {
        std::ostringstream out;
        out << value << " and " << std::hex << sink;
        sink = sink + out.str().size();
    }
}

static void mapping() {
    for (unsigned seed = 1;;) {
        std::map<unsigned, std::unique_ptr<Guard>> all;
        for (int i = 0; i < 300; i++) all[seed = seed * 1664525 + 1013904223] = std::make_unique<Guard>();
    }
}

static void functions() {
    std::function<unsigned long(unsigned)> ackermann;
    ackermann = [&](unsigned n) -> unsigned long { return n < 2 ? n : ackermann(n - 1) + ackermann(n - 2); };
    for (;;) sink = sink + ackermann(18);
}

struct Base {
    virtual ~Base() = default;
    virtual unsigned long work(unsigned n) { return n; }
};

struct Other { virtual unsigned long more(unsigned n) = 0; };

struct Derived : Base, Other {
    unsigned long work(unsigned n) override { return n ? static_cast<Other *>(this)->more(n - 1) + 1 : 0; }
    unsigned long more(unsigned n) override { return n ? static_cast<Base *>(this)->work(n - 1) * 3 : 1; }
};

static void virtuals() {
    std::unique_ptr<Base> one = std::make_unique<Derived>();
    for (unsigned n = 1;; n = n * 5 % 97) sink = sink + one->work(n);
}

static void futures() {
    for (;;) {
        auto one = std::async(std::launch::async, [] { return std::accumulate(&"abcdef"[0], &"abcdef"[6], 0UL); });
        sink = sink + one.get();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

int main() {
    std::vector<std::thread> all;
    for (auto work : {exceptions, sorting, matching, streaming, mapping, functions, virtuals, futures})
        all.emplace_back(work);
    std::puts("ready");
    std::fflush(stdout);
    for (auto &one : all) one.join();
}
