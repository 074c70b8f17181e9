-- The record, but for its times and its epoch, comes in three parts. Most keys are new: this writes
-- it if there is nothing, and is over. If there is something, or no memory for more, what follows
-- sees to that.
local lease = ARGV[4]
local times = struct.pack('>I8c0I8I8I8', us, ARGV[2], now, now, now + lease)
local first = ARGV[1] .. times .. ARGV[3]
if not redis.pcall('SET', key, first, 'NX', 'GET', 'PX', ARGV[5]) then return us end
