local epoch, owner, phase = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local ttl, kept, body, durable = tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7] == '1'
local r, value = read()
if r == false then return -1 end
if not r or r.epoch ~= epoch or r.owner ~= owner then return 0 end
if r.phase == 'i' or r.phase == 'u' then
  turn(r, phase, now + ttl)
  r.body = kept
  write(r, string.sub(value, SIZE + 1, SIZE + r.fixed) .. body)
  tell()
elseif durable then
  touch(r)
end
return 1
