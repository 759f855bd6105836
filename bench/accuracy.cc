// Work of the kinds that C++ programs do, on three threads: containers, strings, expressions, exceptions.
#include <algorithm>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static int work(int count) {
    std::map<std::string, std::vector<int>> groups;
    for (int i = 0; i < count; i++)
        groups[std::to_string(i % 997)].push_back(i * 7919 % 1000);
    int found = 0;
    for (auto &[name, members] : groups) {
        std::sort(members.begin(), members.end(), [](int a, int b) { return a > b; });
        std::regex pattern("([0-9]+)[^x]*x?");
        std::smatch match;
        std::string text = name + "abc" + name;
        found += std::regex_match(text, match, pattern);
        try {
            if (members.size() % 3 == 0)
                throw std::runtime_error(name);
        } catch (const std::exception &) {
            found++;
        }
    }
    return found;
}

int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([] {
            for (int round = 0; round < 20; round++)
                work(100000);
        });
    for (auto &thread : threads)
        thread.join();
}
