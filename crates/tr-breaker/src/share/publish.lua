-- Takes one decision, unless the breaker has gone on since its epoch.
-- KEYS: state, log, meta. ARGV: name, new or known, epoch, latest, age, left, state, mode, origin, bell, ttl, most, keep.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function text(number) return string.format('%.0f', number) end
-- A request that was under way for too long: who sent it has gone on since.
if now > tonumber(ARGV[4]) then return {'late'} end
local name, base = ARGV[1], tonumber(ARGV[3])
local found = redis.call('HGET', KEYS[1], name)
local current = 0
if found then
  local version = tonumber(string.match(found, '^(%d+) ') or 0)
  if version > 1 then return {'have', found, text(now)} end
  -- What is not ours is no decision.
  current = tonumber(string.match(found, '^1 (%d+) ') or 0)
end
if current > base or (current == base and ARGV[2] == 'known') then return {'have', found, text(now)} end
if not found and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[12]) then return {'full'} end
local epoch = base
-- Epochs grow also over a Redis that has forgotten them.
if ARGV[2] == 'new' then epoch = math.max(base + 1, now) end
local revision = math.max(now, tonumber(redis.call('HGET', KEYS[3], 'revision') or 0) + 1)
local at, to = now - tonumber(ARGV[5]), now + tonumber(ARGV[6])
local entry = table.concat({'1', text(epoch), ARGV[9], text(at), text(to), ARGV[7], ARGV[8]}, ' ')
redis.call('HSET', KEYS[1], name, entry)
redis.call('ZADD', KEYS[2], text(revision), name)
redis.call('HSETNX', KEYS[3], 'era', ARGV[9] .. text(now))
redis.call('HSET', KEYS[3], 'revision', text(revision))
-- What is over goes, a few at a time.
for _, other in ipairs(redis.call('HRANDFIELD', KEYS[1], 8)) do
  local old = redis.call('HGET', KEYS[1], other)
  local began, ends, state, mode = string.match(old, '^1 %d+ %S+ (%d+) (%d+) (%S+) (%S+)$')
  if began and state ~= 'forced' and mode == 'set'
    and math.max(tonumber(began), tonumber(ends)) + tonumber(ARGV[13]) < now then
    redis.call('HDEL', KEYS[1], other)
    redis.call('ZREM', KEYS[2], other)
  end
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[11]) end
redis.call('PUBLISH', ARGV[10], '')
return {'done', text(epoch), redis.call('HGET', KEYS[3], 'era')}
