#!/usr/bin/env bash
# A complete worker in bash and curl: register, claim, renew while working, complete, fail, delay, unregister.
#
#   worker.sh URL INSTANCE [LANE]
#
# The input of a task says what to do: {"n": 21, "seconds": 0.2} doubles 21 after a fifth of a second. Works until it is drained.
set -uo pipefail
base=$1 instance=$2 lane=${3:-default}
lease_ttl_ms=2000

call() { # METHOD PATH BODY: prints the response; fails if the server returns an error or is unreachable
  curl -sS --fail-with-body --max-time 40 -X "$1" "$base$2" -H 'content-type: application/json' -d "$3"
}
fresh() { cat /proc/sys/kernel/random/uuid; }
field() { # NAME JSON: prints the first field with this name, a text or a number
  local text="\"$1\":\"?([^\",}]*)"
  [[ $2 =~ $text ]] && printf '%s' "${BASH_REMATCH[1]}"
}

# The incarnation distinguishes this process from another one that was started with the same instance id by mistake.
incarnation=$(fresh)
register() {
  call POST "/v1/workers/$instance/register" \
    "{\"worker_id\":\"shell\",\"lanes\":[\"$lane\"],\"slots\":1,\"incarnation\":\"$incarnation\"}" >/dev/null
}
register || exit 1
echo "registered $instance"

# Renews the lease until a renewal fails. Then another worker may have the task, so the work is stopped.
keep() { # EXECUTION_ID FENCE_FIELDS PID_OF_THE_WORK
  while sleep 0.5; do
    local beaten
    beaten=$(call POST "/v1/workers/$instance/heartbeat" "{\"renew\":[{\"execution_id\":\"$1\",$2}]}") || continue
    if [[ $beaten == *'"code":'* || $beaten == *'"cancel_requested":true'* ]]; then
      kill "$3" 2>/dev/null
      return
    fi
  done
}

while :; do
  # One request id per claim: if the response is lost, a repetition with the same id gets the same task.
  request=$(fresh)
  ask="{\"max\":1,\"wait_ms\":1000,\"lease_ttl_ms\":$lease_ttl_ms,\"request_id\":\"$request\"}"
  if ! claimed=$(call POST "/v1/workers/$instance/claim" "$ask"); then
    [[ $(field code "$claimed") == worker_not_registered ]] && register
    sleep 0.2
    continue
  fi
  if [[ $claimed == '{"tasks":[]}' ]]; then
    beaten=$(call POST "/v1/workers/$instance/heartbeat" '{}') || continue
    if [[ $(field draining "$beaten") == true ]]; then break; fi
    continue
  fi

  id=$(field execution_id "$claimed")
  fence="\"attempt_id\":\"$(field attempt_id "$claimed")\",\"lease_id\":\"$(field lease_id "$claimed")\",\"lease_epoch\":$(field lease_epoch "$claimed")"
  attempt=$(field attempt_index "$claimed") kind=$(field kind "$claimed")
  n=$(field n "$claimed") seconds=$(field seconds "$claimed")
  echo "began $id"
  call POST "/v1/tasks/$id/progress" "{\"fence\":{$fence},\"pct\":50,\"message\":\"half way\"}" >/dev/null

  sleep "${seconds:-0}" &
  work=$!
  keep "$id" "$fence" "$work" &
  keeper=$!
  wait "$work" 2>/dev/null && done=yes || done=no
  kill "$keeper" 2>/dev/null
  wait "$keeper" 2>/dev/null

  if [[ $kind == flaky && $attempt == 0 ]]; then
    verb=fail body="{\"fence\":{$fence},\"reason\":\"not today\",\"category\":\"flaky\"}"
  elif [[ $kind == later && $attempt == 0 ]]; then
    verb=delay body="{\"fence\":{$fence},\"delay_ms\":50}"
  else
    verb=complete body="{\"fence\":{$fence},\"result\":{\"doubled\":$((2 * n))}}"
  fi
  # After a lost response, the call is repeated with the same fence and gets the same response. An error is final.
  for try in 1 2 3; do
    if answer=$(call POST "/v1/tasks/$id/$verb" "$body"); then
      echo "$verb $id $done"
      break
    elif [[ -n $(field code "$answer") && $(field retryable "$answer") != true ]]; then
      echo "refused $id $(field code "$answer")"
      break
    fi
    sleep "0.$try"
  done
done
call DELETE "/v1/workers/$instance" "{\"incarnation\":\"$incarnation\"}"
echo "left $instance"
