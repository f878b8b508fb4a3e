-- How long a failed attempt waits before the next one, in whole milliseconds.
local backoff = {}

-- `failures` counts the failed attempts so far (1 after the first); `draw` is 0..=1000 from the caller.
function backoff.delay_ms(retry, failures, draw)
  local delay
  if retry.backoff.type == "fixed" then
    delay = retry.backoff.delay_ms
  else
    delay = retry.backoff.initial_ms
    for _ = 2, failures do
      delay = delay * retry.backoff.factor
      if delay >= retry.backoff.max_ms then break end
    end
    if delay > retry.backoff.max_ms then delay = retry.backoff.max_ms end
  end
  if retry.jitter == "full" then delay = math.floor(delay * draw / 1000) end
  return delay
end

return backoff
