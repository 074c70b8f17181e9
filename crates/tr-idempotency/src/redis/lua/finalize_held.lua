local token, phase, ttl, durable, body = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1', ARGV[5]
local kept = body and '1' or '0'
body = body or ''
-- Most calls end during their lease: this records the end and returns, without parsing the fields
-- that stay. The script that follows handles all other cases.
local value = redis.call('GET', key)
if value and #value >= SIZE then
  local layout, was, mutating, holder, version, run, till =
    struct.unpack('>c1c1c1xc16I8c12xxxxxxxxI8', value)
  if layout == LAYOUT and was == 'i' and holder == token and now < till and ttl ~= '0' then
    local counts = struct.pack('>I8c0I8I8', version + 1, run, now, now + ttl)
    local head = LAYOUT .. phase .. mutating .. kept .. token .. counts
    redis.call('SET', key, head .. string.sub(value, 57) .. body, 'PX', ttl)
    redis.pcall('PUBLISH', key, '')
    return 1
  end
end
