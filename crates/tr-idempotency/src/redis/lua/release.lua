local owner = ARGV[1]
local r = read()
if r == false then return -1 end
if not r or r.owner ~= owner then return 0 end
if r.phase ~= 'i' and not (r.phase == 'u' and r.body == '0') then return 0 end
redis.call('DEL', key)
tell()
return 1
