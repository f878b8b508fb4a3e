#!/usr/bin/env bash
# A whole worker in bash and curl: register, claim, progress, renew, complete, fail, delay, leave.
# Works until it is drained.
set -euo pipefail
base=$1 instance=$2

call() { # METHOD PATH BODY
  curl -sS --fail-with-body --max-time 40 -X "$1" "$base$2" -H 'content-type: application/json' -d "$3"
}
fresh() { cat /proc/sys/kernel/random/uuid; }
field() { # NAME JSON: the field's text or number
  local text="\"$1\":\"?([^\",}]*)"
  [[ $2 =~ $text ]] && printf '%s' "${BASH_REMATCH[1]}"
}

incarnation=$(fresh)
call POST "/v1/workers/$instance/register" \
  "{\"worker_id\":\"shell\",\"lanes\":[\"default\"],\"slots\":2,\"incarnation\":\"$incarnation\"}" >/dev/null

while :; do
  claimed=$(call POST "/v1/workers/$instance/claim" "{\"max\":1,\"wait_ms\":500,\"lease_ttl_ms\":20000,\"request_id\":\"$(fresh)\"}")
  if [[ $claimed == '{"tasks":[]}' ]]; then
    beaten=$(call POST "/v1/workers/$instance/heartbeat" '{}')
    if [[ $(field draining "$beaten") == true ]]; then break; fi
    continue
  fi
  id=$(field execution_id "$claimed")
  proof="\"attempt_id\":\"$(field attempt_id "$claimed")\",\"lease_id\":\"$(field lease_id "$claimed")\",\"lease_epoch\":$(field lease_epoch "$claimed")"
  first=$(field attempt_index "$claimed")
  kind=$(field kind "$claimed")
  call POST "/v1/tasks/$id/progress" "{\"fence\":{$proof},\"pct\":50,\"message\":\"half way\"}" >/dev/null
  call POST "/v1/workers/$instance/heartbeat" "{\"renew\":[{\"execution_id\":\"$id\",$proof}]}" >/dev/null
  if [[ $kind == flaky && $first == 0 ]]; then
    call POST "/v1/tasks/$id/fail" "{\"fence\":{$proof},\"reason\":\"not today\",\"category\":\"flaky\"}" >/dev/null
  elif [[ $kind == later && $first == 0 ]]; then
    call POST "/v1/tasks/$id/delay" "{\"fence\":{$proof},\"delay_ms\":50}" >/dev/null
  else
    end="{\"fence\":{$proof},\"result\":{\"doubled\":$((2 * $(field n "$claimed")))}}"
    call POST "/v1/tasks/$id/complete" "$end" >/dev/null
    # A reply that was lost is asked for again, and is the same.
    call POST "/v1/tasks/$id/complete" "$end" >/dev/null
  fi
done
call DELETE "/v1/workers/$instance" "{\"incarnation\":\"$incarnation\"}"
