local owner, digest, mutating, again = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local lease, unknown = tonumber(ARGV[5]), tonumber(ARGV[6])
local fixed, durable = ARGV[7], ARGV[8] == '1'
-- Most keys are new: this writes the claim if there is nothing, and is over. If there is something,
-- or no memory for more, what follows sees to that.
local first = struct.pack(HEAD, '1', 'i', mutating, '0', us, owner, 1, 1, now, now, now + lease,
  unknown, #fixed, digest) .. fixed
local there = redis.pcall('SET', key, first, 'NX', 'GET', 'PX', lease + unknown)
if not there then return {'run', now, us, lease, 1, false} end
