// Functions of C++ whose frames have many shapes: exceptions, destructors, virtual functions. It includes no header.
extern int many(int, int, int, int, int, int, int, int, char *);
extern "C" int puts(const char *);

struct Guard {
    explicit Guard(int n);
    ~Guard();
    Guard(const Guard &);
    int number() const;
    int n;
};

struct Error { int code; virtual ~Error(); };
struct Worse : Error { int more; Worse(int); ~Worse() override; };

int destroys(int a, int b) {
    Guard one(a), two(b);
    return many(a, b, one.number(), two.number(), 0, 0, 0, 0, 0);
}

int catches(int a) {
    try {
        Guard one(a);
        return many(a, 1, 2, 3, 4, 5, 6, 7, 0);
    } catch (const Worse &error) {
        return error.more + puts("worse");
    } catch (const Error &error) {
        return error.code;
    } catch (...) {
        puts("unknown");
        throw;
    }
}

int throws(int a) {
    Guard one(a);
    if (one.number() > a) throw Worse(a);
    return one.number() + many(a, a, a, a, a, a, a, a, 0);
}

int loops(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        Guard one(i);
        if (one.number() == 7) continue;
        if (one.number() == 9) break;
        try {
            sum += many(i, sum, n, 0, 0, 0, 0, 0, 0);
        } catch (int code) {
            sum -= code;
        }
    }
    return sum;
}

int never(int n) noexcept {
    Guard one(n);
    return many(n, 0, 0, 0, 0, 0, 0, 0, 0) + one.number();
}

const Guard &made_once(int n) {
    static Guard only(n);
    return only;
}

int made_many(int n) {
    Guard *all = new Guard[2]{Guard(n), Guard(n + 1)};
    int sum = all[0].number() + all[1].number();
    delete[] all;
    return sum;
}

struct Base { virtual int one(int); virtual int two(int, int) = 0; virtual ~Base(); int a; };
struct Other { virtual int three(int); virtual ~Other(); int b; };
struct Root { virtual int four(int); virtual ~Root(); int c; };
struct Left : virtual Root { int four(int) override; int d; };
struct Right : virtual Root { int four(int n) override; int e; };
struct Diamond : Left, Right, Base, Other {
    int four(int) override;
    int two(int, int) override;
    int three(int) override;
    ~Diamond() override;
    Guard guard;
};

int Left::four(int n) { Guard one(n); return d + one.number(); }
int Right::four(int n) { return e + many(n, e, 0, 0, 0, 0, 0, 0, 0); }
int Diamond::four(int n) { return n + d + e + puts("four"); }
int Diamond::two(int x, int y) { return one(x) + many(x, y, a, b, 0, 0, 0, 0, 0); }
int Diamond::three(int n) { Guard one(n); return two(n, one.number()); }
Diamond::~Diamond() { puts("gone"); }

int calls(Base *base, Other *other, Root *root, int n) {
    if (Diamond *found = dynamic_cast<Diamond *>(base)) return found->two(n, found->three(n));
    return base->two(n, 1) + other->three(n) + root->four(n);
}

template <typename F> __attribute__((noinline)) int applied(F f, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += f(i);
    return sum;
}

int closes(int n) {
    Guard one(n);
    return applied([&](int i) { Guard two(i); return one.number() * two.number() + many(i, n, 0, 0, 0, 0, 0, 0, 0); }, n);
}

int aligned(int n) {
    alignas(64) char room[128];
    Guard one(n);
    return many(n, 1, 2, 3, 4, 5, 6, 7, room) + one.number();
}

int grows(int n) {
    char *room = static_cast<char *>(__builtin_alloca(n));
    Guard one(n);
    return many(n, 1, 2, 3, 4, 5, 6, 7, room) + one.number();
}

int on_the_stack(Guard one, int a, int b, int c, int d, int e, int f, int g) {
    Guard two(one);
    return many(a, b, c, d, e, f, g, one.number(), 0) + two.number();
}

int passes(int n) {
    Guard one(n);
    return on_the_stack(one, n, 1, 2, 3, 4, 5, 6) + on_the_stack(Guard(one), n, 1, 2, 3, 4, 5, 6);
}

int finally(int n) {
    struct Finally { int &n; ~Finally() { puts("finally"); n++; } } last{n};
    try {
        return throws(n);
    } catch (const Error &error) {
        if (error.code == 3) throw Worse(n);
        return catches(error.code);
    }
}
