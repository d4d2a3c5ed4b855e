#!/bin/sh
# An agent that speaks just enough of the Agent Client Protocol. What it hears goes to the file `heard`.
# A prompt that says DIE ends it, one that says LAST does so after its turn; one that says TALK makes it
# say something first, and one that says EDIT change a file, as it says; one that says STAY makes it
# start a program in a session of its own, and tell who its guard, itself and that program are.
echo started >> heard
session=s1
while read -r line; do
    id=$(printf '%s\n' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
    answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
    update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":%s}}\n' "$session" "$1"; }
    case $line in
        *'"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
        *'"session/new"'*)
            echo begun >> heard
            answer "{\"sessionId\":\"$session\"}"
            ;;
        *'"session/load"'*)
            echo loaded >> heard
            [ ! -e dies-loading ] || exit 3
            answer '{}'
            ;;
        *'"session/set_mode"'*) answer '{}' ;;
        *'"session/prompt"'*)
            printf '%s\n' "$line" >> heard
            case $line in
                *DIE*) exit 3 ;;
                *STAY*)
                    setsid sleep 300 </dev/null >/dev/null 2>&1 &
                    echo "stays $PPID $$ $!" >> heard
                    ;;
                *TALK*) update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I am talking"}}' ;;
                *EDIT*)
                    update '{"sessionUpdate":"tool_call","toolCallId":"1","title":"Edit a","kind":"edit","status":"in_progress","content":[{"type":"diff","path":"/a","oldText":"1\n2\n","newText":"1\ntwo\u001b[2J\n"}]}'
                    update '{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed"}'
                    ;;
            esac
            answer '{"stopReason":"end_turn"}'
            case $line in *LAST*) exit 3 ;; esac
            ;;
    esac
done
