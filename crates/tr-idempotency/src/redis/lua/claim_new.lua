-- ARGV has the record in three parts, without times and epoch. Most keys are new: this writes it if
-- there is none, and returns. If there is a record, or the memory is full, the script that follows
-- handles that.
local lease = ARGV[4]
local times = struct.pack('>I8c0I8I8I8', us, ARGV[2], now, now, now + lease)
local first = ARGV[1] .. times .. ARGV[3]
if not redis.pcall('SET', key, first, 'NX', 'GET', 'PX', ARGV[5]) then return us end
