-- For wrk: sends the requests of the file BENCH_REQUESTS in turn, each as "<bytes>\n<request>".
local requests = {}
local place = 0

function init()
  local file = assert(io.open(os.getenv("BENCH_REQUESTS"), "rb"))
  while true do
    local size = file:read("*n")
    if not size then break end
    file:read(1)
    requests[#requests + 1] = file:read(size)
  end
  file:close()
end

function request()
  place = place % #requests + 1
  return requests[place]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format("RESULT %d %d %d %d %d %d %d %d %d %d\n",
    summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(95), latency:percentile(99),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
