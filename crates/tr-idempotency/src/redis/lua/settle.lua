local epoch, owner, phase = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local ttl, kept, body = tonumber(ARGV[4]), ARGV[5], ARGV[6]
local r, value = read()
if r == false then return -1 end
if not r or r.phase ~= 'u' then return 0 end
if epoch and (r.epoch ~= epoch or r.owner ~= owner) then return 0 end
turn(r, phase, now + ttl)
r.epoch, r.owner, r.body = above(r.epoch), string.rep('\0', 8), kept
write(r, string.sub(value, SIZE + 1, SIZE + r.fixed) .. body)
tell()
return 1
