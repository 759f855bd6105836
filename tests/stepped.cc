// Exceptions: through frames with things to destroy, thrown again, caught by base class, out of functions with room of
// unknown size and with many registers in use.

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#define APART __attribute__((noinline))

static int destroyed;

struct Counted {
    int number;
    explicit Counted(int number) : number(number) {}
    ~Counted() { destroyed += number; }
};

struct Odd : std::runtime_error {
    using std::runtime_error::runtime_error;
};

APART static int deep(int n, double weight) {
    Counted one(n);
    if (n > 12) throw Odd("deep " + std::to_string(weight));
    if (n % 5 == 4) {
        try {
            return deep(n + 1, weight * 1.5) + one.number;
        } catch (const std::logic_error &) {
            return 0;
        }
    }
    return deep(n + 1, weight + n) + one.number;
}

APART static int roomy(int n) {
    char room[n * 8 + 16];
    std::fill(room, room + sizeof room, n);
    Counted one(room[n]);
    try {
        return deep(n, 0.5) + room[1];
    } catch (const Odd &) {
        if (n % 2) throw;
        return one.number + room[2];
    }
}

APART static long around(int n) {
    long a = n, b = n * 3, c = n * 7, d = n ^ 11, e = n + 13;
    double x = n * 0.5, y = n * 0.25, z = n * 0.125;
    for (int i = 0; i < 4; i++) {
        try {
            a += roomy(n + i), x += y;
        } catch (const std::exception &error) {
            b += error.what()[0], c ^= a, y += z;
        }
        d += c, e ^= b, z += x;
    }
    return a + b + c + d + e + long(x + y + z);
}

int main() {
    std::map<std::string, std::unique_ptr<Counted>> all;
    std::vector<long> sums;
    std::ostringstream text;
    for (int n = 0; n < 10; n++) {
        all[std::to_string(n * 7919 % 101)] = std::make_unique<Counted>(n);
        sums.push_back(around(n));
    }
    std::sort(sums.begin(), sums.end(), [](long one, long other) { return one % 97 < other % 97; });
    for (long sum : sums) text << sum << ' ' << all.size() << '\n';
    try {
        sums.at(1000) = 1;
    } catch (const std::out_of_range &) {
        destroyed++;
    }
    std::printf("%s%d\n", text.str().c_str(), destroyed);
}
