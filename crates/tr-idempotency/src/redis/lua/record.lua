-- What a record's head says.
local function fields(value)
  local _, phase, mutating, body, epoch, owner, version, runs, claimed, changed, till, unknown,
    fixed, digest = struct.unpack(HEAD, value)
  return {
    phase = phase, mutating = mutating, body = body, epoch = epoch, owner = owner,
    version = version, runs = runs, claimed = claimed, changed = changed, till = till,
    unknown = unknown, fixed = fixed, digest = digest,
  }
end

-- The record as it stands now and its bytes; nil if there is none, false if it is not a record that
-- this version knows.
local function read()
  local value = redis.call('GET', key)
  if not value then return nil end
  if string.sub(value, 1, 1) ~= LAYOUT or #value < SIZE then return false end
  local r = fields(value)
  if not string.find('idnwfcu', r.phase, 1, true) then return false end
  if #value > SIZE and #value < SIZE + r.fixed then return false end
  if r.phase == 'i' and now >= r.till then
    -- The lease has ended, and the outcome of the call was not recorded.
    r.phase, r.changed, r.till, r.version = 'u', r.till, r.till + r.unknown, r.version + 1
  end
  if r.phase ~= 'i' and now >= r.till then return nil end
  return r, value
end

-- When the record is over.
local function over(r)
  if r.phase == 'i' then return r.till + r.unknown end
  return r.till
end

local function write(r, rest)
  local head = struct.pack(HEAD, LAYOUT, r.phase, r.mutating, r.body, r.epoch, r.owner, r.version,
    r.runs, r.claimed, r.changed, r.till, r.unknown, r.fixed, r.digest)
  redis.call('SET', key, head .. rest, 'PX', math.max(over(r) - now, 1))
end

-- Writes without changing anything: WAIT waits for the last write of its own connection.
local function touch(r)
  redis.call('PEXPIREAT', key, over(r))
end

-- An epoch above all earlier ones of the key, also of records that are gone.
local function above(epoch)
  return math.max(us, epoch + 1)
end

local function turn(r, phase, till)
  r.phase, r.changed, r.till, r.version = phase, now, till, r.version + 1
end

-- Wakes the watchers. A user without permission to publish relies on watchers that poll.
local function tell()
  redis.pcall('PUBLISH', key, '')
end
