package valkey

import "github.com/redis/rueidis"

// scripts holds the scripts that the server runs.
type scripts struct{ charge, correct, restore, used, members, beat *rueidis.Lua }

func newScripts(clock string) scripts {
	counters := func(text string) *rueidis.Lua { return rueidis.NewLuaScript(clock + library + text) }
	return scripts{
		charge: counters(chargeText), correct: counters(correctText), restore: counters(restoreText), used: counters(usedText),
		members: rueidis.NewLuaScript(clock + membersText), beat: rueidis.NewLuaScript(clock + beatText),
	}
}

// clock reads the time of the server: seconds, and microseconds of the present second. Whole numbers of this size are
// exact in Lua.
const clock = `
local t = redis.call('TIME')
local now, us = tonumber(t[1]) - 1700000000, tonumber(t[2])
`

// A counter is a hash: l is the last second with a charge, t the sum of its slots, and 0 to 60 are the slots. The field
// of a second is its remainder by 61. A set beside it, ordered by seconds, holds the members of a group. All keys
// expire.
//
// Keys: the counters of a step, then the set of each counter's group, then the key of the epoch, for scripts that
// compare it. Each script takes a number first and returns it: an answer with another number belongs to another
// question.
//
//nolint:dupword // Lua ends blocks in blocks so
const library = `
local n = math.floor(#KEYS / 2)
local function lost(epoch) return redis.call('GET', KEYS[#KEYS]) ~= epoch end
local function load(key)
	local v = redis.call('HMGET', key, 'l', 't')
	local c = {last = now, used = 0, expired = {}, fresh = true, now = now}
	if not v[1] then return c end
	c.stale = true
	local last, total = tonumber(v[1]), tonumber(v[2])
	if now - last > 60 or last - now > 61 then return c end
	c.fresh, c.stale, c.last, c.used = false, false, last, total
	if last >= now then c.now = last; return c end
	for s = last + 1, now do c.expired[#c.expired + 1] = s % 61 end
	local old = redis.call('HMGET', key, unpack(c.expired))
	for i = 1, #old do if old[i] then c.used = c.used - tonumber(old[i]) end end
	return c
end
local function wait(key, c, need, limit)
	if need > limit then return 61000000 end
	local over, till = c.used + c.pending + need - limit, c.now
	if not c.fresh then
		local v = redis.call('HGETALL', key)
		local slots = {}
		for i = 1, #v, 2 do slots[v[i]] = tonumber(v[i + 1]) end
		for s = c.now - 60, c.last do
			over = over - (slots[tostring(s % 61)] or 0)
			if over <= 0 then till = s; break end
		end
	end
	return math.min((till + 61 - now) * 1000000 - us, 61000000)
end
local function add(i, c, amount)
	local key = KEYS[i]
	if c.fresh or c.now > c.last then
		if c.fresh then
			if c.stale then redis.call('DEL', key) end -- not before a counter is made: a full server would let the rest pass
			redis.call('HSET', key, 'l', c.now, 't', amount, c.now % 61, amount)
		else
			redis.call('HDEL', key, unpack(c.expired))
			redis.call('HSET', key, 'l', c.now, 't', c.used + amount, c.now % 61, amount)
		end
		redis.call('EXPIRE', key, 125)
		redis.call('ZADD', KEYS[n + i], c.now, string.sub(key, -16))
		redis.call('EXPIRE', KEYS[n + i], 125)
	else
		redis.call('HINCRBY', key, 't', amount)
		redis.call('HINCRBY', key, c.now % 61, amount)
	end
	c.fresh, c.stale, c.last, c.used, c.expired = false, false, c.now, c.used + amount, {}
end
`

// Arguments after the number: 1 to charge or 0 to look, the epoch, then amount and limit of each counter. Answer: the
// number, the second, then 1 when all had room and -1 when the counters are of another epoch, then for each counter the
// used amount and the microseconds to wait.
//
//nolint:dupword // Lua ends blocks in blocks so
const chargeText = `
local counters, ok = {}, 1
local out = {tonumber(ARGV[1]), now, -1}
for i = 4, 2 * n + 3 do out[i] = 0 end
if ARGV[2] == '1' and lost(ARGV[3]) then return out end
for i = 1, n do
	local key, amount, limit = KEYS[i], tonumber(ARGV[2 * i + 2]), tonumber(ARGV[2 * i + 3])
	local need = math.max(amount, 1)
	local c = counters[key]
	if not c then c = load(key); c.pending = 0; counters[key] = c end
	local w = 0
	if c.used + c.pending + need > limit then ok = 0; w = math.max(wait(key, c, need, limit), 1) end
	out[2 * i + 2], out[2 * i + 3] = c.used, w
	if ARGV[2] == '1' then c.pending = c.pending + amount end
end
if ok == 1 and ARGV[2] == '1' then
	for i = 1, n do
		local c, amount = counters[KEYS[i]], tonumber(ARGV[2 * i + 2])
		c.pending = 0
		if amount > 0 then add(i, c, amount) end
		out[2 * i + 2] = c.used
		out[2] = math.max(out[2], c.now)
	end
end
out[3] = ok
return out
`

// Arguments after the number: the epoch, then second and change of each counter. Answer: the number, and 1 when the
// change was made.
//
//nolint:dupword // Lua ends blocks in blocks so
const correctText = `
if lost(ARGV[2]) then return {tonumber(ARGV[1]), 0} end
for i = 1, n do
	local at, delta = tonumber(ARGV[2 * i + 1]), tonumber(ARGV[2 * i + 2])
	local key, c = KEYS[i], load(KEYS[i])
	if delta > 0 then
		add(i, c, delta)
	elseif not c.fresh and at <= c.last and at >= c.now - 60 then
		local back = math.min(tonumber(redis.call('HGET', key, at % 61) or 0), -delta)
		if back > 0 then
			redis.call('HINCRBY', key, at % 61, -back)
			redis.call('HINCRBY', key, 't', -back)
		end
	end
end
return {tonumber(ARGV[1]), 1}
`

// Arguments after the number: the epoch, then age and amount of each. Answer: the number, and 1 when the change was
// made.
const restoreText = `
if lost(ARGV[2]) then return {tonumber(ARGV[1]), 0} end
for i = 1, n do
	local age, amount = tonumber(ARGV[2 * i + 1]), tonumber(ARGV[2 * i + 2])
	local key, c = KEYS[i], load(KEYS[i])
	add(i, c, 0)
	redis.call('HINCRBY', key, (c.now - age) % 61, amount)
	redis.call('HINCRBY', key, 't', amount)
end
return {tonumber(ARGV[1]), 1}
`

// Answer: the number, then the value of each counter.
const usedText = `
local out = {tonumber(ARGV[1])}
for i = 1, n do out[i + 1] = load(KEYS[i]).used end
return out
`

// Keys: a group's set. Answer: the number, then the members with a charge in the last 61 seconds.
const membersText = `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 62)
local out = redis.call('ZRANGE', KEYS[1], 0, -1)
table.insert(out, 1, tonumber(ARGV[1]))
return out
`

// Keys: the epoch, the run of the server in which the epoch began, the set of nodes, and the set of nodes that have
// reported their past calls. Arguments after the number: the node, its lifetime in seconds, the epoch that it knows,
// and three random digits. Answer: the number, the epoch, its age in microseconds, the number of living nodes, and how
// many of them have reported.
//
// An epoch is the time of its beginning in nanoseconds, with random digits in the last three places.
//
// A server that starts from a snapshot has forgotten the latest changes, and so has a replica that was behind.
// Therefore an epoch ends with its server. Where INFO is not allowed it ends with its key.
const beatText = `
local info, run = redis.pcall('INFO', 'server'), ''
if type(info) == 'string' then run = string.match(info, 'run_id:(%w+)') or '' end
local epoch = redis.call('GET', KEYS[1])
if not epoch or run ~= '' and redis.call('GET', KEYS[2]) ~= run then
	epoch = string.format('%d%06d', now, us) .. ARGV[5]
	redis.call('SET', KEYS[1], epoch)
	redis.call('SET', KEYS[2], run)
	redis.call('DEL', KEYS[4])
end
local at = now + us / 1000000
local function beat(key)
	redis.call('ZADD', key, string.format('%.6f', at), ARGV[2])
	redis.call('EXPIRE', key, 125)
end
local function living(key)
	redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('(%.6f', at - tonumber(ARGV[3])))
	return redis.call('ZCARD', key)
end
beat(KEYS[3])
if ARGV[4] == epoch or ARGV[4] == '-1' then beat(KEYS[4]) else redis.call('ZREM', KEYS[4], ARGV[2]) end
redis.call('EXPIRE', KEYS[1], 125) -- not before a node is written: a full server would let the rest pass
redis.call('EXPIRE', KEYS[2], 125)
local age = (at - tonumber(epoch) / 1000000000) * 1000000
return {tonumber(ARGV[1]), epoch, math.floor(age), living(KEYS[3]), living(KEYS[4])}
`
