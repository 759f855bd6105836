// C++ without any header: exceptions, virtual calls, templates, and inline functions that land in COMDAT groups.

extern int source(int);
extern void sink(const void *);

struct Shape {
    virtual ~Shape();
    virtual int area() const = 0;
    virtual int weight() const { return area() * source(2); }
};

Shape::~Shape() { sink(this); }

struct Square : Shape {
    int side;
    explicit Square(int s) : side(s) {}
    int area() const override { return side * source(side); }
};

// Two bases make thunks.
struct Named {
    virtual ~Named() { sink(this); }
    virtual int name() const { return source(7); }
};

struct Label : Square, Named {
    explicit Label(int s) : Square(s) {}
    int name() const override { return source(side) + area(); }
};

// Destructors make landing pads.
struct Guard {
    int held;
    explicit Guard(int n) : held(source(n)) {}
    ~Guard() { sink(&held); }
};

template <int N> struct Tower {
    static int climb(int n) { Guard guard(n); return source(N) + Tower<N - 1>::climb(n + 1); }
};
template <> struct Tower<0> {
    static int climb(int n) { return source(n); }
};

inline int shared_inline(int n) { return source(n) * source(n + 1); }

template <typename T> T largest(T a, T b) { sink(&a); return a < b ? b : a; }

int catches(int n)
{
    Guard outer(n);
    try {
        Guard inner(n + 1);
        if (source(n) > 3)
            throw n;
        return Tower<3>::climb(n);
    } catch (int e) {
        return shared_inline(e);
    } catch (const Guard &guard) {
        sink(&guard);
        throw;
    } catch (...) {
        return -1;
    }
}

int never_throws(int n) noexcept
{
    Guard guard(n);
    return source(n) + largest<long>(n, 3) + largest<char>('a', char(n));
}

int through_pointer(const Shape &shape, const Named &named)
{
    return shape.weight() + named.name();
}

int makes(int n)
{
    Label label(n);
    Square square(n + 1);
    auto adds = [&](int more) { sink(&label); return square.area() + more; };
    return through_pointer(square, label) + adds(source(n));
}

static Guard at_start(42);
