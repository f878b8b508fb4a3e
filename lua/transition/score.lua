-- An execution's place in its queue: lower goes first.
local fair = require "index.fair"

local score = {}

-- Age against priority: a point of priority is worth `priority_weight` milliseconds of age. In a fair lane the
-- virtual start of the fairness key stands for the age.
function score.of(tx, copy, rec)
  rec.fair, rec.fair_end = nil, nil
  if copy.fairness == "fair" then rec.fair, rec.fair_end = fair.start(tx, copy, rec.fairness_key, tx.now) end
  return (rec.fair or rec.created) - rec.prio * copy.priority_weight
end

return score
