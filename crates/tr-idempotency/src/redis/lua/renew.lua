local epoch, owner, lease = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local r, value = read()
if r == false then return -1 end
if not r or r.epoch ~= epoch or r.owner ~= owner then return 0 end
if r.phase == 'i' then
  r.till = math.max(r.till, now + lease)
elseif r.phase == 'u' and r.body == '0' then
  turn(r, 'i', now + lease)
else
  return 0
end
write(r, string.sub(value, SIZE + 1))
return 1
