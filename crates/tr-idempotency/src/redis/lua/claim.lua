local r, value = read()
if r == false then return {'unreadable'} end
local epoch, version, runs = us, 1, 1
if r then
  if r.digest ~= digest then return {'conflict'} end
  if r.owner == owner and (r.phase == 'i' or (r.phase == 'u' and r.body == '0')) then
    -- The reply to this very claim got lost: it is sent again before anything has started.
    if r.phase == 'u' then
      turn(r, 'i', now + lease)
      write(r, string.sub(value, SIZE + 1))
    elseif durable then
      touch(r)
    end
    return {'run', now, r.epoch, r.till - now, r.runs, false}
  end
  if r.phase == 'i' then return {'busy', r.epoch, r.owner, r.version, r.till - now} end
  if r.phase == 'd' or r.phase == 'n' or (r.phase == 'w' and again ~= '1') then
    return {'settled', now, value}
  end
  if r.phase == 'u' and (r.mutating == '1' or mutating == '1') then
    return {'unknown', now, value}
  end
  epoch, version, runs = above(r.epoch), r.version + 1, r.runs + 1
end
write({
  phase = 'i', mutating = mutating, body = '0', epoch = epoch, owner = owner, version = version,
  runs = runs, claimed = now, changed = now, till = now + lease, unknown = unknown,
  fixed = #fixed, digest = digest,
}, fixed)
if r then tell() end
return {'run', now, epoch, lease, runs, r and value or false}
