-- Sets the mark to ARGV[2] if it is ARGV[1], and returns it as it then is.
local mark = redis.call('GET', KEYS[1]) or ''
if mark ~= ARGV[1] or mark == ARGV[2] then return mark end
redis.call('SET', KEYS[1], ARGV[2])
return ARGV[2]
