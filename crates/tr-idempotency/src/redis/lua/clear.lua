local r = read()
if redis.call('DEL', key) == 0 or r == nil then return 0 end
tell()
return 1
