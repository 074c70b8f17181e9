-- The claim is a whole record, but for its times. Most keys are new: this writes it if there is
-- nothing, and is over. If there is something, or no memory for more, what follows sees to that.
local claim, lease = ARGV[1], ARGV[2]
local lead, by = struct.unpack('>c4xxxxxxxxc20', claim)
local times = struct.pack('>I8I8I8', now, now, now + lease)
local first = lead .. struct.pack('>I8', us) .. by .. times .. string.sub(claim, 57)
if not redis.pcall('SET', key, first, 'NX', 'GET', 'PX', ARGV[3]) then return us end
