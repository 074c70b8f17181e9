local r, value = read()
if r == false then return -1 end
if not r or string.sub(value, 5, 20) ~= token then return 0 end
if r.phase == 'i' or r.phase == 'u' then
  turn(r, phase, now + ttl)
  r.body = kept
  write(r, string.sub(value, SIZE + 1, SIZE + r.fixed) .. body)
  tell()
elseif durable then
  touch(r)
end
return 1
