-- Deletes only the version that was read, and only if that cannot run a call twice.
local epoch, owner, version = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local r = read()
if not r or r.epoch ~= epoch or r.owner ~= owner or r.version ~= version then return 0 end
if r.phase == 'i' or (r.phase == 'u' and r.mutating == '1') then return 0 end
redis.call('DEL', key)
tell()
return 1
