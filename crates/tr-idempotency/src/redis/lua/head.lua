-- A record is one string, read and written as a whole: a head of 100 bytes, the fixed part of the
-- claim (`fixed` bytes), and what is kept of the call. `layout.rs` reads the same.
-- Times are the server's, in milliseconds; the key lives as long as the record, never as the lease.
local key = KEYS[1]
local HEAD = '>c1c1c1c1I8c8I8I4I8I8I8I8I4c32'
local LAYOUT, SIZE = '1', 100
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
local now = (us - us % 1000) / 1000
