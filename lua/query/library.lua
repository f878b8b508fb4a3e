local define = require "lib.define"
local reply = require "lib.reply"

define.fn {
  name = "ff_library",
  doc = "The number and hash of the library that answers.",
  flags = { "no-writes" },
  args = {},
  reply = { library = { number = "count", hash = "text" } },
  errs = {},
  call = function()
    return reply.ok("library", { number = LIBRARY.number, hash = LIBRARY.hash })
  end,
}
