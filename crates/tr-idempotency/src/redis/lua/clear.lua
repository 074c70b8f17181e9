local r = read()
if r == nil then return 0 end
redis.call('DEL', key)
tell()
return 1
