-- A program that says where it is, in the way that its argument names, and waits there.

local resumers = {}  -- the coroutines that wait for the one that runs

local function quoted(text)
  return '"' .. text:gsub('[%c"\\]', function(one) return ("\\u%04x"):format(one:byte()) end) .. '"'
end

-- Print the functions of Lua, innermost first, as Lua itself knows them.
local function tell()
  local frames = {}
  local function add(thread, level)
    local info
    repeat
      if thread then info = debug.getinfo(thread, level, "nSl") else info = debug.getinfo(level + 1, "nSl") end
      level = level + 1
      if info and info.what ~= "C" then
        local name = info.name and quoted(info.name) or "null"
        frames[#frames + 1] = ('{"name": %s, "kind": "%s", "what": "%s", "source": %s, "first": %d, "line": %d}'):format(
          name, info.namewhat, info.what, quoted(info.source), info.linedefined, info.currentline)
      end
    until not info
  end
  add(nil, 2)
  for number = #resumers, 1, -1 do add(resumers[number], 0) end
  print("[" .. table.concat(frames, ", ") .. "]")
  io.stdout:flush()
end

-- Run a function as a coroutine, and know who waits for it.
local function resume(thread, ...)
  resumers[#resumers + 1] = coroutine.running()
  local results = table.pack(coroutine.resume(thread, ...))
  resumers[#resumers] = nil
  assert(results[1], results[2])
  return table.unpack(results, 2, results.n)
end

local function wait() tell() io.read() end

local ways = {}

function ways.recursion()
  local function down(n)
    if n > 0 then down(n - 1) else wait() end
    return n
  end
  down(40)
end

function ways.callbacks()
  pcall(function()
    table.sort({3, 1, 2}, function(a, b) wait() return a < b end)
  end)
end

function ways.names()
  local object = {method = function(self) wait() return self end, field = {deeper = {}}}
  object.field.deeper.call = function() object:method() return 1 end
  object[1] = function() object.field.deeper.call() return 1 end
  GLOBAL = function(one) object[one]() return 1 end
  local key = "computed" .. #arg
  object[key] = function() GLOBAL(1) return 1 end
  object["a constant that is a long string, which is kept in another way than short ones"] = function()
    object[key]()
    return 1
  end
  local alias = object
  alias["a constant that is a long string, which is kept in another way than short ones"](1, key and 2 or 3)
end

function ways.metamethods()
  local meta = {}
  local object = setmetatable({}, meta)
  function meta.__index(_, key) wait() return key end
  function meta.__newindex(self, _, value) return self[value] .. "" end
  function meta.__add(one) one.field = 1 return 1 end
  function meta.__concat(one, other) return one + other end
  function meta.__eq(one, other) return one .. other == 1 end
  function meta.__lt(one) return one == setmetatable({}, meta) end
  function meta.__unm(one) return one < one end
  function meta.__len(one) return -one end
  function meta.__call(one) return #one end
  function meta.__close(one) one() end
  local function closing() local _ <close> = object end
  for _ in function(_, n) if not n then closing() end return nil end do end
  meta.__gc = function() closing() end
  setmetatable({}, meta)
  collectgarbage()
end

function ways.tail()
  local function last() wait() return 1 end
  local function before() return last() end
  before()
end

function ways.coroutines()
  local function down(n)
    if n > 0 then resume(coroutine.create(down), n - 1) else wait() end
    return n
  end
  down(20)
end

-- What was begun by several evaluators goes on in one.
function ways.resumed()
  local thread = coroutine.create(function()
    local function inner() coroutine.yield() wait() return 1 end
    local function outer() assert(pcall(inner)) return 1 end
    assert(pcall(outer))
    return 1
  end)
  resume(thread)
  resume(thread)
end

function ways.handler()
  xpcall(function() local nothing = nil; return nothing.field end, function(message) wait() return message end)
  error("unreachable")
end

function ways.chunks()
  local function run(text, name) return load(text, name)(wait) end
  WAIT = wait
  RUN = run
  run("RUN('local w = ...\\n\\n\\nw() return 1', '=näme') return 1")
end

-- Lines that are far from each other, and more instructions than are counted from one known line.
function ways.lines()
  local text = {"local wait = ...\nlocal x = 0\n"}
  for number = 1, 400 do text[#text + 1] = "x = x + " .. number .. ("\n"):rep(number % 7 == 0 and 300 or 1) end
  text[#text + 1] = "\nwait(\nx\n)\nreturn x"
  load(table.concat(text), "@/far/away.lua")(wait)
end

-- Deeper than one piece of memory that is read, by turns in Lua and in C.
function ways.deep()
  local function down(n)
    if n == 0 then wait()
    elseif n % 5 == 0 then pcall(down, n - 1)
    else down(n - 1) end
    return n
  end
  down(400)
end

function ways.hook()
  local is_there = false
  debug.sethook(function() if not is_there then is_there = true; wait() end end, "l")
  local x = 1
  return x
end

ways[arg[1]]()
wait()
