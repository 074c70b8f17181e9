local again, durable, corrects = ARGV[6] == '1', ARGV[7] == '1', ARGV[8] == '1'
local c, r, value = fields(first), read()
if r == false then return {'unreadable'} end
local other = r and r.digest ~= c.digest
if other then
  local failed = r.phase == 'n' or r.phase == 'w' or r.phase == 'f' or r.phase == 'c'
  if not (corrects and failed) then return {'conflict'} end
  c.epoch, c.version, c.runs = above(r.epoch), r.version + 1, r.runs + 1
elseif r then
  if r.owner == c.owner and (r.phase == 'i' or (r.phase == 'u' and r.body == '0')) then
    -- The reply to this claim was lost, and the claim is sent again; the call has not started.
    if r.phase == 'u' then
      turn(r, 'i', now + lease)
      write(r, string.sub(value, SIZE + 1))
    elseif durable then
      touch(r)
    end
    return {'run', now, r.epoch, r.till - now, r.runs, false}
  end
  if r.phase == 'i' then return {'busy', r.epoch, r.owner, r.version, r.till - now} end
  if r.phase == 'd' or r.phase == 'n' or (r.phase == 'w' and not again) then
    return {'settled', now, value}
  end
  if r.phase == 'u' and (r.mutating == '1' or c.mutating == '1') then
    return {'unknown', now, value}
  end
  c.epoch, c.version, c.runs = above(r.epoch), r.version + 1, r.runs + 1
end
write(c, string.sub(first, SIZE + 1))
if r then tell() end
return {'run', now, c.epoch, c.till - now, c.runs, r and not other and value or false}
