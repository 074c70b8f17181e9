-- The bytes up to ARGV[1] as written, and the time: the state is computed from both.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return {now, redis.call('GETRANGE', KEYS[1], 0, ARGV[1])}
