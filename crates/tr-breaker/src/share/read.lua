-- What was decided since a revision, oldest first.
-- KEYS: state, log, meta. ARGV: revision, limit, ttl.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local meta = redis.call('HMGET', KEYS[3], 'era', 'revision')
local found = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local entries = {}
for at = 1, #found, 2 do
  local entry = redis.call('HGET', KEYS[1], found[at])
  table.insert(entries, {found[at], string.format('%.0f', tonumber(found[at + 1])), entry or ''})
end
-- It stays while somebody reads it.
for _, key in ipairs(KEYS) do
  if redis.call('PTTL', key) < ARGV[3] / 2 then redis.call('PEXPIRE', key, ARGV[3]) end
end
return {meta[1] or '', meta[2] or '0', string.format('%.0f', now), entries}
